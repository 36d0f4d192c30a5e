//! Logs and statistics where the engine has its ways (engine-facts S23, S24).

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig};
use bollard::query_parameters::{CreateContainerOptionsBuilder, KillContainerOptions, StartContainerOptions};
use futures::StreamExt;
use gym_sandbox::provider::{LogsProvider, StatsProvider};
use gym_sandbox::{
    AsyncSandbox, ConnectOptions, ErrorKind, LogLine, LogOptions, LogStream, MAX_LOG_LINE_BYTES,
    SandboxDescriptor, SandboxId, SandboxProvider, SandboxReason, SandboxStatus,
};

use crate::common::{BUSYBOX, DockerTest, TEST_LABEL, busybox, client, docker};
use crate::{LIMIT, container_id, until};

/// A container that this library would not make.
async fn foreign(test: &DockerTest, change: impl FnOnce(&mut ContainerCreateBody)) -> AsyncSandbox {
    let raw = client().await.unwrap();
    let name = format!("test-foreign-{}", uuid::Uuid::new_v4().simple());
    let mut body = ContainerCreateBody {
        image: Some(BUSYBOX.to_owned()),
        // The guard of the test finds it by this.
        labels: Some(HashMap::from([(TEST_LABEL.to_owned(), test.label().to_owned())])),
        ..ContainerCreateBody::default()
    };
    change(&mut body);
    let options = CreateContainerOptionsBuilder::new().name(&name).build();
    raw.create_container(Some(options), body).await.unwrap();
    raw.start_container(&name, None::<StartContainerOptions>)
        .await
        .unwrap();
    AsyncSandbox::connect_with(
        test.provider.clone(),
        &SandboxDescriptor::new(SandboxId::new(name).unwrap()),
        &ConnectOptions::new().with_foreign_allowed(),
    )
    .await
    .unwrap()
}

fn program(line: &str) -> Vec<String> {
    ["sh", "-c", line].map(str::to_owned).into()
}

async fn read(sandbox: &AsyncSandbox, options: &LogOptions) -> Vec<LogLine> {
    let lines = sandbox.logs(options).await.unwrap();
    let all = tokio::time::timeout(LIMIT, lines.collect::<Vec<_>>())
        .await
        .unwrap();
    all.into_iter().map(Result::unwrap).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_gives_lines_of_both_streams_as_one() {
    let Some(test) = docker().await else { return };
    let sandbox = foreign(&test, |body| {
        body.tty = Some(true);
        body.cmd = Some(program(
            "echo out; echo err >&2; printf '\\001\\002bytes\\n'; sleep 1000",
        ));
    })
    .await;
    until("its log has it", async || {
        read(&sandbox, &LogOptions::new()).await.len() >= 3
    })
    .await;
    for options in [LogOptions::new(), LogOptions::new().with_timestamps()] {
        let lines = read(&sandbox, &options).await;
        let shown: Vec<_> = lines
            .iter()
            .take(2)
            .map(|line| (line.stream, line.text()))
            .collect();
        assert_eq!(
            shown,
            [
                (LogStream::Terminal, "out".into()),
                (LogStream::Terminal, "err".into())
            ]
        );
        assert!(
            lines
                .iter()
                .all(|line| line.timestamp.is_some() == options.timestamps)
        );
    }
    sandbox.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_that_never_ends_its_line_comes_in_bounded_pieces() {
    let Some(test) = docker().await else { return };
    let sandbox = foreign(&test, |body| {
        body.tty = Some(true);
        body.cmd = Some(program(
            "printf begin; head -c 1048576 /dev/zero | tr '\\000' x; sleep 1000",
        ));
    })
    .await;
    let mut lines = sandbox.logs(&LogOptions::new().with_follow()).await.unwrap();
    let (mut length, mut first) = (0, None);
    // Less than a piece may wait for more of the line, which never comes.
    while length < (1 << 20) - MAX_LOG_LINE_BYTES {
        let line = tokio::time::timeout(LIMIT, lines.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        assert_eq!((line.stream, line.is_complete), (LogStream::Terminal, false));
        assert!(line.bytes.len() <= MAX_LOG_LINE_BYTES);
        length += line.bytes.len();
        first.get_or_insert(line);
    }
    assert!(first.unwrap().bytes.starts_with(b"beginxxx"));
    drop(lines);
    let last = LogOptions::new().with_tail(1).with_timestamps();
    assert!(read(&sandbox, &last).await[0].timestamp.is_some());
    sandbox.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_a_mebibyte_comes_in_bounded_pieces_in_order() {
    let Some(test) = docker().await else { return };
    let line = "head -c 1048576 /dev/zero | tr '\\000' x; echo; echo next; sleep 1000";
    let sandbox =
        AsyncSandbox::new(test.provider.clone()).with_spec(busybox().with_entrypoint(program(line)));
    sandbox.start().await.unwrap();
    let mut lines = sandbox
        .logs(&LogOptions::new().with_follow().with_timestamps())
        .await
        .unwrap();
    let mut length = 0;
    loop {
        let line = tokio::time::timeout(LIMIT, lines.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        assert!(line.bytes.len() <= MAX_LOG_LINE_BYTES);
        assert!(line.timestamp.is_some());
        if line.text() == "next" {
            break;
        }
        assert!(
            line.bytes.iter().all(|&byte| byte == b'x'),
            "no time of the engine in between"
        );
        length += line.bytes.len();
        assert_eq!(line.is_complete, length == 1_048_576);
    }
    assert_eq!(length, 1_048_576);
    drop(lines);
    sandbox.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_keeps_is_unsupported() {
    let Some(test) = docker().await else { return };
    let sandbox = foreign(&test, |body| {
        body.cmd = Some(program("echo lost; sleep 1000"));
        body.host_config = Some(HostConfig {
            log_config: Some(HostConfigLogConfig {
                typ: Some("none".to_owned()),
                config: None,
            }),
            ..HostConfig::default()
        });
    })
    .await;
    let error = match sandbox.logs(&LogOptions::new()).await {
        Ok(mut lines) => lines.next().await.unwrap().unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
    sandbox.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_has_ended_is_not_measured_as_zeros() {
    let Some(test) = docker().await else { return };
    let handle = test.provider.create(&busybox()).await.unwrap();
    let mut samples = test.provider.stats(&handle).await.unwrap();
    let first = tokio::time::timeout(LIMIT, samples.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(first.memory_bytes.is_some_and(|bytes| bytes > 0), "{first:?}");
    assert!(first.pids.is_some_and(|pids| pids >= 1), "{first:?}");
    assert!(
        first.cpu_time().is_some_and(|time| time > Duration::ZERO),
        "{first:?}"
    );
    assert!(first.read_at.is_some_and(|time| time.starts_with("20")));
    let raw = client().await.unwrap();
    raw.kill_container(container_id(&handle), None::<KillContainerOptions>)
        .await
        .unwrap();
    until("it has ended", async || {
        test.provider.status(&handle).await.unwrap() == SandboxStatus::Stopped
    })
    .await;
    let rest: Vec<_> = tokio::time::timeout(LIMIT, samples.collect()).await.unwrap();
    assert!(
        rest.iter()
            .flatten()
            .all(|sample| sample.memory_limit_bytes.is_some()),
        "no zeros: {rest:?}"
    );
    let error = test.provider.stats(&handle).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Sandbox(SandboxReason::NotRunning));
    // Its log is still there.
    let lines: Vec<_> = test
        .provider
        .logs(&handle, &LogOptions::new())
        .await
        .unwrap()
        .collect()
        .await;
    assert!(lines.iter().all(Result::is_ok), "{lines:?}");
    test.provider.close(&handle).await.unwrap();
}
