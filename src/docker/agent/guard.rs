//! What becomes of a command of the agent that nobody waits for any more: it is killed, and `aclose` waits for that.

use std::sync::{Arc, Mutex, PoisonError};

use gym_sandbox_agent::protocol::ClientMessage;

use crate::provider::Reaper;

use super::drive::{KILL_WAIT, SIGN_OF_LIFE};
use super::link::Link;
use super::mailbox::Mailbox;

/// Whether a command is still to be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Something of it may still run.
    Armed,
    /// Nothing is left to kill.
    Disarmed,
    /// A job in the background sees to it.
    Fired,
}

/// Kills a command in the background when it is dropped, unless it was disarmed (contract D3).
pub(super) struct CommandGuard {
    link: Arc<Link>,
    channel: u32,
    mailbox: Arc<Mailbox>,
    reaper: Reaper,
    /// One for all guards of the command.
    state: Arc<Mutex<State>>,
}

impl CommandGuard {
    pub(super) fn new(link: &Arc<Link>, channel: u32, mailbox: &Arc<Mailbox>, reaper: &Reaper) -> Self {
        Self {
            link: Arc::clone(link),
            channel,
            mailbox: Arc::clone(mailbox),
            reaper: reaper.clone(),
            state: Arc::new(Mutex::new(State::Armed)),
        }
    }

    /// Another guard of the same command: the first that is dropped while it runs has it killed.
    pub(super) fn twin(&self) -> Self {
        Self {
            link: Arc::clone(&self.link),
            channel: self.channel,
            mailbox: Arc::clone(&self.mailbox),
            reaper: self.reaper.clone(),
            state: Arc::clone(&self.state),
        }
    }

    pub(super) fn push(&self, message: &ClientMessage) {
        self.link.push(message, self.channel);
    }

    /// Nothing is left to kill: no more messages of the command are taken.
    pub(super) fn disarm(&self) {
        if self.change(State::Disarmed) {
            let _was_open = self.link.forget(self.channel);
        }
    }

    /// Leaves the armed state. Says whether it was in it.
    fn change(&self, to: State) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let was_armed = *state == State::Armed;
        if was_armed {
            *state = to;
        }
        was_armed
    }
}

impl Drop for CommandGuard {
    fn drop(&mut self) {
        if !self.change(State::Fired) {
            return;
        }
        // Said at once: the job may have to wait for its turn.
        let wait_ms = u32::try_from(KILL_WAIT.as_millis()).unwrap_or(u32::MAX);
        self.push(&ClientMessage::Kill(wait_ms));
        self.push(&ClientMessage::Detach);
        let (link, channel, mailbox) = (Arc::clone(&self.link), self.channel, Arc::clone(&self.mailbox));
        self.reaper.submit("kill a dropped command", async move {
            let killed = Reaper::aside(until_killed(&mailbox));
            // The agent does it whenever it can: one that stands still with its sandbox has heard it.
            let _in_time = tokio::time::timeout(KILL_WAIT + SIGN_OF_LIFE, killed).await;
            let _was_open = link.forget(channel);
        });
    }
}

async fn until_killed(mailbox: &Mailbox) {
    loop {
        let news = mailbox.news();
        if news.killed.is_some() || news.start_failed.is_some() || news.lost.is_some() {
            return;
        }
        mailbox.changed().await;
    }
}
