//! Which Compose project is planned, started, looked at or taken down.

use std::path::PathBuf;
use std::time::Duration;

use gym_sandbox::compose::{
    ContainerNames, DownOptions, HostPorts, LoadOptions, PlanOptions, ProjectLifetime, ProjectName,
    ProjectNetworks, VolumeFate, config,
};
use gym_sandbox::container::Subnets;
use gym_sandbox::docker::{DockerConfig, ExecPathPolicy};
use gym_sandbox::{Error, ErrorKind, LogOptions, Operation, Result};

use super::super::args::{
    ChoiceArgs, ComposeDownArgs, ComposeExecArgs, ComposeLogsArgs, ComposeNameArgs, ComposePlanArgs,
    ComposeRunArgs, ComposeUpArgs, ConfigFormatArg, HostPortsArg, ProgramArgs, ProjectArgs,
};
use super::super::output::Format;
use super::super::units::TimeLimit;
use super::sandbox::check_image;
use super::{ProgramRequest, compose, connected, program};

/// A project: how it is loaded and planned.
#[derive(Debug)]
pub(in crate::cli) struct ProjectRequest {
    /// How it is loaded, without its files.
    pub(in crate::cli) load: LoadOptions,
    /// Its files; `-` is standard input.
    pub(in crate::cli) files: Vec<PathBuf>,
    pub(in crate::cli) plan: PlanOptions,
}

/// A plan to print.
#[derive(Debug)]
pub(in crate::cli) struct ComposePlanRequest {
    pub(in crate::cli) project: ProjectRequest,
    pub(in crate::cli) form: config::Format,
}

/// A project to start.
#[derive(Debug)]
pub(in crate::cli) struct ComposeUpRequest {
    pub(in crate::cli) config: DockerConfig,
    pub(in crate::cli) project: ProjectRequest,
    pub(in crate::cli) name: ProjectName,
    pub(in crate::cli) lifetime: ProjectLifetime,
    pub(in crate::cli) timeout: Option<Duration>,
    pub(in crate::cli) format: Format,
}

/// A project to start, and a command to run in it.
#[derive(Debug)]
pub(in crate::cli) struct ComposeRunRequest {
    pub(in crate::cli) up: ComposeUpRequest,
    pub(in crate::cli) service: String,
    pub(in crate::cli) program: ProgramRequest,
}

/// A look at a project.
#[derive(Debug)]
pub(in crate::cli) struct ComposePsRequest {
    pub(in crate::cli) config: DockerConfig,
    pub(in crate::cli) name: String,
    pub(in crate::cli) format: Format,
}

/// What services of a project printed.
#[derive(Debug)]
pub(in crate::cli) struct ComposeLogsRequest {
    pub(in crate::cli) config: DockerConfig,
    pub(in crate::cli) name: String,
    /// The services; none stands for all.
    pub(in crate::cli) services: Vec<String>,
    pub(in crate::cli) lines: LogOptions,
    pub(in crate::cli) format: Format,
}

/// A command in a service of a project.
#[derive(Debug)]
pub(in crate::cli) struct ComposeExecRequest {
    pub(in crate::cli) config: DockerConfig,
    pub(in crate::cli) name: String,
    pub(in crate::cli) service: String,
    pub(in crate::cli) program: ProgramRequest,
    pub(in crate::cli) format: Format,
}

/// A project to take down.
#[derive(Debug)]
pub(in crate::cli) struct ComposeDownRequest {
    pub(in crate::cli) config: DockerConfig,
    pub(in crate::cli) name: String,
    pub(in crate::cli) options: DownOptions,
    pub(in crate::cli) format: Format,
}

fn project(args: ProjectArgs, choices: ChoiceArgs) -> Result<ProjectRequest> {
    let (load, files) = compose::project(args)?;
    let mut plan = PlanOptions::default();
    plan.host_ports = match choices.host_ports {
        HostPortsArg::Ephemeral => HostPorts::Ephemeral,
        HostPortsArg::AsWritten => HostPorts::AsWritten,
        HostPortsArg::Unpublished => HostPorts::Unpublished,
    };
    if choices.literal_container_names {
        plan.container_names = ContainerNames::Literal;
    }
    match choices.subnets.as_deref() {
        None => {}
        Some("engine") => plan.subnets = Subnets::Engine,
        Some(range) => plan.subnets = Subnets::Range(range.parse()?),
    }
    if let Some(network) = choices.shared_network {
        plan.networks = ProjectNetworks::Shared(network);
    }
    for entry in choices.image {
        let (service, image) = entry.split_once('=').ok_or_else(|| {
            Error::invalid(
                Operation::Configure,
                format!("--image {entry}: it is SERVICE=REF"),
            )
        })?;
        if service.is_empty() {
            return Err(Error::invalid(
                Operation::Configure,
                format!("--image {entry}: the service before `=` is missing"),
            ));
        }
        check_image(image)?;
        plan.images.insert(service.to_owned(), image.to_owned());
    }
    Ok(ProjectRequest { load, files, plan })
}

pub(super) fn plan(args: ComposePlanArgs, format: Format) -> Result<ComposePlanRequest> {
    let form = match (args.format, format) {
        (Some(ConfigFormatArg::Json), _) | (None, Format::Json) => config::Format::Json,
        (Some(ConfigFormatArg::Yaml), _) | (None, Format::Text) => config::Format::Yaml,
    };
    Ok(ComposePlanRequest {
        project: project(args.project, args.choices)?,
        form,
    })
}

fn limit(timeout: Option<TimeLimit>) -> Result<Option<Duration>> {
    match timeout {
        None => Ok(None),
        Some(TimeLimit::After(limit)) if !limit.is_zero() => Ok(Some(limit)),
        Some(TimeLimit::After(_)) => Err(Error::invalid(
            Operation::Configure,
            "--wait-timeout must be over 0",
        )),
        // As good as none, and a clock can still say it.
        Some(TimeLimit::Never) => Ok(Some(Duration::from_secs(10 * 365 * 86_400))),
    }
}

pub(super) fn up(args: ComposeUpArgs, config: DockerConfig, format: Format) -> Result<ComposeUpRequest> {
    let project = project(args.project, args.choices)?;
    Ok(ComposeUpRequest {
        config,
        name: named(&project).unwrap_or(ProjectName::OfFiles),
        project,
        lifetime: if args.detach {
            ProjectLifetime::UntilDown
        } else {
            ProjectLifetime::Process
        },
        timeout: limit(args.wait_timeout)?,
        format,
    })
}

fn named(project: &ProjectRequest) -> Option<ProjectName> {
    project.load.project_name.clone().map(ProjectName::Given)
}

pub(super) fn run(
    args: ComposeRunArgs,
    mut config: DockerConfig,
    format: Format,
) -> Result<ComposeRunRequest> {
    config.exec.exec_path = service_path(&args.program)?;
    let project = project(args.project, args.choices)?;
    Ok(ComposeRunRequest {
        up: ComposeUpRequest {
            config,
            // Nobody needs its name, and copies run side by side.
            name: named(&project).unwrap_or(ProjectName::Unique),
            project,
            lifetime: ProjectLifetime::Process,
            timeout: limit(args.wait_timeout)?,
            format,
        },
        service: args.service,
        program: program::request(args.program),
    })
}

/// The name of a project that is there. What can be none is a slip, and not a project that has gone.
fn running(args: ComposeNameArgs) -> Result<String> {
    let name = args.project_name;
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_name = name.bytes().next().is_some_and(is_word)
        && name.bytes().all(|byte| is_word(byte) || b"_-".contains(&byte));
    if is_name {
        return Ok(name);
    }
    Err(Error::invalid(
        Operation::Configure,
        format!(
            "--project-name: `{}` can't be the name of a project",
            name.escape_debug()
        ),
    )
    .with_hint("names are of lower-case letters, digits, `-` and `_`; `compose up -d` prints them"))
}

pub(super) fn ps(args: ComposeNameArgs, config: DockerConfig, format: Format) -> Result<ComposePsRequest> {
    Ok(ComposePsRequest {
        config,
        name: running(args)?,
        format,
    })
}

pub(super) fn logs(
    args: ComposeLogsArgs,
    config: DockerConfig,
    format: Format,
) -> Result<ComposeLogsRequest> {
    Ok(ComposeLogsRequest {
        config,
        name: running(args.name)?,
        services: args.services,
        lines: connected::log_options(&args.lines),
        format,
    })
}

pub(super) fn exec(
    args: ComposeExecArgs,
    mut config: DockerConfig,
    format: Format,
) -> Result<ComposeExecRequest> {
    config.exec.exec_path = service_path(&args.program)?;
    Ok(ComposeExecRequest {
        config,
        name: running(args.name)?,
        service: args.service,
        program: program::request(args.program),
        format,
    })
}

/// How commands in services are run. The agent is not in them.
fn service_path(args: &ProgramArgs) -> Result<ExecPathPolicy> {
    match program::exec_path(args) {
        ExecPathPolicy::Agent => Err(Error::new(
            ErrorKind::Unsupported,
            Operation::Configure,
            "--exec-path agent: the resident agent is not put into services of Compose projects",
        )
        .with_hint("leave the option out: commands in services are run by the engine")),
        path => Ok(path),
    }
}

pub(super) fn down(
    args: ComposeDownArgs,
    config: DockerConfig,
    format: Format,
) -> Result<ComposeDownRequest> {
    let mut options = DownOptions::default();
    if let Some(TimeLimit::After(grace)) = args.grace {
        options = options.with_grace(grace);
    }
    if args.keep_volumes {
        options = options.with_volumes(VolumeFate::Keep);
    }
    Ok(ComposeDownRequest {
        config,
        name: running(args.name)?,
        options,
        format,
    })
}
