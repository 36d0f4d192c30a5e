//! What happens to the containers of a project while it starts: one stream of events for all of them, with a look at
//! each container whenever an event may have been missed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use tokio::sync::watch;

use crate::error::{Operation, Result};
use crate::spec::container::{ContainerChange, ContainerDetail};
use crate::spec::{SandboxHealth, SandboxStatus};

use super::crew::Crew;

/// How long nothing may happen until the containers are looked at all the same.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The pauses before the stream is asked for again.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// What was seen of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its last end, while it has not been started again.
    pub(super) ended: Option<i64>,
    /// How often it ended with another code than 0.
    pub(super) failures: u32,
    /// What its health check says.
    pub(super) health: Option<SandboxHealth>,
    /// Whether it is gone.
    pub(super) is_removed: bool,
}

/// The containers of one start.
#[derive(Debug)]
pub(super) struct Watch {
    seen: Mutex<HashMap<String, Seen>>,
    /// Counts changes, so that those who wait look again.
    changes: watch::Sender<u64>,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self {
            seen: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    /// Begins to note what happens to a container.
    pub(super) fn add(&self, id: &str) {
        self.change(id, |_| {});
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Seen)) {
        change(
            self.seen
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .entry(id.to_owned())
                .or_default(),
        );
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Tells of changes of any container.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn known(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.keys().cloned().collect()
    }

    pub(super) fn seen(&self, id: &str) -> Seen {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(id).cloned().unwrap_or_default()
    }

    /// Waits until what was seen answers.
    pub(super) async fn until<T>(&self, id: &str, mut answer: impl FnMut(&Seen) -> Option<T>) -> T {
        let mut changes = self.changes.subscribe();
        loop {
            if let Some(answer) = answer(&self.seen(id)) {
                return answer;
            }
            if changes.changed().await.is_err() {
                // The sender lives as long as `self`.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Notes what an inspect says.
    pub(super) fn note(&self, id: &str, detail: Option<&ContainerDetail>) {
        self.change(id, |seen| match detail {
            None => seen.is_removed = true,
            Some(detail) => {
                seen.health = detail.health;
                let is_over = detail.status == SandboxStatus::Stopped && !detail.is_restarting;
                match (is_over, detail.exit_code) {
                    (true, Some(code)) if seen.ended != Some(code) => {
                        seen.ended = Some(code);
                        seen.failures += u32::from(code != 0);
                    }
                    (true, _) => {}
                    (false, _) => seen.ended = None,
                }
                let restarts = u32::try_from(detail.restarts).unwrap_or(u32::MAX);
                seen.failures = seen.failures.max(restarts);
            }
        });
    }

    fn apply(&self, id: &str, change: ContainerChange) {
        // Other containers may bear the labels of the project, too.
        if !self
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains_key(id)
        {
            return;
        }
        self.change(id, |seen| match change {
            ContainerChange::Started => seen.ended = None,
            ContainerChange::Ended { exit_code } => {
                seen.ended = Some(exit_code);
                seen.failures += u32::from(exit_code != 0);
            }
            ContainerChange::Health(health) => seen.health = Some(health),
            ContainerChange::Removed => seen.is_removed = true,
        });
    }

    /// Follows the events of a project. Never returns: who waits ends it by dropping it.
    pub(super) async fn follow(&self, crew: &Crew, labels: &BTreeMap<String, String>) {
        let mut pause = RECONNECT.0;
        loop {
            match self.follow_once(crew, labels).await {
                Ok(()) => pause = RECONNECT.0,
                Err(error) => tracing::debug!(%error, "events are asked for again"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RECONNECT.1);
        }
    }

    /// Follows one stream to its end.
    async fn follow_once(&self, crew: &Crew, labels: &BTreeMap<String, String>) -> Result<()> {
        let containers = crew.containers(Operation::ComposeUp)?;
        let mut events = containers.container_events(labels).await?;
        // What happened while no stream was read.
        self.look(crew).await;
        loop {
            match tokio::time::timeout(LOOK_AGAIN, events.next()).await {
                Ok(Some(Ok(event))) => self.apply(&event.container, event.change),
                Ok(Some(Err(error))) => return Err(error),
                Ok(None) => return Ok(()),
                Err(_) => self.look(crew).await,
            }
        }
    }

    /// Looks at every container.
    async fn look(&self, crew: &Crew) {
        for id in self.known() {
            let Ok(containers) = crew.containers(Operation::ComposeUp) else {
                return;
            };
            match containers.inspect_container(&id).await {
                Ok(detail) => self.note(&id, detail.as_ref()),
                Err(error) => tracing::debug!(%error, "a container could not be looked at"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_is_told_of_a_change_that_comes_later() {
        let watch = Watch::new();
        watch.add("c");
        let ended = watch.until("c", |seen| seen.ended);
        let change = async {
            tokio::task::yield_now().await;
            watch.apply("other", ContainerChange::Ended { exit_code: 9 });
            watch.apply("c", ContainerChange::Ended { exit_code: 3 });
        };
        let (code, ()) = tokio::join!(ended, change);
        assert_eq!(code, 3);
        assert_eq!(watch.seen("c").failures, 1);
        assert_eq!(watch.seen("other"), Seen::default());
    }

    #[test]
    fn an_inspect_that_repeats_an_event_counts_once() {
        let watch = Watch::new();
        watch.add("c");
        watch.apply("c", ContainerChange::Ended { exit_code: 3 });
        let mut detail = ContainerDetail::new("c", "c", SandboxStatus::Stopped);
        detail.exit_code = Some(3);
        watch.note("c", Some(&detail));
        assert_eq!(watch.seen("c").failures, 1);
        detail.is_restarting = true;
        detail.restarts = 4;
        watch.note("c", Some(&detail));
        assert_eq!((watch.seen("c").failures, watch.seen("c").ended), (4, None));
    }
}
