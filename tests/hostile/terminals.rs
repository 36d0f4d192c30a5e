//! Terminal sessions over an engine that stops answering: each call ends in time, with an error that says what is known.

use std::time::{Duration, Instant};

use gym_sandbox::{ErrorKind, SandboxProvider, SandboxPtySession, SandboxReason};

use super::engine::{Behind, Mood, behind_a_proxy};

/// No call may take longer: one call of the engine, and a look at what has become of the sandbox, on a busy machine.
const BOUND: Duration = Duration::from_secs(90);

async fn ready(behind: &Behind, line: &str) -> SandboxPtySession {
    let session = behind.sandbox.pty().create(line).await.unwrap();
    until(&session, "ready").await;
    session
}

async fn until(session: &SandboxPtySession, text: &str) {
    let mut seen = String::new();
    while !seen.contains(text) {
        let chunk = tokio::time::timeout(BOUND, session.read()).await;
        let chunk = chunk.expect("it is read in time").unwrap();
        assert!(!chunk.is_empty(), "it ended before `{text}`: {seen:?}");
        seen.push_str(&String::from_utf8_lossy(&chunk));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z11_z5_b34_an_engine_that_hangs_holds_no_call_of_a_terminal_for_ever() {
    let Some(behind) = behind_a_proxy().await else {
        return;
    };
    let resized = ready(&behind, "echo ready; read x; echo on; read x").await;
    let closed = ready(&behind, "echo ready; sleep 987653").await;
    behind.proxy.mood.send_replace(Mood::Hangs);
    let began = Instant::now();
    let pty = behind.sandbox.pty();
    let (created, resize, close) = tokio::join!(pty.create("true"), resized.resize(30, 100), closed.close());
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    assert_eq!(
        created.unwrap_err().kind(),
        ErrorKind::Sandbox(SandboxReason::DaemonUnreachable)
    );
    assert_eq!(resize.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(close.unwrap_err().kind(), ErrorKind::Timeout);
    assert!(closed.is_closed());
    // The engine goes on: so does a session, and what was closed is killed.
    behind.proxy.mood.send_replace(Mood::Passes);
    resized.write(b"\n").await.unwrap();
    until(&resized, "on").await;
    tokio::time::timeout(BOUND, behind.test.provider.aclose())
        .await
        .expect("the clean-up ends in time")
        .unwrap();
    let left = behind
        .sandbox
        .exec("ps | grep '[s]leep 98765[3]'; true")
        .await
        .unwrap();
    assert_eq!(left.stdout().as_deref(), Some(""), "{left:?}");
    behind.close().await;
}
