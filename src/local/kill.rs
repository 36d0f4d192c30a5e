//! Finding and killing every process of a command, from what the kernel says of all processes.
//!
//! A process belongs to the command when a parent, its group or its session does, when its environment holds the
//! command's mark, or when it holds an output pipe of the command. First all are found and stopped, look after look
//! until looks find none, so that none can run away by forking; then all are killed.

use std::collections::HashMap;
use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process};
use tokio::process::{Child, ChildStderr, ChildStdout};

use crate::spec::SandboxId;

/// The variable that marks the processes of a command, the same as in every other sandbox.
pub(super) const MARKER: &str = "GYM_SANDBOX_EXEC";

/// Processes that fork and exit all the time are missed by one look in two: only many looks in a row that find nothing
/// mean that nothing is left.
const EMPTY_LOOKS: usize = 12;

/// The pause before the next look where a process is about to become another program.
const UNCLEAR: Duration = Duration::from_millis(5);

/// How long processes are looked for, and how long killed ones may take to die, which takes processor time, too.
const LOOKING: Duration = Duration::from_secs(5);
const DYING: Duration = Duration::from_secs(10);

/// The kernel's flag of its own threads, which have neither arguments nor an environment.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// What the processes to kill are known by.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// What their environment holds.
    mark: Vec<u8>,
    /// The process that was started, and when.
    main: Option<(i32, u64)>,
    /// The names of the pipes that it was started with, as the kernel shows them.
    pipes: Vec<String>,
}

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct KillReport {
    pub(super) killed: u32,
    pub(super) survivors: u32,
}

impl Target {
    pub(super) fn of_command(
        child: &Child,
        marker: &str,
        pipes: (Option<&ChildStdout>, Option<&ChildStderr>),
    ) -> Self {
        let main = child.id().and_then(|id| i32::try_from(id).ok());
        let names = [pipes.0.map(pipe_name), pipes.1.map(pipe_name)];
        Self {
            mark: format!("{MARKER}={marker}\0").into_bytes(),
            main: main.and_then(|pid| Some((pid, Process::read(pid)?.start))),
            pipes: names.into_iter().flatten().flatten().collect(),
        }
    }

    /// All commands of a sandbox, also ended ones that have left children.
    pub(super) fn of_sandbox(id: &SandboxId) -> Self {
        Self {
            mark: format!("{MARKER}={id}/").into_bytes(),
            main: None,
            pipes: Vec::new(),
        }
    }
}

fn pipe_name(pipe: impl AsFd) -> Option<String> {
    let found = rustix::fs::fstat(pipe).ok()?;
    Some(format!("pipe:[{}]", found.st_ino))
}

/// What the kernel says of a process.
#[derive(Debug, Clone, Copy)]
struct Process {
    pid: i32,
    state: u8,
    parent: i32,
    group: i32,
    session: i32,
    flags: u64,
    threads: u32,
    start: u64,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(pid, &stat)
    }

    fn parse(pid: i32, stat: &[u8]) -> Option<Self> {
        // The name in parentheses may hold anything, parentheses and line breaks, too.
        let after = stat.iter().rposition(|&byte| byte == b')')?;
        let text = std::str::from_utf8(&stat[after + 1..]).ok()?;
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        Some(Self {
            pid,
            state: *fields.first()?.as_bytes().first()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            flags: fields.get(6)?.parse().ok()?,
            threads: fields.get(17)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }

    fn all() -> Vec<Self> {
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| Self::read(entry.ok()?.file_name().to_str()?.parse().ok()?))
            .collect()
    }

    /// The first thread of a process may end before the others: then the process lives.
    fn is_dead(&self) -> bool {
        self.state == b'X' || (self.state == b'Z' && self.threads <= 1)
    }

    /// Says whether a process without an environment is between two programs: then it has no arguments either.
    fn is_becoming(&self) -> bool {
        self.flags & KERNEL_THREAD == 0
            && std::fs::read(format!("/proc/{}/cmdline", self.pid)).is_ok_and(|line| line.is_empty())
    }

    fn still_lives(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.start == self.start && !now.is_dead())
    }

    fn send(&self, signal: Signal) -> bool {
        Pid::from_raw(self.pid).is_some_and(|pid| self.still_lives() && kill_process(pid, signal).is_ok())
    }
}

/// Those that were found.
struct Hunt<'a> {
    target: &'a Target,
    found: HashMap<i32, Process>,
    /// Ids that make those a part who have them as parent, group or session.
    ids: HashSet<i32>,
    /// Processes whose environment is known to hold no mark.
    unmarked: HashSet<(i32, u64)>,
    /// The last look has met a process that was about to become another program: its environment is not there yet.
    is_unclear: bool,
    own: i32,
}

impl<'a> Hunt<'a> {
    fn new(target: &'a Target) -> Self {
        let mut hunt = Self {
            target,
            found: HashMap::new(),
            ids: HashSet::new(),
            unmarked: HashSet::new(),
            is_unclear: false,
            own: getpid().as_raw_nonzero().get(),
        };
        if let Some((pid, start)) = target.main
            // Its number is not given to another process while one of its group lives.
            && Process::read(pid).is_none_or(|now| now.start == start)
        {
            hunt.ids.insert(pid);
        }
        hunt
    }

    /// Looks once at all processes. Says whether there were new ones.
    fn look(&mut self, stop: bool) -> bool {
        let mut news = false;
        self.is_unclear = false;
        for process in Process::all() {
            let known = self.found.get(&process.pid);
            if process.pid == self.own
                || process.pid == 1
                || process.is_dead()
                || known.is_some_and(|known| known.start == process.start)
                || !self.belongs(&process)
            {
                continue;
            }
            if stop {
                process.send(Signal::STOP);
            }
            self.ids.insert(process.pid);
            self.found.insert(process.pid, process);
            news = true;
        }
        news
    }

    fn belongs(&mut self, process: &Process) -> bool {
        let ids = [process.pid, process.parent, process.group, process.session];
        ids.iter().any(|id| self.ids.contains(id)) || self.is_marked(process) || self.holds_pipe(process)
    }

    fn is_marked(&mut self, process: &Process) -> bool {
        let key = (process.pid, process.start);
        if self.unmarked.contains(&key) {
            return false;
        }
        let mut environment = match std::fs::read(format!("/proc/{}/environ", process.pid)) {
            Ok(environment) => environment,
            Err(error) => {
                if error.kind() == io::ErrorKind::PermissionDenied {
                    self.unmarked.insert(key);
                }
                return false;
            }
        };
        if environment.is_empty() && process.is_becoming() {
            self.is_unclear = true;
            return false;
        }
        environment.insert(0, 0);
        let mark = [&[0], self.target.mark.as_slice()].concat();
        let marked = environment.windows(mark.len()).any(|window| window == mark);
        if !marked {
            self.unmarked.insert(key);
        }
        marked
    }

    fn holds_pipe(&self, process: &Process) -> bool {
        !self.target.pipes.is_empty()
            && [1, 2].iter().any(|descriptor| {
                std::fs::read_link(format!("/proc/{}/fd/{descriptor}", process.pid)).is_ok_and(|link| {
                    link.to_str()
                        .is_some_and(|link| self.target.pipes.iter().any(|pipe| pipe == link))
                })
            })
    }
}

/// Kills every process of the target and waits for their end, for a bounded time. Blocks.
pub(super) fn kill_tree(target: &Target) -> KillReport {
    let mut hunt = Hunt::new(target);
    let deadline = Instant::now() + LOOKING;
    let mut empty = 0;
    while empty < EMPTY_LOOKS && Instant::now() < deadline {
        empty = if hunt.look(true) { 0 } else { empty + 1 };
        if hunt.is_unclear {
            std::thread::sleep(UNCLEAR);
        }
    }
    for process in hunt.found.values() {
        process.send(Signal::KILL);
    }
    let deadline = Instant::now() + DYING;
    loop {
        let left = hunt
            .found
            .values()
            .filter(|process| process.still_lives())
            .count();
        if left == 0 || Instant::now() >= deadline {
            let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            return KillReport {
                killed: count(hunt.found.len() - left),
                survivors: count(left),
            };
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends a signal to every process of the target, and says to how many. Blocks.
pub(super) fn signal_tree(target: &Target, signal: Signal) -> usize {
    let mut hunt = Hunt::new(target);
    while hunt.look(false) {}
    hunt.found.values().filter(|process| process.send(signal)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_have_any_name() {
        let stat = b"42 (a) b\n(c) ) S 1 42 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 12345 1 1";
        let process = Process::parse(42, stat).unwrap();
        assert_eq!(
            (process.state, process.parent, process.group, process.session),
            (b'S', 1, 42, 7)
        );
        assert_eq!(
            (process.threads, process.start, process.flags),
            (3, 12345, 4_194_560)
        );
        assert!(Process::parse(42, b"42 (cut) S 1").is_none());
        assert!(Process::parse(42, b"").is_none());
    }

    #[test]
    fn this_process_is_read_and_never_found() {
        let own = Process::read(getpid().as_raw_nonzero().get()).unwrap();
        assert!(own.still_lives());
        let target = Target {
            mark: b"NO_SUCH_MARK=".to_vec(),
            main: Some((own.pid, own.start)),
            pipes: Vec::new(),
        };
        let mut hunt = Hunt::new(&target);
        hunt.ids.clear();
        assert!(!hunt.look(false));
    }
}
