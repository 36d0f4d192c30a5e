//! Timeout and cancellation kill the whole tree, in every image (contract D3).

use std::sync::Arc;
use std::time::{Duration, Instant};

use gym_sandbox::docker::OnTimeout;
use gym_sandbox::{ExecErrorType, ExecOptions, ExecReason, SandboxReason, SandboxSpec};

use super::{LIMIT, PROCESSES, Started, common, engine_path, sleepers, start, start_with, was_started};

/// One child cleared its environment and leads a session, one ignores HUP, one lost its parent.
const TREE: &str = "env -i /usr/bin/setsid sleep 999 & nohup sleep 998 & (sleep 997 &) ; \
                    touch /tmp/ready; sleep 996";
/// The same with what busybox has.
const BUSYBOX_TREE: &str = "env -i /bin/busybox setsid sleep 999 & (trap '' HUP; exec sleep 998) & (sleep 997 &) ; \
     touch /tmp/ready; sleep 996";

async fn times_out_without_survivors(started: &Started, line: &str, user: Option<&str>) {
    let (result, _) = started.out_of_time(line, user).await;
    assert_eq!(result.survivors, Some(0), "{result:?}");
    assert!(result.killed.is_some_and(|killed| killed >= 3), "{result:?}");
    assert_eq!(result.stdout(), None);
    assert_eq!(started.until(PROCESSES, "").await, "");
}

#[tokio::test]
async fn d03_the_tree_is_killed_in_every_image_and_for_every_user() {
    for (image, line, user) in [
        (common::BUSYBOX, BUSYBOX_TREE, None),
        (common::DEBIAN, TREE, None),
        ("gym-sandbox/user:test", BUSYBOX_TREE, None),
        ("gym-sandbox/user:test", BUSYBOX_TREE, Some("root")),
        (common::BUSYBOX, BUSYBOX_TREE, Some("nobody")),
    ] {
        let Some(started) = start(SandboxSpec::new(image)).await else {
            return;
        };
        times_out_without_survivors(&started, line, user).await;
        assert!(
            started.exec(["true"]).await.is_success(),
            "the next command works in {image}"
        );
        started.close().await;
    }
}

#[tokio::test]
async fn d03_the_tree_is_killed_under_the_hardened_preset() {
    for user in [None, Some("nobody")] {
        let spec = SandboxSpec::new(common::BUSYBOX).with_provider_option("preset", "hardened");
        let Some(started) = start(spec).await else { return };
        times_out_without_survivors(&started, BUSYBOX_TREE, user).await;
        started.close().await;
    }
}

#[tokio::test]
async fn d03_processes_that_changed_their_user_are_killed() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let line = "su nobody -s /bin/sh -c 'sleep 995 & touch /tmp/ready; sleep 994' & sleep 993";
    let (result, _) = started.out_of_time(line, None).await;
    assert_eq!(result.survivors, Some(0), "{result:?}");
    assert_eq!(started.until(PROCESSES, "").await, "");
    started.close().await;
}

#[tokio::test]
async fn d03_other_commands_of_the_sandbox_are_left_alone() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let other = {
        let sandbox = Arc::clone(&started.sandbox);
        let line = "until test -e /tmp/go; do sleep 0.1; done; echo untouched";
        tokio::spawn(async move { sandbox.exec(line).await.unwrap() })
    };
    let service = started.exec("sleep 555 >/dev/null 2>&1 & echo on").await;
    assert!(service.is_success());
    let (result, _) = started.out_of_time(BUSYBOX_TREE, None).await;
    assert_eq!(result.survivors, Some(0), "{result:?}");
    assert!(!other.is_finished());
    assert!(started.exec("touch /tmp/go").await.is_success());
    assert_eq!(other.await.unwrap().stdout().as_deref(), Some("untouched\n"));
    assert_eq!(started.stdout(sleepers()).await, "1\n", "the service's");
    started.close().await;
}

#[tokio::test]
async fn d03_what_was_printed_before_a_timeout_is_partial_output() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let line = "echo before; echo trouble >&2; touch /tmp/ready; sleep 99";
    let (result, limit) = started.out_of_time(line, None).await;
    assert_eq!(result.partial_stdout().as_deref(), Some("before\n"));
    assert_eq!(result.partial_stderr().as_deref(), Some("trouble\n"));
    assert!(result.stderr().unwrap().contains(&format!("{limit:?}")));
    started.close().await;
}

/// A process whose output nobody takes is not waited for by its container's runtime, nor is the one that kills it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d03_b02_a_flood_that_runs_out_of_time_is_killed() {
    for config in [common::config(), engine_path()] {
        let Some(test) = common::docker_with(config).await else {
            return;
        };
        let started = start_with(test, SandboxSpec::new(common::BUSYBOX)).await;
        for is_taken in [false, true] {
            let mut limit = Duration::from_secs(1);
            let result = loop {
                let flood = ExecOptions::new(["yes"]).with_timeout(limit);
                let result = if is_taken {
                    // The same where a reader has taken the stream and does not read it.
                    let mut session = started.sandbox.spawn(flood).await.unwrap();
                    let _stdout = session.take_stdout();
                    session.wait().await.unwrap()
                } else {
                    started.exec(flood).await
                };
                assert_eq!(result.error_type, Some(ExecErrorType::Timeout), "{result:?}");
                // A busy engine may not have started it in its time.
                if was_started(&result) || limit > LIMIT / 4 {
                    break result;
                }
                limit *= 4;
            };
            assert_eq!(
                (result.killed, result.survivors),
                (Some(1), Some(0)),
                "{result:?}"
            );
        }
        started.close().await;
    }
}

#[tokio::test]
async fn d03_a_dropped_call_kills_its_tree() {
    for wait in [
        Duration::from_millis(1),
        Duration::from_millis(30),
        Duration::from_millis(800),
    ] {
        let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
            return;
        };
        let call = started.sandbox.exec(BUSYBOX_TREE);
        assert!(tokio::time::timeout(wait, call).await.is_err());
        assert_eq!(started.until(PROCESSES, "").await, "", "{wait:?}");
        assert!(started.exec(["true"]).await.is_success());
        started.close().await;
    }
}

#[tokio::test]
async fn d03_processes_that_fork_and_exit_in_a_loop_are_killed() {
    // What must not happen is a bomb on the host.
    let spec = SandboxSpec::new(common::BUSYBOX).with_provider_option("pids_limit", 200);
    let Some(started) = start(spec).await else {
        return;
    };
    let line = "f() { (f &) ; exit; }; f & f & f & sleep 900";
    let rounds = if common::long_tests_are_wanted() { 20 } else { 3 };
    for _ in 0..rounds {
        let result = started
            .exec(ExecOptions::new(line).with_timeout(Duration::from_secs(1)))
            .await;
        assert_eq!(result.error_type, Some(ExecErrorType::Timeout), "{result:?}");
        assert_eq!(started.until(PROCESSES, "").await, "", "{result:?}");
    }
    started.close().await;
}

#[tokio::test]
async fn d03_a_fork_bomb_under_a_pids_limit_is_killed() {
    let spec = SandboxSpec::new(common::BUSYBOX).with_provider_option("pids_limit", 100);
    let Some(started) = start(spec).await else { return };
    // The shell that throws it starts one process and nothing more: where the bomb has every process, it could not.
    let line = "bomb() { bomb | bomb & }; (bomb) & while :; do :; done";
    let result = started
        .exec(ExecOptions::new(line).with_timeout(Duration::from_secs(1)))
        .await;
    assert_eq!(result.error_type, Some(ExecErrorType::Timeout), "{result:?}");
    assert_eq!(started.until(PROCESSES, "").await, "", "{result:?}");
    started.close().await;
}

#[tokio::test]
async fn d03_an_image_without_a_shell_says_that_the_end_is_not_known() {
    let spec = || SandboxSpec::new(common::STATIC).with_entrypoint(["/static"]);
    let Some(test) = common::docker_with(engine_path()).await else {
        return;
    };
    let started = start_with(test, spec()).await;
    let sleep = |limit| ExecOptions::new(["/static", "sleep", "600"]).with_timeout(limit);
    let mut limit = Duration::from_secs(1);
    let mut result = started.exec(sleep(limit)).await;
    while !was_started(&result) && limit < LIMIT / 4 {
        limit *= 4;
        result = started.exec(sleep(limit)).await;
    }
    assert_eq!(
        (result.error_type, result.killed, result.survivors),
        (Some(ExecErrorType::Timeout), None, None)
    );
    assert!(result.stderr().unwrap().contains("not known"), "{result:?}");
    started.close().await;

    let mut config = engine_path();
    config.exec.on_timeout = OnTimeout::KillSandbox;
    let Some(test) = common::docker_with(config).await else {
        return;
    };
    let started = start_with(test, spec()).await;
    let mut limit = Duration::from_secs(1);
    let next = loop {
        let result = started.exec(sleep(limit)).await;
        assert_eq!(result.error_type, Some(ExecErrorType::Timeout), "{result:?}");
        let next = started.exec(["/static", "exit", "0"]).await;
        // For a command that the engine has not started in its time no sandbox is killed.
        if !next.is_success() || limit > LIMIT / 4 {
            break next;
        }
        limit *= 4;
    };
    assert_eq!(
        next.reason,
        Some(ExecReason::Sandbox(SandboxReason::NotRunning)),
        "{next:?}"
    );
    started.close().await;
}

/// Kills that are wanted at the same moment are done by one run, and each command is told its own.
#[tokio::test]
async fn d03_many_that_time_out_at_once_are_told_apart() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let mut limit = Duration::from_secs(4);
    let results = loop {
        let began = Instant::now();
        let lines = (0..12).map(|number| match number {
            // One has cleared its mark, and is found all the same.
            0 => "touch /tmp/ready-0; exec env -i sleep 992".to_owned(),
            number => format!(
                "for i in $(seq {number}); do sleep 991 & done; touch /tmp/ready-{number}; exec sleep 990"
            ),
        });
        let results = lines.map(|line| started.exec(ExecOptions::new(line).with_timeout(limit)));
        let look = async {
            while began.elapsed() < limit {
                let ready = started.exec("ls /tmp/ready-* 2>/dev/null | wc -l").await.stdout();
                if ready.is_some_and(|ready| ready.trim() == "12") {
                    return began.elapsed() < limit;
                }
            }
            false
        };
        let (results, were_ready) = tokio::join!(futures::future::join_all(results), look);
        // All have to be there before their time is over: where a busy machine was slower, they get more.
        if were_ready || limit > LIMIT / 4 {
            break results;
        }
        limit *= 4;
        started.exec("rm -f /tmp/ready-*").await;
    };
    for (number, result) in results.iter().enumerate() {
        assert_eq!(result.error_type, Some(ExecErrorType::Timeout), "{result:?}");
        let expected = u32::try_from(number + 1).unwrap();
        assert_eq!(
            (result.killed, result.survivors),
            (Some(expected), Some(0)),
            "{number}: {result:?}"
        );
    }
    assert_eq!(started.until(PROCESSES, "").await, "");
    started.close().await;
}
