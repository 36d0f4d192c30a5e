//! Open descriptors of this process (B26), and creates that are cancelled at random moments (C18). A program of its
//! own, one test at a time: whatever else ran in it would be counted, too.

#![allow(clippy::unwrap_used, reason = "what can't be done fails the test")]
#![allow(clippy::print_stderr, reason = "a skipped test says why")]
#![allow(
    clippy::similar_names,
    reason = "`test` and `text` stand beside each other everywhere"
)]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::join_all;
use gym_sandbox::docker::{DockerConfig, ExecPathPolicy};
use gym_sandbox::{AsyncSandbox, ExecOptions, ExecTimeout, SandboxHandle, SandboxProvider, SandboxPtySpec};

use common::{DockerTest, docker, docker_with, long_tests_are_wanted};

/// What may be open beyond what was: connections that the runtime has not dropped yet.
const POOL: usize = 3;

/// No test waits longer than this for what should come: a busy machine takes many times the usual.
const LONG: Duration = Duration::from_secs(300);

/// Set in the process that has few descriptors.
const FEW: &str = "GYM_SANDBOX_TEST_FEW_DESCRIPTORS";

/// Runs a test while no other of this program runs. The runtime is made after the lock is had, as its own descriptors
/// count.
fn alone(test: impl Future<Output = ()>) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone: MutexGuard<'_, ()> = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test);
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd")
        .expect("this system has /proc")
        .count()
}

fn what_is_open() -> Vec<String> {
    let entries = std::fs::read_dir("/proc/self/fd").expect("this system has /proc");
    entries
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .map(|target| target.display().to_string())
        .collect()
}

/// Both ways to run commands: with an exec of the engine each command has a connection of its own.
fn both_ways() -> [DockerConfig; 2] {
    [ExecPathPolicy::Engine, ExecPathPolicy::Auto].map(|path| {
        let mut config = DockerConfig::default();
        config.exec.exec_path = path;
        config
    })
}

/// Fails when the number does not come back to what it was.
async fn back_to(base: usize) {
    let deadline = Instant::now() + LONG;
    loop {
        let now = open_descriptors();
        if now <= base + POOL {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{now} descriptors are open, {base} were before: {:?}",
            what_is_open()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A sandbox, and the number of descriptors after everything has been used once that is kept open for good.
async fn used_sandbox(test: &DockerTest) -> (SandboxHandle, usize) {
    let handle = test.provider.create(&common::busybox()).await.unwrap();
    // A cancelled command starts the clean-up thread. One that has not begun leaves nothing to clean up.
    let command = ExecOptions::new("echo >/tmp/begun; sleep 1000").with_timeout(ExecTimeout::Never);
    let begun = async {
        let look = || ExecOptions::new("test -e /tmp/begun");
        while !test.provider.exec(&handle, look()).await.unwrap().is_success() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        ended = test.provider.exec(&handle, command) => panic!("it ended: {ended:?}"),
        begun = tokio::time::timeout(LONG, begun) => begun.expect("it begins"),
    }
    cleaned_up(test).await;
    (handle, open_descriptors())
}

/// Waits for the end of all clean-up. A close of the provider gives up after a minute, and may be called again.
async fn cleaned_up(test: &DockerTest) {
    let deadline = Instant::now() + LONG;
    while let Err(error) = test.provider.aclose().await {
        assert!(error.is_retryable() && Instant::now() < deadline, "{error:?}");
    }
}

async fn echo(test: &DockerTest, handle: &SandboxHandle, number: usize) {
    let result = test
        .provider
        .exec(
            handle,
            // A hundred of them at once may take an engine longer than the usual time for one.
            ExecOptions::new(format!("echo {number}; echo e{number} >&2")).with_timeout(LONG),
        )
        .await
        .unwrap();
    assert!(result.is_success(), "{number}: {result:?}");
    assert_eq!(result.stdout(), Some(format!("{number}\n")));
    assert_eq!(result.stderr(), Some(format!("e{number}\n")));
}

/// Opens terminals, uses them and drops them without a close.
async fn dropped_terminals(test: &DockerTest, handle: &SandboxHandle, number: usize) {
    let pty = test.provider.as_pty().unwrap();
    let sessions = (0..number).map(|_| async {
        let spec = SandboxPtySpec::new("echo ready; sleep 93572 & exec cat");
        let session = pty.create_pty(handle, &spec).await.unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"ready\r\n") {
            seen.extend_from_slice(&session.read().await.unwrap());
        }
        session.write(b"used\n").await.unwrap();
        while !seen.ends_with(b"used\r\nused\r\n") {
            seen.extend_from_slice(&session.read().await.unwrap());
        }
        session
    });
    // All are open at once.
    drop(join_all(sessions).await);
}

#[test]
fn b26_dropped_terminals_leave_neither_descriptors_nor_processes() {
    for config in both_ways() {
        drop_terminals(config);
    }
}

fn drop_terminals(config: DockerConfig) {
    alone(async {
        let Some(test) = docker_with(config).await else {
            return;
        };
        let (handle, base) = used_sandbox(&test).await;
        let rounds = if long_tests_are_wanted() { 4 } else { 2 };
        for _ in 0..rounds {
            dropped_terminals(&test, &handle, 50).await;
            // What was dropped is ended before this returns.
            cleaned_up(&test).await;
            // A pattern that does not match this command's own line.
            let look = "grep -l '9357[2]' /proc/[0-9]*/cmdline 2>/dev/null; true";
            let left = test.provider.exec(&handle, ExecOptions::new(look)).await.unwrap();
            assert_eq!(
                left.stdout().as_deref(),
                Some(""),
                "processes of dropped terminals live on"
            );
            back_to(base).await;
        }
        test.provider.close(&handle).await.unwrap();
        test.provider.aclose().await.unwrap();
    });
}

#[test]
fn b26_many_commands_one_after_the_other() {
    alone(async {
        for config in both_ways() {
            let Some(test) = docker_with(config).await else {
                return;
            };
            let (handle, base) = used_sandbox(&test).await;
            let number = if long_tests_are_wanted() { 300 } else { 100 };
            for number in 0..number {
                echo(&test, &handle, number).await;
            }
            back_to(base).await;
            test.provider.close(&handle).await.unwrap();
            test.provider.aclose().await.unwrap();
        }
    });
}

#[test]
fn b26_commands_dropped_half_way_leave_neither_descriptors_nor_processes() {
    for config in both_ways() {
        drop_commands_half_way(config);
    }
}

fn drop_commands_half_way(config: DockerConfig) {
    alone(async {
        let Some(test) = docker_with(config).await else {
            return;
        };
        let (handle, base) = used_sandbox(&test).await;
        let drops = (0..50_u64).map(|number| {
            let provider = Arc::clone(&test.provider);
            let handle = handle.clone();
            async move {
                let command = ExecOptions::new("echo begun; sleep 93571 & sleep 93571")
                    .with_timeout(ExecTimeout::Never);
                let dropped = tokio::time::timeout(
                    Duration::from_millis(20 + 13 * number),
                    provider.exec(&handle, command),
                );
                assert!(dropped.await.is_err());
            }
        });
        futures::stream::iter(drops)
            .buffer_unordered(10)
            .collect::<Vec<()>>()
            .await;
        cleaned_up(&test).await;
        back_to(base).await;
        // A pattern that does not match this command's own line.
        let look = "grep -l '9357[1]' /proc/[0-9]*/cmdline 2>/dev/null; true";
        let left = test.provider.exec(&handle, ExecOptions::new(look)).await.unwrap();
        assert_eq!(
            left.stdout().as_deref(),
            Some(""),
            "processes of dropped commands live on"
        );
        test.provider.close(&handle).await.unwrap();
    });
}

/// A hundred at once in a process that may open 256 files.
#[test]
fn b26_a_hundred_commands_at_once_with_few_descriptors() {
    alone(async {
        if docker().await.is_none() {
            return;
        }
        run_with_descriptors(256, "few_descriptors::a_hundred_commands").await;
    });
}

/// Too few is told and is no panic, and ends as soon as there are enough again.
#[test]
fn b26_too_few_descriptors_are_told() {
    alone(async {
        if docker().await.is_none() {
            return;
        }
        run_with_descriptors(40, "few_descriptors::too_few").await;
    });
}

async fn run_with_descriptors(limit: usize, test: &str) {
    let program = std::env::current_exe().unwrap();
    let mut command = tokio::process::Command::new("sh");
    command
        .args([
            "-c",
            "ulimit -n \"$1\"; shift; exec \"$@\"",
            "sh",
            &limit.to_string(),
        ])
        .arg(program)
        .args([test, "--exact", "--ignored", "--nocapture"])
        .env(FEW, "1")
        .env("GYM_SANDBOX_RUN", common::run_label())
        .kill_on_drop(true);
    // "It ends, and does not hang": each of its waits has a bound of its own.
    let output = tokio::time::timeout(8 * LONG, command.output())
        .await
        .expect("it ends")
        .unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    assert!(!text.contains("panicked"), "{text}");
}

/// What runs in a process with few descriptors.
mod few_descriptors {
    use super::*;

    #[test]
    #[ignore = "is run by another test, in a process of its own"]
    fn a_hundred_commands() {
        if std::env::var_os(FEW).is_none() {
            return;
        }
        alone(async {
            // As many connections as commands, and the usual limit.
            let limits: &[usize] = if long_tests_are_wanted() {
                &[100, 32]
            } else {
                &[100]
            };
            let configs = limits.iter().flat_map(|&concurrency| {
                both_ways().map(|mut config| {
                    config.exec.concurrency = concurrency;
                    config
                })
            });
            for config in configs {
                let test = docker_with(config).await.expect("the other process reached it");
                let (handle, base) = used_sandbox(&test).await;
                join_all((0..100).map(|number| echo(&test, &handle, number))).await;
                back_to(base).await;
                test.provider.close(&handle).await.unwrap();
                test.provider.aclose().await.unwrap();
            }
        });
    }

    #[test]
    #[ignore = "is run by another test, in a process of its own"]
    fn too_few() {
        if std::env::var_os(FEW).is_none() {
            return;
        }
        for config in both_ways() {
            none_is_left(config);
        }
    }

    fn none_is_left(config: DockerConfig) {
        // A command of the agent needs none: it has the connection of all.
        let code = if config.exec.exec_path == ExecPathPolicy::Engine {
            125
        } else {
            0
        };
        alone(async {
            let test = docker_with(config).await.expect("the other process reached it");
            let (handle, base) = used_sandbox(&test).await;
            // What was under way before may end in between and give one back: then the call has what it needs, and another one
            // is made with a full table.
            let full = || -> Vec<std::fs::File> {
                std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect()
            };
            let deadline = Instant::now() + LONG;
            loop {
                let files = full();
                let result = test
                    .provider
                    .exec(&handle, ExecOptions::new("true"))
                    .await
                    .unwrap();
                drop(files);
                if result.return_code == code {
                    break;
                }
                assert!(result.is_success() && Instant::now() < deadline, "{result:?}");
            }
            let kind = gym_sandbox::ErrorKind::ResourceExhausted(gym_sandbox::Resource::FileDescriptors);
            let deadline = Instant::now() + LONG;
            loop {
                assert!(Instant::now() < deadline, "there is always one");
                let files = full();
                let created = test.provider.create(&common::busybox()).await;
                drop(files);
                match created {
                    Err(error) => {
                        assert_eq!(error.kind(), kind, "{error:?}");
                        break;
                    }
                    Ok(other) => test.provider.close(&other).await.unwrap(),
                }
            }
            let files = full();
            let closed = test.provider.close(&handle).await;
            drop(files);
            match closed {
                Err(error) => {
                    assert_eq!(error.kind(), kind, "{error:?}");
                    echo(&test, &handle, 1).await;
                    test.provider.close(&handle).await.unwrap();
                }
                Ok(()) => assert_eq!(test.containers().await, [] as [String; 0]),
            }
            cleaned_up(&test).await;
            back_to(base).await;
        });
    }
}

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

/// Creates and closes that are cancelled at random moments leave no container and no descriptor.
#[test]
fn c18_random_cancellation_leaves_nothing() {
    alone(async {
        let Some(test) = docker().await else { return };
        let (handle, base) = used_sandbox(&test).await;
        test.provider.close(&handle).await.unwrap();
        let began = Instant::now();
        let handle = test.provider.create(&common::busybox()).await.unwrap();
        let usual = u64::try_from(began.elapsed().as_millis()).unwrap();
        test.provider.close(&handle).await.unwrap();
        let seed = u64::from(std::process::id());
        println!("seed {seed}");
        let random = Random(AtomicU64::new(seed));
        let number = if long_tests_are_wanted() { 200 } else { 40 };
        let made = AtomicU64::new(0);
        let rounds = (0..number).map(|round| {
            let (test, random, made) = (&test, &random, &made);
            async move {
                // Eight at once take longer than one; some have time enough, and most have not.
                let most = usual * if round % 3 == 0 { 24 } else { 4 };
                let patience = Duration::from_millis(random.below(most.max(1)));
                if round % 2 == 0 {
                    let created =
                        tokio::time::timeout(patience, test.provider.create(&common::busybox())).await;
                    let Ok(created) = created else { return };
                    let handle = created.unwrap();
                    made.fetch_add(1, Ordering::Relaxed);
                    let patience = Duration::from_millis(random.below(200));
                    if tokio::time::timeout(patience, test.provider.close(&handle))
                        .await
                        .is_err()
                    {
                        // A cancelled close is called again.
                        test.provider.close(&handle).await.unwrap();
                    }
                } else {
                    let provider: Arc<dyn SandboxProvider> = test.provider.clone();
                    let sandbox =
                        AsyncSandbox::new(provider).with_spec(common::busybox().with_file("/f", "x"));
                    let started = tokio::time::timeout(patience, sandbox.start()).await.is_ok();
                    if started {
                        made.fetch_add(1, Ordering::Relaxed);
                        let patience = Duration::from_millis(random.below(200));
                        // Whether it is stopped in time or dropped, it goes.
                        let _stopped = tokio::time::timeout(patience, sandbox.stop()).await;
                    }
                }
            }
        });
        futures::stream::iter(rounds)
            .buffer_unordered(8)
            .collect::<Vec<()>>()
            .await;
        println!("{} of {number} were made in time", made.into_inner());
        until_gone(&test).await;
        cleaned_up(&test).await;
        back_to(base).await;
        assert_eq!(test.containers().await, Vec::<String>::new());
    });
}

/// What an owner's drop leaves is removed in the background.
async fn until_gone(test: &DockerTest) {
    let deadline = Instant::now() + LONG;
    loop {
        let left = test.containers().await;
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "left on the engine: {left:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
