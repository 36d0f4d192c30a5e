//! What of the command makes sense on this machine alone, without an engine.

use gym_sandbox::{Error, ErrorKind, Operation, Result};

use super::super::args::{CommandArgs, ComposeArgs, ExecPathArg, GlobalArgs, RunArgs};

/// Refuses, by name, what the local provider can't do.
pub(super) fn check(global: &GlobalArgs, command: &CommandArgs) -> Result<()> {
    if global.host.is_some() {
        return Err(unsupported("--host"));
    }
    match command {
        CommandArgs::Run(args) => options(args),
        CommandArgs::Compose(ComposeArgs::Config(_)) | CommandArgs::Completions(_) => Ok(()),
        CommandArgs::Compose(args) => Err(unsupported(match args {
            ComposeArgs::Config(_) => "`compose config`",
            ComposeArgs::Plan(_) => "`compose plan`",
            ComposeArgs::Up(_) => "`compose up`",
            ComposeArgs::Run(_) => "`compose run`",
            ComposeArgs::Ps(_) => "`compose ps`",
            ComposeArgs::Logs(_) => "`compose logs`",
            ComposeArgs::Exec(_) => "`compose exec`",
            ComposeArgs::Down(_) => "`compose down`",
        })),
        CommandArgs::Create(_) => Err(unsupported("`create`")),
        CommandArgs::Exec(_) => Err(unsupported("`exec`")),
        CommandArgs::Pty(_) => Err(unsupported("`pty`")),
        CommandArgs::Shell(_) => Err(unsupported("`shell`")),
        CommandArgs::Cp(_) => Err(unsupported("`cp`")),
        CommandArgs::Pause(_) => Err(unsupported("`pause`")),
        CommandArgs::Resume(_) => Err(unsupported("`resume`")),
        CommandArgs::Logs(_) => Err(unsupported("`logs`")),
        CommandArgs::Stats(_) => Err(unsupported("`stats`")),
        CommandArgs::Prefetch(_) => Err(unsupported("`prefetch`")),
        CommandArgs::Rm(_) => Err(unsupported("`rm`")),
        CommandArgs::Ps(_) => Err(unsupported("`ps`")),
        CommandArgs::Inspect(_) => Err(unsupported("`inspect`")),
        CommandArgs::Gc(_) => Err(unsupported("`gc`")),
        CommandArgs::Doctor => Err(unsupported("`doctor`")),
        CommandArgs::Bench(_) => Err(unsupported("`bench`")),
    }
}

fn options(args: &RunArgs) -> Result<()> {
    let sandbox = &args.sandbox;
    let given = [
        ("--image", sandbox.image.is_some()),
        ("--cpus", sandbox.cpus.is_some()),
        ("--memory", sandbox.memory.is_some()),
        ("--pids", sandbox.pids.is_some()),
        ("--network", sandbox.network.is_some()),
        ("--preset", sandbox.preset.is_some()),
        ("--pull", sandbox.pull.is_some()),
        ("--port", !sandbox.port.is_empty()),
        ("--user", args.program.user.is_some()),
        ("--keep", args.keep),
        (
            "--exec-path",
            matches!(args.program.exec_path, ExecPathArg::Agent),
        ),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(unsupported(name)),
        None => Ok(()),
    }
}

fn unsupported(what: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        Operation::Configure,
        format!("{what} has no meaning with --provider local"),
    )
    .with_hint("`run --provider local` runs one command in a folder of this machine, not isolated; leave the option out, or use an engine")
}
