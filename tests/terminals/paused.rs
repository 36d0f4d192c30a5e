//! Sessions that are dropped while their sandbox stands still (bugs B25, B36).

use gym_sandbox::{AsyncSandbox, ExecOptions, SandboxProvider};

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
            began.elapsed().as_secs() < 10,
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
    assert!(began.elapsed().as_secs() < 8, "{:?}", began.elapsed());
    assert!(open.is_closed());
    // What could not be killed is when it can be.
    subject.sandbox.resume().await.unwrap();
    subject.until_gone("4747").await;
}
