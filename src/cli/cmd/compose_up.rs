//! `compose plan`, `compose up` and `compose run`: a project planned, started, used, taken down.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::sync::Arc;

use gym_sandbox::compose::{
    AsyncSandboxCompose, ComposeEvent, LoadOptions, ProgressCallback, ProjectLifetime, config,
};
use gym_sandbox::docker::{DockerConfig, DockerProvider};
use gym_sandbox::{AsyncSandbox, Error, ErrorKind, ExecResult, Operation, Result, SandboxProvider, Value};

use crate::cli::exit;
use crate::cli::interrupt::{Interrupt, Interrupts};
use crate::cli::output::{self, Format};
use crate::cli::resolve::{ComposePlanRequest, ComposeRunRequest, ComposeUpRequest, ProjectRequest};
use crate::cli::session::blocking;
use crate::cli::stream;

use super::compose_config::with_files;
use super::exec::{json, options};

fn load(project: &mut ProjectRequest) -> Result<LoadOptions> {
    let (load, _) = with_files(
        std::mem::take(&mut project.load),
        std::mem::take(&mut project.files),
    )?;
    Ok(load)
}

/// Prints what a start would make. Asks no engine.
///
/// # Errors
/// The files are wrong, or ask for what cannot be done or is not allowed; the output can't be written.
pub(in crate::cli) async fn plan(mut request: ComposePlanRequest) -> Result<u8> {
    let load = load(&mut request.project)?;
    let is_named = load.project_name.is_some();
    let provider: Arc<dyn SandboxProvider> = Arc::new(DockerProvider::new(DockerConfig::default())?);
    let mut project = AsyncSandboxCompose::new(provider)
        .with_load_options(load)
        .with_plan_options(request.project.plan);
    if !is_named {
        project = project.with_project_name(gym_sandbox::compose::ProjectName::OfFiles);
    }
    let plan = project.plan().await?;
    for warning in &plan.warnings {
        output::note(&format!("warning: {warning}"));
    }
    let text = config::plan(&plan, request.form);
    blocking(move || output::data(text.as_bytes())).await?;
    Ok(exit::SUCCESS)
}

fn prepare(request: &mut ComposeUpRequest) -> Result<AsyncSandboxCompose> {
    let load = load(&mut request.project)?;
    let provider: Arc<dyn SandboxProvider> = Arc::new(DockerProvider::new(request.config.clone())?);
    let mut plan = std::mem::take(&mut request.project.plan);
    plan.policy = request.config.policy.clone();
    let mut project = AsyncSandboxCompose::owning(provider)
        .with_load_options(load)
        .with_plan_options(plan)
        .with_project_name(request.name.clone())
        .with_lifetime(request.lifetime);
    if let Some(timeout) = request.timeout {
        project = project.with_timeout(timeout)?;
    }
    if let Some(progress) = progress() {
        project = project.with_progress(progress);
    }
    Ok(project)
}

/// Tells a person how far a project is; none where nobody looks.
pub(super) fn progress() -> Option<ProgressCallback> {
    io::stderr().is_terminal().then(|| ProgressCallback::new(say))
}

/// A line of progress for a person.
fn say(event: &ComposeEvent) {
    match event {
        ComposeEvent::Service { service, progress } => output::note(&format!("{service}: {progress}")),
        ComposeEvent::Image { image, state } => output::note(&format!("{image}: {state}")),
        ComposeEvent::Warning(text) => output::note(&format!("warning: {text}")),
        _ => {}
    }
}

/// Starts the project and stays until a signal takes it down, or leaves it running.
///
/// # Errors
/// The project can't be started, be told of, or be taken down. Of one that can't be told of nothing is left.
pub(in crate::cli) async fn up(mut request: ComposeUpRequest) -> Result<u8> {
    let project = prepare(&mut request)?;
    let mut interrupts = Interrupts::listen()?;
    let work = async {
        project.start().await?;
        tell(&project, &request).await
    };
    let outcome = tokio::select! {
        outcome = Box::pin(work) => outcome,
        interrupt = interrupts.next() => return leave(&project, &mut interrupts, interrupt).await,
    };
    if let Err(error) = outcome {
        // A start that failed has left nothing; a project whose name nobody can be told is removed.
        let stopped = tokio::select! {
            stopped = project.stop() => stopped,
            interrupt = interrupts.next() => return leave(&project, &mut interrupts, interrupt).await,
        };
        return Err(match stopped {
            Ok(()) => error,
            Err(cleanup) => error.with_cleanup_error(cleanup),
        });
    }
    if request.lifetime == ProjectLifetime::UntilDown {
        return Ok(exit::SUCCESS);
    }
    let interrupt = interrupts.next().await;
    leave(&project, &mut interrupts, interrupt).await
}

/// Prints what a started project is called, and where it answers.
async fn tell(project: &AsyncSandboxCompose, request: &ComposeUpRequest) -> Result<()> {
    match request.format {
        Format::Json => {
            let described = describe(project).await;
            blocking(move || output::json(&described)).await
        }
        Format::Text => {
            let name = project.project().unwrap_or_default();
            let text = if request.lifetime == ProjectLifetime::UntilDown {
                format!("{name}\n")
            } else {
                output::note(&format!("project {name} is ready; Ctrl-C takes it down"));
                String::new()
            };
            blocking(move || output::data(text.as_bytes())).await
        }
    }
}

/// Takes the project down after a signal, until another one.
async fn leave(
    project: &AsyncSandboxCompose,
    interrupts: &mut Interrupts,
    interrupt: Interrupt,
) -> Result<u8> {
    tokio::select! {
        stopped = project.stop() => match stopped {
            // Everything is gone, and the signal is what ended it.
            Err(error) if error.kind() == ErrorKind::Hook => output::error(&error),
            stopped => stopped?,
        },
        _ = interrupts.next() => {
            let name = project.project().unwrap_or_default();
            output::note(&format!("interrupted again: a part of project {name} may be left"));
        }
    }
    Ok(interrupt.exit_code())
}

/// The project's name, and of each service its sandbox and where its ports answer.
async fn describe(project: &AsyncSandboxCompose) -> Value {
    let mut services = BTreeMap::new();
    for (name, sandbox) in project.services() {
        services.insert(name, describe_service(&sandbox).await);
    }
    serde_json::json!({ "project": project.project(), "services": services })
}

async fn describe_service(sandbox: &AsyncSandbox) -> Value {
    let mut endpoints = BTreeMap::new();
    if let Some(handle) = sandbox.handle() {
        for &port in handle.ports().as_slice() {
            // A one-shot service that has ended answers nowhere.
            if let Ok(endpoint) = sandbox.endpoint(port).await {
                endpoints.insert(port, endpoint.endpoint().to_owned());
            }
        }
    }
    serde_json::json!({ "id": sandbox.sandbox_id(), "endpoints": endpoints })
}

/// Starts the project, runs the command, takes the project down. The exit code is the command's.
///
/// # Errors
/// The project can't be started, the command not be run, or the project not be taken down.
pub(in crate::cli) async fn run(request: ComposeRunRequest) -> Result<u8> {
    let ComposeRunRequest {
        mut up,
        service,
        program,
    } = request;
    let options = options(program)?;
    options.check(Operation::Exec)?;
    let project = prepare(&mut up)?.with_required_service(&service);
    let mut interrupts = Interrupts::listen()?;
    let work = async {
        project.start().await?;
        let sandbox = project.service(&service)?;
        run_command(&sandbox, options, up.format).await
    };
    let outcome = tokio::select! {
        outcome = Box::pin(work) => outcome,
        interrupt = interrupts.next() => return leave(&project, &mut interrupts, interrupt).await,
    };
    let stopped = tokio::select! {
        stopped = project.stop() => stopped,
        interrupt = interrupts.next() => return leave(&project, &mut interrupts, interrupt).await,
    };
    match (outcome.map(|result| exit::of_result(&result)), stopped) {
        (Ok(code), Ok(())) => Ok(code),
        // What failed afterwards is worth less than the code of a command that failed itself.
        (Ok(code), Err(error)) if code != exit::SUCCESS => {
            output::error(&error);
            Ok(code)
        }
        (Err(error), Err(cleanup)) => Err(error.with_cleanup_error(cleanup)),
        (Err(error), Ok(())) | (Ok(_), Err(error)) => Err(error),
    }
}

/// Runs a command in a service and prints what comes of it.
pub(super) async fn run_command(
    sandbox: &AsyncSandbox,
    options: gym_sandbox::ExecOptions,
    format: Format,
) -> Result<ExecResult> {
    match format {
        Format::Json => {
            let result = sandbox.exec_with(options).await?;
            let value = json(&result)?;
            blocking(move || output::json(&value)).await?;
            Ok(result)
        }
        Format::Text => {
            let result = stream::to_the_end(sandbox.spawn(options).await?).await?;
            output::explanation(&result);
            Ok(result)
        }
    }
}

/// What a project that is not there makes of a command about it.
pub(super) fn no_project(name: &str) -> Error {
    Error::new(
        ErrorKind::NotFound,
        Operation::Compose,
        format!("there is no project `{}`", name.escape_debug()),
    )
}
