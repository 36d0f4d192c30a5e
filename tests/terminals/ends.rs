//! Exit codes, signals, closing and dropping (contract Z1, Z4-Z7, Z10, Z11; bugs B36).

use std::time::Duration;

use gym_sandbox::docker::DockerProvider;
use gym_sandbox::{ErrorKind, SandboxProvider, SandboxPtySpec};

use crate::{Subject, on_both_paths, to_end, until, within};

on_both_paths!(
    z10_codes_and_signals_are_told,
    z7_signals_go_to_the_process_group,
    z4_many_wait_and_one_that_gives_up_disturbs_none,
    z5_close_ends_the_whole_tree_and_wakes_readers,
    z6_nothing_is_taken_after_the_end,
    b36_a_dropped_session_is_killed,
    b36_a_session_dropped_with_its_runtime_is_killed,
    z11_what_can_not_be_started_ends_with_126_or_127,
    z12_the_provider_closes_what_is_open,
    z14_what_the_spec_asks_for_is_there,
    a_removed_sandbox_ends_its_sessions,
    b08_a_sandbox_that_is_killed_under_a_terminal_is_no_exit_of_its_program,
);

async fn z10_codes_and_signals_are_told(subject: &Subject) {
    for (line, code) in [
        ("exit 0", 0),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
    ] {
        assert_eq!(subject.run(line).await.1, code, "{line}");
    }
}

async fn z7_signals_go_to_the_process_group(subject: &Subject) {
    let session = subject
        .create("trap 'echo got $(cat /tmp/child); exit 9' USR1; sh -c 'trap \"echo child >/tmp/child; exit\" USR1; echo ready; while :; do sleep 0.1; done'; while :; do sleep 0.1; done")
        .await;
    until(&session, "ready").await;
    for name in ["", "SIGNOPE", "10"] {
        let refused = session.send_signal(name).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{name}");
    }
    within(session.send_signal("SIGUSR1")).await.unwrap();
    until(&session, "got child").await;
    assert_eq!(within(session.wait_exit()).await.unwrap(), 9);
}

async fn z4_many_wait_and_one_that_gives_up_disturbs_none(subject: &Subject) {
    let session = subject.create("read x; exit 4").await;
    let waiters: Vec<_> = (0..4)
        .map(|_| {
            let session = session.clone();
            tokio::spawn(async move { session.wait_exit().await })
        })
        .collect();
    let gave_up = session.wait_exit_timeout(Duration::from_millis(100)).await;
    assert_eq!(gave_up.unwrap_err().kind(), ErrorKind::Timeout);
    let nothing = loop {
        match session.read_timeout(Duration::from_millis(100)).await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(nothing.kind(), ErrorKind::Timeout);
    session.write(b"\n").await.unwrap();
    for waiter in waiters {
        assert_eq!(within(waiter).await.unwrap().unwrap(), 4);
    }
    to_end(&session).await;
    session.close().await.unwrap();
    // Seen before the close, it stays known.
    assert_eq!(session.wait_exit().await.unwrap(), 4);
    assert_eq!(session.read().await.unwrap(), "");
}

async fn z5_close_ends_the_whole_tree_and_wakes_readers(subject: &Subject) {
    let session = subject
        .create("trap '' HUP; (trap '' HUP; setsid sleep 4242) & sleep 4242 & echo ready; sleep 4242")
        .await;
    until(&session, "ready").await;
    let reader = tokio::spawn({
        let session = session.clone();
        async move { session.read().await }
    });
    let waiter = tokio::spawn({
        let session = session.clone();
        async move { session.wait_exit().await }
    });
    tokio::task::yield_now().await;
    within(session.close()).await.unwrap();
    assert_eq!(within(reader).await.unwrap().unwrap_err().kind(), ErrorKind::Pty);
    assert_eq!(within(waiter).await.unwrap().unwrap_err().kind(), ErrorKind::Pty);
    assert!(session.is_closed());
    within(session.close()).await.unwrap();
    subject.until_gone("4242").await;
}

async fn z6_nothing_is_taken_after_the_end(subject: &Subject) {
    let ended = subject.create("exit 0").await;
    within(ended.wait_exit()).await.unwrap();
    let closed = subject.create(["cat"]).await;
    closed.close().await.unwrap();
    for session in [ended, closed] {
        assert_eq!(session.write(b"x").await.unwrap_err().kind(), ErrorKind::Pty);
        assert_eq!(session.resize(10, 10).await.unwrap_err().kind(), ErrorKind::Pty);
        assert_eq!(
            session.send_signal("INT").await.unwrap_err().kind(),
            ErrorKind::Pty
        );
    }
}

async fn b36_a_dropped_session_is_killed(subject: &Subject) {
    let session = subject.create("sleep 4343 & echo ready; sleep 4343").await;
    until(&session, "ready").await;
    let half = session.split().0;
    drop(session);
    // A half keeps it.
    assert!(subject.processes_with("4343").await >= 2);
    drop(half);
    subject.until_gone("4343").await;
}

async fn b36_a_session_dropped_with_its_runtime_is_killed(subject: &Subject) {
    let mut config = crate::common::config();
    config.exec.exec_path = subject.path;
    let id = subject.sandbox.sandbox_id().unwrap();
    let other = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let provider = DockerProvider::connect(config).await.unwrap();
            let handle = provider.attach(id.as_str()).await.unwrap();
            let spec = SandboxPtySpec::new("echo ready; sleep 4646");
            let session = provider
                .as_pty()
                .unwrap()
                .create_pty(&handle, &spec)
                .await
                .unwrap();
            let mut said = Vec::new();
            while !said.ends_with(b"ready\r\n") {
                said.extend_from_slice(&session.read().await.unwrap());
            }
            // Nothing of this runtime runs after this.
            drop(session);
        });
    });
    within(other).await.unwrap();
    subject.until_gone("4646").await;
}

async fn z11_what_can_not_be_started_ends_with_126_or_127(subject: &Subject) {
    let (text, code) = subject.run(["/no/such/program"]).await;
    assert!([126, 127].contains(&code), "{code}");
    assert!(text.contains("/no/such/program"), "{text}");
    let (text, code) = subject
        .run(SandboxPtySpec::new(["cat"]).with_user("nobody2"))
        .await;
    assert!([126, 127].contains(&code), "{code}");
    assert!(!text.is_empty());
}

async fn z12_the_provider_closes_what_is_open(subject: &Subject) {
    let session = subject.create("echo ready; sleep 4444").await;
    until(&session, "ready").await;
    within(subject.test.provider.aclose()).await.unwrap();
    assert_eq!(session.read().await.unwrap_err().kind(), ErrorKind::Pty);
    subject.until_gone("4444").await;
}

async fn z14_what_the_spec_asks_for_is_there(subject: &Subject) {
    let spec = SandboxPtySpec::new("id -u; pwd; echo $WORD $TERM; tty >/dev/null && echo tty >$(tty)")
        .with_user("nobody")
        .with_cwd("/tmp")
        .with_env("WORD", "value");
    let (text, code) = subject.run(spec).await;
    assert_eq!(
        (text.as_str(), code),
        ("65534\r\n/tmp\r\nvalue xterm\r\ntty\r\n", 0)
    );
    let spec = SandboxPtySpec::new("echo $TERM").with_env("TERM", "dumb");
    assert_eq!(subject.run(spec).await.0, "dumb\r\n");
}

async fn b08_a_sandbox_that_is_killed_under_a_terminal_is_no_exit_of_its_program(subject: &Subject) {
    let session = subject.create("echo ready; sleep 4546").await;
    until(&session, "ready").await;
    let engine = crate::common::client().await.unwrap();
    let id = subject.sandbox.handle().unwrap().sandbox_id().as_str().to_owned();
    engine
        .kill_container(&id, None::<bollard::query_parameters::KillContainerOptions>)
        .await
        .unwrap();
    let error = within(session.wait_exit()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Pty, "{error:?}");
}

async fn a_removed_sandbox_ends_its_sessions(subject: &Subject) {
    let session = subject.create("echo ready; sleep 4545").await;
    until(&session, "ready").await;
    subject.sandbox.stop().await.unwrap();
    let ended = within(session.wait_exit()).await;
    assert!(
        ended.as_ref().is_err_and(|error| error.kind() == ErrorKind::Pty)
            || ended.as_ref().is_ok_and(|code| *code == 137),
        "{ended:?}"
    );
    within(session.close()).await.unwrap();
    let refused = subject.sandbox.pty().create("x").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Stopped);
}
