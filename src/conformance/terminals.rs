//! Terminal sessions (2.14, capabilities `Pty` and `PtyAttach`).

use std::sync::Arc;
use std::time::Duration;

use crate::error::ErrorKind;
use crate::provider::{Capability, PtySession, SandboxHandle};
use crate::spec::{PtyAttachOptions, PtyMode, SandboxPtySpec};

use super::case::cases;
use super::check::{equal, holds, refused_with};
use super::{Context, Failure, Need, Outcome};

const PTY: Need = Need::Capability(Capability::Pty);
const ATTACH: Need = Need::Capability(Capability::PtyAttach);

/// No step of a case takes so long.
const STEP: Duration = Duration::from_secs(120);

async fn create(
    context: &Context,
    handle: &SandboxHandle,
    spec: impl Into<SandboxPtySpec> + Send,
) -> Result<Arc<dyn PtySession>, Failure> {
    let provider = context.provider().as_pty();
    let provider = provider.ok_or_else(|| Failure::new("the provider has lost the capability"))?;
    Ok(provider.create_pty(handle, &spec.into()).await?)
}

async fn attach(
    context: &Context,
    handle: &SandboxHandle,
    id: &str,
    options: PtyAttachOptions,
) -> Result<crate::Result<Arc<dyn PtySession>>, Failure> {
    let provider = context.provider().as_pty_attach();
    let provider = provider.ok_or_else(|| Failure::new("the provider has lost the capability"))?;
    Ok(provider.attach_pty(handle, id, options).await)
}

async fn step<T>(what: &str, future: impl Future<Output = crate::Result<T>> + Send) -> Result<T, Failure> {
    match tokio::time::timeout(STEP, future).await {
        Ok(result) => Ok(result?),
        Err(_) => Err(Failure::new(format!("{what} did not come in {STEP:?}"))),
    }
}

/// Reads until a text has come.
async fn until(session: &dyn PtySession, text: &str) -> Result<String, Failure> {
    let mut seen = String::new();
    while !seen.contains(text) {
        let chunk = step(&format!("`{text}` after {seen:?}"), session.read()).await?;
        if chunk.is_empty() {
            return Err(Failure::new(format!(
                "the output ended before `{text}`: {seen:?}"
            )));
        }
        seen.push_str(&String::from_utf8_lossy(&chunk));
    }
    Ok(seen)
}

async fn to_end(session: &dyn PtySession) -> Result<String, Failure> {
    let mut seen = Vec::new();
    loop {
        let chunk = step("the end", session.read()).await?;
        if chunk.is_empty() {
            return Ok(String::from_utf8_lossy(&seen).into_owned());
        }
        seen.extend_from_slice(&chunk);
    }
}

/// One stream with the line ends of a terminal, then nothing, again and again; and the exit code (Z1, Z4).
pub async fn a_terminal_has_one_stream_and_a_code(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let session = create(context, &handle, "echo out; echo err >&2; exit 7").await?;
    equal("the output", to_end(&*session).await?, "out\r\nerr\r\n")?;
    equal("a read after the end", step("a read", session.read()).await?, "")?;
    equal(
        "the error output",
        step("a read", session.read_stderr()).await?,
        "",
    )?;
    equal("the code", step("the exit", session.wait_exit()).await?, 7)?;
    equal("the mode", session.mode(), PtyMode::Pty)
}

/// The size asked for is the first one, and a new one is seen (Z15).
pub async fn the_size_is_the_one_asked_for(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let spec = SandboxPtySpec::new("stty size; read x; stty size").with_size(41, 121);
    let session = create(context, &handle, spec).await?;
    until(&*session, "41 121").await?;
    step("a resize", session.resize(30, 100)).await?;
    step("a write", session.write(b"\n")).await?;
    until(&*session, "30 100").await?;
    refused_with("no rows", session.resize(0, 0).await, ErrorKind::InvalidArgument)?;
    refused_with(
        "a size that is none",
        session.resize(65535, 65535).await,
        ErrorKind::InvalidArgument,
    )
}

/// Ctrl-C interrupts, and a death by signal is 128 and its number (Z10).
pub async fn keys_signal(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    // A shell that has said its word and not yet become the program may swallow the key.
    let session = create(context, &handle, "echo ready; exec sleep 3600").await?;
    until(&*session, "ready").await?;
    step("a write", session.write(&[3])).await?;
    equal("the code", step("the exit", session.wait_exit()).await?, 130)
}

/// A signal by name reaches the program; an unknown name is refused (Z7).
pub async fn signals_go_by_name(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let line = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.1; done";
    let session = create(context, &handle, line).await?;
    until(&*session, "ready").await?;
    refused_with(
        "an unknown signal",
        session.send_signal("NOPE").await,
        ErrorKind::InvalidArgument,
    )?;
    step("a signal", session.send_signal("SIGTERM")).await?;
    equal("the code", step("the exit", session.wait_exit()).await?, 9)
}

/// Pipes have two streams and an input that ends (Z2).
pub async fn pipes_have_two_streams(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let spec = SandboxPtySpec::new("cat; echo err >&2; exit 3").with_mode(PtyMode::Pipe);
    let session = create(context, &handle, spec).await?;
    step("a write", session.write(b"in\n")).await?;
    step("the end of input", session.close_input()).await?;
    equal("standard output", to_end(&*session).await?, "in\n")?;
    equal(
        "standard error",
        step("a read", session.read_stderr()).await?,
        "err\n",
    )?;
    equal("the code", step("the exit", session.wait_exit()).await?, 3)?;
    refused_with("a resize", session.resize(1, 1).await, ErrorKind::Pty)
}

/// Closing ends the program and wakes who waits; afterwards nothing is taken (Z5, Z6).
pub async fn close_ends_the_program(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let session = create(context, &handle, "echo ready; sleep 98778").await?;
    until(&*session, "ready").await?;
    let (read, exit, closed) = tokio::join!(
        tokio::time::timeout(STEP, session.read()),
        tokio::time::timeout(STEP, session.wait_exit()),
        step("the close", session.close()),
    );
    closed?;
    holds("a reader is woken with an error", matches!(read, Ok(Err(_))))?;
    holds("a waiter is woken with an error", matches!(exit, Ok(Err(_))))?;
    step("a second close", session.close()).await?;
    refused_with("a write", session.write(b"x").await, ErrorKind::Pty)?;
    let left = context.processes(&handle, "sleep 9877[8]").await?;
    equal("what is left", left.as_str(), "")
}

/// A session that was left is joined by its id, and replays what was printed meanwhile (Z8, D25).
pub async fn a_left_session_is_joined(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let session = create(context, &handle, "echo one; read x; echo two; exit 5").await?;
    until(&*session, "one\r\n").await?;
    let id = session.session_id().to_owned();
    step("leaving", session.detach()).await?;
    refused_with("a write after leaving", session.write(b"x").await, ErrorKind::Pty)?;
    drop(session);
    let all = PtyAttachOptions::default().with_since(0);
    let joined = attach(context, &handle, &id, all).await??;
    equal("where it begins", joined.replay_offset(), 0)?;
    until(&*joined, "one\r\n").await?;
    step("a write", joined.write(b"\n")).await?;
    equal("the output", to_end(&*joined).await?, "\r\ntwo\r\n")?;
    equal("the code", step("the exit", joined.wait_exit()).await?, 5)
}

/// Whoever takes a session over has it; who must not take it is refused (Z8).
pub async fn a_session_has_one_holder(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let session = create(context, &handle, "echo ready; cat").await?;
    until(&*session, "ready").await?;
    let id = session.session_id().to_owned();
    let polite = PtyAttachOptions::default().with_takeover(false);
    refused_with(
        "a polite attach",
        attach(context, &handle, &id, polite).await?,
        ErrorKind::Pty,
    )?;
    let second = attach(context, &handle, &id, PtyAttachOptions::default()).await??;
    let lost = tokio::time::timeout(STEP, session.read()).await;
    holds("the first holder is told", matches!(lost, Ok(Err(_))))?;
    step("a write", second.write(b"word\n")).await?;
    until(&*second, "word").await?;
    // Closing what was joined only leaves it.
    step("the close", second.close()).await?;
    let third = attach(context, &handle, &id, polite).await??;
    step("a write", third.write(b"again\n")).await?;
    until(&*third, "again").await?;
    refused_with(
        "an unknown session",
        attach(context, &handle, "no-such-session", polite).await?,
        ErrorKind::Pty,
    )
}

cases!("terminals":
    a_terminal_has_one_stream_and_a_code needs PTY,
    the_size_is_the_one_asked_for needs PTY,
    keys_signal needs PTY,
    signals_go_by_name needs PTY,
    pipes_have_two_streams needs PTY,
    close_ends_the_program needs PTY,
    a_left_session_is_joined needs ATTACH,
    a_session_has_one_holder needs ATTACH,
);
