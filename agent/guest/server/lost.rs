//! Trees whose runner was killed by a command of the same user, and the kernel's own kills. The orphans of such a tree have
//! become children of the agent; the marker in their environment tells whose they were.

use std::collections::BTreeSet;
use std::fs;

use super::Server;
use crate::processes;
use crate::protocol::MARKER;
use crate::sys::{self, signal};

/// How long the rest of such a tree is pursued.
const LONGEST_MS: u64 = 5000;
const PAUSE_MS: u64 = 10;
/// A tree counts as gone when it was not seen so many times in a row.
const QUIET_LOOKS: u32 = 3;

/// A tree without its runner.
pub(super) struct LostTree {
    pub(super) command: u64,
    entry: Vec<u8>,
    until: u64,
    next_look: u64,
    quiet_looks: u32,
    killed: BTreeSet<i32>,
}

impl LostTree {
    pub(super) fn new(command: u64, marker: &[u8]) -> Self {
        let now = sys::now_ms();
        Self {
            command,
            entry: [MARKER.as_bytes(), b"=", marker].concat(),
            until: now + LONGEST_MS,
            next_look: now,
            quiet_looks: 0,
            killed: BTreeSet::new(),
        }
    }

    pub(super) fn next_look(&self) -> u64 {
        self.next_look
    }

    /// Kills what there is to see. True when it is over with, one way or the other.
    fn look(&mut self, now: u64) -> bool {
        let seen = processes::marked(&self.entry);
        let is_quiet = seen.found.is_empty() && !seen.is_unclear;
        self.quiet_looks = if is_quiet { self.quiet_looks + 1 } else { 0 };
        for pid in seen.found {
            let _ = sys::send_signal(pid, signal::KILL);
            self.killed.insert(pid);
        }
        self.next_look = now + PAUSE_MS;
        self.quiet_looks >= QUIET_LOOKS || now >= self.until
    }
}

impl Server {
    /// Goes on killing what is left of lost trees.
    pub(super) fn pursue_lost(&mut self) {
        let now = sys::now_ms();
        let mut index = 0;
        while index < self.lost.len() {
            if now < self.lost[index].next_look || !self.lost[index].look(now) {
                index += 1;
                continue;
            }
            let tree = self.lost.swap_remove(index);
            let killed = u32::try_from(tree.killed.len()).unwrap_or(u32::MAX);
            self.answer_kills(tree.command, killed, true);
        }
    }
}

/// The OOM kills in the sandbox, as far as they have been looked at.
#[derive(Debug)]
pub(super) struct OomKills {
    count: u64,
    /// How many were new when some were seen last, and when that was. One look finds those of several commands that end at
    /// once.
    last: u64,
    seen_at: Option<u64>,
}

impl OomKills {
    pub(super) fn until_now() -> Self {
        Self {
            count: oom_kills(),
            last: 0,
            seen_at: None,
        }
    }

    /// How many there were since a command began.
    pub(super) fn since(&mut self, began: u64) -> u32 {
        self.note(oom_kills(), sys::now_ms(), began)
    }

    fn note(&mut self, count: u64, now: u64, began: u64) -> u32 {
        if count > self.count {
            self.last = count - self.count;
            self.seen_at = Some(now);
        }
        self.count = count;
        match self.seen_at {
            // In the same millisecond it was one that began then because the other had ended.
            Some(seen_at) if seen_at > began => u32::try_from(self.last).unwrap_or(u32::MAX),
            _ => 0,
        }
    }
}

/// How often the kernel has killed in this sandbox for want of memory; 0 where it does not say.
fn oom_kills() -> u64 {
    let files = [
        "/sys/fs/cgroup/memory.events",
        "/sys/fs/cgroup/memory/memory.oom_control",
    ];
    let count = |path: &&str| {
        let text = fs::read_to_string(path).ok()?;
        text.lines()
            .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
    };
    files.iter().find_map(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_finds_the_kills_of_all_that_ran_then_and_of_none_that_began_later() {
        let mut kills = OomKills {
            count: 3,
            last: 0,
            seen_at: None,
        };
        assert_eq!(kills.note(3, 100, 50), 0);
        assert_eq!(kills.note(5, 200, 50), 2);
        // Another one that ended in the same moment.
        assert_eq!(kills.note(5, 201, 60), 2);
        assert_eq!(kills.note(5, 300, 250), 0);
        assert_eq!(kills.note(6, 400, 250), 1);
    }
}
