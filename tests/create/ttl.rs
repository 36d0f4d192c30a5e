//! The end of a sandbox with a ttl (C6, C7, D16), by the engine alone and by the agent.

use std::time::{Duration, Instant};

use gym_sandbox::provider::InspectProvider;
use gym_sandbox::{
    ErrorKind, ExecErrorType, ExecOptions, ExecReason, SandboxHandle, SandboxProvider, SandboxReason,
    SandboxSpec, SandboxStatus,
};

use crate::common::{DockerTest, docker};
use crate::support::{LIMIT, inspect, nothing_is_left, refused, until_status};

#[tokio::test(flavor = "multi_thread")]
async fn c06_d16_a_ttl_ends_the_sandbox_and_leaves_it_to_be_looked_at() {
    for exec_path in ["auto", "engine"] {
        a_ttl_ends_the_sandbox(exec_path).await;
    }
}

/// Makes a sandbox with a ttl, and says which, and when that began. Where a busy engine took longer to make it, it has ended
/// by then and gets a longer one.
async fn made_in_its_time(test: &DockerTest, spec: &SandboxSpec) -> (SandboxHandle, Duration, Instant) {
    let mut ttl = Duration::from_millis(3500);
    loop {
        let began = Instant::now();
        match test.provider.create(&spec.clone().with_ttl(ttl)).await {
            Ok(handle) => return (handle, ttl, began),
            Err(error) => assert!(began.elapsed() >= ttl && ttl < LIMIT / 4, "{}", error.report()),
        }
        nothing_is_left(test).await;
        ttl *= 4;
    }
}

async fn a_ttl_ends_the_sandbox(exec_path: &str) {
    let Some(test) = docker().await else { return };
    let spec = crate::common::busybox().with_provider_option("exec_path", exec_path);
    let (handle, ttl, began) = made_in_its_time(&test, &spec).await;
    let labels = inspect(&handle).await.config.unwrap().labels.unwrap();
    let (created, expires) = (&labels["gym-sandbox.created"], &labels["gym-sandbox.expires"]);
    assert!(expires > created, "{created} .. {expires}");
    until_status(&test.provider, &handle, SandboxStatus::Stopped).await;
    assert!(began.elapsed() >= ttl, "it ended after {:?}", began.elapsed());
    let result = test
        .provider
        .exec(&handle, ExecOptions::new("true"))
        .await
        .unwrap();
    assert_eq!(result.return_code, 125);
    assert_eq!(result.error_type, Some(ExecErrorType::Sandbox));
    assert_eq!(
        result.reason,
        Some(ExecReason::Sandbox(SandboxReason::NotRunning))
    );
    // It is not removed by itself (D16).
    assert_eq!(
        test.provider.inspect(&handle).await.unwrap().status,
        SandboxStatus::Stopped
    );
    assert_eq!(test.containers().await.len(), 1);
    test.provider.close(&handle).await.unwrap();
    test.provider.close(&handle).await.unwrap();
}

/// Over the engine alone nothing in the container can end a main process of somebody else's.
#[tokio::test(flavor = "multi_thread")]
async fn c07_d16_a_ttl_with_an_entrypoint_is_refused_and_not_dropped() {
    let Some(test) = docker().await else { return };
    let spec = crate::common::busybox()
        .with_provider_option("exec_path", "engine")
        .with_ttl(Duration::from_secs(5))
        .with_entrypoint(["sleep", "100"]);
    let error = refused(&test, &spec).await;
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
    assert!(error.to_string().contains("ttl"), "{error}");
}

/// The agent runs the entrypoint as its child, and ends with it or at its time.
#[tokio::test(flavor = "multi_thread")]
async fn c07_d16_a_ttl_ends_an_entrypoint() {
    let Some(test) = docker().await else { return };
    let line = "trap '' TERM; touch /tmp/runs; sleep 1000; sleep 1000";
    let spec = crate::common::busybox().with_entrypoint(["sh", "-c", line]);
    let (handle, ttl, began) = made_in_its_time(&test, &spec).await;
    let runs = ExecOptions::new("until test -e /tmp/runs; do sleep 0.02; done");
    let result = test.provider.exec(&handle, runs).await.unwrap();
    assert!(result.is_success() || began.elapsed() >= ttl, "{result:?}");
    until_status(&test.provider, &handle, SandboxStatus::Stopped).await;
    assert!(began.elapsed() >= ttl, "it ended after {:?}", began.elapsed());
    let detail = test.provider.inspect(&handle).await.unwrap();
    assert_eq!(detail.exit_code, Some(124), "{detail:?}");
    test.provider.close(&handle).await.unwrap();
}

/// An entrypoint that ends by itself ends the sandbox with its own code.
#[tokio::test(flavor = "multi_thread")]
async fn d16_an_entrypoint_under_a_ttl_keeps_its_exit_code() {
    let Some(test) = docker().await else { return };
    let spec = crate::common::busybox()
        .with_ttl(Duration::from_secs(600))
        .with_entrypoint(["sh", "-c", "until test -e /tmp/end; do sleep 0.02; done; exit 7"]);
    let handle = test.provider.create(&spec).await.unwrap();
    test.provider
        .exec(&handle, ExecOptions::new("touch /tmp/end"))
        .await
        .unwrap();
    until_status(&test.provider, &handle, SandboxStatus::Stopped).await;
    let detail = test.provider.inspect(&handle).await.unwrap();
    assert_eq!(detail.exit_code, Some(7), "{detail:?}");
    test.provider.close(&handle).await.unwrap();
}
