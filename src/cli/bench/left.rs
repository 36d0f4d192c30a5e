//! What must be gone in the end, however the measurement ends: it is owned outside of what a signal drops, because only a
//! stop waits until something is removed. So everything is noted here before it is started.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::join_all;
use gym_sandbox::compose::AsyncSandboxCompose;
use gym_sandbox::docker::{DockerConfig, DockerProvider};
use gym_sandbox::{AsyncSandbox, Operation, Result, SandboxProvider};

use super::context::baseline_failed;
use super::raw::{RawEngine, RawError};

/// An object may still be on its way out, or be removed by somebody else at this moment.
const TRIES: u32 = 40;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Providers, sandboxes, and projects.
#[derive(Debug)]
pub(in crate::cli) struct Left {
    config: DockerConfig,
    /// By the number of creates that they have in flight; none for their own.
    providers: Mutex<BTreeMap<Option<usize>, Arc<DockerProvider>>>,
    /// For all rows.
    standing: Mutex<Vec<Arc<AsyncSandbox>>>,
    /// For one run of a row.
    passing: Mutex<Vec<Arc<AsyncSandbox>>>,
    projects: Mutex<Vec<Arc<AsyncSandboxCompose>>>,
}

impl Left {
    /// Nothing yet.
    pub(in crate::cli) fn new(config: DockerConfig) -> Self {
        Self {
            config,
            providers: Mutex::default(),
            standing: Mutex::default(),
            passing: Mutex::default(),
            projects: Mutex::default(),
        }
    }

    /// A provider with that many creates in flight, or as many as it likes.
    ///
    /// # Errors
    /// As [`DockerProvider::new`].
    pub(in crate::cli) fn provider(&self, creates: Option<usize>) -> Result<Arc<DockerProvider>> {
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

    /// Notes a sandbox that stays until the end.
    pub(in crate::cli) fn standing(&self, sandbox: AsyncSandbox) -> Arc<AsyncSandbox> {
        noted(&self.standing, sandbox)
    }

    /// Notes a sandbox that stays until the next run.
    pub(super) fn passing(&self, sandbox: AsyncSandbox) -> Arc<AsyncSandbox> {
        noted(&self.passing, sandbox)
    }

    /// Notes a project, which stays until the next run.
    pub(super) fn project(&self, project: AsyncSandboxCompose) -> Arc<AsyncSandboxCompose> {
        noted(&self.projects, project)
    }

    /// Takes away what the run before has left.
    ///
    /// # Errors
    /// The first one; everything was tried.
    pub(super) async fn pass(&self, raw: &RawEngine) -> Result<()> {
        let projects = self.stop_projects().await;
        let sandboxes = stop(&self.passing).await;
        projects.and(sandboxes).and(clear(raw).await)
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

    /// Takes everything down: projects and sandboxes, what has the label, then the providers.
    ///
    /// # Errors
    /// The first one; everything was tried.
    pub(in crate::cli) async fn end(&self, raw: &RawEngine) -> Result<()> {
        let (standing, passed) = tokio::join!(stop(&self.standing), self.pass(raw));
        let providers = std::mem::take(&mut *locked(&self.providers));
        let closed = join_all(providers.values().map(|provider| provider.aclose())).await;
        standing.and(passed).and(closed.into_iter().collect())
    }
}

/// Removes everything with the label of this process.
///
/// # Errors
/// Something stays, for whatever reason the engine has.
async fn clear(raw: &RawEngine) -> Result<()> {
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

async fn stop(sandboxes: &Mutex<Vec<Arc<AsyncSandbox>>>) -> Result<()> {
    let sandboxes = std::mem::take(&mut *locked(sandboxes));
    let stopped = join_all(sandboxes.iter().map(|sandbox| sandbox.stop())).await;
    stopped.into_iter().collect()
}

fn noted<T>(list: &Mutex<Vec<Arc<T>>>, thing: T) -> Arc<T> {
    let thing = Arc::new(thing);
    locked(list).push(Arc::clone(&thing));
    thing
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
