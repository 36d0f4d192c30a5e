//! Thousands of commands at once with random cancellation, in a test program of its own, so that nothing else counts: no
//! exit code is lost or made up, and nothing is left of them, here or in the sandbox. 2,000 commands, and 10,000 with
//! `GYM_SANDBOX_LONG=1`.

#![allow(clippy::unwrap_used, reason = "what can't be done fails the test")]
#![allow(
    clippy::print_stderr,
    reason = "a skipped test says why, and the numbers are worth reading"
)]

mod common;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt;
use gym_sandbox::docker::{DockerRaw, ExecPathPolicy};
use gym_sandbox::{ExecOptions, ExecPath, SandboxHandle, SandboxProvider};

use common::{DockerTest, docker_with, long_tests_are_wanted};

const IN_FLIGHT: usize = 64;

/// More than this is a leak, not the allocator's way to keep what it had.
const GROWTH_KIB: u64 = 16 * 1024;
/// The same of the agent: 100 bytes for each of 10,000 commands.
const AGENT_GROWTH_KIB: u64 = 1024;

/// Random numbers that are the same for one seed.
struct Random(AtomicU64);

impl Random {
    fn below(&self, limit: u64) -> u64 {
        // The steps of splitmix64.
        let mut value = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (value ^ (value >> 31)) % limit
    }
}

fn resident_kib(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap()
}

/// What this process and the sandbox hold.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    descriptors: usize,
    resident_kib: u64,
    agent_descriptors: usize,
    agent_kib: u64,
    processes: usize,
}

async fn held(test: &DockerTest, handle: &SandboxHandle) -> Held {
    // Counted by the shell itself: another program may be there already or not.
    let line = "set -- /proc/1/fd/*; echo $#; set -- /proc/[0-9]*; echo $#; cat /proc/1/status";
    let result = test.provider.exec(handle, ExecOptions::new(line)).await.unwrap();
    let printed = result.stdout().unwrap();
    let number = |line: Option<&str>| line.and_then(|line| line.trim().parse().ok()).unwrap();
    Held {
        descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
        resident_kib: resident_kib(&std::fs::read_to_string("/proc/self/status").unwrap()),
        agent_descriptors: number(printed.lines().next()),
        agent_kib: resident_kib(&printed),
        processes: number(printed.lines().nth(1)),
    }
}

/// One command of a random kind. Says whether it was left to its end.
async fn one(test: &DockerTest, handle: &SandboxHandle, number: u64, random: &Random) -> bool {
    let code = number % 256;
    let line = match number % 4 {
        0 => format!("echo {number}; exit {code}"),
        1 => format!("echo {number}; sleep 0.0{}; exit {code}", random.below(10)),
        2 => format!("head -c 100000 /dev/zero >&2; echo {number}; exit {code}"),
        _ => format!("cat >/dev/null; echo {number}; (sleep 0.02 &) ; exit {code}"),
    };
    let options = ExecOptions::new(["sh", "-c", &line])
        .with_stdin(vec![b'x'; 1000])
        .with_timeout(Duration::from_secs(600));
    let exec = test.provider.exec(handle, options);
    let patience = if number.is_multiple_of(3) {
        Duration::from_millis(random.below(60))
    } else {
        Duration::from_secs(700)
    };
    let Ok(result) = tokio::time::timeout(patience, exec).await else {
        assert!(number.is_multiple_of(3), "command {number} does not end");
        return false;
    };
    let result = result.unwrap();
    assert_eq!(result.exec_path, ExecPath::Agent, "{number}: {result:?}");
    assert_eq!(
        (u64::try_from(result.return_code), result.error_type),
        (Ok(code), None),
        "{number}: {result:?}"
    );
    assert_eq!(result.stdout(), Some(format!("{number}\n")), "{number}");
    let stderr = if number % 4 == 2 { 100_000 } else { 0 };
    assert_eq!(result.bytes().stderr, stderr, "{number}");
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn d02_d03_no_code_is_lost_and_nothing_is_left_under_random_cancellation() {
    let mut config = common::config();
    config.exec.exec_path = ExecPathPolicy::Agent;
    let Some(test) = docker_with(config).await else {
        return;
    };
    let handle = test.provider.create(&common::busybox()).await.unwrap();
    let seed = u64::from(std::process::id());
    eprintln!("seed {seed}");
    let random = Random(AtomicU64::new(seed));
    let ended = AtomicUsize::new(0);
    let run = async |numbers: std::ops::Range<u64>| {
        futures::stream::iter(numbers)
            .map(|number| one(&test, &handle, number, &random))
            .buffer_unordered(IN_FLIGHT)
            .for_each(|was_left| {
                ended.fetch_add(usize::from(was_left), Ordering::Relaxed);
                std::future::ready(())
            })
            .await;
    };
    let number = if long_tests_are_wanted() { 10_000 } else { 2_000 };
    // What is made once, and what allocators keep of the most that was ever held, is there after as many as are measured: only
    // what each command leaves grows from then on.
    run(0..number).await;
    let before = settled(&test, &handle, None).await;
    let began = Instant::now();
    run(0..number).await;
    let took = began.elapsed();
    let after = settled(&test, &handle, Some(&before)).await;
    eprintln!(
        "{number} commands in {took:?}, {} of all ended: {before:?}, {after:?}",
        ended.into_inner()
    );
    assert_eq!(after.processes, before.processes, "processes are left: {after:?}");
    assert!(after.descriptors <= before.descriptors, "{before:?}, {after:?}");
    assert!(
        after.agent_descriptors <= before.agent_descriptors,
        "{before:?}, {after:?}"
    );
    assert!(
        after.resident_kib <= before.resident_kib + GROWTH_KIB,
        "{before:?}, {after:?}"
    );
    assert!(
        after.agent_kib <= before.agent_kib + AGENT_GROWTH_KIB,
        "{before:?}, {after:?}"
    );
    let raw = handle.raw::<DockerRaw>().unwrap();
    assert_eq!(raw.exec_path(), ExecPath::Agent, "{:?}", raw.engine_reason());
    test.provider.close(&handle).await.unwrap();
    test.provider.aclose().await.unwrap();
}

/// Waits until what was cancelled has been cleaned up.
async fn settled(test: &DockerTest, handle: &SandboxHandle, before: Option<&Held>) -> Held {
    let deadline = Instant::now() + Duration::from_secs(300);
    let mut last: Option<Held> = None;
    loop {
        let now = held(test, handle).await;
        let at_rest = match before {
            // The agent, the runner and the shell, and the agent has done with all others.
            None => {
                now.processes <= 3 && last.is_some_and(|last| last.agent_descriptors == now.agent_descriptors)
            }
            Some(before) => {
                now.processes == before.processes
                    && now.agent_descriptors <= before.agent_descriptors
                    && now.descriptors <= before.descriptors
            }
        };
        if at_rest || Instant::now() >= deadline {
            return now;
        }
        last = Some(now);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
