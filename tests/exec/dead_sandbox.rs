//! A dead or frozen sandbox is never an ordinary result (contract D6, bugs B08, B25).

use std::sync::Arc;
use std::time::{Duration, Instant};

use bollard::query_parameters::{KillContainerOptions, StopContainerOptionsBuilder};
use gym_sandbox::{
    ErrorKind, ExecErrorType, ExecOptions, ExecReason, ExecResult, SandboxReason, SandboxSpec,
};

use super::{LIMIT, Started, common, sleepers, start};

fn assert_reason(result: &ExecResult, reason: SandboxReason) {
    assert_eq!(result.error_type, Some(ExecErrorType::Sandbox), "{result:?}");
    assert_eq!(result.reason, Some(ExecReason::Sandbox(reason)), "{result:?}");
    assert_eq!((result.return_code, result.stdout()), (125, None), "{result:?}");
}

fn id(started: &Started) -> String {
    started.sandbox.sandbox_id().unwrap().to_string()
}

#[tokio::test]
async fn b08_a_sandbox_that_dies_under_a_command() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let running = {
        let sandbox = Arc::clone(&started.sandbox);
        tokio::spawn(async move { sandbox.exec("echo on; sleep 600").await.unwrap() })
    };
    assert_eq!(started.until(&sleepers(), "1\n").await, "1\n");
    let began = Instant::now();
    common::client()
        .await
        .unwrap()
        .kill_container(&id(&started), None::<KillContainerOptions>)
        .await
        .unwrap();
    let result = running.await.unwrap();
    // It would end with its time.
    assert!(began.elapsed() < Duration::from_secs(90), "{:?}", began.elapsed());
    assert_reason(&result, SandboxReason::NotRunning);
    assert_eq!(result.partial_stdout().as_deref(), Some("on\n"));
    started.close().await;
}

#[tokio::test]
async fn b08_a_command_in_a_stopped_or_removed_sandbox() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let client = common::client().await.unwrap();
    let options = StopContainerOptionsBuilder::new().t(0).build();
    client.stop_container(&id(&started), Some(options)).await.unwrap();
    assert_reason(&started.exec("true").await, SandboxReason::NotRunning);
    let handle = started.sandbox.handle().unwrap();
    started.sandbox.stop().await.unwrap();
    let provider: &dyn gym_sandbox::SandboxProvider = &*started.test.provider;
    let removed = provider.exec(&handle, ExecOptions::new("true")).await.unwrap();
    assert_reason(&removed, SandboxReason::Removed);
    let error = started.sandbox.exec("true").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stopped);
}

#[tokio::test]
async fn b25_d08_a_paused_sandbox_answers_at_once_and_a_running_command_goes_on() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let client = common::client().await.unwrap();
    let running = {
        let sandbox = Arc::clone(&started.sandbox);
        let line = "touch /tmp/begun; until test -e /tmp/go; do sleep 0.1; done; echo x";
        tokio::spawn(async move { sandbox.exec(line).await.unwrap() })
    };
    let begun = "test -e /tmp/begun && echo begun; true";
    assert_eq!(started.until(begun, "begun\n").await, "begun\n");
    client.pause_container(&id(&started)).await.unwrap();
    assert_reason(&started.exec("true").await, SandboxReason::Paused);
    client.unpause_container(&id(&started)).await.unwrap();
    assert!(started.exec("touch /tmp/go").await.is_success());
    assert_eq!(running.await.unwrap().stdout().as_deref(), Some("x\n"));
    started.close().await;
}

#[tokio::test]
async fn b25_a_timeout_fires_during_a_pause() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let client = common::client().await.unwrap();
    let mut limit = Duration::from_secs(3);
    // The engine has to be quicker than the command's time: where it was not, there is more of that.
    let result = loop {
        let began = Instant::now();
        let running = {
            let sandbox = Arc::clone(&started.sandbox);
            tokio::spawn(async move {
                sandbox
                    .exec_with(ExecOptions::new("touch /tmp/begun; sleep 777").with_timeout(limit))
                    .await
                    .unwrap()
            })
        };
        let mut has_begun = false;
        while !has_begun && began.elapsed() < limit {
            has_begun = started.exec("test -e /tmp/begun").await.is_success();
        }
        if has_begun {
            client.pause_container(&id(&started)).await.unwrap();
        }
        let was_in_time = began.elapsed() < limit;
        let result = tokio::time::timeout(LIMIT, running).await.unwrap().unwrap();
        assert_eq!(result.error_type, Some(ExecErrorType::Timeout), "{result:?}");
        if has_begun {
            client.unpause_container(&id(&started)).await.unwrap();
        }
        if was_in_time || limit > LIMIT / 4 {
            break result;
        }
        limit *= 2;
        started.exec("rm -f /tmp/begun").await;
    };
    assert_eq!(result.killed, None, "nothing can be killed in a frozen sandbox");
    assert_eq!(
        started.until(&sleepers(), "0\n").await,
        "0\n",
        "killed once it runs again"
    );
    started.close().await;
}
