//! When the sandbox ends by itself, when commands are over their time, and how long the loop may sleep until then.

use std::time::Instant;

use super::command::Phase;
use super::{Server, TIME_OVER};
use crate::options::Options;
use crate::protocol::{AgentHello, ExitCause};
use crate::sys;

/// How long after the end of a lease was seen the sandbox ends, at most: what was said during a pause is read first.
const LAST_CALL_MS: u64 = 2_000;

/// The ends of a sandbox. All of them go on during a pause; the lease stands still while the machine sleeps, as the
/// client may have slept with it.
pub(super) struct Timers {
    ends_at: Option<u64>,
    idle_ms: Option<u64>,
    lease_ms: Option<u64>,
    /// When it was seen that the lease is over.
    lease_over: Option<u64>,
    /// The last word of any client.
    last_message: u64,
    /// How long the machine had slept then.
    asleep_before: u64,
    /// When this began, by a clock that stands still while the machine sleeps.
    awake_since: Instant,
    /// The last that was more than a renewal of the lease.
    last_use: u64,
    last_busy: u64,
}

impl Timers {
    pub(super) fn new(options: &Options) -> Self {
        let now = sys::now_ms();
        Self {
            ends_at: options.ttl_ms.map(|ttl_ms| now.saturating_add(ttl_ms)),
            idle_ms: options.idle_ms,
            lease_ms: options.lease_ms,
            lease_over: None,
            last_message: now,
            asleep_before: now,
            awake_since: Instant::now(),
            last_use: now,
            last_busy: now,
        }
    }

    /// A client has said something, which renews the lease.
    pub(super) fn note_message(&mut self, is_renewal: bool) {
        self.last_message = sys::now_ms();
        self.asleep_before = self.asleep();
        self.lease_over = None;
        if !is_renewal {
            self.last_use = self.last_message;
        }
    }

    /// There is work: the time without any begins later.
    fn busy_at(&mut self, now: u64) {
        self.last_busy = now;
    }

    /// The longest lease that any client wants holds: one with a short one takes nothing from the others.
    pub(super) fn set_lease(&mut self, milliseconds: u64) {
        self.lease_ms = (milliseconds > 0).then(|| milliseconds.max(self.lease_ms.unwrap_or(0)));
    }

    pub(super) fn describe(&self, hello: &mut AgentHello) {
        hello.lease_ms = self.lease_ms.unwrap_or(0);
        hello.time_left_ms = self
            .ends_at
            .map_or(0, |ends_at| ends_at.saturating_sub(sys::now_ms()).max(1));
    }

    /// When the sandbox ends if nothing happens until then.
    fn next_end(&self, is_busy: bool) -> Option<u64> {
        let after_work = |milliseconds: u64| self.last_use.max(self.last_busy).saturating_add(milliseconds);
        let idle = self.idle_ms.filter(|_| !is_busy).map(after_work);
        let lease = self.lease_ms.map(|milliseconds| match self.lease_over {
            Some(seen) => seen.saturating_add(milliseconds.min(LAST_CALL_MS)),
            None => self.lease_end(milliseconds),
        });
        [self.ends_at, idle, lease].into_iter().flatten().min()
    }

    fn lease_end(&self, milliseconds: u64) -> u64 {
        let asleep = self.asleep().saturating_sub(self.asleep_before);
        self.last_message
            .saturating_add(milliseconds)
            .saturating_add(asleep)
    }

    /// How long the machine has slept, beside a number that stays the same.
    fn asleep(&self) -> u64 {
        let awake = u64::try_from(self.awake_since.elapsed().as_millis()).unwrap_or(u64::MAX);
        sys::now_ms().saturating_sub(awake)
    }

    /// Notes that the lease is over, so that the sandbox ends when nobody says anything now.
    fn look_at_lease(&mut self, now: u64) {
        let end = self.lease_ms.map(|milliseconds| self.lease_end(milliseconds));
        if end.is_some_and(|end| end <= now) {
            self.lease_over.get_or_insert(now);
        }
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
            .chain(self.next_removal())
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
        self.timers.look_at_lease(now);
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
        self.remove_unwanted(now);
        if let Some(streams) = self.doors.dial(now) {
            self.adopt(streams, None, super::Origin::Dialled);
        }
    }
}
