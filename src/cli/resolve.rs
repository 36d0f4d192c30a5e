//! From what was typed to what is to be done. Refuses, by name, what this build cannot do. Does no engine I/O.

mod compose;
mod connected;
mod copy;
mod local;
mod program;
mod project;
mod sandbox;
mod terminal;
mod upkeep;

use std::path::PathBuf;

use gym_sandbox::docker::DockerConfig;
use gym_sandbox::{Error, ExecOptions, Operation, Result, SandboxSpec};

use super::args::{
    self, Args, BenchArgs, CommandArgs, ComposeArgs, ExecArgs, GlobalArgs, ProviderArg, RunArgs,
};
use super::output::Format;
use super::session::Afterwards;
use super::units::Variable;

pub(super) use terminal::{PtyRequest, ShellRequest};

pub(super) use compose::{ComposeConfigRequest, ConfigOutput};
pub(super) use project::{
    ComposeDownRequest, ComposeExecRequest, ComposeLogsRequest, ComposePlanRequest, ComposePsRequest,
    ComposeRunRequest, ComposeUpRequest, ProjectRequest,
};
pub(super) use upkeep::{DetailRequest, ListRequest, Patience, SweepRequest};

/// What is to be done.
#[derive(Debug)]
pub(super) enum Action {
    /// Run one command in a sandbox of its own.
    Run(Box<RunRequest>),
    /// Make a sandbox that stays.
    Create(Box<CreateRequest>),
    /// Run a command in a sandbox that is there.
    Exec(Box<ExecRequest>),
    /// A terminal in a sandbox that is there.
    Pty(Box<PtyRequest>),
    /// A terminal in a sandbox of its own.
    Shell(Box<ShellRequest>),
    /// Copy files.
    Copy(Box<CopyRequest>),
    /// Freeze a sandbox, or let it run again.
    Pause(PauseRequest),
    /// Print the log of a sandbox.
    Logs(LogsRequest),
    /// Print how much a sandbox uses.
    Stats(StatsRequest),
    /// Remove sandboxes.
    Remove(RemoveRequest),
    /// Pull images.
    Prefetch(PrefetchRequest),
    /// List sandboxes.
    List(ListRequest),
    /// Describe one.
    Detail(DetailRequest),
    /// Remove what is left of the dead.
    Sweep(SweepRequest),
    /// Print a Compose project.
    ComposeConfig(Box<ComposeConfigRequest>),
    /// Print what a Compose project becomes on an engine.
    ComposePlan(Box<ComposePlanRequest>),
    /// Start a Compose project.
    ComposeUp(Box<ComposeUpRequest>),
    /// Run a command in a Compose project of its own.
    ComposeRun(Box<ComposeRunRequest>),
    /// List the containers of a Compose project.
    ComposePs(ComposePsRequest),
    /// Print the last lines of the services of a Compose project.
    ComposeLogs(ComposeLogsRequest),
    /// Run a command in a Compose project that is there.
    ComposeExec(Box<ComposeExecRequest>),
    /// Take a Compose project down.
    ComposeDown(ComposeDownRequest),
    /// Look at the engine.
    Doctor(DoctorRequest),
    /// Measure.
    Bench(BenchRequest),
    /// Print a script for a shell.
    Completions(Vec<u8>),
}

/// One command in a sandbox of its own.
#[derive(Debug)]
pub(super) struct RunRequest {
    pub(super) backend: Backend,
    pub(super) sandbox: SandboxRequest,
    pub(super) program: ProgramRequest,
    pub(super) downloads: Vec<Download>,
    pub(super) afterwards: Afterwards,
    pub(super) format: Format,
}

/// What runs a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backend {
    /// An engine.
    Docker,
    /// This machine, without isolation.
    Local,
}

/// A sandbox that stays.
#[derive(Debug)]
pub(super) struct CreateRequest {
    pub(super) sandbox: SandboxRequest,
    pub(super) format: Format,
}

/// A command in a sandbox that is there.
#[derive(Debug)]
pub(super) struct ExecRequest {
    pub(super) config: DockerConfig,
    pub(super) id: String,
    pub(super) program: ProgramRequest,
    pub(super) format: Format,
}

pub(super) use connected::{LogsRequest, PauseChange, PauseRequest, StatsRequest};
pub(super) use copy::{CopyEnd, CopyRequest};

/// Sandboxes to remove.
#[derive(Debug)]
pub(super) struct RemoveRequest {
    pub(super) config: DockerConfig,
    pub(super) ids: Vec<String>,
    pub(super) format: Format,
}

/// Images to pull where they are missing.
#[derive(Debug)]
pub(super) struct PrefetchRequest {
    pub(super) config: DockerConfig,
    pub(super) images: Vec<String>,
    pub(super) format: Format,
}

/// A sandbox and what is copied into it.
#[derive(Debug)]
pub(super) struct SandboxRequest {
    pub(super) config: DockerConfig,
    pub(super) spec: SandboxSpec,
    pub(super) uploads: Vec<Upload>,
}

/// A command and where its standard input comes from.
#[derive(Debug)]
pub(super) struct ProgramRequest {
    pub(super) options: ExecOptions,
    pub(super) input: Input,
}

/// Where a command's standard input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// It has none.
    Empty,
    /// It is this process's own.
    Process,
}

/// A copy into the sandbox.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Upload {
    pub(super) local: PathBuf,
    pub(super) remote: String,
}

/// A copy out of the sandbox.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Download {
    pub(super) remote: String,
    pub(super) local: PathBuf,
}

/// A look at the engine.
#[derive(Debug)]
pub(super) struct DoctorRequest {
    pub(super) config: DockerConfig,
    pub(super) format: Format,
}

/// A measurement.
#[derive(Debug)]
pub(super) struct BenchRequest {
    pub(super) config: DockerConfig,
    pub(super) image: String,
    pub(super) filter: Option<String>,
    pub(super) effort: Effort,
    pub(super) format: Format,
}

/// How many samples are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// As many as a verdict needs.
    Full,
    /// A few, to see that it works.
    Quick,
    /// As many as a verdict needs, also of rows that take minutes each.
    Long,
}

/// Makes the request.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](gym_sandbox::ErrorKind::InvalidArgument) or
/// [`ErrorKind::Unsupported`](gym_sandbox::ErrorKind::Unsupported) naming the option.
pub(super) fn resolve(args: Args) -> Result<Action> {
    let Args { global, command } = args;
    let backend = match global.provider {
        ProviderArg::Docker => Backend::Docker,
        ProviderArg::Local => Backend::Local,
    };
    if backend == Backend::Local {
        local::check(&global, &command)?;
    }
    let config = engine_config(&global);
    let format = if global.json { Format::Json } else { Format::Text };
    Ok(match command {
        CommandArgs::Run(args) => Action::Run(Box::new(run_request(*args, backend, config, format)?)),
        CommandArgs::Create(args) => {
            let mut sandbox = sandbox::request(*args, backend, config)?;
            sandbox.spec = keep(sandbox.spec);
            Action::Create(Box::new(CreateRequest { sandbox, format }))
        }
        CommandArgs::Exec(args) => Action::Exec(Box::new(exec_request(args, config, format)?)),
        CommandArgs::Pty(args) => Action::Pty(Box::new(terminal::pty(args, config, format)?)),
        CommandArgs::Shell(args) => Action::Shell(Box::new(terminal::shell(*args, config, format)?)),
        CommandArgs::Cp(args) => Action::Copy(Box::new(copy::request(args, config, format)?)),
        CommandArgs::Pause(args) => connected::pause(args, config, format, PauseChange::Pause),
        CommandArgs::Resume(args) => connected::pause(args, config, format, PauseChange::Resume),
        CommandArgs::Logs(args) => connected::logs(args, config, format),
        CommandArgs::Stats(args) => connected::stats(args, config, format),
        CommandArgs::Rm(args) => Action::Remove(RemoveRequest {
            config,
            ids: args.ids,
            format,
        }),
        CommandArgs::Prefetch(args) => Action::Prefetch(PrefetchRequest {
            config,
            images: args.images,
            format,
        }),
        CommandArgs::Ps(args) => Action::List(upkeep::list(args, config, format)),
        CommandArgs::Inspect(args) => Action::Detail(DetailRequest { config, id: args.id }),
        CommandArgs::Gc(args) => Action::Sweep(upkeep::sweep(args, config, format)),
        CommandArgs::Compose(args) => compose_action(args, config, format)?,
        CommandArgs::Completions(args) => Action::Completions(args::completions(&args)),
        CommandArgs::Doctor => Action::Doctor(DoctorRequest { config, format }),
        CommandArgs::Bench(BenchArgs {
            rows,
            quick,
            long,
            image,
        }) => Action::Bench(BenchRequest {
            config,
            image,
            filter: rows,
            effort: match (quick, long) {
                (true, _) => Effort::Quick,
                (false, true) => Effort::Long,
                (false, false) => Effort::Full,
            },
            format,
        }),
    })
}

fn compose_action(args: ComposeArgs, config: DockerConfig, format: Format) -> Result<Action> {
    Ok(match args {
        ComposeArgs::Config(args) => Action::ComposeConfig(Box::new(compose::request(*args, format)?)),
        ComposeArgs::Plan(args) => Action::ComposePlan(Box::new(project::plan(*args, format)?)),
        ComposeArgs::Up(args) => Action::ComposeUp(Box::new(project::up(*args, config, format)?)),
        ComposeArgs::Run(args) => Action::ComposeRun(Box::new(project::run(*args, config, format)?)),
        ComposeArgs::Ps(args) => Action::ComposePs(project::ps(args, config, format)?),
        ComposeArgs::Logs(args) => Action::ComposeLogs(project::logs(args, config, format)?),
        ComposeArgs::Exec(args) => Action::ComposeExec(Box::new(project::exec(*args, config, format)?)),
        ComposeArgs::Down(args) => Action::ComposeDown(project::down(args, config, format)?),
    })
}

fn engine_config(global: &GlobalArgs) -> DockerConfig {
    let mut config = DockerConfig::default();
    config.host.clone_from(&global.host);
    config
}

fn run_request(
    args: RunArgs,
    backend: Backend,
    mut config: DockerConfig,
    format: Format,
) -> Result<RunRequest> {
    config.exec.exec_path = program::exec_path(&args.program);
    let download = |transfer: super::units::Transfer| Download {
        remote: transfer.source,
        local: transfer.target.into(),
    };
    let mut sandbox = sandbox::request(args.sandbox, backend, config)?;
    if args.keep {
        sandbox.spec = keep(sandbox.spec);
    }
    Ok(RunRequest {
        backend,
        program: program::request(args.program),
        sandbox,
        downloads: args.download.into_iter().map(download).collect(),
        afterwards: if args.keep {
            Afterwards::Keep
        } else {
            Afterwards::Remove
        },
        format,
    })
}

/// A sandbox that outlives this process is not one that a dead process has left.
fn keep(spec: SandboxSpec) -> SandboxSpec {
    spec.with_provider_option("keep", true)
}

fn exec_request(args: ExecArgs, mut config: DockerConfig, format: Format) -> Result<ExecRequest> {
    config.exec.exec_path = program::exec_path(&args.program);
    let mut program = program::request(args.program);
    if let Some(workdir) = args.workdir {
        program.options = program.options.with_cwd(workdir);
    }
    program.options.env.extend(variables(&args.env)?);
    Ok(ExecRequest {
        config,
        id: args.id,
        program,
        format,
    })
}

/// The variables that were given, in order; those that this process was to have and has not are left out.
fn variables(given: &[String]) -> Result<Vec<(String, String)>> {
    let mut variables = Vec::with_capacity(given.len());
    for text in given {
        let variable: Variable = text
            .parse()
            .map_err(|problem: String| Error::invalid(Operation::Configure, format!("--env: {problem}")))?;
        if let Some(value) = value_of(&variable)? {
            variables.push((variable.name, value));
        }
    }
    Ok(variables)
}

fn value_of(variable: &Variable) -> Result<Option<String>> {
    if let Some(value) = &variable.value {
        return Ok(Some(value.clone()));
    }
    match std::env::var(&variable.name) {
        Ok(value) => Ok(Some(value)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(Error::invalid(
            Operation::Configure,
            format!(
                "the value of this process's variable `{}` is not UTF-8",
                variable.name
            ),
        )),
    }
}

#[cfg(test)]
mod tests;
