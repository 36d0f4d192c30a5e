//! A dead or frozen sandbox is never an ordinary result (contract D6, bugs B08, B25).

use std::sync::Arc;
use std::time::{Duration, Instant};

use bollard::query_parameters::{KillContainerOptions, StopContainerOptionsBuilder};
use gym_sandbox::{
    ErrorKind, ExecErrorType, ExecOptions, ExecReason, ExecResult, SandboxReason, SandboxSpec,
};

use super::{Started, common, sleepers, start};

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
        tokio::spawn(async move { sandbox.exec("echo on; sleep 60").await.unwrap() })
    };
    assert_ne!(started.until(&sleepers(), "1\n").await, "");
    let began = Instant::now();
    common::client()
        .await
        .unwrap()
        .kill_container(&id(&started), None::<KillContainerOptions>)
        .await
        .unwrap();
    let result = running.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
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
        tokio::spawn(async move { sandbox.exec("sleep 2; echo x").await.unwrap() })
    };
    assert_eq!(started.until(&sleepers(), "1\n").await, "1\n");
    client.pause_container(&id(&started)).await.unwrap();
    assert_reason(&started.exec("true").await, SandboxReason::Paused);
    client.unpause_container(&id(&started)).await.unwrap();
    assert_eq!(running.await.unwrap().stdout().as_deref(), Some("x\n"));
    started.close().await;
}

#[tokio::test]
async fn b25_a_timeout_fires_during_a_pause() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let client = common::client().await.unwrap();
    let running = {
        let sandbox = Arc::clone(&started.sandbox);
        tokio::spawn(async move {
            sandbox
                .exec_with(ExecOptions::new("sleep 777").with_timeout(Duration::from_secs(3)))
                .await
                .unwrap()
        })
    };
    assert_eq!(started.until(&sleepers(), "1\n").await, "1\n");
    client.pause_container(&id(&started)).await.unwrap();
    let result = tokio::time::timeout(Duration::from_secs(20), running)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(result.error_type, Some(ExecErrorType::Timeout), "{result:?}");
    assert_eq!(result.killed, None, "nothing can be killed in a frozen sandbox");
    client.unpause_container(&id(&started)).await.unwrap();
    assert_eq!(
        started.until(&sleepers(), "0\n").await,
        "0\n",
        "killed once it runs again"
    );
    started.close().await;
}
