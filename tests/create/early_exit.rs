//! A main process that ends before its sandbox is ready is told at once (B22, D15). The long `ready_timeout` of each
//! case is what a wait that does not notice would take.

use std::time::{Duration, Instant};

use gym_sandbox::docker::DockerConfig;
use gym_sandbox::{Error, ErrorKind, SandboxSpec};

use crate::common::{DockerTest, docker, docker_with};
use crate::support::refused;

/// How late the end may be told, counted from when the engine needs no more time itself: the engine makes a container
/// in under a second when the machine is idle, and in many when it is not.
const TOLD: Duration = Duration::from_secs(3);

fn spec(entrypoint: &[&str]) -> SandboxSpec {
    crate::common::busybox()
        .with_ready_timeout(Duration::from_secs(60))
        .with_entrypoint(entrypoint.iter().copied())
}

/// Creates, and says how it failed. A slow try is repeated: other work on the machine is not what is measured.
async fn told(test: &DockerTest, spec: &SandboxSpec) -> Error {
    let mut took = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        let error = refused(test, spec).await;
        took = took.min(began.elapsed());
        if took < TOLD {
            return error;
        }
    }
    panic!("the end of the main process was told after {took:?} at best");
}

#[tokio::test(flavor = "multi_thread")]
async fn b22_the_exit_code_and_the_last_lines_are_told() {
    let Some(test) = docker().await else { return };
    let error = told(&test, &spec(&["sh", "-c", "echo one; echo boom >&2; exit 3"])).await;
    assert_eq!(error.kind(), ErrorKind::NotReady, "{error:?}");
    let text = error.to_string();
    for part in ["exited with 3", "one", "boom"] {
        assert!(text.contains(part), "`{part}` in {text}");
    }
    assert!(!error.is_retryable());
}

#[tokio::test(flavor = "multi_thread")]
async fn b22_an_end_with_0_is_not_ready_either() {
    let Some(test) = docker().await else { return };
    let error = told(&test, &spec(&["true"])).await;
    assert_eq!(error.kind(), ErrorKind::NotReady, "{error:?}");
    assert!(error.to_string().contains("exited with 0"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn b22_a_program_that_is_not_there_or_no_program_fails_at_the_start() {
    let Some(test) = docker().await else { return };
    for program in ["/nope", "nope", "/etc", "/etc/passwd"] {
        let error = told(&test, &spec(&[program, "argument"])).await;
        // `Init` starts what is no program and ends with its error; then it is an early end.
        assert!(error.kind().is_create_failure(), "{program}: {error:?}");
        assert!(
            error.report().to_string().contains(program),
            "{program} in {}",
            error.report()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b22_a_signal_and_a_late_end_during_a_probe_are_told() {
    let mut config = DockerConfig::default();
    config.probe.command = Some("test -e /never".to_owned());
    config.probe.deadline = Some(Duration::from_secs(50));
    config.probe.stable_delay = Duration::from_millis(100);
    let Some(test) = docker_with(config).await else {
        return;
    };
    let error = told(
        &test,
        &spec(&["sh", "-c", "sleep 0.5; echo giving up; kill -9 $$"]),
    )
    .await;
    assert_eq!(error.kind(), ErrorKind::NotReady, "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("exited with 137") && text.contains("giving up"),
        "{text}"
    );
}

/// A probe that hangs does not hide the end of the main process.
#[tokio::test(flavor = "multi_thread")]
async fn b22_an_end_during_a_probe_that_hangs_is_told() {
    let mut config = DockerConfig::default();
    config.probe.command = Some("sleep 1000".to_owned());
    config.probe.timeout = Duration::from_secs(50);
    let Some(test) = docker_with(config).await else {
        return;
    };
    let error = told(&test, &spec(&["sh", "-c", "sleep 0.5; echo giving up; exit 4"])).await;
    assert_eq!(error.kind(), ErrorKind::NotReady, "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("exited with 4") && text.contains("giving up"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn b22_only_the_last_lines_of_a_long_log_are_told() {
    let Some(test) = docker().await else { return };
    let line = "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo line $i; done; exit 5";
    let error = told(&test, &spec(&["sh", "-c", line])).await;
    let text = error.to_string();
    assert!(
        text.contains("exited with 5") && text.contains("line 2000"),
        "{text}"
    );
    assert!(
        !text.contains("line 1500\n") && text.len() < 20_000,
        "{} bytes",
        text.len()
    );
}
