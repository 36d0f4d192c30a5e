//! `compose ps`, `exec` and `down`: projects that another process started.

use std::sync::Arc;

use gym_sandbox::compose::{ProjectService, compose_down, compose_service, compose_services};
use gym_sandbox::docker::DockerProvider;
use gym_sandbox::{Operation, Result, SandboxProvider};

use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::{ComposeDownRequest, ComposeExecRequest, ComposePsRequest};
use crate::cli::session::{Outcome, blocking, until_interrupted};

use super::compose_up::{no_project, progress, run_command};
use super::exec::options;

pub(super) fn provider(config: gym_sandbox::docker::DockerConfig) -> Result<Arc<dyn SandboxProvider>> {
    Ok(Arc::new(DockerProvider::new(config)?))
}

/// Lists the containers of a project.
///
/// # Errors
/// There is no such project, or the engine can't be asked.
pub(in crate::cli) async fn ps(request: ComposePsRequest) -> Result<u8> {
    let provider = provider(request.config)?;
    let services = compose_services(&*provider, &request.name).await?;
    if services.is_empty() {
        return Err(no_project(&request.name));
    }
    match request.format {
        Format::Json => blocking(move || output::json(&services)).await?,
        Format::Text => {
            let mut rows = vec![
                ["SERVICE", "CONTAINER", "STATUS", "HEALTH", "PORTS"]
                    .map(str::to_owned)
                    .to_vec(),
            ];
            rows.extend(services.iter().map(row));
            let text = output::table(&rows);
            blocking(move || output::data(text.as_bytes())).await?;
        }
    }
    Ok(exit::SUCCESS)
}

fn row(service: &ProjectService) -> Vec<String> {
    let container = &service.container;
    let status = match container.exit_code {
        Some(code) => format!("exited {code}"),
        None => container.status.to_string(),
    };
    let health = container
        .health
        .map_or_else(String::new, |health| format!("{health:?}").to_lowercase());
    let ports = container.ports.iter().map(|(port, at)| format!("{port} at {at}"));
    vec![
        service.service.clone(),
        container.name.clone(),
        status,
        health,
        ports.collect::<Vec<_>>().join(", "),
    ]
}

/// Runs a command in a service; the exit code is the command's. The project stays.
///
/// # Errors
/// There is no such project or service, or the output can't be had.
pub(in crate::cli) async fn exec(request: ComposeExecRequest) -> Result<u8> {
    let options = options(request.program)?;
    options.check(Operation::Exec)?;
    let provider = provider(request.config)?;
    let work = Box::pin(async {
        let sandbox = compose_service(&provider, &request.name, &request.service).await?;
        run_command(&sandbox, options, request.format).await
    });
    let outcome = until_interrupted(work).await?;
    if let Err(error) = until_interrupted(provider.aclose()).await {
        output::note(&error.to_string());
    }
    match outcome {
        Outcome::Ended(result) => Ok(exit::of_result(&result)),
        Outcome::Interrupted(interrupt) => Ok(interrupt.exit_code()),
    }
}

/// Takes a project down. One that is not there is no error.
///
/// # Errors
/// Something could not be removed.
pub(in crate::cli) async fn down(request: ComposeDownRequest) -> Result<u8> {
    let provider = provider(request.config)?;
    let mut options = request.options;
    options.progress = progress();
    let removed = compose_down(&*provider, &request.name, &options).await?;
    match request.format {
        Format::Json => {
            let value = serde_json::json!({ "project": request.name, "removed": removed });
            blocking(move || output::json(&value)).await?;
        }
        Format::Text if removed == 0 => output::note(&format!("there is no project {}", request.name)),
        Format::Text => {}
    }
    Ok(exit::SUCCESS)
}
