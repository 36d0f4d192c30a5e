//! What can be typed about terminals.

use super::{ExecPathArg, SandboxArgs};

const EXIT_CODES: &str = "The exit code is the program's; 125: no sandbox, 126 or 127: it could not be started, \
                          2: wrong usage. A terminal has no time limit: 124 is the program's own.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::cli) struct PtyArgs {
    /// The id of the sandbox
    #[arg(value_name = "ID")]
    pub(in crate::cli) id: String,
    /// A variable; without a value that of this process [repeatable]
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(in crate::cli) env: Vec<String>,
    /// The directory to run in
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) workdir: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) terminal: TerminalArgs,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = EXIT_CODES,
    override_usage = "gym-sandbox shell --image <REF> [OPTIONS] [-- <CMD>...]"
)]
pub(in crate::cli) struct ShellArgs {
    #[command(flatten)]
    pub(in crate::cli) sandbox: SandboxArgs,
    #[command(flatten)]
    pub(in crate::cli) terminal: TerminalArgs,
}

/// What runs in a terminal.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct TerminalArgs {
    /// The user to run as: a name or number, or user:group
    #[arg(long, value_name = "USER")]
    pub(in crate::cli) user: Option<String>,
    /// How the terminal is reached
    #[arg(long, value_enum, default_value_t = ExecPathArg::Auto)]
    pub(in crate::cli) exec_path: ExecPathArg,
    /// A program and its arguments [default: the sandbox's shell]
    #[arg(last = true, value_name = "CMD")]
    pub(in crate::cli) command: Vec<String>,
}
