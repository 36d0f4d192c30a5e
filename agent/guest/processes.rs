//! Who descends from whom, by /proc, and signals to whole trees. Waits for nobody.

use std::collections::HashMap;
use std::fs;

use crate::sys;

/// A process as /proc shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    parent: i32,
    group: i32,
    is_dead: bool,
    /// With the pid this names a process for all time.
    started: u64,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(pid: i32, stat: &[u8]) -> Option<Self> {
        // The name in parentheses may hold anything, so it is cut off first.
        let end = stat.iter().rposition(|byte| *byte == b')')?;
        let mut fields = std::str::from_utf8(stat.get(end + 1..)?)
            .ok()?
            .split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let started = fields.nth(16)?.parse().ok()?;
        Some(Self {
            pid,
            parent,
            group,
            is_dead: matches!(state, "Z" | "X"),
            started,
        })
    }
}

/// The living descendants of a process, parents before their children.
pub(crate) fn descendants(root: i32) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for process in children.remove(&parent).unwrap_or_default() {
            parents.push(process.pid);
            if !process.is_dead {
                found.push(process);
            }
        }
    }
    found
}

fn all() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Process::read(entry.file_name().to_str()?.parse().ok()?))
}

/// Sends a signal to the living descendants of this process.
pub(crate) fn signal_descendants(number: i32) {
    signal_all(descendants(own_pid()), number);
}

/// Sends a signal to those descendants of this process that are in a process group. For a group whose leader is gone: by
/// its number alone it could be a group of somebody else by now.
pub(crate) fn signal_group_descendants(group: i32, number: i32) {
    let members = descendants(own_pid())
        .into_iter()
        .filter(|process| process.group == group);
    signal_all(members, number);
}

fn signal_all(processes: impl IntoIterator<Item = Process>, number: i32) {
    let own = own_pid();
    for process in processes {
        if process.parent == own {
            // The number can't be another's: it stays taken until this process, its parent, reaps it.
            let _ = sys::send_signal(process.pid, number);
        } else {
            signal_exactly(process, number);
        }
    }
}

/// Sends a signal to this process and no other that may have its number by now.
fn signal_exactly(process: Process, number: i32) {
    let is_same = || Process::read(process.pid).is_some_and(|now| now.started == process.started);
    match sys::open_process(process.pid) {
        // The number is looked at again after it was bound to a process.
        Ok(handle) if is_same() => drop(sys::send_signal_exactly(&handle, number)),
        // A system without such handles leaves a window of microseconds.
        Err(_) if is_same() => drop(sys::send_signal(process.pid, number)),
        Ok(_) | Err(_) => {}
    }
}

/// Sends a signal to the children of this process alone, which is quick. False where the system can't list them.
pub(crate) fn signal_children(number: i32) -> bool {
    let Ok(list) = fs::read_to_string("/proc/thread-self/children") else {
        return false;
    };
    for pid in list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()) {
        let _ = sys::send_signal(pid, number);
    }
    true
}

/// What is to be seen of a command whose runner is gone.
#[derive(Debug, Default)]
pub(crate) struct Marked {
    /// Living children of this process whose environment marks them as of this command, with all their descendants.
    pub(crate) found: Vec<i32>,
    /// A living child shows no environment at all yet: it is about to become another program, and may be one of them.
    pub(crate) is_unclear: bool,
}

/// Looks once for what a command whose runner is gone has left.
pub(crate) fn marked(entry: &[u8]) -> Marked {
    let own = own_pid();
    let mut marked = Marked::default();
    let living = descendants(own);
    for process in living.iter().filter(|process| process.parent == own) {
        let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|line| line == entry) {
            marked.found.push(process.pid);
        } else if environment.is_empty() {
            let arguments = fs::read(format!("/proc/{}/cmdline", process.pid));
            marked.is_unclear |= arguments.is_ok_and(|arguments| arguments.is_empty());
        }
    }
    for process in &living {
        if marked.found.contains(&process.parent) {
            marked.found.push(process.pid);
        }
    }
    marked
}

fn own_pid() -> i32 {
    std::process::id().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = b"12 (a) S 3 (\n) Z 7 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        let expected = Process {
            pid: 12,
            parent: 7,
            group: 1,
            is_dead: true,
            started: 4242,
        };
        assert_eq!(Process::parse(12, stat), Some(expected));
        assert_eq!(Process::parse(12, b"12 (a"), None);
        assert_eq!(Process::parse(12, b"12 (a) S"), None);
    }
}
