//! Taking a project down: dependants first, everything tried, what is left kept for another try.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;

use crate::compose::plan::{PROJECT, SERVICE, ServiceStep};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{ContainersProvider, SandboxProvider};
use crate::spec::container::ContainerDetail;
use crate::spec::{Ports, SandboxStatus};

use super::crew::{Crew, containers};
use super::hook::{noted, run_before_stop};
use super::made::{MadeContainer, Objects};
use super::progress::ServiceProgress;

/// The label of everything of this library.
const OWN: &str = "gym-sandbox";

/// What a container waits for, as docker compose notes it.
const DEPENDS_ON: &str = "com.docker.compose.depends_on";

/// Networks and volumes are in use for a moment after their last container has gone, and longer while a create that
/// was cut off is still being undone.
const TRIES: u32 = 40;
/// About 13 s: an engine with much to do lets go of a removed container's endpoints late.
const TRIES_IN_USE: u32 = 11;
/// Each has taken a minute already.
const TRIES_TOO_LATE: u32 = 2;
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What becomes of a project's volumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum VolumeFate {
    /// They are removed with it.
    #[default]
    Remove,
    /// They stay, for a project of the same name.
    Keep,
}

/// How a project is taken down.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DownOptions {
    /// How long every container gets to end by itself. None: what its file says, else no time at all (contract D22).
    pub grace: Option<Duration>,
    /// What becomes of its volumes.
    pub volumes: VolumeFate,
}

impl DownOptions {
    /// Sets how long every container gets to end by itself.
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// Sets what becomes of its volumes.
    pub fn with_volumes(mut self, volumes: VolumeFate) -> Self {
        self.volumes = volumes;
        self
    }
}

impl Crew {
    /// Removes everything that was made. What could not be removed stays noted, so that it can be called again.
    pub(crate) async fn take_down(&self, options: &DownOptions) -> Result<()> {
        let provider = containers(&*self.provider, Operation::ComposeDown)?;
        let objects = self.made.snapshot();
        let mut errors = Vec::new();
        for level in levels(&objects.containers, &self.plan.services) {
            let removed = level
                .iter()
                .map(|container| self.end_container(provider, container, options));
            for result in join_all(removed).await {
                errors.extend(result.err());
            }
        }
        let networks = objects.networks.iter().map(|id| async move {
            until_free(|| provider.remove_network(id)).await?;
            self.made.forget_network(id);
            Ok::<_, Error>(())
        });
        let keeps = options.volumes == VolumeFate::Keep;
        let volumes = objects.volumes.iter().filter(|_| !keeps).map(|name| async move {
            until_free(|| provider.remove_volume(name)).await?;
            self.made.forget_volume(name);
            Ok::<_, Error>(())
        });
        // With containers left their networks and volumes cannot go: one word about it is enough.
        if errors.is_empty() {
            let (networks, volumes) = futures::future::join(join_all(networks), join_all(volumes)).await;
            errors.extend(networks.into_iter().chain(volumes).filter_map(Result::err));
        }
        first_with_rest(errors)
    }

    async fn end_container(
        &self,
        provider: &dyn ContainersProvider,
        container: &MadeContainer,
        options: &DownOptions,
    ) -> Result<()> {
        let step = container.service.map(|service| &self.plan.services[service]);
        if let (Some(service), Some(step)) = (container.service, step) {
            if !step.pre_stop.is_empty()
                && let Ok(handle) = self.handle(&container.id, service).await
            {
                run_before_stop(&*self.provider, &handle, &step.name, &step.pre_stop).await;
            }
            if let Some(grace) = options.grace.or(step.stop_grace) {
                provider.stop_container(&container.id, Some(grace)).await?;
            }
        }
        provider.remove_container(&container.id).await?;
        self.made.forget_container(&container.id);
        if let Some(service) = container.service {
            self.say_service(service, ServiceProgress::Removed);
        }
        Ok(())
    }
}

/// Tries again while something still uses it, or the engine has too much to do.
async fn until_free<F: Future<Output = Result<()>>>(mut remove: impl FnMut() -> F) -> Result<()> {
    let mut pause = Duration::from_millis(50);
    let (mut in_use, mut too_late) = (0, 0);
    loop {
        let error = match remove().await {
            Err(error) if error.kind() == ErrorKind::Conflict && in_use < TRIES_IN_USE => {
                in_use += 1;
                error
            }
            // A busy engine may not have come to it.
            Err(error) if error.kind() == ErrorKind::Timeout && too_late < TRIES_TOO_LATE => {
                too_late += 1;
                error
            }
            result => return result,
        };
        tracing::debug!(%error, "removing is tried again");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

pub(crate) fn first_with_rest(errors: Vec<Error>) -> Result<()> {
    let mut errors = errors.into_iter();
    match errors.next() {
        None => Ok(()),
        Some(first) => Err(errors.fold(first, Error::with_cleanup_error)),
    }
}

/// Containers in the order they go: those of services that nobody left depends on, and so on.
fn levels(made: &[MadeContainer], services: &[ServiceStep]) -> Vec<Vec<MadeContainer>> {
    let mut level_of = vec![0_usize; services.len()];
    // The plan has each service after those it depends on: from its end, every dependant is seen first.
    for (index, service) in services.iter().enumerate().rev() {
        for dependency in &service.depends_on {
            if let Some(other) = services.iter().position(|step| step.name == dependency.service) {
                level_of[other] = level_of[other].max(level_of[index] + 1);
            }
        }
    }
    let mut levels: BTreeMap<usize, Vec<MadeContainer>> = BTreeMap::new();
    for container in made {
        let level = container.service.map_or(0, |service| level_of[service]);
        levels.entry(level).or_default().push(container.clone());
    }
    levels.into_values().collect()
}

/// Removes everything in the background: for a start that failed in the middle of a call, or was dropped.
pub(crate) async fn remove_in_background(provider: Arc<dyn SandboxProvider>, objects: Objects) {
    let Ok(provider) = containers(&*provider, Operation::ComposeDown) else {
        return;
    };
    let removed = objects
        .containers
        .iter()
        .map(|container| again(|| provider.remove_container(&container.id)));
    join_all(removed).await;
    let networks = objects
        .networks
        .iter()
        .map(|id| again(|| provider.remove_network(id)));
    let volumes = objects
        .volumes
        .iter()
        .map(|name| again(|| provider.remove_volume(name)));
    futures::future::join(join_all(networks), join_all(volumes)).await;
}

/// Tries for about a minute, whatever goes wrong.
async fn again<F: Future<Output = Result<()>>>(mut remove: impl FnMut() -> F) {
    let mut pause = Duration::from_millis(50);
    for _ in 0..TRIES {
        match remove().await {
            Ok(()) => return,
            Err(error) => tracing::debug!(%error, "removing is tried again"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    tracing::warn!("a part of a project could not be removed; it is left to a sweep");
}

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
    let mut errors = Vec::new();
    let mut removed = Removed::default();
    let listed = containers.list_containers(&labels).await?;
    for level in levels_by_label(listed) {
        let ends = level.iter().map(|container| async move {
            let hooks = noted(container);
            if container.status == SandboxStatus::Running
                && !hooks.is_empty()
                && let Ok(handle) = containers
                    .container_handle(&container.id, &Ports::default())
                    .await
            {
                run_before_stop(provider, &handle, service_of(container), &hooks).await;
            }
            // What the file asked for is in the container; nothing there means that it is killed at once.
            if options.grace.is_some() || container.stop_timeout.is_some() {
                containers.stop_container(&container.id, options.grace).await?;
            }
            containers.remove_container(&container.id).await
        });
        for result in join_all(ends).await {
            match result {
                Ok(()) => removed.containers += 1,
                Err(error) => errors.push(error),
            }
        }
    }
    for network in containers.list_networks(&labels).await? {
        match until_free(|| containers.remove_network(&network.id)).await {
            Ok(()) => removed.networks += 1,
            Err(error) => errors.push(error),
        }
    }
    if options.volumes == VolumeFate::Remove {
        for volume in containers.list_volumes(&labels).await? {
            match until_free(|| containers.remove_volume(&volume.id)).await {
                Ok(()) => removed.volumes += 1,
                Err(error) => errors.push(error),
            }
        }
    }
    first_with_rest(errors).map(|()| removed)
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
