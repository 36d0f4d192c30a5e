//! Taking a project down: dependants first, everything tried, what is left kept for another try.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;

use crate::compose::plan::ServiceStep;
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{ContainersProvider, SandboxProvider};
use crate::spec::SandboxStatus;

use super::claim::is_claim;
use super::crew::{Crew, containers};
use super::hook::{Hooks, not_had, time_before_stop};
use super::made::{MadeContainer, Objects};
use super::progress::{ComposeEvent, ProgressCallback, ServiceProgress};

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
    /// Who is told how far it is; in place of the project's own, where that is known.
    pub progress: Option<ProgressCallback>,
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

    /// Sets who is told how far it is.
    pub fn with_progress(mut self, progress: ProgressCallback) -> Self {
        self.progress = Some(progress);
        self
    }
}

/// What went wrong while a project was taken down.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// Something is left.
    pub(super) left: Vec<Error>,
    /// A hook before a stop failed; what it belongs to is gone all the same, unless `left` says otherwise.
    pub(super) hooks: Vec<Error>,
}

impl Failures {
    /// What is left comes first: where the first error is of a hook, nothing is.
    pub(super) fn into_result(self) -> Result<()> {
        first_with_rest(self.left.into_iter().chain(self.hooks).collect())
    }

    /// What could not be listed is left, and the rest goes on.
    pub(super) fn or_none<T>(&mut self, listed: Result<Vec<T>>) -> Vec<T> {
        listed.unwrap_or_else(|error| {
            self.left.push(error);
            Vec::new()
        })
    }

    pub(super) fn extend(&mut self, more: Self) {
        self.left.extend(more.left);
        self.hooks.extend(more.hooks);
    }
}

impl Crew {
    /// Removes everything that was made. What could not be removed stays noted, so that it can be called again.
    pub(crate) async fn take_down(&self, options: &DownOptions) -> Result<()> {
        let provider = containers(&*self.provider, Operation::ComposeDown)?;
        let objects = self.made.snapshot();
        let mut failures = Failures::default();
        for level in levels(&objects.containers, &self.plan.services) {
            let removed = level
                .iter()
                .map(|container| self.end_container(provider, container, options));
            for failed in join_all(removed).await {
                failures.extend(failed);
            }
        }
        let networks = objects.networks.iter().map(|id| async move {
            until_free(|| provider.remove_network(id)).await?;
            self.made.forget_network(id);
            Ok::<_, Error>(())
        });
        let keeps = options.volumes == VolumeFate::Keep;
        let (claims, volumes): (Vec<_>, Vec<_>) =
            objects.volumes.into_iter().partition(|name| is_claim(name));
        let remove_volume = |name: String| async move {
            until_free(|| provider.remove_volume(&name)).await?;
            self.made.forget_volume(&name);
            Ok::<_, Error>(())
        };
        let volumes = volumes.into_iter().filter(|_| !keeps).map(remove_volume);
        // With containers left their networks and volumes cannot go: one word about it is enough.
        if failures.left.is_empty() {
            let (networks, volumes) = futures::future::join(join_all(networks), join_all(volumes)).await;
            failures
                .left
                .extend(networks.into_iter().chain(volumes).filter_map(Result::err));
        }
        for claim in claims {
            failures.left.extend(remove_volume(claim).await.err());
        }
        failures.into_result()
    }

    async fn end_container(
        &self,
        provider: &dyn ContainersProvider,
        container: &MadeContainer,
        options: &DownOptions,
    ) -> Failures {
        let mut failures = Failures::default();
        let gone = async {
            if let Some(service) = container.service {
                let step = &self.plan.services[service];
                if !step.pre_stop.is_empty() {
                    // Of one that has ended there is nothing to stop. One that can't be looked at stays for another try.
                    let detail = provider.inspect_container(&container.id).await?;
                    let runs = detail.is_some_and(|detail| detail.status == SandboxStatus::Running);
                    if runs && self.made.begin_hooks(&container.id) {
                        failures.hooks = self.run_hooks(container, service, options).await;
                    }
                }
                if let Some(grace) = options.grace.or(step.stop_grace) {
                    provider.stop_container(&container.id, Some(grace)).await?;
                }
            }
            provider.remove_container(&container.id).await
        };
        match gone.await {
            Ok(()) => {
                self.made.forget_container(&container.id);
                if let Some(service) = container.service {
                    self.tell(options, service, ServiceProgress::Removed);
                }
            }
            Err(error) => failures.left.push(error),
        }
        failures
    }

    /// Runs the hooks before the stop of a container that runs.
    async fn run_hooks(
        &self,
        container: &MadeContainer,
        service: usize,
        options: &DownOptions,
    ) -> Vec<Error> {
        let step = &self.plan.services[service];
        let handle = match self.handle(&container.id, service).await {
            Ok(handle) => handle,
            Err(error) => return not_had(&step.name, error).into_iter().collect(),
        };
        let hooks = Hooks {
            provider: &*self.provider,
            handle: &handle,
            service: &step.name,
        };
        let limit = time_before_stop(options.grace.or(step.stop_grace));
        let tell = |hook| self.tell(options, service, ServiceProgress::Hook { hook });
        hooks.before_stop(&step.pre_stop, limit, tell).await
    }

    fn tell(&self, options: &DownOptions, service: usize, progress: ServiceProgress) {
        match &options.progress {
            Some(given) => tell(given, &self.plan.services[service].name, progress),
            None => self.say_service(service, progress),
        }
    }
}

pub(super) fn tell(callback: &ProgressCallback, service: &str, progress: ServiceProgress) {
    callback.call(&ComposeEvent::Service {
        service: service.to_owned(),
        progress,
    });
}

/// Tries again while something still uses it, or the engine has too much to do.
pub(super) async fn until_free<F: Future<Output = Result<()>>>(mut remove: impl FnMut() -> F) -> Result<()> {
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
    let (claims, volumes): (Vec<_>, Vec<_>) = objects.volumes.iter().partition(|name| is_claim(name));
    let volumes = volumes
        .into_iter()
        .map(|name| again(|| provider.remove_volume(name)));
    futures::future::join(join_all(networks), join_all(volumes)).await;
    for claim in claims {
        again(|| provider.remove_volume(claim)).await;
    }
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
