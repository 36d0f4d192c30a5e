//! What the main process prints, and how much a sandbox uses (capabilities `Logs` and `Stats`).

use std::time::{Duration, SystemTime};

use futures::StreamExt;

use crate::error::ErrorKind;
use crate::provider::{Capability, LogsProvider, SandboxHandle, StatsProvider};
use crate::spec::{LogLine, LogOptions, LogStream, SandboxStatus};

use super::case::cases;
use super::check::{equal, holds, refused, refused_with};
use super::lifecycle::wait_for;
use super::{Context, Failure, Need, Outcome};

const LOGS: Need = Need::Capability(Capability::Logs);
const STATS: Need = Need::Capability(Capability::Stats);

const PATIENCE: Duration = Duration::from_secs(120);

fn logs(context: &Context) -> Result<&dyn LogsProvider, Failure> {
    context
        .provider()
        .as_logs()
        .ok_or_else(|| Failure::new("the provider has lost the capability"))
}

fn stats(context: &Context) -> Result<&dyn StatsProvider, Failure> {
    context
        .provider()
        .as_stats()
        .ok_or_else(|| Failure::new("the provider has lost the capability"))
}

/// A sandbox whose main process prints this, and then waits until there is a file `/tmp/end`.
async fn printing(context: &Context, line: &str) -> Result<SandboxHandle, Failure> {
    let line = format!("{line}; touch /tmp/printed; until test -e /tmp/end; do sleep 1; done");
    let handle = context
        .create(&context.spec().with_entrypoint(["sh", "-c", &line]))
        .await?;
    let wait = "n=0; until test -e /tmp/printed; do n=$((n+1)); test $n -lt 120 || exit 1; sleep 1; done";
    context.stdout(&handle, wait).await?;
    Ok(handle)
}

async fn read(
    context: &Context,
    handle: &SandboxHandle,
    options: &LogOptions,
) -> Result<Vec<LogLine>, Failure> {
    let mut stream = logs(context)?.logs(handle, options).await?;
    let all = async {
        let mut lines = Vec::new();
        while let Some(line) = stream.next().await {
            lines.push(line?);
        }
        Ok(lines)
    };
    match tokio::time::timeout(PATIENCE, all).await {
        Ok(lines) => lines,
        Err(_) => Err(Failure::new("the log does not end")),
    }
}

/// Reads until there are so many lines: what was printed may come into the log a moment later.
async fn read_until(
    context: &Context,
    handle: &SandboxHandle,
    options: &LogOptions,
    count: usize,
) -> Result<Vec<LogLine>, Failure> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let lines = read(context, handle, options).await?;
        if lines.len() >= count || tokio::time::Instant::now() > deadline {
            return Ok(lines);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn shown(lines: &[LogLine]) -> Vec<(LogStream, String)> {
    lines
        .iter()
        .map(|line| (line.stream, line.text().into_owned()))
        .collect()
}

fn of(stream: LogStream, text: &str) -> (LogStream, String) {
    (stream, text.to_owned())
}

/// Lines of both streams come typed and in order; a sandbox that has ended still has them.
pub async fn both_streams_are_read_in_order(context: &Context) -> Outcome {
    // The streams are carried apart: each word waits until the one before is in the log.
    let line = "echo one; until test -e /tmp/second; do sleep 1; done; echo two >&2; \
                until test -e /tmp/third; do sleep 1; done; printf three; touch /tmp/printed; \
                until test -e /tmp/end; do sleep 1; done";
    let handle = context
        .create(&context.spec().with_entrypoint(["sh", "-c", line]))
        .await?;
    let expected = vec![of(LogStream::Stdout, "one"), of(LogStream::Stderr, "two")];
    for (count, next) in [(1, "second"), (2, "third")] {
        let lines = read_until(context, &handle, &LogOptions::new(), count).await?;
        equal(
            "the lines that are whole",
            shown(&lines),
            expected[..count].to_vec(),
        )?;
        context.stdout(&handle, format!("touch /tmp/{next}")).await?;
    }
    context
        .stdout(&handle, "until test -e /tmp/printed; do sleep 1; done")
        .await?;
    equal(
        "the lines that are whole",
        shown(&read(context, &handle, &LogOptions::new()).await?),
        expected.clone(),
    )?;
    context.stdout(&handle, "touch /tmp/end").await?;
    wait_for(context, &handle, SandboxStatus::Stopped).await?;
    let lines = read_until(context, &handle, &LogOptions::new(), 3).await?;
    let mut all = expected;
    all.push(of(LogStream::Stdout, "three"));
    equal("the lines after the end", shown(&lines), all)?;
    equal(
        "which of them are complete",
        lines.iter().map(|line| line.is_complete).collect::<Vec<_>>(),
        vec![true, true, false],
    )
}

/// The last lines alone can be read, and with their times.
pub async fn the_last_lines_and_their_times_can_be_read(context: &Context) -> Outcome {
    let handle = printing(context, "echo one; echo two; echo three").await?;
    read_until(context, &handle, &LogOptions::new(), 3).await?;
    let options = LogOptions::new().with_tail(2).with_timestamps();
    let lines = read(context, &handle, &options).await?;
    equal(
        "the last two lines",
        shown(&lines),
        vec![of(LogStream::Stdout, "two"), of(LogStream::Stdout, "three")],
    )?;
    for line in &lines {
        let timestamp = line.timestamp.clone().unwrap_or_default();
        holds(
            format!("`{timestamp}` is a time"),
            timestamp.len() >= 20 && timestamp.starts_with("20") && timestamp.contains('T'),
        )?;
    }
    equal(
        "no lines at all",
        shown(&read(context, &handle, &LogOptions::new().with_tail(0)).await?),
        Vec::new(),
    )?;
    let tomorrow = SystemTime::now() + Duration::from_secs(86_400);
    equal(
        "lines from tomorrow on",
        shown(&read(context, &handle, &LogOptions::new().with_since(tomorrow)).await?),
        Vec::new(),
    )?;
    let yesterday = SystemTime::now() - Duration::from_secs(86_400);
    equal(
        "how many lines there are since yesterday",
        read(context, &handle, &LogOptions::new().with_since(yesterday))
            .await?
            .len(),
        3,
    )
}

/// Following gives what is printed later, and ends with the main process.
pub async fn following_ends_with_the_main_process(context: &Context) -> Outcome {
    let line = "trap 'exit 0' TERM; echo begun; until test -e /tmp/go; do sleep 1; done; echo later; exit 3";
    let handle = context
        .create(&context.spec().with_entrypoint(["sh", "-c", line]))
        .await?;
    let options = LogOptions::new().with_follow();
    let mut stream = logs(context)?.logs(&handle, &options).await?;
    let mut next = async || match tokio::time::timeout(PATIENCE, stream.next()).await {
        Ok(line) => Ok(line.transpose()?.map(|line| line.text().into_owned())),
        Err(_) => Err(Failure::new("the next line does not come")),
    };
    equal("the first line", next().await?, Some("begun".to_owned()))?;
    context.stdout(&handle, "touch /tmp/go").await?;
    equal("the second line", next().await?, Some("later".to_owned()))?;
    equal("what follows", next().await?, None)
}

/// A removed sandbox has no log, and a foreign handle is refused.
pub async fn what_is_gone_or_foreign_has_no_log(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let foreign = SandboxHandle::new(handle.sandbox_id().clone(), "some-other-provider");
    refused_with(
        "the log of a foreign handle",
        logs(context)?.logs(&foreign, &LogOptions::new()).await.map(drop),
        ErrorKind::ForeignHandle,
    )?;
    context.provider().close(&handle).await?;
    let outcome = match logs(context)?.logs(&handle, &LogOptions::new()).await {
        Ok(mut stream) => match stream.next().await {
            Some(line) => line.map(drop),
            None => return Err(Failure::new("a removed sandbox has an empty log")),
        },
        Err(error) => Err(error),
    };
    let error = refused("the log of a removed sandbox", outcome)?;
    holds(
        format!("{:?} says that it is gone", error.kind()),
        matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Sandbox(_)),
    )
}

/// A sandbox that runs is measured, again and again, and its use of the processor is seen.
pub async fn a_busy_sandbox_is_measured(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let line = "{ while :; do :; done; } >/dev/null 2>&1 & echo $! > /tmp/pid";
    context.stdout(&handle, line).await?;
    let mut samples = stats(context)?.stats(&handle).await?;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut seen = Vec::new();
    loop {
        let sample = match tokio::time::timeout_at(deadline, samples.next()).await {
            Ok(Some(sample)) => sample?,
            Ok(None) => return Err(Failure::new("the measuring ends while the sandbox runs")),
            Err(_) => return Err(Failure::new(format!("no use is seen in {PATIENCE:?}: {seen:?}"))),
        };
        let busy = sample.cpus_used.is_some_and(|used| used > 0.01);
        if busy {
            holds(
                "processor time is counted",
                sample.cpu_seconds.is_some_and(|used| used > 0.0),
            )?;
            holds(
                "memory is in use",
                sample.memory_bytes.is_some_and(|used| used > 0),
            )?;
            holds("its limit is known", sample.memory_limit_bytes.is_some())?;
            return holds(
                "two processes at least are counted",
                sample.pids.is_some_and(|pids| pids >= 2),
            );
        }
        seen.push(sample);
    }
}

/// The measuring ends with the sandbox, and one that has ended is not measured.
pub async fn measuring_ends_with_the_sandbox(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let mut samples = stats(context)?.stats(&handle).await?;
    match tokio::time::timeout(PATIENCE, samples.next()).await {
        Ok(Some(sample)) => drop(sample?),
        other => return Err(Failure::new(format!("there is no first sample: {other:?}"))),
    }
    context.provider().close(&handle).await?;
    let rest = async {
        // Samples may be on their way, and that it is gone may be told.
        while let Some(Ok(_)) = samples.next().await {}
    };
    holds(
        "the measuring ends",
        tokio::time::timeout(PATIENCE, rest).await.is_ok(),
    )?;
    let error = refused(
        "measuring a removed sandbox",
        stats(context)?.stats(&handle).await.map(drop),
    )?;
    holds(
        format!("{:?} says that it is gone", error.kind()),
        matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Sandbox(_)),
    )
}

cases!("logs":
    both_streams_are_read_in_order needs LOGS,
    the_last_lines_and_their_times_can_be_read needs LOGS,
    following_ends_with_the_main_process needs LOGS,
    what_is_gone_or_foreign_has_no_log needs LOGS,
    a_busy_sandbox_is_measured needs STATS,
    measuring_ends_with_the_sandbox needs STATS,
);
