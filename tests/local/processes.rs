//! What is killed, and what is not (contract O6).

use std::time::{Duration, Instant};

use gym_sandbox::provider::SpawnProvider;
use gym_sandbox::{ExecErrorType, ExecOptions, ExecPath, ExecTimeout, SandboxProvider, SandboxSpec};

use crate::{SOON, TIMEOUTS_S, below, lives, number_in, pid_of, provider, stdout, until, workspace};

#[tokio::test]
async fn o06_a_timeout_kills_the_tree_and_says_so() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    let line = "echo printed; sh -c 'echo $$ > child; exec sleep 1000' & \
                sh -c 'setsid sh -c \"echo \\$\\$ > escaped; exec sleep 1000\" >/dev/null 2>&1 </dev/null &' ; \
                echo $$ > main; wait; sleep 1000";
    for timeout_s in TIMEOUTS_S {
        let handle = provider.create(&SandboxSpec::default()).await.unwrap();
        let timeout = Duration::from_secs(timeout_s);
        let started = Instant::now();
        let options = ExecOptions::new(line).with_timeout(timeout);
        let result = provider.exec(&handle, options).await.unwrap();
        assert!(started.elapsed() < timeout + SOON, "{:?}", started.elapsed());
        assert_eq!(
            (result.return_code, result.error_type),
            (125, Some(ExecErrorType::Timeout))
        );
        assert_eq!(result.stdout(), None);
        assert_eq!(
            result.stderr(),
            Some(format!("local command timed out after {timeout_s}s"))
        );
        assert_eq!(result.survivors, Some(0));
        let pids = ["main", "child", "escaped"].map(|name| number_in(&workspace(&handle).join(name)));
        for pid in pids.into_iter().flatten() {
            assert!(!lives(pid), "{pid} of {pids:?} lives on");
        }
        assert_eq!(stdout(&provider, &handle, "echo usable").await, "usable\n");
        if pids.iter().all(Option::is_some) {
            assert_eq!(result.partial_stdout().as_deref(), Some("printed\n"));
            assert!(result.killed.is_some_and(|killed| killed >= 3), "{result:?}");
            return;
        }
    }
    panic!("the command never came to its children");
}

#[tokio::test]
async fn o06_the_text_of_a_timeout_has_its_fraction() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    let options = ExecOptions::new("sleep 1000").with_timeout(Duration::from_millis(200));
    let result = provider.exec(&handle, options).await.unwrap();
    assert_eq!(
        result.stderr().as_deref(),
        Some("local command timed out after 0.2s")
    );
    assert_eq!(result.exec_path, ExecPath::Host);
}

#[tokio::test]
async fn o06_a_dropped_call_kills_the_tree_whether_the_shell_waits_or_not() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    for (name, line) in [
        ("waits", "sh -c 'echo $$ > waits; exec sleep 1000'; true"),
        (
            "waits_for_a_group",
            "setsid sh -c 'echo $$ > waits_for_a_group; exec sleep 1000' & wait",
        ),
        // The child holds the output, so that the call is still there when it is dropped.
        (
            "has_gone",
            "(echo > has_gone.begun; echo $(sh -c 'echo $PPID') > has_gone; sleep 1000) & exit 0",
        ),
    ] {
        let handle = provider.create(&SandboxSpec::default()).await.unwrap();
        let call = provider.exec(&handle, ExecOptions::new(line).with_timeout(ExecTimeout::Never));
        let pid = {
            tokio::pin!(call);
            tokio::select! {
                biased;
                pid = pid_of(&handle, name) => pid,
                _result = &mut call => pid_of(&handle, name).await,
            }
        };
        if name == "has_gone" {
            // A call that has ended leaves its background children (D4); closing ends them.
            provider.close(&handle).await.unwrap();
        }
        until(name, || !lives(pid)).await;
        provider.close(&handle).await.unwrap();
    }
    provider.aclose().await.unwrap();
}

#[tokio::test]
async fn o06_d31_closing_the_provider_waits_for_the_end_of_a_dropped_spawned_command() {
    let provider = provider();
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    for _ in 0..10 {
        let line = "sleep 600 & echo $! >child; wait";
        let session = provider.spawn(&handle, ExecOptions::new(line)).await.unwrap();
        let child = pid_of(&handle, "child").await;
        assert!(lives(child));
        drop(session);
        provider.aclose().await.unwrap();
        assert!(!lives(child), "it lives on when everything is cleaned up");
        std::fs::remove_file(workspace(&handle).join("child")).unwrap();
    }
    provider.close(&handle).await.unwrap();
}

#[tokio::test]
async fn o06_a_child_that_holds_the_output_does_not_hold_the_call() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    let started = Instant::now();
    let line = "setsid sleep 1000 & echo $! > child; echo done";
    let result = provider.exec(&handle, ExecOptions::new(line)).await.unwrap();
    assert!(started.elapsed() < SOON);
    assert_eq!(result.stdout().as_deref(), Some("done\n"));
    assert!(result.background_output_open);
    let pid = pid_of(&handle, "child").await;
    assert!(lives(pid), "a background service lives on (D4)");
    provider.close(&handle).await.unwrap();
    assert!(!lives(pid), "closing ends it");
}

#[tokio::test]
async fn o06_even_a_child_that_escaped_does_not_hold_a_timeout() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    // It has left its parents, its group and its session, and has no mark: only the pipe tells.
    let line = "(setsid env -i sh -c 'echo $$ > escaped; exec sleep 1000' &); sleep 1000";
    for timeout_s in TIMEOUTS_S {
        let handle = provider.create(&SandboxSpec::default()).await.unwrap();
        let timeout = Duration::from_secs(timeout_s);
        let options = ExecOptions::new(line).with_timeout(timeout);
        let started = Instant::now();
        let result = provider.exec(&handle, options).await.unwrap();
        assert!(started.elapsed() < timeout + SOON);
        assert_eq!(result.error_type, Some(ExecErrorType::Timeout));
        if let Some(pid) = number_in(&workspace(&handle).join("escaped")) {
            assert!(!lives(pid), "the pipe gives it away");
            return;
        }
    }
    panic!("the child never came to be");
}

#[tokio::test]
async fn d05_a_program_that_was_just_written_runs_when_nobody_has_it_open_for_writing_any_more() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    stdout(
        &provider,
        &handle,
        "printf '#!/bin/sh\necho ran\n' > program; chmod 755 program",
    )
    .await;
    let program = workspace(&handle).join("program");
    let open = std::fs::File::options().append(true).open(&program).unwrap();
    let run = provider.exec(&handle, ExecOptions::new([program.to_str().unwrap()]));
    tokio::pin!(run);
    let early = tokio::time::timeout(Duration::from_millis(100), &mut run).await;
    assert!(early.is_err(), "{early:?}");
    drop(open);
    assert_eq!(run.await.unwrap().stdout().as_deref(), Some("ran\n"));
}

#[tokio::test]
async fn other_commands_are_left_alone_by_a_kill() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    let other = provider.exec(
        &handle,
        ExecOptions::new("until test -e go; do sleep 0.1; done; echo fine"),
    );
    let killed = async {
        let options = ExecOptions::new("exec sleep 1000").with_timeout(Duration::from_millis(500));
        let result = provider.exec(&handle, options).await.unwrap();
        assert_eq!(result.killed, Some(1), "{result:?}");
        std::fs::write(workspace(&handle).join("go"), "").unwrap();
    };
    let (other, ()) = tokio::join!(other, killed);
    assert_eq!(other.unwrap().stdout().as_deref(), Some("fine\n"));
}
