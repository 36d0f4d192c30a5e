//! The lease of this process on one engine: an empty volume whose labels say until when the process counts as alive,
//! renewed while it has sandboxes. The work is done on the library's own thread.
//!
//! A volume's labels can't be changed: a lease is renewed by making the next and then removing the last, so that there
//! is no moment without one.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bollard::models::VolumeCreateRequest;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListNetworksOptionsBuilder, ListVolumesOptionsBuilder, RemoveVolumeOptions,
};
use tokio::sync::{Notify, watch};

use crate::error::{Error, ErrorKind, Operation, Result};

use crate::provider::SweepProvider;

use super::DockerProvider;
use super::config::LeaseConfig;
use super::connect::{Engine, EngineTime};
use super::failure::{EngineFailure, QUICK, call};
use super::owner::{Keep, LABEL, Presence, Stamp, kind, owner};

/// How often the last lease is tried to be removed when the process needs it no more.
const REMOVALS: u32 = 3;

/// How long after a failed renewal the next is tried, at most.
const RETRY: Duration = Duration::from_secs(5);

/// How long `aclose` waits until the last lease is gone.
const RELEASE: Duration = Duration::from_secs(30);

/// Keeps the lease of this process on one engine while there are sandboxes of it.
#[derive(Debug)]
pub(super) struct Keeper {
    engine: Engine,
    config: LeaseConfig,
    state: Mutex<State>,
    /// Wakes the task when the last sandbox has gone.
    emptied: Notify,
    /// There is no lease, and no task that makes one.
    idle: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    held: HashMap<String, Held>,
    is_running: bool,
}

#[derive(Debug)]
struct Held {
    stage: Stage,
    _presence: Presence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its container may not be there yet.
    Making,
    Made,
}

/// All keepers that are in use, so that providers for the same engine share one.
static KEEPERS: Mutex<Vec<Weak<Keeper>>> = Mutex::new(Vec::new());

impl Keeper {
    /// The keeper for an engine.
    pub(super) fn of(engine: &Engine, config: &LeaseConfig) -> Arc<Self> {
        let mut keepers = KEEPERS.lock().unwrap_or_else(PoisonError::into_inner);
        keepers.retain(|keeper| keeper.strong_count() > 0);
        let found = keepers
            .iter()
            .filter_map(Weak::upgrade)
            .find(|keeper| keeper.engine.address == engine.address && keeper.config == *config);
        found.unwrap_or_else(|| {
            let keeper = Arc::new(Self {
                engine: engine.clone(),
                config: config.clone(),
                state: Mutex::default(),
                emptied: Notify::new(),
                idle: watch::Sender::new(true),
            });
            keepers.push(Arc::downgrade(&keeper));
            keeper
        })
    }

    /// The lease is kept for a sandbox, or a network or volume, that is about to be made.
    pub(super) fn hold(self: &Arc<Self>, sandbox: &str) {
        let held = Held {
            stage: Stage::Making,
            _presence: Presence::show(),
        };
        let starts = {
            let mut state = self.state();
            state.held.insert(sandbox.to_owned(), held);
            !std::mem::replace(&mut state.is_running, true)
        };
        if !starts {
            return;
        }
        self.idle.send_replace(false);
        if let Some(runtime) = crate::provider::own_runtime() {
            runtime.spawn(Arc::clone(self).keep());
        } else {
            self.state().is_running = false;
            self.idle.send_replace(true);
        }
    }

    /// The sandbox is there.
    pub(super) fn made(&self, sandbox: &str) {
        if let Some(held) = self.state().held.get_mut(sandbox) {
            held.stage = Stage::Made;
        }
    }

    /// The sandbox is gone, or was never made.
    fn let_go(&self, sandbox: &str) {
        let gone = {
            let mut state = self.state();
            let gone = state.held.remove(sandbox);
            if gone.is_some() && state.held.is_empty() {
                self.emptied.notify_one();
            }
            gone
        };
        // Outside of the lock: the last one removes the owner file.
        drop(gone);
    }

    /// How many sandboxes are being made.
    pub(super) fn in_the_making(&self) -> usize {
        let state = self.state();
        state
            .held
            .values()
            .filter(|held| held.stage == Stage::Making)
            .count()
    }

    /// Waits until the lease is gone, unless there are sandboxes.
    pub(super) async fn released(&self) -> Result<()> {
        if !self.state().held.is_empty() {
            return Ok(());
        }
        let mut idle = self.idle.subscribe();
        let released = tokio::time::timeout(RELEASE, idle.wait_for(|idle| *idle)).await;
        match released {
            Ok(_) => Ok(()),
            // Somebody has made a sandbox meanwhile.
            Err(_) if !self.state().held.is_empty() => Ok(()),
            Err(_) => Err(Error::new(
                ErrorKind::Timeout,
                Operation::Close,
                format!("the lease of this process could not be removed in {RELEASE:?}"),
            )
            .with_hint("it ends by itself, and a sweep removes it")),
        }
    }

    /// Lets go of sandboxes that are gone though nobody has said so: somebody else has removed them.
    pub(super) async fn forget_the_gone(&self) {
        let Ok(there) = self.held_there().await else {
            return;
        };
        let gone: Vec<String> = {
            let state = self.state();
            let made = state.held.iter().filter(|(_, held)| held.stage == Stage::Made);
            made.filter(|(sandbox, _)| !there.contains(*sandbox))
                .map(|(sandbox, _)| sandbox.clone())
                .collect()
        };
        for sandbox in gone {
            self.let_go(&sandbox);
        }
    }

    async fn keep(self: Arc<Self>) {
        let mut last: Option<String> = None;
        loop {
            if self.state().held.is_empty() {
                self.drop_lease(last.take()).await;
                let mut state = self.state();
                if state.held.is_empty() {
                    state.is_running = false;
                    self.idle.send_replace(true);
                    return;
                }
                continue;
            }
            let pause = match self.make_next().await {
                Ok(next) => {
                    if let Some(last) = last.replace(next) {
                        let _left_to_a_sweep = self.remove(&last).await;
                    }
                    self.config.renewal
                }
                Err(failure) => {
                    tracing::warn!(%failure, "the lease could not be renewed");
                    (self.config.renewal / 4).min(RETRY)
                }
            };
            if tokio::time::timeout(pause, self.emptied()).await.is_err() {
                self.forget_the_gone().await;
            }
        }
    }

    async fn emptied(&self) {
        while !self.state().held.is_empty() {
            self.emptied.notified().await;
        }
    }

    async fn make_next(&self) -> Result<String, EngineFailure> {
        // Asked each time: the engine's clock may have been set, and ours stands still while this machine sleeps.
        let created = self.engine.ask_time().await?;
        let lease = created.plus(self.config.length);
        let name = lease_name(&owner().id, lease);
        let request = VolumeCreateRequest {
            name: Some(name.clone()),
            labels: Some(
                Stamp {
                    kind: kind::LEASE,
                    created,
                    expires: None,
                    lease,
                    renewal: self.config.renewal,
                    project: None,
                    keep: Keep::No,
                }
                .labels(),
            ),
            ..VolumeCreateRequest::default()
        };
        call(QUICK, self.engine.client.create_volume(request)).await?;
        Ok(name)
    }

    async fn drop_lease(&self, last: Option<String>) {
        let Some(last) = last else { return };
        for _ in 0..REMOVALS {
            match self.remove(&last).await {
                Ok(()) => return,
                Err(failure) => {
                    tracing::debug!(volume = last, %failure, "the lease was not removed");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
        tracing::warn!(volume = last, "the lease of this process is left to a sweep");
    }

    async fn remove(&self, volume: &str) -> Result<(), EngineFailure> {
        let removed = self
            .engine
            .client
            .remove_volume(volume, None::<RemoveVolumeOptions>);
        match call(QUICK, removed).await {
            // Somebody has pruned it.
            Err(failure) if failure.is_status(404) => Ok(()),
            other => other,
        }
    }

    /// What there is of this process, by the names that it is held by.
    async fn held_there(&self) -> Result<HashSet<String>, EngineFailure> {
        let client = &self.engine.client;
        let filters = HashMap::from([("label", vec![format!("{LABEL}.owner={}", owner().id)])]);
        let options = ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&filters)
            .build();
        let containers = call(QUICK, client.list_containers(Some(options))).await?;
        let mut there: HashSet<String> = containers
            .into_iter()
            .flat_map(|container| container.names.unwrap_or_default())
            .map(|name| name.trim_start_matches('/').to_owned())
            .collect();
        if self.state().held.keys().any(|name| name.contains(' ')) {
            let options = ListNetworksOptionsBuilder::new().filters(&filters).build();
            let networks = call(QUICK, client.list_networks(Some(options))).await?;
            there.extend(
                networks
                    .into_iter()
                    .filter_map(|network| Some(network_hold(&network.name?))),
            );
            let options = ListVolumesOptionsBuilder::new().filters(&filters).build();
            let volumes = call(QUICK, client.list_volumes(Some(options))).await?;
            let volumes = volumes.volumes.unwrap_or_default().into_iter();
            there.extend(volumes.map(|volume| volume_hold(&volume.name)));
        }
        Ok(there)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name that shows whose lease it is and until when; `:` is not allowed in names of volumes.
fn lease_name(owner: &str, end: EngineTime) -> String {
    let end: String = end
        .to_rfc3339()
        .chars()
        .filter(|character| !matches!(character, '-' | ':'))
        .collect();
    format!("{LABEL}-lease-{owner}-{end}")
}

/// The name that a network is held by: none that a container can have.
pub(super) fn network_hold(network: &str) -> String {
    format!("network {network}")
}

/// The same for a volume.
pub(super) fn volume_hold(volume: &str) -> String {
    format!("volume {volume}")
}

/// Refuses to make more while a signal has everything removed.
pub(super) fn check_not_ending() -> Result<()> {
    if crate::provider::is_ending() {
        return Err(Error::new(
            ErrorKind::CreateFailed,
            Operation::Create,
            "a signal is ending this process",
        ));
    }
    Ok(())
}

/// Nobody needs the lease for this sandbox any more. It may have been made through another provider of this process.
pub(super) fn let_go(sandbox: &str) {
    let keepers: Vec<Arc<Keeper>> = KEEPERS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .iter()
        .filter_map(Weak::upgrade)
        .collect();
    for keeper in keepers {
        keeper.let_go(sandbox);
    }
}

impl DockerProvider {
    /// The keeper of this process's lease on the engine, for something that is about to be made.
    pub(super) async fn keeper(&self) -> Result<&Arc<Keeper>> {
        check_not_ending()?;
        self.any_keeper().await
    }

    /// The same for what removes.
    pub(super) async fn any_keeper(&self) -> Result<&Arc<Keeper>> {
        let engine = self.engine().await?;
        Ok(self.shared.keeper.get_or_init(|| {
            let shared = self.downgrade();
            crate::provider::register_cleanup(move || {
                let provider = Self {
                    shared: shared.upgrade()?,
                };
                Some(Box::pin(async move { provider.remove_own().await }))
            });
            Keeper::of(engine, &self.config().lease)
        }))
    }

    /// Waits until the lease is gone, where nothing needs it any more.
    pub(super) async fn lease_released(&self) -> Result<()> {
        match self.shared.keeper.get() {
            Some(keeper) => keeper.released().await,
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_lease_is_one_that_volumes_may_have() {
        let end: EngineTime = "2026-11-29T22:12:35.441Z".parse().unwrap();
        let name = lease_name("0123456789ab-cd", end);
        assert_eq!(name, "gym-sandbox-lease-0123456789ab-cd-20261129T221235.441Z");
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        );
    }
}
