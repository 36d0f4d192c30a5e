//! Creates that run out of time, are dropped, or lose their runtime (C16, C18, D15). Random moments are in
//! `tests/descriptors.rs`.

use std::time::{Duration, Instant};

use futures::future::join_all;
use gym_sandbox::docker::DockerConfig;
use gym_sandbox::{ErrorKind, SandboxProvider};

use crate::common::{docker, docker_with};
use crate::support::{LIMIT, failed, nothing_is_left};

#[tokio::test(flavor = "multi_thread")]
async fn c16_a_start_timeout_leaves_nothing() {
    for milliseconds in [1, 20, 80, 150, 300] {
        let mut config = DockerConfig::default();
        config.create.start_timeout = Some(Duration::from_millis(milliseconds));
        let Some(test) = docker_with(config).await else {
            return;
        };
        let spec = crate::common::busybox();
        for created in join_all([(); 3].map(|()| test.provider.create(&spec))).await {
            match created {
                Ok(handle) => test.provider.close(&handle).await.unwrap(),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::CreateFailed, "{error:?}");
                    assert!(error.to_string().contains("timed out"), "{error}");
                    assert!(error.is_retryable());
                }
            }
        }
        nothing_is_left(&test).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c18_an_aborted_task_leaves_nothing() {
    let Some(test) = docker().await else { return };
    for milliseconds in [5, 50, 120, 250, 500] {
        let provider = test.provider.clone();
        let spec = crate::common::busybox();
        let task = tokio::spawn(async move { provider.create(&spec).await });
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        task.abort();
        if let Ok(created) = task.await {
            test.provider.close(&created.unwrap()).await.unwrap();
        }
    }
    nothing_is_left(&test).await;
}

/// The clean-up has a thread of its own: it goes on when the runtime of the cancelled call is gone.
#[tokio::test(flavor = "multi_thread")]
async fn c18_a_runtime_that_is_shut_down_leaves_nothing() {
    let Some(test) = docker().await else { return };
    for milliseconds in [30, 150, 400] {
        let provider = test.provider.clone();
        let spec = crate::common::busybox();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let created = runtime.block_on(async {
                tokio::time::timeout(Duration::from_millis(milliseconds), provider.create(&spec)).await
            });
            runtime.shutdown_background();
            created
        });
        if let Ok(created) = thread.join().unwrap() {
            test.provider.close(&created.unwrap()).await.unwrap();
        }
    }
    nothing_is_left(&test).await;
}

/// A runtime of one thread stands still between two `block_on`; so does the create call that it drove.
#[tokio::test(flavor = "multi_thread")]
async fn c18_a_runtime_that_stands_still_does_not_hold_up_the_clean_up() {
    let Some(test) = docker().await else { return };
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let provider = test.provider.clone();
    let spec = crate::common::busybox();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let created = runtime.block_on(async {
            tokio::time::timeout(Duration::from_millis(40), provider.create(&spec)).await
        });
        // The runtime lives, and nobody drives it.
        let _ended = wait.recv_timeout(2 * LIMIT);
        created
    });
    // The engine makes it though nobody waits for its answer, unless it was not asked yet; then it has to go.
    let began = Instant::now();
    let mut seen = false;
    loop {
        match test.containers().await.len() {
            0 if seen || began.elapsed() > Duration::from_secs(30) => break,
            0 => {}
            _ => seen = true,
        }
        assert!(began.elapsed() < LIMIT, "it does not go");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(done);
    if let Ok(created) = thread.join().unwrap() {
        test.provider.close(&created.unwrap()).await.unwrap();
    }
    nothing_is_left(&test).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c16_the_same_spec_can_be_tried_again_after_a_failure() {
    let mut config = DockerConfig::default();
    config.probe.command = Some("test -e /tmp/never".to_owned());
    let Some(test) = docker_with(config).await else {
        return;
    };
    for _ in 0..2 {
        let error = failed(&test, &crate::common::busybox()).await;
        assert_eq!(error.kind(), ErrorKind::NotReady, "{error:?}");
    }
    nothing_is_left(&test).await;
}
