//! The lease of this process on one engine, kept while the process has sandboxes: an empty volume whose labels say until
//! when the process counts as alive, and what the agents of the sandboxes are told. The work is done on the library's
//! own thread.

mod taken;
mod volume;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::SweepProvider;

use super::DockerProvider;
use super::agent::Tended;
use super::config::LeaseConfig;
use super::connect::Engine;
use super::owner::Presence;

pub(super) use taken::{Taken, held_by_this_process};
pub(super) use volume::{network_hold, volume_hold};

/// How long after a failed renewal the next is tried, at most.
const RETRY: Duration = Duration::from_secs(5);

/// How many connections to agents are made at once.
const CONNECTING: usize = 8;

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
    /// Wakes the task when a sandbox was taken over, which the lease has to say.
    urged: Notify,
    /// How many takings the lease tells of.
    told: watch::Sender<u64>,
    /// There is no lease, and no task that makes one.
    idle: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    held: HashMap<String, Held>,
    is_running: bool,
    /// How many sandboxes were taken over so far.
    takings: u64,
}

#[derive(Debug)]
struct Held {
    stage: Stage,
    /// How many creates of this name count on it: of several only one makes something.
    makers: usize,
    /// How many handles have taken it over from another process; 0 for one of this process.
    takers: usize,
    /// The agent that wants to hear of its owner.
    agent: Option<Tended>,
    _presence: Presence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its container may not be there yet.
    Making,
    Made,
}

impl State {
    fn hold(&mut self, sandbox: &str, presence: Presence) {
        let held = self.held.entry(sandbox.to_owned()).or_insert_with(|| Held {
            stage: Stage::Making,
            makers: 0,
            takers: 0,
            agent: None,
            _presence: presence,
        });
        held.makers += 1;
    }

    /// One maker less; the last one ends it.
    fn give_up(&mut self, sandbox: &str) -> Option<Held> {
        let held = self.held.get_mut(sandbox)?;
        held.makers = held.makers.saturating_sub(1);
        if held.makers > 0 {
            return None;
        }
        self.held.remove(sandbox)
    }
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
                urged: Notify::new(),
                told: watch::Sender::new(0),
                idle: watch::Sender::new(true),
            });
            keepers.push(Arc::downgrade(&keeper));
            keeper
        })
    }

    /// The lease is kept for a sandbox, or a network or volume, that is about to be made.
    pub(super) fn hold(self: &Arc<Self>, sandbox: &str) {
        let presence = Presence::show();
        let starts = {
            let mut state = self.state();
            state.hold(sandbox, presence);
            !std::mem::replace(&mut state.is_running, true)
        };
        if starts {
            self.start();
        }
    }

    /// Starts the task that keeps the lease.
    fn start(self: &Arc<Self>) {
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

    /// The sandbox has an agent that wants to hear of its owner.
    pub(super) fn tend(&self, sandbox: &str, agent: Option<Tended>) {
        if let Some(held) = self.state().held.get_mut(sandbox) {
            held.agent = agent;
        }
    }

    /// The sandbox is gone, or was never made.
    fn let_go(&self, sandbox: &str) {
        self.end_hold(|state| state.held.remove(sandbox));
    }

    /// One of the creates of this name has made nothing, or what it made is gone. Another one may have made something.
    fn give_up(&self, sandbox: &str) {
        self.end_hold(|state| state.give_up(sandbox));
    }

    fn end_hold(&self, end: impl FnOnce(&mut State) -> Option<Held>) {
        let gone = {
            let mut state = self.state();
            let gone = end(&mut state);
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

    async fn keep(self: Arc<Self>) {
        let mut last: Option<String> = None;
        let mut connecting: Option<JoinHandle<()>> = None;
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
            let (takings, taken) = self.taken();
            let making = self.make_next(&taken);
            let pause = match self.beside_renewals(&mut connecting, making).await {
                Ok(next) => {
                    self.told.send_replace(takings);
                    if let Some(last) = last.replace(next) {
                        let removal = self.remove(&last);
                        let _left_to_a_sweep = self.beside_renewals(&mut connecting, removal).await;
                    }
                    self.config.renewal
                }
                Err(failure) => {
                    tracing::warn!(%failure, "the lease could not be renewed");
                    (self.config.renewal / 4).min(RETRY)
                }
            };
            self.renew_in_sandboxes(&mut connecting);
            tokio::select! {
                () = tokio::time::sleep(pause) => {
                    self.beside_renewals(&mut connecting, self.forget_the_gone()).await;
                }
                () = self.emptied() => {}
                () = self.urged.notified() => {}
            }
        }
    }

    /// Waits for the engine. The agents hear of their owner meanwhile, however slow it is: it is not asked for that.
    async fn beside_renewals<T>(
        &self,
        connecting: &mut Option<JoinHandle<()>>,
        engine: impl Future<Output = T>,
    ) -> T {
        let mut engine = std::pin::pin!(engine);
        loop {
            match tokio::time::timeout(self.config.renewal, &mut engine).await {
                Ok(answer) => return answer,
                Err(_) => self.renew_in_sandboxes(connecting),
            }
        }
    }

    /// Tells the agents of this process's sandboxes that it lives: at once over the connections that there are; new ones
    /// are made beside, so that the lease itself does not wait for them.
    fn renew_in_sandboxes(&self, connecting: &mut Option<JoinHandle<()>>) {
        let lease = self.config.without_client();
        let agents: Vec<Tended> = {
            let state = self.state();
            state
                .held
                .values()
                .filter_map(|held| held.agent.clone())
                .collect()
        };
        let apart: Vec<Tended> = agents
            .into_iter()
            .filter(|agent| !agent.renew_at_once(lease))
            .collect();
        let is_busy = connecting.as_ref().is_some_and(|task| !task.is_finished());
        if !apart.is_empty() && !is_busy {
            *connecting = Some(tokio::spawn(async move {
                stream::iter(apart)
                    .for_each_concurrent(CONNECTING, |agent| async move { agent.renew(lease).await })
                    .await;
            }));
        }
    }

    async fn emptied(&self) {
        while !self.state().held.is_empty() {
            self.emptied.notified().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

fn keepers() -> Vec<Arc<Keeper>> {
    let keepers = KEEPERS.lock().unwrap_or_else(PoisonError::into_inner);
    keepers.iter().filter_map(Weak::upgrade).collect()
}

/// Nobody needs the lease for this sandbox any more. It may have been made through another provider of this process.
pub(super) fn let_go(sandbox: &str) {
    for keeper in keepers() {
        keeper.let_go(sandbox);
    }
}

/// One of the creates of this name needs the lease no more; another one may.
pub(super) fn give_up(sandbox: &str) {
    for keeper in keepers() {
        keeper.give_up(sandbox);
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
    fn b33_a_create_that_was_refused_leaves_the_hold_of_another_of_the_same_name() {
        let mut state = State::default();
        state.hold("network n", Presence::show());
        state.hold("network n", Presence::show());
        assert!(state.give_up("network n").is_none());
        assert!(state.held.contains_key("network n"));
        assert!(state.give_up("network n").is_some());
        assert!(state.give_up("network n").is_none() && state.held.is_empty());
    }
}
