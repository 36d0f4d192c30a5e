//! Waiting for an agent that was told to kill something. One that stands still with its sandbox has heard it and does it
//! when the sandbox goes on, which may be never: nobody waits for that.

use std::time::Duration;

use tokio::time::Instant;

use crate::provider::Reaper;

use super::super::DockerProvider;
use super::super::exec::is_paused;
use super::mailbox::{Mailbox, News};

/// An agent that has not answered by then may be in a paused sandbox. How often the engine is asked again.
pub(super) const SILENT: Duration = Duration::from_millis(300);
const LOOKS: Duration = Duration::from_secs(2);

/// How often the engine is asked whether a paused sandbox goes on.
const RESUMED: Duration = Duration::from_millis(500);

/// How often the mailbox is looked at: another task may take the note that there is something in it.
const NOTES: Duration = Duration::from_millis(20);

/// Waits until a sandbox is paused, looking at once and then seldom.
pub(super) async fn until_paused(provider: &DockerProvider, container_id: &str) {
    while !is_paused(provider, container_id).await {
        tokio::time::sleep(LOOKS).await;
    }
}

/// Waits until a sandbox does not stand still any more, and no longer than until then.
pub(super) async fn until_resumed(provider: &DockerProvider, container_id: &str, until: Option<Instant>) {
    while until.is_none_or(|until| Instant::now() < until) && is_paused(provider, container_id).await {
        tokio::time::sleep(RESUMED).await;
    }
}

/// What came of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    /// The agent has answered.
    Answered,
    /// It stands still with its sandbox.
    Paused,
    /// It has not answered in time.
    Late,
}

/// What an agent was told, and by when it has answered.
#[derive(Clone, Copy)]
pub(super) struct Told<'a> {
    pub(super) provider: &'a DockerProvider,
    pub(super) container_id: &'a str,
    pub(super) mailbox: &'a Mailbox,
    pub(super) is_answer: fn(&News) -> bool,
}

impl Told<'_> {
    fn is_answered(&self) -> bool {
        (self.is_answer)(&self.mailbox.news())
    }

    async fn note(&self, until: Instant) {
        let until = until.min(Instant::now() + NOTES);
        let _quiet = tokio::time::timeout_at(until, self.mailbox.changed()).await;
    }

    async fn until_answered(&self, until: Instant) {
        while !self.is_answered() && Instant::now() < until {
            self.note(until).await;
        }
    }

    /// Waits for the answer, and no longer than it takes to see that the sandbox is paused.
    pub(super) async fn answer(&self, until: Instant) -> Waited {
        let mut next_look = Instant::now() + SILENT;
        loop {
            if self.is_answered() {
                return Waited::Answered;
            }
            let now = Instant::now();
            if now >= until {
                return Waited::Late;
            }
            if now >= next_look {
                // An engine that hangs says nothing of it, and a busy one may take longer than the agent.
                tokio::select! {
                    paused = is_paused(self.provider, self.container_id) => if paused {
                        return Waited::Paused;
                    },
                    () = self.until_answered(until) => continue,
                }
                next_look = Instant::now() + LOOKS;
            }
            self.note(until.min(next_look)).await;
        }
    }

    /// Waits for the answer in a job of the background. Says whether it came.
    pub(super) async fn answer_in_background(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        loop {
            match Reaper::aside(self.answer(until)).await {
                Waited::Answered => return true,
                Waited::Late => return false,
                Waited::Paused => Reaper::unawaited(self.resume(until)).await,
            }
        }
    }

    /// Waits until the sandbox goes on.
    async fn resume(&self, until: Instant) {
        while Instant::now() < until {
            let next_look = Instant::now() + RESUMED;
            while Instant::now() < next_look {
                if self.is_answered() {
                    return;
                }
                self.note(next_look).await;
            }
            if !is_paused(self.provider, self.container_id).await {
                return;
            }
        }
    }
}
