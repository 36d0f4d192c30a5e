//! Commands whose streams the caller handles (contract D31).

use std::time::Duration;

use gym_sandbox::docker::ExecPathPolicy;
use gym_sandbox::{ErrorKind, ExecErrorType, ExecOptions, SandboxProvider, SandboxSpec};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use super::{LIMIT, PROCESSES, common, engine_path, sleepers, start, start_with, was_started};

#[tokio::test]
async fn d31_streams_are_taken_once_and_read_while_the_command_runs() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let (mut input, reader) = tokio::io::duplex(1024);
    let options = ExecOptions::new("while read line; do echo \"got $line\"; done; echo end >&2; exit 6")
        .with_stdin_reader(reader);
    let mut session = started.sandbox.spawn(options).await.unwrap();
    let mut lines = BufReader::new(session.take_stdout().unwrap()).lines();
    assert!(session.take_stdout().is_none());
    for word in ["one", "two"] {
        input.write_all(format!("{word}\n").as_bytes()).await.unwrap();
        assert_eq!(lines.next_line().await.unwrap(), Some(format!("got {word}")));
    }
    drop(input);
    assert_eq!(lines.next_line().await.unwrap(), None);
    let result = session.wait().await.unwrap();
    assert_eq!(
        (result.return_code, result.stderr().as_deref()),
        (6, Some("end\n"))
    );
    assert_eq!(
        result.stdout().as_deref(),
        Some(""),
        "a taken stream is not part of the result"
    );
    assert_eq!(
        session.wait().await.unwrap().return_code,
        6,
        "waiting again gives the same"
    );
    started.close().await;
}

#[tokio::test]
async fn d31_a_taken_stream_has_no_cap_and_a_slow_reader_slows_the_command() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let mut session = started
        .sandbox
        .spawn(ExecOptions::new("yes | head -c 50000000; echo done >/tmp/done"))
        .await
        .unwrap();
    let mut stdout = session.take_stdout().unwrap();
    assert!(
        !started.exec("test -e /tmp/done").await.is_success(),
        "nothing is read yet, so it can't be done"
    );
    let mut total = 0;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match stdout.read(&mut buffer).await.unwrap() {
            0 => break,
            read => total += read,
        }
    }
    assert_eq!(total, 50_000_000);
    assert!(session.wait().await.unwrap().is_success());
    started.close().await;
}

#[tokio::test]
async fn d31_signals_and_kill() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let options =
        || ExecOptions::new("trap 'echo term; exit 5' TERM; echo ready; while :; do sleep 0.1; done");
    let mut session = started.sandbox.spawn(options()).await.unwrap();
    let mut lines = BufReader::new(session.take_stdout().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("ready"));
    assert_eq!(
        session.signal("NOPE").await.unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    session.signal("SIGTERM").await.unwrap();
    assert_eq!(session.wait().await.unwrap().return_code, 5);
    assert_eq!(
        session.signal("TERM").await.unwrap_err().kind(),
        ErrorKind::NotFound
    );

    let mut session = started
        .sandbox
        .spawn(ExecOptions::new(
            "trap '' TERM; sleep 888 & echo ready; sleep 887",
        ))
        .await
        .unwrap();
    let mut lines = BufReader::new(session.take_stdout().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("ready"));
    let killed = session.kill().await.unwrap();
    assert_eq!(
        (killed.return_code, killed.survivors),
        (137, Some(0)),
        "{killed:?}"
    );
    assert!(killed.killed.is_some_and(|killed| killed >= 2), "{killed:?}");
    assert_eq!(started.until(PROCESSES, "").await, "");
    started.close().await;
}

#[tokio::test]
async fn d31_a_command_killed_while_it_starts_is_killed() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    for _ in 0..20 {
        let mut session = started
            .sandbox
            .spawn(ExecOptions::new("sleep 889"))
            .await
            .unwrap();
        let killed = session.kill().await.unwrap();
        assert_eq!(
            (killed.return_code, killed.error_type, killed.survivors),
            (137, None, Some(0)),
            "{killed:?}"
        );
    }
    assert_eq!(started.until(PROCESSES, "").await, "");
    started.close().await;
}

#[tokio::test]
async fn d31_a_dropped_session_is_killed() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let session = started
        .sandbox
        .spawn(ExecOptions::new("sleep 886 & setsid sleep 885 & sleep 884"))
        .await
        .unwrap();
    drop(session);
    assert_eq!(started.until(PROCESSES, "").await, "");
    started.close().await;
}

#[tokio::test]
async fn d31_a_spawned_command_has_its_timeout_and_its_start_failure_in_the_result() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let mut limit = Duration::from_secs(1);
    let result = loop {
        let timed = ExecOptions::new("sleep 883").with_timeout(limit);
        let mut session = started.sandbox.spawn(timed).await.unwrap();
        let result = session.wait().await.unwrap();
        // A busy machine may not have begun with it in its time.
        if was_started(&result) || limit > LIMIT / 4 {
            break result;
        }
        limit *= 4;
    };
    assert_eq!(
        (result.error_type, result.survivors),
        (Some(ExecErrorType::Timeout), Some(0)),
        "{result:?}"
    );
    let mut session = started
        .sandbox
        .spawn(ExecOptions::new(["no-such-prog"]))
        .await
        .unwrap();
    let result = session.wait().await.unwrap();
    assert_eq!(
        (result.error_type, result.return_code),
        (Some(ExecErrorType::Start), 127)
    );
    started.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d03_d31_closing_the_provider_waits_for_the_end_of_dropped_commands() {
    for path in [ExecPathPolicy::Engine, ExecPathPolicy::Agent] {
        let mut config = common::config();
        config.exec.exec_path = path;
        let Some(test) = common::docker_with(config).await else {
            return;
        };
        let started = start_with(test, SandboxSpec::new(common::BUSYBOX)).await;
        for round in 0..8 {
            let line = "sleep 4712 & echo ready; sleep 4712";
            let mut sessions = Vec::new();
            for _ in 0..4 {
                let mut session = started.sandbox.spawn(ExecOptions::new(line)).await.unwrap();
                let mut lines = BufReader::new(session.take_stdout().unwrap()).lines();
                assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("ready"));
                sessions.push((session, lines));
            }
            drop(sessions);
            started.test.provider.aclose().await.unwrap();
            let left = started.exec(sleepers()).await.stdout();
            assert_eq!(left.as_deref(), Some("0\n"), "round {round} of {path:?}");
        }
        started.close().await;
    }
}

/// The runtime tells the end of no process, and so none of what sends the signal, while the output of one that it has ended
/// is not read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d31_a_signal_reaches_a_command_whose_output_nobody_reads() {
    for config in [common::config(), engine_path()] {
        let Some(test) = common::docker_with(config).await else {
            return;
        };
        let started = start_with(test, SandboxSpec::new(common::BUSYBOX)).await;
        let mut session = started.sandbox.spawn(ExecOptions::new(["yes"])).await.unwrap();
        let stdout = session.take_stdout();
        // It fills all that there is between it and its reader.
        let written = "grep wchar /proc/$(pidof yes)/io";
        let line =
            format!("a=$({written}); sleep 0.3; [ \"$a\" ] && [ \"$a\" = \"$({written})\" ] && echo full");
        assert_eq!(started.until(&line, "full\n").await, "full\n");
        session.signal("TERM").await.unwrap();
        drop(stdout);
        assert_eq!(session.wait().await.unwrap().return_code, 143);
        started.close().await;
    }
}
