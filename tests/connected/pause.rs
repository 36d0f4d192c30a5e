//! Pausing and resuming (D8, L18, L19, bugs B25).

use std::time::Duration;

use futures::future::join_all;
use gym_sandbox::docker::{DockerConfig, DockerProvider, DockerRaw};
use gym_sandbox::provider::PauseProvider;
use gym_sandbox::{
    AsyncSandbox, ErrorKind, ExecReason, SandboxProvider, SandboxReason, SandboxSpec, SandboxStatus,
};

use crate::common::{DEBIAN, busybox, client, docker, docker_with};
use crate::{LIMIT, both_paths, container_id, stdout};

#[tokio::test(flavor = "multi_thread")]
async fn d08_what_somebody_else_paused_or_resumed_is_no_error() {
    let Some(test) = docker().await else { return };
    let provider = &test.provider;
    let handle = provider.create(&busybox()).await.unwrap();
    let raw = client().await.unwrap();
    raw.pause_container(container_id(&handle)).await.unwrap();
    provider.pause(&handle).await.unwrap();
    assert_eq!(provider.status(&handle).await.unwrap(), SandboxStatus::Paused);
    raw.unpause_container(container_id(&handle)).await.unwrap();
    provider.resume(&handle, None).await.unwrap();
    // Many at once: each finds what the others did.
    let pauses = join_all((0..8).map(|_| provider.pause(&handle))).await;
    assert!(pauses.iter().all(Result::is_ok), "{pauses:?}");
    let resumes = join_all((0..8).map(|_| provider.resume(&handle, None))).await;
    assert!(resumes.iter().all(Result::is_ok), "{resumes:?}");
    assert_eq!(stdout(provider, &handle, "echo on").await, "on\n");
    provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn l18_a_connection_to_the_sandbox_survives_a_pause() {
    for config in both_paths() {
        let Some(test) = docker_with(config).await else {
            return;
        };
        let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(busybox());
        sandbox.start().await.unwrap();
        sandbox.exec("echo before").await.unwrap();
        let path = sandbox.exec("true").await.unwrap().exec_path;
        for round in 0..3 {
            sandbox.pause().await.unwrap();
            let refused = sandbox.exec("true").await.unwrap();
            assert_eq!(
                refused.reason,
                Some(ExecReason::Sandbox(SandboxReason::Paused)),
                "{refused:?}"
            );
            sandbox.resume().await.unwrap();
            let result = sandbox.exec(format!("echo {round}")).await.unwrap();
            assert_eq!(result.stdout(), Some(format!("{round}\n")));
            assert_eq!(result.exec_path, path, "the same way as before the pause");
        }
        sandbox.pause().await.unwrap();
        sandbox.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l19_a_paused_sandbox_is_taken_unprobed_and_checked_by_resume() {
    for config in both_paths() {
        let Some(test) = docker_with(config.clone()).await else {
            return;
        };
        let handle = test.provider.create(&SandboxSpec::new(DEBIAN)).await.unwrap();
        test.provider.pause(&handle).await.unwrap();
        let other = DockerProvider::connect(config).await.unwrap();
        let taken = other.attach(handle.sandbox_id().as_str()).await.unwrap();
        assert_eq!(taken.raw::<DockerRaw>().unwrap().shell.as_deref(), Some("sh"));
        let resumed = other.resume(&taken, Some(LIMIT)).await.unwrap();
        assert_eq!(
            resumed.raw::<DockerRaw>().unwrap().shell.as_deref(),
            Some("bash"),
            "found out once it could be"
        );
        assert_eq!(
            stdout(&other, &resumed, "echo ${BASH_VERSION:+bash}").await,
            "bash\n"
        );
        other.close(&resumed).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l18_a_resumed_sandbox_that_does_not_become_ready_is_a_timeout() {
    for deadline in [None, Some(Duration::from_secs(8))] {
        let mut config = DockerConfig::default();
        config.probe.command = Some("! test -e /blocked".to_owned());
        config.probe.deadline = deadline;
        let Some(test) = docker_with(config).await else {
            return;
        };
        let handle = test.provider.create(&busybox()).await.unwrap();
        stdout(&test.provider, &handle, "touch /blocked").await;
        test.provider.pause(&handle).await.unwrap();
        let timeout = Duration::from_secs(12);
        let error = test.provider.resume(&handle, Some(timeout)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error:?}");
        // It stays, and what it is doing can be asked.
        assert_eq!(
            test.provider.status(&handle).await.unwrap(),
            SandboxStatus::Running
        );
        test.provider.close(&handle).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b25_a_stopped_sandbox_is_neither_paused_nor_resumed() {
    let Some(test) = docker().await else { return };
    let handle = test.provider.create(&busybox()).await.unwrap();
    let raw = client().await.unwrap();
    raw.pause_container(container_id(&handle)).await.unwrap();
    // A paused container is stopped by a kill; the engine then says that it has ended.
    let force = bollard::query_parameters::StopContainerOptionsBuilder::new()
        .t(1)
        .build();
    raw.stop_container(container_id(&handle), Some(force))
        .await
        .unwrap();
    for error in [
        test.provider.pause(&handle).await.unwrap_err(),
        test.provider.resume(&handle, None).await.unwrap_err(),
    ] {
        assert_eq!(
            error.kind(),
            ErrorKind::Sandbox(SandboxReason::NotRunning),
            "{error:?}"
        );
        assert_eq!(error.sandbox_id(), Some(handle.sandbox_id()));
    }
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn b25_a_container_that_is_paused_while_commands_begin_stays_usable() {
    for config in both_paths() {
        let Some(test) = docker_with(config).await else {
            return;
        };
        let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(busybox());
        sandbox.start().await.unwrap();
        let changes = (0..3).map(|_| async {
            for _ in 0..5 {
                // One that loses to another says so; the state is what it was about all the same.
                for result in [sandbox.pause().await, sandbox.resume().await] {
                    if let Err(error) = result {
                        let lost = matches!(
                            error.kind(),
                            ErrorKind::Sandbox(SandboxReason::Paused) | ErrorKind::Conflict
                        );
                        assert!(lost, "{error:?}");
                    }
                }
            }
        });
        let commands = (0..3).map(|_| async {
            for _ in 0..5 {
                let result = sandbox.exec("echo hi").await.unwrap();
                // One that met a pause is told by its type, and never has a code of its own.
                assert!(result.is_success() || result.error_type.is_some(), "{result:?}");
            }
        });
        // A container that is wedged holds a call until its time is over, and is never removed.
        let all = futures::future::join(join_all(changes), join_all(commands));
        tokio::time::timeout(Duration::from_secs(600), all).await.unwrap();
        sandbox.resume().await.unwrap();
        assert!(sandbox.exec("true").await.unwrap().is_success());
        sandbox.stop().await.unwrap();
    }
}
