//! A main process that ends before its sandbox is ready is told at once (B22, D15). The long `ready_timeout` of each
//! case is what a wait that does not notice would take.

use std::time::{Duration, Instant};

use gym_sandbox::docker::DockerConfig;
use gym_sandbox::{Error, ErrorKind, SandboxProvider, SandboxSpec};

use crate::common::{DockerTest, docker, docker_with};
use crate::support::nothing_is_left;

/// How late the end may be told: the engine makes a container in under a second when the machine is idle, and in many when
/// it is not.
const TOLD: Duration = Duration::from_secs(120);

/// What a wait that does not notice would take.
const UNNOTICED: Duration = Duration::from_secs(600);

fn spec(entrypoint: &[&str]) -> SandboxSpec {
    crate::common::busybox()
        .with_ready_timeout(UNNOTICED)
        .with_entrypoint(entrypoint.iter().copied())
}

/// Creates, and says how it failed. One in which the starved main process outlived the readiness of its sandbox is repeated.
async fn told(test: &DockerTest, spec: &SandboxSpec) -> Error {
    for _ in 0..20 {
        let began = Instant::now();
        let error = match test.provider.create(spec).await {
            Ok(handle) => {
                test.provider.close(&handle).await.unwrap();
                continue;
            }
            Err(error) => error,
        };
        assert!(
            began.elapsed() < TOLD,
            "the end of the main process was told after {:?}",
            began.elapsed()
        );
        nothing_is_left(test).await;
        return error;
    }
    panic!("the end of the main process is never told");
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
    config.probe.deadline = Some(UNNOTICED);
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
    config.probe.timeout = UNNOTICED;
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
