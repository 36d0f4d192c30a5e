//! What must be gone in the end, however the measurement ends: it is owned outside of what a signal drops.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::join_all;
use gym_sandbox::compose::AsyncSandboxCompose;
use gym_sandbox::docker::{DockerConfig, DockerProvider};
use gym_sandbox::{Operation, Result, SandboxProvider};

use super::context::baseline_failed;
use super::raw::{RawEngine, RawError};

/// An object may still be on its way out, or be removed by somebody else at this moment.
const TRIES: u32 = 40;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Providers and projects of single rows.
#[derive(Debug)]
pub(in crate::cli) struct Left {
    config: DockerConfig,
    /// By the number of creates that they have in flight; none for their own.
    providers: Mutex<BTreeMap<Option<usize>, Arc<DockerProvider>>>,
    projects: Mutex<Vec<Arc<AsyncSandboxCompose>>>,
}

impl Left {
    /// Nothing yet.
    pub(in crate::cli) fn new(config: DockerConfig) -> Self {
        Self {
            config,
            providers: Mutex::default(),
            projects: Mutex::default(),
        }
    }

    /// A provider with that many creates in flight, or as many as it likes.
    ///
    /// # Errors
    /// As [`DockerProvider::new`].
    pub(super) fn provider(&self, creates: Option<usize>) -> Result<Arc<DockerProvider>> {
        let mut providers = locked(&self.providers);
        if let Some(provider) = providers.get(&creates) {
            return Ok(Arc::clone(provider));
        }
        let mut config = self.config.clone();
        config.lanes.create = creates.or(config.lanes.create);
        let provider = Arc::new(DockerProvider::new(config)?);
        providers.insert(creates, Arc::clone(&provider));
        Ok(provider)
    }

    /// Notes a project, before it is started.
    pub(super) fn keep(&self, project: &Arc<AsyncSandboxCompose>) {
        locked(&self.projects).push(Arc::clone(project));
    }

    /// Takes all projects down that are up.
    ///
    /// # Errors
    /// That of the first one that is not gone.
    pub(super) async fn stop_projects(&self) -> Result<()> {
        let projects = std::mem::take(&mut *locked(&self.projects));
        let stopped = join_all(projects.iter().map(|project| project.stop())).await;
        stopped.into_iter().collect()
    }

    /// Takes everything down: projects, what has the label, providers.
    ///
    /// # Errors
    /// The first one; everything was tried.
    pub(in crate::cli) async fn end(&self, raw: &RawEngine) -> Result<()> {
        let stopped = self.stop_projects().await;
        let cleared = clear(raw).await;
        let providers = std::mem::take(&mut *locked(&self.providers));
        let closed = join_all(providers.values().map(|provider| provider.aclose())).await;
        stopped.and(cleared).and(closed.into_iter().collect())
    }
}

/// Removes everything with the label of this process.
///
/// # Errors
/// Something stays, for whatever reason the engine has.
pub(super) async fn clear(raw: &RawEngine) -> Result<()> {
    let mut failure = None;
    for _ in 0..TRIES {
        let tried = async {
            let (containers, networks) = raw.marked().await?;
            if containers.is_empty() && networks.is_empty() {
                return Ok(true);
            }
            let removed = join_all(containers.iter().map(|id| raw.remove(id))).await;
            removed.into_iter().collect::<Result<(), RawError>>()?;
            let removed = join_all(networks.iter().map(|id| raw.remove_network(id))).await;
            removed.into_iter().collect::<Result<(), RawError>>()?;
            Ok(false)
        };
        match tried.await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => {
                failure = Some(error);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    failure.map_or(Ok(()), |error| Err(baseline_failed(Operation::Close, error)))
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
