//! Sessions that are dropped while their sandbox stands still (bugs B25, B36).

use std::time::{Duration, Instant};

use gym_sandbox::docker::ExecPathPolicy;
use gym_sandbox::{AsyncSandbox, ErrorKind, ExecOptions, SandboxProvider};

use crate::{Subject, on_both_paths, until, within};

on_both_paths!(
    b25_b36_sessions_dropped_in_a_paused_sandbox_hold_up_no_other_one,
    b25_z12_a_paused_sandbox_does_not_hold_up_the_end_of_its_provider,
);

async fn b25_b36_sessions_dropped_in_a_paused_sandbox_hold_up_no_other_one(subject: &Subject) {
    let opening = (0..24).map(|_| async {
        let session = subject.create("echo ready; sleep 4747").await;
        until(&session, "ready").await;
        session
    });
    let sessions = futures::future::join_all(opening).await;
    subject.sandbox.pause().await.unwrap();
    drop(sessions);
    // What is dropped in another sandbox is killed at once all the same.
    let other = AsyncSandbox::new(subject.test.provider.clone()).with_spec(subject.test.spec());
    other.start().await.unwrap();
    let session = within(other.pty().create("echo ready; sleep 4848"))
        .await
        .unwrap();
    until(&session, "ready").await;
    let began = tokio::time::Instant::now();
    drop(session);
    loop {
        let result = other.exec("ps | grep '[s]leep 4848'; true").await.unwrap();
        if result.stdout().as_deref() == Some("") {
            break;
        }
        assert!(
            began.elapsed().as_secs() < 45,
            "it waits for the paused sandbox: {result:?}"
        );
    }
    within(other.stop()).await.unwrap();
    subject.sandbox.resume().await.unwrap();
    subject.until_gone("4747").await;
    within(subject.test.provider.aclose()).await.unwrap();
}

async fn b25_z12_a_paused_sandbox_does_not_hold_up_the_end_of_its_provider(subject: &Subject) {
    let dropped = subject.create("echo ready; sleep 4747").await;
    let open = subject.create("echo ready; sleep 4747").await;
    for session in [&dropped, &open] {
        until(session, "ready").await;
    }
    let command = subject
        .sandbox
        .spawn(ExecOptions::new("sleep 4747"))
        .await
        .unwrap();
    subject.sandbox.pause().await.unwrap();
    drop(dropped);
    drop(command);
    let began = tokio::time::Instant::now();
    within(subject.test.provider.aclose()).await.unwrap();
    // It would wait for half a minute.
    assert!(began.elapsed().as_secs() < 28, "{:?}", began.elapsed());
    assert!(open.is_closed());
    // What could not be killed is when it can be.
    subject.sandbox.resume().await.unwrap();
    subject.until_gone("4747").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z5_z13_a_session_that_is_ended_after_its_connection_broke_in_a_paused_sandbox_does_not_live_on() {
    let Some(subject) = Subject::start(ExecPathPolicy::Agent).await else {
        return;
    };
    let Some(afar) = subject.seen_from_afar().await else {
        return subject.close().await;
    };
    for order in ["closed while the engine is away", "closed afterwards"] {
        let closed = afar.create("echo ready; sleep 4949").await;
        let dropped = afar.create("echo ready; sleep 4949").await;
        for session in [&closed, &dropped] {
            until(session, "ready").await;
        }
        subject.sandbox.pause().await.unwrap();
        afar.proxy.go_down();
        if order == "closed while the engine is away" {
            drop(dropped);
            afar.proxy.come_up();
            within(closed.close()).await.unwrap();
        } else {
            afar.proxy.come_up();
            // Reading it takes notice of the loss.
            let nothing = closed.read_timeout(Duration::from_millis(500)).await;
            assert!(nothing.is_err(), "{nothing:?}");
            drop(dropped);
            let began = Instant::now();
            within(closed.close()).await.unwrap();
            // It would wait for a minute.
            assert!(began.elapsed().as_secs() < 50, "{:?}", began.elapsed());
        }
        subject.sandbox.resume().await.unwrap();
        subject.until_gone("4949").await;
    }
    within(afar.test.provider.aclose()).await.unwrap();
    subject.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z13_a_connection_that_broke_in_a_paused_sandbox_is_made_again_after_the_resume() {
    let Some(subject) = Subject::start(ExecPathPolicy::Agent).await else {
        return;
    };
    let Some(afar) = subject.seen_from_afar().await else {
        return subject.close().await;
    };
    let session = afar
        .create("stty -echo; echo ready; read x; echo one; exit 3")
        .await;
    until(&session, "ready").await;
    subject.sandbox.pause().await.unwrap();
    afar.proxy.go_down();
    afar.proxy.come_up();
    let nothing = session.read_timeout(Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::Timeout, "{nothing:?}");
    subject.sandbox.resume().await.unwrap();
    // The key may be lost with the connection, so it is typed until it has come.
    let typed = async {
        let mut said = Vec::new();
        while said != b"one\r\n" {
            let _exited = session.write(b"\n").await.is_err();
            match session.read_timeout(Duration::from_millis(500)).await {
                Ok(chunk) => said.extend_from_slice(&chunk),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Timeout, "{error}"),
            }
            assert!(b"one\r\n".starts_with(&said), "{said:?}");
        }
    };
    within(typed).await;
    assert_eq!(within(session.wait_exit()).await.unwrap(), 3);
    subject.close().await;
}
