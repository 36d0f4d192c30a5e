//! Sandboxes of other processes that this one has taken over: its lease names them, so that no sweep removes them as the
//! dead creator's while this process lives.

use std::sync::Arc;
use std::time::Duration;

use super::super::agent::Tended;
use super::super::owner::Presence;
use super::{Held, Keeper, Stage};

/// How long a taking waits for the lease that tells of it.
const TELLING: Duration = Duration::from_secs(10);

/// A sandbox of another process that is held as long as this lives.
#[derive(Debug)]
pub(in crate::docker) struct Taken {
    keeper: Arc<Keeper>,
    sandbox: String,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.keeper.give_back(&self.sandbox);
    }
}

impl Keeper {
    /// Holds a sandbox of another process, and waits until others can see that. An engine that does not take the lease
    /// now is asked again as for any renewal.
    pub(in crate::docker) async fn take(self: &Arc<Self>, sandbox: &str, agent: Option<Tended>) -> Taken {
        let taken = Taken {
            keeper: Arc::clone(self),
            sandbox: sandbox.to_owned(),
        };
        let presence = Presence::show();
        let (taking, starts) = {
            let mut state = self.state();
            let held = state.held.entry(sandbox.to_owned()).or_insert_with(|| Held {
                stage: Stage::Made,
                makers: 0,
                takers: 0,
                agent: None,
                _presence: presence,
            });
            held.takers += 1;
            held.agent = agent.or(held.agent.take());
            state.takings += 1;
            (state.takings, !std::mem::replace(&mut state.is_running, true))
        };
        if starts {
            self.start();
        } else {
            self.urged.notify_one();
        }
        let mut told = self.told.subscribe();
        let waited = tokio::time::timeout(TELLING, told.wait_for(|told| *told >= taking)).await;
        if waited.is_err() {
            tracing::warn!(sandbox, "no lease says yet that the sandbox was taken over");
        }
        taken
    }

    /// One handle less.
    fn give_back(&self, sandbox: &str) {
        let gone = {
            let mut state = self.state();
            let is_last = state.held.get_mut(sandbox).is_some_and(|held| {
                // Whoever closes the sandbox lets go of it for all.
                held.takers = held.takers.saturating_sub(1);
                held.takers == 0
            });
            let gone = is_last.then(|| state.held.remove(sandbox)).flatten();
            if gone.is_some() {
                if state.held.is_empty() {
                    self.emptied.notify_one();
                } else {
                    self.urged.notify_one();
                }
            }
            gone
        };
        drop(gone);
    }

    /// How many takings there were, and what is held of others.
    pub(super) fn taken(&self) -> (u64, Vec<String>) {
        let state = self.state();
        let taken = state.held.iter().filter(|(_, held)| held.takers > 0);
        (state.takings, taken.map(|(sandbox, _)| sandbox.clone()).collect())
    }
}

/// The names of all sandboxes that this process has taken over, on whatever engine: names are unique.
pub(in crate::docker) fn held_by_this_process() -> Vec<String> {
    super::keepers()
        .iter()
        .flat_map(|keeper| keeper.taken().1)
        .collect()
}
