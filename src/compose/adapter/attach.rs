//! Projects that another process started: what is there of them, a sandbox of one service, taking them down.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::compose::plan::{ONE_OFF, PROJECT, SERVICE};
use crate::compose::run::{DownOptions, down};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{Capability, ContainersProvider, SandboxProvider};
use crate::sandbox::AsyncSandbox;
use crate::spec::Ports;
use crate::spec::container::ContainerDetail;

/// A container of a service of a running project.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct ProjectService {
    /// The service.
    pub service: String,
    /// Its container.
    pub container: ContainerDetail,
}

fn containers(provider: &dyn SandboxProvider, operation: Operation) -> Result<&dyn ContainersProvider> {
    provider
        .as_containers()
        .ok_or_else(|| Error::unsupported(operation, provider.name(), Capability::Containers.as_str()))
}

/// Lists the containers of a project of this library, by service and number, whoever started it.
///
/// # Errors
/// [`ErrorKind::Unsupported`] where the provider has no containers; [`ErrorKind::Unavailable`], [`ErrorKind::Timeout`].
pub async fn compose_services(provider: &dyn SandboxProvider, project: &str) -> Result<Vec<ProjectService>> {
    let labels = BTreeMap::from([
        (PROJECT.to_owned(), project.to_owned()),
        ("gym-sandbox".to_owned(), "1".to_owned()),
        (ONE_OFF.to_owned(), "False".to_owned()),
    ]);
    let listed = containers(provider, Operation::List)?
        .list_containers(&labels)
        .await?;
    let mut services: Vec<ProjectService> = listed
        .into_iter()
        .map(|container| ProjectService {
            service: container.labels.get(SERVICE).cloned().unwrap_or_default(),
            container,
        })
        .collect();
    services.sort_by(|one, other| {
        (&one.service, &one.container.name).cmp(&(&other.service, &other.container.name))
    });
    Ok(services)
}

/// Gives the first container of a service of a running project as a sandbox. Dropping it leaves the container.
///
/// # Errors
/// As [`compose_services`]; [`ErrorKind::NotFound`] when the project or the service is not there.
pub async fn compose_service(
    provider: &Arc<dyn SandboxProvider>,
    project: &str,
    service: &str,
) -> Result<AsyncSandbox> {
    let services = compose_services(&**provider, project).await?;
    let found = services.iter().find(|found| found.service == service);
    let Some(found) = found else {
        let mut names: Vec<&str> = services.iter().map(|found| found.service.as_str()).collect();
        names.dedup();
        let message = if names.is_empty() {
            format!("there is no project `{project}`")
        } else {
            format!(
                "project `{project}` has no service `{service}`; it has {}",
                names.join(", ")
            )
        };
        return Err(Error::new(ErrorKind::NotFound, Operation::Compose, message));
    };
    let ports = Ports::new(found.container.ports.keys().copied())?;
    let handle = containers(&**provider, Operation::Attach)?
        .container_handle(&found.container.id, &ports)
        .await?;
    let workdir = Some(found.container.working_dir.clone()).filter(|folder| !folder.is_empty());
    Ok(AsyncSandbox::of_other_process(
        Arc::clone(provider),
        handle,
        workdir,
    ))
}

/// Takes a project of this library down by its name, whoever started it: dependants first. Says how many objects were
/// removed; none is no error.
///
/// Its `pre_stop` hooks run in containers that run, each for as long as its container gets to end by itself: the grace, or
/// 10 s where there is none. One that fails keeps nothing from going.
///
/// # Errors
/// As [`compose_services`]; the first thing that could not be removed, with the others attached. It can be repeated.
/// [`ErrorKind::Hook`] when only a hook failed or did not end in its time: everything is gone then.
///
/// # Cancel safety
/// Dropping the future leaves the rest; call it again.
pub async fn compose_down(
    provider: &dyn SandboxProvider,
    project: &str,
    options: &DownOptions,
) -> Result<usize> {
    let removed = down(provider, project, options).await?;
    Ok(removed.containers + removed.networks + removed.volumes)
}
