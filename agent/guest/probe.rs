//! Finds out what this sandbox lets the agent do, for the hello. Whatever may be forbidden with death is tried in a child.

use std::fs::{self, File};
use std::io::{PipeWriter, Read, Write, pipe};

use crate::context::Context;
use crate::protocol::{AgentHello, Fingerprint, OLDEST_VERSION, VERSION};
use crate::sys::{self, SignalSet, signal};

/// What is tried, in this order.
const TRIALS: [fn() -> bool; 3] = [
    || sys::become_subreaper().is_ok(),
    || sys::close_from(1000).is_ok(),
    || sys::open_process(std::process::id().cast_signed()).is_ok(),
];

/// Describes this agent and its sandbox.
pub(crate) fn hello(context: &Context) -> AgentHello {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map_or("", str::trim)
    };
    let [has_subreaper, has_close_range, has_pidfd] = try_all();
    AgentHello {
        version: VERSION,
        oldest_version: OLDEST_VERSION,
        fingerprint: fingerprint(),
        pid: std::process::id(),
        uid: context.uid,
        gid: context.gid,
        effective_capabilities: u64::from_str_radix(field("CapEff"), 16).unwrap_or(0),
        has_subreaper,
        has_close_range,
        has_pidfd,
        has_proc: !status.is_empty(),
        seccomp: field("Seccomp").parse().unwrap_or(0),
        no_new_privileges: field("NoNewPrivs") == "1",
        lease_ms: 0,
        time_left_ms: 0,
    }
}

/// The fingerprint of this program's file; zeros where it can't be read.
pub(crate) fn fingerprint() -> [u8; 16] {
    let Ok(mut file) = File::open("/proc/self/exe") else {
        return [0; 16];
    };
    let mut fingerprint = Fingerprint::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return fingerprint.finish(),
            Ok(count) => fingerprint.update(&buffer[..count]),
            Err(_) => return [0; 16],
        }
    }
}

fn try_all() -> [bool; TRIALS.len()] {
    let mut results = [false; TRIALS.len()];
    let mut next = 0;
    while next < TRIALS.len() {
        let Some(answers) = try_from(next) else { break };
        for (result, answer) in results[next..].iter_mut().zip(&answers) {
            *result = *answer == 1;
        }
        // The child died of the one that it did not answer any more.
        next += answers.len() + 1;
    }
    results
}

/// One byte for each trial from `first` on that a child lived through.
fn try_from(first: usize) -> Option<Vec<u8>> {
    let (mut reader, writer) = pipe().ok()?;
    let child = sys::fork_process().ok()?;
    if child == 0 {
        answer(first, writer)
    }
    drop(writer);
    let mut answers = Vec::new();
    // The end comes when the child ends, whichever way.
    let _ = reader.read_to_end(&mut answers);
    let mask = SignalSet::all_but(&[signal::CHLD]);
    while matches!(sys::reap(), Ok(None)) {
        sys::wait_ready(&mut [], Some(10), &mask);
    }
    answers.truncate(TRIALS.len() - first);
    Some(answers)
}

fn answer(first: usize, mut writer: PipeWriter) -> ! {
    for trial in &TRIALS[first..] {
        let _ = writer.write_all(&[u8::from(trial())]);
    }
    sys::exit_now(0)
}
