//! What becomes of a command of the agent that nobody waits for any more: it is killed, and `aclose` waits for that.

use std::sync::{Arc, Mutex, PoisonError};

use gym_sandbox_agent::protocol::ClientMessage;

use super::super::DockerProvider;
use super::drive::{KILL_WAIT, SIGN_OF_LIFE};
use super::link::Link;
use super::mailbox::{Mailbox, News};
use super::patience::Told;

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
    provider: DockerProvider,
    container_id: Arc<str>,
    link: Arc<Link>,
    channel: u32,
    mailbox: Arc<Mailbox>,
    /// One for all guards of the command.
    state: Arc<Mutex<State>>,
}

impl CommandGuard {
    pub(super) fn new(
        provider: &DockerProvider,
        container_id: &str,
        link: &Arc<Link>,
        channel: u32,
        mailbox: &Arc<Mailbox>,
    ) -> Self {
        Self {
            provider: provider.clone(),
            container_id: container_id.into(),
            link: Arc::clone(link),
            channel,
            mailbox: Arc::clone(mailbox),
            state: Arc::new(Mutex::new(State::Armed)),
        }
    }

    /// Another guard of the same command: the first that is dropped while it runs has it killed.
    pub(super) fn twin(&self) -> Self {
        Self {
            provider: self.provider.clone(),
            container_id: Arc::clone(&self.container_id),
            link: Arc::clone(&self.link),
            channel: self.channel,
            mailbox: Arc::clone(&self.mailbox),
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
        let (provider, container_id) = (self.provider.clone(), Arc::clone(&self.container_id));
        let (link, channel, mailbox) = (Arc::clone(&self.link), self.channel, Arc::clone(&self.mailbox));
        let reaper = self.provider.reaper();
        reaper.submit("kill a dropped command", async move {
            let told = Told {
                provider: &provider,
                container_id: &container_id,
                mailbox: &mailbox,
                is_answer: News::is_killed,
            };
            // The agent does it whenever it can: one that stands still with its sandbox has heard it.
            let _in_time = told.answer_in_background(KILL_WAIT + SIGN_OF_LIFE).await;
            let _was_open = link.forget(channel);
        });
    }
}
