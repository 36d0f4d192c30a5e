//! What can be typed, as plain data. Only this file and those below it know clap.

mod compose;
mod reader;
mod terminal;
mod upkeep;

use clap::{ArgAction, CommandFactory, Parser, Subcommand, ValueEnum};

use super::units::{ByteSize, TimeLimit, Transfer, parse_cpus};

pub(super) use compose::{
    ChoiceArgs, ComposeArgs, ComposeConfigArgs, ComposeDownArgs, ComposeExecArgs, ComposeLogsArgs,
    ComposeNameArgs, ComposePlanArgs, ComposeRunArgs, ComposeUpArgs, ConfigFormatArg, HostPortsArg,
    ProjectArgs, StrictnessArg,
};
pub(super) use terminal::{PtyArgs, ShellArgs, TerminalArgs};
pub(super) use upkeep::{FilterArgs, GcArgs, InspectArgs, PsArgs};

/// Reads the arguments of the process.
///
/// # Errors
/// The exit code, once help, the version or a usage error has been printed.
pub(super) fn parse() -> Result<Args, u8> {
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Some(args) = reader::parse(&arguments) {
        return Ok(args);
    }
    Args::try_parse_from(arguments).map_err(|error| {
        // Nothing is left to say when even this cannot be written.
        let _ = error.print();
        u8::try_from(error.exit_code()).unwrap_or(super::exit::USAGE)
    })
}

/// Reads these arguments, the first being the name of the program.
#[cfg(test)]
pub(super) fn parse_from(arguments: &[&str]) -> Args {
    Args::try_parse_from(arguments).expect("the arguments can be read")
}

/// The script that completes this command in a shell.
pub(super) fn completions(args: &CompletionsArgs) -> Vec<u8> {
    let mut script = Vec::new();
    let mut command = Args::command();
    clap_complete::generate(args.shell, &mut command, "gym-sandbox", &mut script);
    script
}

/// Isolated sandboxes for agent rollouts and benchmark harnesses.
#[derive(Debug, Parser)]
#[command(name = "gym-sandbox", version)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) global: GlobalArgs,
    #[command(subcommand)]
    pub(super) command: CommandArgs,
}

impl Args {
    /// Says whether the command only reads files, and so needs no engine.
    pub(super) fn reads_only(&self) -> bool {
        matches!(self.command, CommandArgs::Compose(ComposeArgs::Config(_)))
    }
}

/// Options of all commands.
#[derive(Debug, clap::Args)]
pub(super) struct GlobalArgs {
    /// The engine's address (unix://, tcp://, ssh://); without it the engine is looked for
    #[arg(long, global = true, value_name = "URL")]
    pub(super) host: Option<String>,
    /// What runs the sandboxes
    #[arg(long, global = true, value_enum, default_value_t = ProviderArg::Docker)]
    pub(super) provider: ProviderArg,
    /// Print data as JSON
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Log to standard error; -vv and -vvv say more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(super) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(super) enum CommandArgs {
    /// Run one command in a throw-away sandbox
    Run(Box<RunArgs>),
    /// Make a sandbox that stays, and print its id
    #[command(override_usage = "gym-sandbox create --image <REF> [OPTIONS]")]
    Create(Box<SandboxArgs>),
    /// Run a command in a sandbox that is there
    Exec(ExecArgs),
    /// Open a terminal in a sandbox that is there
    Pty(PtyArgs),
    /// Open a terminal in a throw-away sandbox
    Shell(Box<ShellArgs>),
    /// Copy files and directories into a sandbox and out of it
    Cp(CpArgs),
    /// Freeze a sandbox with everything that runs in it
    Pause(IdArgs),
    /// Let a paused sandbox run again
    Resume(IdArgs),
    /// Print what the main process of a sandbox printed
    Logs(LogsArgs),
    /// Print how much of the machine a sandbox uses
    Stats(StatsArgs),
    /// Remove sandboxes
    Rm(RmArgs),
    /// Pull images that the engine does not have
    Prefetch(PrefetchArgs),
    /// List the sandboxes of the engine, and whose they are
    Ps(PsArgs),
    /// Say everything known of a sandbox, as JSON
    Inspect(InspectArgs),
    /// Remove what dead processes and expired sandboxes have left
    Gc(GcArgs),
    /// Read Compose files and run their projects
    #[command(subcommand)]
    Compose(ComposeArgs),
    /// Say which engine is reached, how, and what it lacks
    Doctor,
    /// Measure this library against the same raw engine calls
    Bench(BenchArgs),
    /// Print the script that completes this command in a shell
    Completions(CompletionsArgs),
}

const EXIT_CODES: &str = "The exit code is the command's; 124: it ran out of time, 125: no sandbox, \
                          126 or 127: it could not be started, 2: wrong usage.";

#[derive(Debug, clap::Args)]
#[command(
    after_help = EXIT_CODES,
    override_usage = "gym-sandbox run --image <REF> [OPTIONS] <--shell <LINE>|-- <CMD>...>"
)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) sandbox: SandboxArgs,
    #[command(flatten)]
    pub(super) program: ProgramArgs,
    /// Copy out of the sandbox after the command has ended, also when it failed [repeatable]
    #[arg(long, value_name = "SRC:DST")]
    pub(super) download: Vec<Transfer>,
    /// Leave the sandbox and say its id
    #[arg(long)]
    pub(super) keep: bool,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = EXIT_CODES,
    override_usage = "gym-sandbox exec [OPTIONS] <ID> <--shell <LINE>|-- <CMD>...>"
)]
pub(super) struct ExecArgs {
    /// The id of the sandbox
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// A variable; without a value that of this process [repeatable]
    // Read by `resolve`: clap repeats a value that it can't read, and this one may be a secret.
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(super) env: Vec<String>,
    /// The directory to run in
    #[arg(long, value_name = "DIR")]
    pub(super) workdir: Option<String>,
    #[command(flatten)]
    pub(super) program: ProgramArgs,
}

const COPY_RULE: &str = "One of SRC and DST is ID:PATH, in the sandbox ID; relative PATHs are below its working directory. A target that ends \
                         in / is a directory to copy into; any other one is the target itself. A directory is copied \
                         as its content. `-` is the content of one file on standard input or output. A local path \
                         with a colon is written as ./a:b.";

#[derive(Debug, clap::Args)]
#[command(after_help = COPY_RULE)]
pub(super) struct CpArgs {
    /// What to copy
    #[arg(value_name = "SRC")]
    pub(super) source: String,
    /// Where to
    #[arg(value_name = "DST")]
    pub(super) target: String,
    /// Who owns what is copied into a sandbox, as numbers; without it the sandbox's user
    #[arg(long, value_name = "UID:GID", value_parser = super::units::parse_owner)]
    pub(super) owner: Option<gym_sandbox::FileOwner>,
    /// The mode of a file that is copied into a sandbox, in octal
    #[arg(long, value_name = "MODE", value_parser = super::units::parse_mode)]
    pub(super) mode: Option<u32>,
}

/// One sandbox that is there.
#[derive(Debug, clap::Args)]
pub(super) struct IdArgs {
    /// The id of the sandbox
    #[arg(value_name = "ID")]
    pub(super) id: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct LogsArgs {
    /// The id of the sandbox
    #[arg(value_name = "ID")]
    pub(super) id: String,
    #[command(flatten)]
    pub(super) lines: LogLineArgs,
}

/// Which lines of a log.
#[derive(Debug, clap::Args)]
pub(super) struct LogLineArgs {
    /// Go on until the main process ends
    #[arg(short, long)]
    pub(super) follow: bool,
    /// Only so many of the last lines
    #[arg(long, value_name = "N")]
    pub(super) tail: Option<u64>,
    /// Only lines that are no older than this, as in 10m or 1h30m
    #[arg(long, value_name = "DURATION", value_parser = super::units::parse_age)]
    pub(super) since: Option<std::time::Duration>,
    /// Print the time in front of each line
    #[arg(long)]
    pub(super) timestamps: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct StatsArgs {
    /// The id of the sandbox
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Go on until the sandbox ends
    #[arg(short, long)]
    pub(super) follow: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct RmArgs {
    /// The ids of the sandboxes
    #[arg(value_name = "ID", required = true)]
    pub(super) ids: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct PrefetchArgs {
    /// The images
    #[arg(value_name = "REF", required = true)]
    pub(super) images: Vec<String>,
}

/// What a sandbox should be.
#[derive(Debug, clap::Args)]
pub(super) struct SandboxArgs {
    /// The image to make the sandbox from
    #[arg(long, value_name = "REF")]
    pub(super) image: Option<String>,
    /// A variable; without a value that of this process [repeatable]
    // Read by `resolve`: clap repeats a value that it can't read, and this one may be a secret.
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(super) env: Vec<String>,
    /// The directory to run in
    #[arg(long, value_name = "DIR")]
    pub(super) workdir: Option<String>,
    /// Processor cores; fractions are allowed
    #[arg(long, value_name = "N", value_parser = parse_cpus)]
    pub(super) cpus: Option<f64>,
    /// Memory, as in 512m or 2g
    #[arg(long, value_name = "SIZE")]
    pub(super) memory: Option<ByteSize>,
    /// The largest number of processes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    pub(super) pids: Option<i64>,
    /// `none`, or the name of a network of the engine
    #[arg(long, value_name = "NAME")]
    pub(super) network: Option<String>,
    /// A set of restrictions
    #[arg(long, value_enum)]
    pub(super) preset: Option<PresetArg>,
    /// Copy into the sandbox once it is ready [repeatable]
    #[arg(long, value_name = "SRC:DST")]
    pub(super) upload: Vec<Transfer>,
    /// A TCP port that the sandbox offers, published on this machine [repeatable]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) port: Vec<u16>,
    /// When the image is pulled [default: missing]
    #[arg(long, value_enum)]
    pub(super) pull: Option<PullArg>,
}

/// What to run, and how.
#[derive(Debug, clap::Args)]
pub(super) struct ProgramArgs {
    /// The user to run as: a name or number, or user:group
    #[arg(long, value_name = "USER")]
    pub(super) user: Option<String>,
    /// How long the command may run, as in 30s or 1m30s; `none` for no limit [default: 180s]
    #[arg(long, value_name = "DURATION")]
    pub(super) timeout: Option<TimeLimit>,
    /// Give the command this process's standard input
    #[arg(long)]
    pub(super) stdin: bool,
    /// How the command is run
    #[arg(long, value_enum, default_value_t = ExecPathArg::Auto)]
    pub(super) exec_path: ExecPathArg,
    #[command(flatten)]
    pub(super) what: WhatArgs,
}

/// The command: exactly one of both.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(super) struct WhatArgs {
    /// A line for the sandbox's shell
    #[arg(long, value_name = "LINE")]
    pub(super) shell: Option<String>,
    /// A program and its arguments, run without a shell
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct BenchArgs {
    /// Only rows whose name holds this text
    #[arg(long, value_name = "FILTER")]
    pub(super) rows: Option<String>,
    /// Fewer samples: quicker, and more often unresolved
    #[arg(long)]
    pub(super) quick: bool,
    /// Also the rows that take minutes each
    #[arg(long, conflicts_with = "quick")]
    pub(super) long: bool,
    /// The image to measure in
    #[arg(long, value_name = "REF", default_value = "gym-sandbox/busybox:test")]
    pub(super) image: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ProviderArg {
    /// Containers of a Docker-compatible engine
    Docker,
    /// Processes of this machine, not isolated
    Local,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum PresetArg {
    /// What `docker run` does
    Compat,
    /// No capabilities, no new privileges, bounded processes, memory and logs
    Hardened,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum PullArg {
    /// When the engine does not have it
    Missing,
    /// Each time
    Always,
    /// Not at all
    Never,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum ExecPathArg {
    /// The resident agent where it works, else an exec of the engine
    Auto,
    /// An exec of the engine
    Engine,
    /// The resident agent
    Agent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_no_contradiction() {
        Args::command().debug_assert();
    }
}
