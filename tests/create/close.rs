//! Removal by several at once, behind the library's back, and of what is dead already (B20, Q1-Q3).

use bollard::query_parameters::{
    InspectContainerOptions, KillContainerOptions, RemoveContainerOptionsBuilder, StopContainerOptionsBuilder,
};
use futures::future::join_all;
use gym_sandbox::{SandboxHandle, SandboxProvider, SandboxStatus};

use crate::common::{DockerTest, client, docker};
use crate::support::{container_id, stdout, until_status};

/// Closes, and looks whether it is gone in that moment.
async fn close_for_good(test: &DockerTest, handle: &SandboxHandle) {
    test.provider.close(handle).await.unwrap();
    let raw = client().await.unwrap();
    let inspected = raw
        .inspect_container(container_id(handle), None::<InspectContainerOptions>)
        .await;
    let error = inspected.expect_err("close has returned and the container is there");
    assert!(
        matches!(
            error,
            bollard::errors::Error::DockerResponseServerError { status_code: 404, .. }
        ),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn b20_closing_by_many_at_once_succeeds_for_all() {
    let Some(test) = docker().await else { return };
    for closers in [2, 10] {
        let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
        // Something to kill, so that the removal takes a while.
        stdout(
            &test.provider,
            &handle,
            "for i in 1 2 3 4 5 6 7 8; do sleep 1000 >/dev/null 2>&1 & done",
        )
        .await;
        join_all((0..closers).map(|_| close_for_good(&test, &handle))).await;
        close_for_good(&test, &handle).await;
    }
    test.provider.aclose().await.unwrap();
    test.provider.aclose().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn b20_closing_what_somebody_else_removes_succeeds() {
    let Some(test) = docker().await else { return };
    let raw = client().await.unwrap();
    for _ in 0..3 {
        let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
        let force = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        let (removed, ()) = tokio::join!(
            raw.remove_container(container_id(&handle), Some(force)),
            close_for_good(&test, &handle)
        );
        if let Err(error) = removed {
            // Ours was first.
            let text = error.to_string();
            assert!(
                text.contains("already in progress") || text.contains("No such container"),
                "{text}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b20_closing_what_is_killed_stopped_or_paused_succeeds() {
    let Some(test) = docker().await else { return };
    let raw = client().await.unwrap();
    let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
    raw.kill_container(container_id(&handle), None::<KillContainerOptions>)
        .await
        .unwrap();
    close_for_good(&test, &handle).await;

    // While somebody else stops it, and after that.
    let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
    let stop = StopContainerOptionsBuilder::new().t(1).build();
    let (_either, ()) = tokio::join!(
        raw.stop_container(container_id(&handle), Some(stop.clone())),
        close_for_good(&test, &handle)
    );
    let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
    raw.stop_container(container_id(&handle), Some(stop))
        .await
        .unwrap();
    until_status(&test.provider, &handle, SandboxStatus::Stopped).await;
    close_for_good(&test, &handle).await;

    let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
    raw.pause_container(container_id(&handle)).await.unwrap();
    close_for_good(&test, &handle).await;
}

/// Every state that the engine can be asked for has its status (T1, D7).
#[tokio::test(flavor = "multi_thread")]
async fn t1_d7_the_status_follows_the_container() {
    let Some(test) = docker().await else { return };
    let raw = client().await.unwrap();
    let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
    let status = async || test.provider.status(&handle).await.unwrap();
    assert_eq!(status().await, SandboxStatus::Running);
    raw.pause_container(container_id(&handle)).await.unwrap();
    assert_eq!(status().await, SandboxStatus::Paused);
    raw.unpause_container(container_id(&handle)).await.unwrap();
    assert_eq!(status().await, SandboxStatus::Running);
    raw.kill_container(container_id(&handle), None::<KillContainerOptions>)
        .await
        .unwrap();
    until_status(&test.provider, &handle, SandboxStatus::Stopped).await;
    test.provider.close(&handle).await.unwrap();
    assert_eq!(status().await, SandboxStatus::Stopped);
}
