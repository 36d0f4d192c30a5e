//! Many sessions (bugs B26): nothing is left of them, here or there.

use std::time::Duration;

use gym_sandbox::SandboxProvider;

use crate::common::long_tests_are_wanted;
use crate::{LIMIT, Subject, on_both_paths, until, within};

on_both_paths!(b26_sessions_leave_no_process_and_no_task);

async fn b26_sessions_leave_no_process_and_no_task(subject: &Subject) {
    let rounds = if long_tests_are_wanted() { 25 } else { 6 };
    for round in 0..rounds {
        let sessions = (0..8).map(|number| async move {
            let session = subject.create("echo ready; sleep 5151 & cat").await;
            until(&session, "ready").await;
            session.write(b"used\n").await.unwrap();
            until(&session, "used").await;
            if (round + number) % 2 == 0 {
                within(session.close()).await.unwrap();
            }
        });
        futures::future::join_all(sessions).await;
    }
    let deadline = tokio::time::Instant::now() + LIMIT;
    while subject.processes_with("5151").await + subject.processes_with("cat").await > 0 {
        assert!(tokio::time::Instant::now() < deadline, "processes are left");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    within(subject.test.provider.aclose()).await.unwrap();
}
