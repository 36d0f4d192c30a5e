//! The readiness probe (P1-P7, D15).

use std::time::{Duration, Instant};

use gym_sandbox::docker::{DockerConfig, DockerRaw};
use gym_sandbox::{ErrorKind, SandboxProvider};

use crate::common::{DEBIAN, STATIC, docker, docker_with};
use crate::support::{refused, stdout};

fn config(command: &str) -> DockerConfig {
    let mut config = DockerConfig::default();
    config.probe.command = Some(command.to_owned());
    config.probe.stable_delay = Duration::from_millis(20);
    config
}

/// A line that counts its runs in `/tmp/runs`, and then runs `rest` with the number in `$n`.
fn counting(rest: &str) -> String {
    format!("n=$(($(cat /tmp/runs 2>/dev/null || echo 0) + 1)); echo $n > /tmp/runs; {rest}")
}

#[tokio::test(flavor = "multi_thread")]
async fn p2_exit_code_and_output_decide() {
    let mut passing = config("echo almost ready now");
    passing.probe.expected_stdout = Some("ready".to_owned());
    let Some(test) = docker_with(passing).await else {
        return;
    };
    let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
    test.provider.close(&handle).await.unwrap();

    let mut silent = config("true");
    silent.probe.expected_stdout = Some("ready".to_owned());
    let mut on_stderr = config("echo ready >&2");
    on_stderr.probe.expected_stdout = Some("ready".to_owned());
    let mut failing = config("echo ready; exit 1");
    failing.probe.expected_stdout = Some("ready".to_owned());
    for failing in [silent, on_stderr, failing] {
        let Some(test) = docker_with(failing).await else {
            return;
        };
        let error = refused(&test, &crate::common::busybox()).await;
        assert_eq!(error.kind(), ErrorKind::NotReady, "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p4_without_a_deadline_the_first_failure_is_final_and_told() {
    let line = counting("echo not yet >&2; exit 7");
    let Some(test) = docker_with(config(&line)).await else {
        return;
    };
    let error = refused(&test, &crate::common::busybox()).await;
    assert_eq!(error.kind(), ErrorKind::NotReady, "{error:?}");
    let text = error.to_string();
    assert!(text.contains('7') && text.contains("not yet"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn p3_passes_must_follow_each_other() {
    // Passes, fails, passes, passes: ready after the fourth.
    let mut config = config(&counting("test $n != 2"));
    config.probe.stable_count = 2;
    config.probe.deadline = Some(Duration::from_secs(400));
    let Some(test) = docker_with(config).await else {
        return;
    };
    let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
    assert_eq!(stdout(&test.provider, &handle, "cat /tmp/runs").await, "4\n");
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn p5_the_deadline_ends_it_with_the_last_detail() {
    let mut failing = config(&counting("echo attempt $n >&2; exit 9"));
    failing.probe.deadline = Some(Duration::from_secs(3));
    let Some(test) = docker_with(failing).await else {
        return;
    };
    let began = Instant::now();
    let error = refused(&test, &crate::common::busybox()).await;
    assert!(
        began.elapsed() >= Duration::from_secs(3),
        "it ended after {:?}",
        began.elapsed()
    );
    assert_eq!(error.kind(), ErrorKind::NotReady, "{error:?}");
    assert!(error.to_string().contains("attempt"), "{error}");

    // Passes, but never often enough in a row.
    let mut restless = config(&counting("test $((n % 2)) = 1"));
    restless.probe.stable_count = 2;
    restless.probe.deadline = Some(Duration::from_secs(3));
    let Some(test) = docker_with(restless).await else {
        return;
    };
    let error = refused(&test, &crate::common::busybox()).await;
    assert_eq!(error.kind(), ErrorKind::NotReady, "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn p7_an_attempt_that_hangs_is_a_failed_one() {
    let mut hanging = config("sleep 1000");
    hanging.probe.timeout = Duration::from_secs(1);
    let Some(test) = docker_with(hanging).await else {
        return;
    };
    let began = Instant::now();
    let error = refused(&test, &crate::common::busybox()).await;
    assert_eq!(error.kind(), ErrorKind::NotReady, "{error:?}");
    assert!(error.to_string().contains("1s"), "{error}");
    assert!(
        began.elapsed() < Duration::from_secs(120),
        "it took {:?}",
        began.elapsed()
    );

    // Only the first attempt hangs.
    let mut recovering = config(&counting("test $n != 1 || sleep 1000"));
    recovering.probe.timeout = Duration::from_secs(1);
    recovering.probe.deadline = Some(Duration::from_secs(400));
    let Some(test) = docker_with(recovering).await else {
        return;
    };
    let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
    test.provider.close(&handle).await.unwrap();
}

/// The deadline and `ready_timeout` also bound an attempt that may take longer than they do.
#[tokio::test(flavor = "multi_thread")]
async fn d15_a_hanging_attempt_ends_with_the_smaller_bound() {
    let mut hanging = config("sleep 1000");
    hanging.probe.timeout = Duration::from_secs(500);
    hanging.probe.deadline = Some(Duration::from_secs(2));
    let Some(test) = docker_with(hanging.clone()).await else {
        return;
    };
    let began = Instant::now();
    let error = refused(
        &test,
        &crate::common::busybox().with_ready_timeout(Duration::from_secs(400)),
    )
    .await;
    assert_eq!(error.kind(), ErrorKind::NotReady, "{error:?}");
    assert!(
        began.elapsed() < Duration::from_secs(120),
        "it took {:?}",
        began.elapsed()
    );

    hanging.probe.deadline = Some(Duration::from_secs(400));
    let Some(test) = docker_with(hanging).await else {
        return;
    };
    let began = Instant::now();
    let error = refused(
        &test,
        &crate::common::busybox().with_ready_timeout(Duration::from_secs(2)),
    )
    .await;
    assert_eq!(error.kind(), ErrorKind::NotReady, "{error:?}");
    assert!(error.to_string().contains("2s"), "{error}");
    assert!(
        began.elapsed() < Duration::from_secs(120),
        "it took {:?}",
        began.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn x9_the_shell_is_found_once_at_create() {
    let Some(test) = docker().await else { return };
    for (image, entrypoint, shell) in [
        (crate::common::BUSYBOX, Vec::new(), Some("sh")),
        (DEBIAN, Vec::new(), Some("bash")),
        (STATIC, vec!["/static", "sleep"], None),
    ] {
        let spec = gym_sandbox::SandboxSpec::new(image).with_entrypoint(entrypoint);
        let handle = test.provider.create(&spec).await.unwrap();
        assert_eq!(
            handle.raw::<DockerRaw>().unwrap().shell.as_deref(),
            shell,
            "{image}"
        );
        test.provider.close(&handle).await.unwrap();
    }
    let mut config = DockerConfig::default();
    config.exec.exec_shell = Some("/bin/ash".to_owned());
    let Some(test) = docker_with(config).await else {
        return;
    };
    let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
    assert_eq!(
        handle.raw::<DockerRaw>().unwrap().shell.as_deref(),
        Some("/bin/ash")
    );
    assert_eq!(stdout(&test.provider, &handle, "echo $0").await, "/bin/ash\n");
    test.provider.close(&handle).await.unwrap();
}
