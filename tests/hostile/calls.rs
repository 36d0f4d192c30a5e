//! Callers with odd values, callers that go away at odd moments, and an engine that does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gym_sandbox::docker::{DockerConfig, DockerProvider};
use gym_sandbox::{
    AsyncSandbox, ErrorKind, ExecErrorType, ExecOptions, ExecTimeout, OutputCap, SandboxProvider,
    SandboxResources, SandboxSpec,
};
use tokio::io::AsyncReadExt;

use super::{LIMIT, Started, common, start, start_both_ways};

#[tokio::test]
async fn x09_a_path_without_the_shell_does_not_hide_it() {
    let spec = SandboxSpec::new(common::BUSYBOX).with_env("PATH", "/nowhere");
    let Some(started) = start(spec).await else { return };
    let result = started.exec("echo hello").await;
    assert_eq!(result.stdout().as_deref(), Some("hello\n"), "{result:?}");
    started.close().await;
}

#[tokio::test]
async fn lanes_a_create_never_waits_behind_commands() {
    let mut config = DockerConfig::default();
    config.exec.concurrency = 1;
    config.probe.command = Some("true".into());
    let Some(test) = common::docker_with(config).await else {
        return;
    };
    let first = AsyncSandbox::new(test.provider.clone()).with_spec(test.spec());
    first.start().await.unwrap();
    let first = Arc::new(first);
    let hung = {
        let first = Arc::clone(&first);
        let hung = ExecOptions::new("sleep 987654").with_timeout(ExecTimeout::Never);
        tokio::spawn(async move { first.exec_with(hung).await })
    };
    let second = AsyncSandbox::new(test.provider.clone()).with_spec(test.spec());
    tokio::time::timeout(LIMIT, second.start())
        .await
        .expect("it does not wait for the command")
        .unwrap();
    second.stop().await.unwrap();
    hung.abort();
    first.stop().await.unwrap();
}

#[tokio::test]
async fn durations_beyond_every_clock_are_no_limit() {
    let mut config = DockerConfig::default();
    config.probe.command = Some("true".into());
    config.probe.deadline = Some(Duration::MAX);
    config.probe.stable_delay = Duration::from_millis(1);
    config.probe.stable_count = 2;
    config.create.start_timeout = Some(Duration::MAX);
    let Some(test) = common::docker_with(config).await else {
        return;
    };
    let spec = test
        .spec()
        .with_ready_timeout(Duration::MAX)
        .with_ttl(Duration::MAX);
    let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(spec);
    sandbox.start().await.unwrap();
    let options = ExecOptions::new("echo hello")
        .with_timeout(Duration::MAX)
        .with_output_cap(OutputCap::Bytes(usize::MAX));
    let result = sandbox.exec_with(options).await.unwrap();
    assert_eq!(result.stdout().as_deref(), Some("hello\n"));
    for cap in 1..=3 {
        let options = ExecOptions::new("printf abcdef").with_output_cap(OutputCap::Bytes(cap));
        let result = sandbox.exec_with(options).await.unwrap();
        assert!(
            result.is_success() && result.stdout().unwrap().starts_with('a'),
            "{result:?}"
        );
    }
    // A command that is done before any clock ticks may be so, too: this one is not.
    let options = ExecOptions::new("sleep 100").with_timeout(Duration::from_nanos(1));
    let result = sandbox.exec_with(options).await.unwrap();
    assert_eq!(result.error_type, Some(ExecErrorType::Timeout));
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn d27_a_share_of_a_processor_that_rounds_to_no_limit_is_refused() {
    let provider = Arc::new(DockerProvider::new(DockerConfig::default()).unwrap());
    for cpu in [1e-10, 1e-6, 0.009, f64::NAN, -1.0, 0.0] {
        let spec = SandboxSpec::new("a").with_resources(SandboxResources::default().with_cpu(cpu));
        let error = AsyncSandbox::new(provider.clone())
            .start_with(&spec)
            .await
            .map(|_| ())
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{cpu}");
    }
}

#[tokio::test]
async fn d31_a_command_whose_reader_waits_for_its_end_can_be_killed() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let options = ExecOptions::new(["yes"]).with_timeout(ExecTimeout::Never);
    let mut session = started.sandbox.spawn(options).await.unwrap();
    let mut stdout = session.take_stdout().unwrap();
    let mut first = [0; 2];
    stdout.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"y\n");
    let began = Instant::now();
    let result = session.kill().await.unwrap();
    assert_eq!(
        (result.killed, result.survivors),
        (Some(1), Some(0)),
        "{result:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let mut rest = Vec::new();
    tokio::time::timeout(LIMIT, stdout.read_to_end(&mut rest))
        .await
        .expect("the stream ends")
        .unwrap();
    started.close().await;
}

/// One provider, used by a runtime per call and by several at once.
#[test]
fn d34_a_provider_is_shared_by_many_runtimes() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    for started in runtime().block_on(start_both_ways(SandboxSpec::new(common::BUSYBOX))) {
        shared_by_many_runtimes(started, runtime);
    }
}

fn shared_by_many_runtimes(started: Started, runtime: fn() -> tokio::runtime::Runtime) {
    std::thread::scope(|threads| {
        for number in 0..8 {
            let sandbox = &started.sandbox;
            threads.spawn(move || {
                for _ in 0..3 {
                    let result = runtime()
                        .block_on(sandbox.exec(format!("exit {number}")))
                        .unwrap();
                    assert_eq!(result.return_code, number);
                }
            });
        }
    });
    // A call that is cut off together with its runtime.
    let doomed = runtime();
    let call = started.sandbox.exec("exec env -i sleep 987654");
    assert!(
        doomed
            .block_on(async { tokio::time::timeout(Duration::from_millis(500), call).await })
            .is_err()
    );
    drop(doomed);
    runtime().block_on(started.until_at_rest());
    runtime().block_on(started.close());
}

/// A create that was dropped on a runtime that nobody runs any more leaves nothing.
#[test]
fn l07_a_create_on_a_runtime_that_stands_still_is_cleaned_up() {
    let still = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let other = tokio::runtime::Runtime::new().unwrap();
    let Some(test) = other.block_on(common::docker()) else {
        return;
    };
    for wait in [3, 20, 80] {
        let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(test.spec());
        let cut = still.block_on(async {
            tokio::time::timeout(Duration::from_millis(wait), sandbox.start())
                .await
                .is_err()
        });
        drop(sandbox);
        assert!(cut, "the start was dropped after {wait} ms");
    }
    let deadline = Instant::now() + LIMIT;
    while let Err(error) = other.block_on(test.provider.aclose()) {
        let is_late = error.kind() == ErrorKind::Timeout;
        assert!(is_late && Instant::now() < deadline, "{}", error.report());
    }
    assert_eq!(other.block_on(test.containers()), Vec::<String>::new());
    drop(still);
}
