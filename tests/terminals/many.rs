//! Many sessions (bugs B26): nothing is left of them, here or there.

use std::time::Duration;

use gym_sandbox::{SandboxProvider, SandboxPtySpec};

use crate::common::long_tests_are_wanted;
use crate::{LIMIT, Subject, on_both_paths, until, within};

on_both_paths!(
    b26_sessions_leave_no_process_and_no_task,
    b26_sixty_four_terminals_at_once_are_apart_and_all_close,
);

/// One test of many sessions at a time: together they keep an engine so busy that its output comes after a minute.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn b26_sessions_leave_no_process_and_no_task(subject: &Subject) {
    let _alone = ALONE.lock().await;
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

async fn b26_sixty_four_terminals_at_once_are_apart_and_all_close(subject: &Subject) {
    let _alone = ALONE.lock().await;
    let opening = (0..64_u16).map(|number| async move {
        let line = format!("stty size; read x; echo \"{number} got $x\"; sleep 5353");
        let spec = SandboxPtySpec::new(line).with_size(number + 10, 80);
        let session = subject.create(spec).await;
        until(&session, &format!("{} 80\r\n", number + 10)).await;
        (number, session)
    });
    let sessions = futures::future::join_all(opening).await;
    // All are open now, and each has its own input and output.
    let using = sessions.iter().map(|(number, session)| async move {
        within(session.write(format!("word{number}\n").as_bytes()))
            .await
            .unwrap();
        until(session, &format!("{number} got word{number}\r\n")).await;
    });
    futures::future::join_all(using).await;
    let closing = sessions.iter().map(|(_, session)| within(session.close()));
    for closed in futures::future::join_all(closing).await {
        closed.unwrap();
    }
    assert_eq!(subject.processes_with("5353").await, 0);
}
