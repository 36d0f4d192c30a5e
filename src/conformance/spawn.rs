//! Commands whose streams the caller handles (D31, capability `Spawn`).

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::error::ErrorKind;
use crate::provider::{Capability, ExecSession, SandboxHandle};
use crate::spec::{ExecErrorType, ExecOptions, ExecReason, StartProblem};

use super::case::cases;
use super::check::{equal, equal_bytes, holds, refused_with};
use super::{Context, Failure, Need, Outcome};

const SPAWN: Need = Need::Capability(Capability::Spawn);

async fn spawn(
    context: &Context,
    handle: &SandboxHandle,
    options: impl Into<ExecOptions> + Send,
) -> Result<Box<dyn ExecSession>, Failure> {
    let provider = context.provider().as_spawn();
    let provider = provider.ok_or_else(|| Failure::new("the provider has lost the capability"))?;
    Ok(provider.spawn(handle, options.into()).await?)
}

fn taken(
    stream: Option<Box<dyn AsyncRead + Send + Unpin>>,
) -> Result<Box<dyn AsyncRead + Send + Unpin>, Failure> {
    stream.ok_or_else(|| Failure::new("a stream that was not taken before is not there"))
}

/// No step of a case takes so long.
const STEP: Duration = Duration::from_secs(120);

/// Reads until a text has come.
async fn read_until(stream: &mut (dyn AsyncRead + Send + Unpin), text: &str) -> Outcome {
    let mut read = Vec::new();
    let reading = async {
        let mut byte = [0];
        while !read.ends_with(text.as_bytes()) {
            if stream.read(&mut byte).await? == 0 {
                break;
            }
            read.push(byte[0]);
        }
        Ok::<_, std::io::Error>(())
    };
    let in_time = tokio::time::timeout(STEP, reading).await;
    holds(
        format!(
            "`{text}` comes in {STEP:?}, after {:?}",
            String::from_utf8_lossy(&read)
        ),
        in_time.is_ok(),
    )?;
    in_time.unwrap_or(Ok(()))?;
    holds(
        format!("`{text}` comes before the end"),
        read.ends_with(text.as_bytes()),
    )
}

/// Waiting gives what running gives: code and both streams.
pub async fn waiting_gives_the_result(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let mut session = spawn(context, &handle, "echo out; echo err >&2; exit 3").await?;
    let result = session.wait().await?;
    equal("the code", (result.return_code, result.error_type), (3, None))?;
    equal("standard output", result.stdout().as_deref(), Some("out\n"))?;
    equal("standard error", result.stderr().as_deref(), Some("err\n"))
}

/// A stream is taken once; it has every byte and an end, and is then no part of the result.
pub async fn a_stream_is_taken_once(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let line = "head -c 300000 /dev/zero | tr '\\000' x; echo err >&2";
    let mut session = spawn(context, &handle, line).await?;
    let mut stdout = taken(session.take_stdout())?;
    holds("the stream can't be taken again", session.take_stdout().is_none())?;
    let mut read = Vec::new();
    stdout.read_to_end(&mut read).await?;
    equal_bytes("what was read", &read, &vec![b'x'; 300_000])?;
    let result = session.wait().await?;
    equal("the code", (result.return_code, result.error_type), (0, None))?;
    equal(
        "standard output of the result",
        result.stdout().as_deref(),
        Some(""),
    )?;
    equal(
        "standard error of the result",
        result.stderr().as_deref(),
        Some("err\n"),
    )
}

/// Output comes while the command runs, not at its end.
pub async fn output_comes_while_the_command_runs(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let line = "echo first; until test -e /tmp/go; do sleep 1; done; echo second";
    let mut session = spawn(context, &handle, line).await?;
    let mut stdout = taken(session.take_stdout())?;
    read_until(&mut *stdout, "first\n").await?;
    context.stdout(&handle, "touch /tmp/go").await?;
    read_until(&mut *stdout, "second\n").await?;
    equal("the code", session.wait().await?.return_code, 0)
}

/// A signal reaches the command, by its name with or without `SIG`.
pub async fn a_signal_reaches_the_command(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    for name in ["TERM", "SIGTERM", "USR1"] {
        let line = "trap 'echo caught; exit 9' TERM USR1; echo ready; while :; do sleep 1; done";
        let mut session = spawn(context, &handle, line).await?;
        let mut stdout = taken(session.take_stdout())?;
        read_until(&mut *stdout, "ready\n").await?;
        session.signal(name).await?;
        read_until(&mut *stdout, "caught\n").await?;
        equal(
            &format!("the code after {name}"),
            session.wait().await?.return_code,
            9,
        )?;
    }
    Ok(())
}

/// An unknown signal is a wrong argument; a signal after the end finds nothing.
pub async fn wrong_signals_are_told(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let mut session = spawn(context, &handle, "exit 0").await?;
    for name in ["", "NONSENSE", "TERM; touch /tmp/injected"] {
        refused_with(
            "an unknown signal",
            session.signal(name).await,
            ErrorKind::InvalidArgument,
        )?;
    }
    session.wait().await?;
    refused_with(
        "a signal after the end",
        session.signal("TERM").await,
        ErrorKind::NotFound,
    )?;
    equal(
        "what was injected",
        context
            .stdout(&handle, "ls /tmp/injected 2>/dev/null; true")
            .await?,
        "",
    )
}

/// Killing ends every process of the command, and says how many (D3).
pub async fn killing_ends_every_process(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let mut session = spawn(context, &handle, "sleep 98771 & echo ready; sleep 98772").await?;
    let mut stdout = taken(session.take_stdout())?;
    read_until(&mut *stdout, "ready\n").await?;
    let result = session.kill().await?;
    equal(
        "what lives on",
        context.processes(&handle, "sleep 9877[12]").await?,
        "",
    )?;
    holds(
        format!("{:?} are killed", result.killed),
        result.killed.is_none_or(|killed| killed >= 2),
    )?;
    equal("the survivors", result.survivors.unwrap_or_default(), 0)?;
    equal(
        "the output afterwards",
        context.stdout(&handle, "echo usable").await?,
        "usable\n",
    )
}

/// Dropping the session kills the command in the background.
pub async fn dropping_kills_in_the_background(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let mut session = spawn(context, &handle, "sleep 98773 & echo ready; sleep 98774").await?;
    let mut stdout = taken(session.take_stdout())?;
    read_until(&mut *stdout, "ready\n").await?;
    drop((session, stdout));
    let deadline = tokio::time::Instant::now() + STEP;
    loop {
        let living = context.processes(&handle, "sleep 9877[34]").await?;
        if living.is_empty() {
            return Ok(());
        }
        if tokio::time::Instant::now() >= deadline {
            return equal(&format!("what lives on after {STEP:?}"), living, "");
        }
    }
}

/// Input arrives and ends (X10).
pub async fn input_arrives_and_ends(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let input = vec![b'i'; 100_000];
    let mut session = spawn(
        context,
        &handle,
        ExecOptions::new(["cat"]).with_stdin(input.clone()),
    )
    .await?;
    let result = session.wait().await?;
    equal("the code", (result.return_code, result.error_type), (0, None))?;
    equal_bytes("what came back", &result.captured_stdout.bytes(), &input)
}

/// A timeout ends the command as one of a call does (X3).
pub async fn a_timeout_ends_the_command(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let mut limits = super::timeout::LIMITS.into_iter();
    let result = loop {
        let limit = limits.next().unwrap_or_default();
        let options = ExecOptions::new("echo printed; sleep 98775").with_timeout(limit);
        let result = spawn(context, &handle, options).await?.wait().await?;
        // It has to come to its words first, which takes a busy engine seconds.
        if limits.len() == 0 || result.partial_stdout().is_some_and(|text| !text.is_empty()) {
            break result;
        }
    };
    equal(
        "the result",
        (result.return_code, result.error_type),
        (125, Some(ExecErrorType::Timeout)),
    )?;
    equal(
        "the partial output",
        result.partial_stdout().as_deref(),
        Some("printed\n"),
    )?;
    equal(
        "what lives on",
        context.processes(&handle, "sleep 9877[5]").await?,
        "",
    )
}

/// A command that can't be started is a session whose result says so (D5).
pub async fn a_failed_start_is_told_by_waiting(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let mut session = spawn(context, &handle, ["/no/such/program"]).await?;
    let result = session.wait().await?;
    equal(
        "the result",
        (result.return_code, result.error_type),
        (127, Some(ExecErrorType::Start)),
    )?;
    equal(
        "the reason",
        result.reason,
        Some(ExecReason::Start(StartProblem::NotFound)),
    )
}

/// A wait that was dropped can be repeated, and loses nothing.
pub async fn a_dropped_wait_can_be_repeated(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let line = "echo early; until test -e /tmp/go; do sleep 1; done; echo late; exit 6";
    let mut session = spawn(context, &handle, line).await?;
    for _ in 0..3 {
        let dropped = tokio::time::timeout(Duration::from_millis(100), session.wait()).await;
        holds("the command still runs", dropped.is_err())?;
    }
    context.stdout(&handle, "touch /tmp/go").await?;
    let result = session.wait().await?;
    equal("the code", (result.return_code, result.error_type), (6, None))?;
    equal(
        "standard output",
        result.stdout().as_deref(),
        Some("early\nlate\n"),
    )
}

cases!("spawn":
    waiting_gives_the_result needs SPAWN,
    a_stream_is_taken_once needs SPAWN,
    output_comes_while_the_command_runs needs SPAWN,
    a_signal_reaches_the_command needs SPAWN,
    wrong_signals_are_told needs SPAWN,
    killing_ends_every_process needs SPAWN,
    dropping_kills_in_the_background needs SPAWN,
    input_arrives_and_ends needs SPAWN,
    a_timeout_ends_the_command needs SPAWN,
    a_failed_start_is_told_by_waiting needs SPAWN,
    a_dropped_wait_can_be_repeated needs SPAWN,
);
