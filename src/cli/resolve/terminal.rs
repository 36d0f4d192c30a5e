//! What runs in a terminal, and in which sandbox.

use gym_sandbox::docker::DockerConfig;
use gym_sandbox::{Result, SandboxPtySpec};

use super::super::args::{PtyArgs, ShellArgs, TerminalArgs};
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

pub(super) fn pty(args: PtyArgs, mut config: DockerConfig) -> Result<PtyRequest> {
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

pub(super) fn shell(args: ShellArgs, mut config: DockerConfig) -> Result<ShellRequest> {
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
