//! What to run: the command, its limits and its input.

use gym_sandbox::docker::ExecPathPolicy;
use gym_sandbox::{Command, ExecOptions, ExecTimeout};

use super::super::args::{ExecPathArg, ProgramArgs};
use super::super::units::TimeLimit;
use super::{Input, ProgramRequest};

/// How commands are run.
pub(super) fn exec_path(args: &ProgramArgs) -> ExecPathPolicy {
    policy(args.exec_path)
}

/// The library's word for it.
pub(super) fn policy(path: ExecPathArg) -> ExecPathPolicy {
    match path {
        ExecPathArg::Auto => ExecPathPolicy::Auto,
        ExecPathArg::Engine => ExecPathPolicy::Engine,
        ExecPathArg::Agent => ExecPathPolicy::Agent,
    }
}

pub(super) fn request(args: ProgramArgs) -> ProgramRequest {
    let command = match args.what.shell {
        Some(line) => Command::Shell(line),
        None => Command::Argv(args.what.command),
    };
    let timeout = match args.timeout {
        None => ExecTimeout::Default,
        Some(TimeLimit::Never) => ExecTimeout::Never,
        Some(TimeLimit::After(limit)) => ExecTimeout::After(limit),
    };
    let mut options = ExecOptions::new(command).with_timeout(timeout);
    if let Some(user) = args.user {
        options = options.with_user(user);
    }
    ProgramRequest {
        options,
        input: if args.stdin { Input::Process } else { Input::Empty },
    }
}
