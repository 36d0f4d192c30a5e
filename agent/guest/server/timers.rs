//! When the sandbox ends by itself, when commands are over their time, and how long the loop may sleep until then.

use super::command::Phase;
use super::{Server, TIME_OVER};
use crate::options::Options;
use crate::protocol::{AgentHello, ExitCause};
use crate::sys;

/// The ends of a sandbox. All of them go on during a pause.
pub(super) struct Timers {
    ends_at: Option<u64>,
    idle_ms: Option<u64>,
    lease_ms: Option<u64>,
    last_message: u64,
    last_busy: u64,
}

impl Timers {
    pub(super) fn new(options: &Options) -> Self {
        let now = sys::now_ms();
        Self {
            ends_at: options.ttl_ms.map(|ttl_ms| now.saturating_add(ttl_ms)),
            idle_ms: options.idle_ms,
            lease_ms: options.lease_ms,
            last_message: now,
            last_busy: now,
        }
    }

    /// A client has said something.
    pub(super) fn note_message(&mut self) {
        self.last_message = sys::now_ms();
    }

    /// There is work: the time without any begins later.
    fn busy_at(&mut self, now: u64) {
        self.last_busy = now;
    }

    pub(super) fn set_lease(&mut self, milliseconds: u64) {
        self.lease_ms = (milliseconds > 0).then_some(milliseconds);
    }

    pub(super) fn describe(&self, hello: &mut AgentHello) {
        hello.lease_ms = self.lease_ms.unwrap_or(0);
        hello.time_left_ms = self
            .ends_at
            .map_or(0, |ends_at| ends_at.saturating_sub(sys::now_ms()).max(1));
    }

    /// When the sandbox ends if nothing happens until then.
    fn next_end(&self, is_busy: bool) -> Option<u64> {
        let after_message = |milliseconds: u64| self.last_message.saturating_add(milliseconds);
        let after_work =
            |milliseconds: u64| self.last_message.max(self.last_busy).saturating_add(milliseconds);
        let idle = self.idle_ms.filter(|_| !is_busy).map(after_work);
        [self.ends_at, idle, self.lease_ms.map(after_message)]
            .into_iter()
            .flatten()
            .min()
    }
}

impl Server {
    fn is_busy(&self) -> bool {
        !self.files.is_empty()
            || self
                .commands
                .values()
                .any(|command| command.phase != Phase::Exited)
    }

    /// How long the loop may sleep; None for ever.
    pub(super) fn next_timeout(&self) -> Option<u64> {
        if self.can_read_files() || !self.sessions_to_send().is_empty() {
            return Some(0);
        }
        let commands = self.commands.values();
        let ends = commands
            .flat_map(|command| [command.deadline, command.kill_answer_at])
            .flatten();
        let next = ends
            .chain(self.timers.next_end(self.is_busy()))
            .chain(self.doors.next_dial())
            .chain(self.lost.iter().map(super::LostTree::next_look))
            .min()?;
        Some(next.saturating_sub(sys::now_ms()))
    }

    pub(super) fn check_times(&mut self) {
        let now = sys::now_ms();
        let is_busy = self.is_busy();
        if is_busy {
            // The time without work begins when the last command ends.
            self.timers.busy_at(now);
        }
        if self.timers.next_end(is_busy).is_some_and(|at| at <= now) {
            self.end(TIME_OVER);
        }
        let mut unanswered = Vec::new();
        for (number, command) in &mut self.commands {
            if command.deadline.is_some_and(|at| at <= now) {
                let wait_ms = command.kill_wait_ms;
                command.kill(ExitCause::Timeout, wait_ms, true);
            }
            if command.kill_answer_at.is_some_and(|at| at <= now) {
                unanswered.push(*number);
            }
        }
        for number in unanswered {
            self.answer_kills(number, 0, true);
        }
        if let Some(streams) = self.doors.dial(now) {
            self.adopt(streams, None, super::Origin::Dialled);
        }
    }
}
