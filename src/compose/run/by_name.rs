//! Taking a project down by its name, whoever started it: what there is of it is read from the labels.

use std::collections::BTreeMap;

use futures::future::join_all;

use crate::compose::plan::{PROJECT, SERVICE, STOP_SIGNAL};
use crate::error::{Operation, Result};
use crate::provider::{ContainersProvider, SandboxProvider};
use crate::spec::container::ContainerDetail;
use crate::spec::{Ports, SandboxStatus};

use super::crew::containers;
use super::hook::{Hooks, not_had, noted, time_before_stop};
use super::progress::ServiceProgress;
use super::teardown::{DownOptions, Failures, VolumeFate, tell, until_free};

/// The label of everything of this library.
pub(super) const OWN: &str = "gym-sandbox";

/// What a container waits for, as docker compose notes it.
const DEPENDS_ON: &str = "com.docker.compose.depends_on";

/// What a project was, that was taken down by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Removed {
    pub(crate) containers: usize,
    pub(crate) networks: usize,
    pub(crate) volumes: usize,
}

/// Takes a project of this library down by its name, whoever started it.
pub(crate) async fn down(
    provider: &dyn SandboxProvider,
    project: &str,
    options: &DownOptions,
) -> Result<Removed> {
    let containers = containers(provider, Operation::ComposeDown)?;
    let labels = BTreeMap::from([
        (PROJECT.to_owned(), project.to_owned()),
        (OWN.to_owned(), "1".to_owned()),
    ]);
    let mut failures = Failures::default();
    let mut removed = Removed::default();
    let listed = containers.list_containers(&labels).await?;
    for level in levels_by_label(listed) {
        let ends = level
            .iter()
            .map(|container| end_listed(provider, containers, container, options));
        for failed in join_all(ends).await {
            removed.containers += usize::from(failed.left.is_empty());
            failures.extend(failed);
        }
    }
    let networks = containers.list_networks(&labels).await;
    for network in failures.or_none(networks) {
        match until_free(|| containers.remove_network(&network.id)).await {
            Ok(()) => removed.networks += 1,
            Err(error) => failures.left.push(error),
        }
    }
    if options.volumes == VolumeFate::Remove {
        let volumes = containers.list_volumes(&labels).await;
        for volume in failures.or_none(volumes) {
            match until_free(|| containers.remove_volume(&volume.id)).await {
                Ok(()) => removed.volumes += 1,
                Err(error) => failures.left.push(error),
            }
        }
    }
    failures.into_result().map(|()| removed)
}

/// Ends and removes a container of which only the engine knows.
async fn end_listed(
    provider: &dyn SandboxProvider,
    containers: &dyn ContainersProvider,
    container: &ContainerDetail,
    options: &DownOptions,
) -> Failures {
    let mut failures = Failures::default();
    let service = service_of(container);
    let say = |progress| {
        if let Some(callback) = &options.progress {
            tell(callback, service, progress);
        }
    };
    let gone = async {
        let commands = noted(container);
        if container.status == SandboxStatus::Running && !commands.is_empty() {
            let limit = time_before_stop(options.grace.or(container.stop_timeout));
            match containers
                .container_handle(&container.id, &Ports::default())
                .await
            {
                Ok(handle) => {
                    let hooks = Hooks {
                        provider,
                        handle: &handle,
                        service,
                    };
                    let tell = |hook| say(ServiceProgress::Hook { hook });
                    failures.hooks = hooks.before_stop(&commands, limit, tell).await;
                }
                Err(error) => failures.hooks.extend(not_had(service, error)),
            }
        }
        // What the file asked for is in the container; nothing there means that it is killed at once.
        let asks_for_grace = container.stop_timeout.is_some() || container.labels.contains_key(STOP_SIGNAL);
        if options.grace.is_some() || asks_for_grace {
            containers.stop_container(&container.id, options.grace).await?;
        }
        containers.remove_container(&container.id).await
    };
    match gone.await {
        Ok(()) => say(ServiceProgress::Removed),
        Err(error) => failures.left.push(error),
    }
    failures
}

fn service_of(container: &ContainerDetail) -> &str {
    container.labels.get(SERVICE).map_or("", String::as_str)
}

fn levels_by_label(listed: Vec<ContainerDetail>) -> Vec<Vec<ContainerDetail>> {
    let mut level_of: BTreeMap<String, usize> = BTreeMap::new();
    // As many rounds as a chain can be long.
    for _ in 0..listed.len() {
        for container in &listed {
            let own = level_of.get(service_of(container)).copied().unwrap_or_default();
            let others = container
                .labels
                .get(DEPENDS_ON)
                .map(String::as_str)
                .unwrap_or_default();
            for other in others.split(',').filter_map(|entry| entry.split(':').next()) {
                let level = level_of.entry(other.to_owned()).or_default();
                *level = (*level).max(own + 1);
            }
        }
    }
    let mut levels: BTreeMap<usize, Vec<ContainerDetail>> = BTreeMap::new();
    for container in listed {
        let level = level_of.get(service_of(&container)).copied().unwrap_or_default();
        levels.entry(level).or_default().push(container);
    }
    levels.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependants_go_before_what_they_depend_on_also_by_labels_alone() {
        let container = |service: &str, depends_on: &str| {
            let mut detail = ContainerDetail::new(service, service, SandboxStatus::Running);
            detail.labels = [
                (SERVICE.to_owned(), service.to_owned()),
                (DEPENDS_ON.to_owned(), depends_on.to_owned()),
            ]
            .into();
            detail
        };
        let listed = vec![
            container("db", ""),
            container("migrate", "db:service_healthy:false"),
            container(
                "web",
                "migrate:service_completed_successfully:false,cache:service_started:false",
            ),
            container("cache", ""),
        ];
        let levels: Vec<Vec<String>> = levels_by_label(listed)
            .into_iter()
            .map(|level| level.into_iter().map(|container| container.name).collect())
            .collect();
        assert_eq!(levels, [vec!["web"], vec!["migrate", "cache"], vec!["db"]]);
    }
}
