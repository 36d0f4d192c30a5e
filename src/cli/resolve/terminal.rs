//! What runs in a terminal, and in which sandbox.

use gym_sandbox::docker::DockerConfig;
use gym_sandbox::{Error, ErrorKind, Operation, Result, SandboxPtySpec};

use super::super::args::{PtyArgs, ShellArgs, TerminalArgs};
use super::super::output::Format;
use super::{Backend, SandboxRequest, program, sandbox, variables};

/// A terminal in a sandbox that is there.
#[derive(Debug)]
pub(in crate::cli) struct PtyRequest {
    pub(in crate::cli) config: DockerConfig,
    pub(in crate::cli) id: String,
    pub(in crate::cli) spec: SandboxPtySpec,
}

/// A terminal in a sandbox of its own.
#[derive(Debug)]
pub(in crate::cli) struct ShellRequest {
    pub(in crate::cli) sandbox: SandboxRequest,
    pub(in crate::cli) spec: SandboxPtySpec,
}

/// A terminal's output is its program's alone.
fn no_json(format: Format, command: &str) -> Result<()> {
    match format {
        Format::Text => Ok(()),
        Format::Json => Err(Error::new(
            ErrorKind::Unsupported,
            Operation::Configure,
            format!("--json has no meaning with `{command}`, which prints what its terminal shows"),
        )
        .with_hint("leave the option out, or run a command with `exec --json` or `run --json`")),
    }
}

pub(super) fn pty(args: PtyArgs, mut config: DockerConfig, format: Format) -> Result<PtyRequest> {
    no_json(format, "pty")?;
    config.exec.exec_path = program::policy(args.terminal.exec_path);
    let mut spec = spec(args.terminal);
    spec.cwd = args.workdir;
    spec.env.extend(variables(&args.env)?);
    Ok(PtyRequest {
        config,
        id: args.id,
        spec,
    })
}

pub(super) fn shell(args: ShellArgs, mut config: DockerConfig, format: Format) -> Result<ShellRequest> {
    no_json(format, "shell")?;
    config.exec.exec_path = program::policy(args.terminal.exec_path);
    Ok(ShellRequest {
        spec: spec(args.terminal),
        sandbox: sandbox::request(args.sandbox, Backend::Docker, config)?,
    })
}

fn spec(args: TerminalArgs) -> SandboxPtySpec {
    let mut spec = if args.command.is_empty() {
        SandboxPtySpec::default()
    } else {
        SandboxPtySpec::new(args.command)
    };
    if let Some(user) = args.user {
        spec = spec.with_user(user);
    }
    spec
}
