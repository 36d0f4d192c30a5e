//! Following a running command to its end: output, input, the end of the process, the deadline, all at once.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::provider::{Sink, deliver, feed};
use crate::spec::{CapturedOutput, Stdin};

use super::create::Sandbox;
use super::process::{Pipe, Running};

const CHUNK_BYTES: usize = 64 * 1024;

/// After the end of a command its output is read until it ends, is silent for this long, or a background child has
/// written for that long (contract D4).
const SILENCE: Duration = Duration::from_millis(300);
const BACKGROUND: Duration = Duration::from_millis(2500);

/// How long a killed command's output may take to end.
const AFTER_KILL: Duration = Duration::from_secs(2);

/// How a command ended.
#[derive(Debug)]
pub(super) enum End {
    /// By itself. Its output may be held open by a child.
    Exited(ExitStatus, bool),
    TimedOut,
    /// The sandbox was closed.
    Closed,
    InputFailed(io::Error),
    /// The process could not be waited for.
    Failed(io::Error),
}

/// The streams of one command, as their readers see them.
#[derive(Debug, Clone)]
pub(super) struct Outputs {
    pub(super) stdout: Sink,
    pub(super) stderr: Sink,
    /// Cancelled when nothing waits for readers any more.
    pub(super) hurry: CancellationToken,
}

impl Outputs {
    pub(super) fn new(cap_bytes: usize) -> Self {
        Self {
            stdout: Sink::new(cap_bytes),
            stderr: Sink::new(cap_bytes),
            hurry: CancellationToken::new(),
        }
    }

    pub(super) fn finish(&self) -> (CapturedOutput, CapturedOutput) {
        (self.stdout.finish(), self.stderr.finish())
    }
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    /// Hands a waiting chunk over, else reads the next. Dropping the future loses nothing.
    async fn step(&mut self, hurry: &CancellationToken) {
        if self.pending.is_some() {
            return deliver(&mut self.pending, hurry).await;
        }
        let Some(reader) = &mut self.reader else {
            return std::future::pending().await;
        };
        let mut chunk = bytes::BytesMut::with_capacity(CHUNK_BYTES);
        match reader.read_buf(&mut chunk).await {
            Ok(1..) => self.pending = self.sink.push(chunk.freeze()),
            // A pipe that can't be read has ended.
            Ok(0) | Err(_) => self.reader = None,
        }
    }

    fn is_over(&self) -> bool {
        self.reader.is_none() && self.pending.is_none()
    }
}

/// Follows the command until it ends, the deadline comes or the sandbox is closed. What is left running then is for the
/// caller to kill.
pub(super) async fn drive(
    running: &mut Running,
    stdin: Stdin,
    hurry: &CancellationToken,
    deadline: Option<Instant>,
    closed: &CancellationToken,
) -> End {
    let feeding = feed(stdin, running.input.take());
    tokio::pin!(feeding);
    let mut fed = false;
    let status = loop {
        tokio::select! {
            status = running.child.wait() => match status {
                Ok(status) => break status,
                Err(error) => return End::Failed(error),
            },
            () = running.stdout.step(hurry) => {}
            () = running.stderr.step(hurry) => {}
            result = &mut feeding, if !fed => {
                fed = true;
                if let Err(error) = result {
                    return End::InputFailed(error);
                }
            }
            () = closed.cancelled() => return End::Closed,
            () = sleep_until(deadline) => return End::TimedOut,
        }
    };
    let open = !drain(running, hurry, Instant::now() + BACKGROUND, SILENCE).await;
    if closed.is_cancelled() {
        return End::Closed;
    }
    End::Exited(status, open)
}

/// Reads what a killed command had still printed, and takes its process off the system's table.
pub(super) async fn after_kill(running: &mut Running, hurry: &CancellationToken) {
    let deadline = Instant::now() + AFTER_KILL;
    drain(running, hurry, deadline, AFTER_KILL).await;
    // One that could not be killed is left to the runtime.
    let _status = tokio::time::timeout_at(deadline, running.child.wait()).await;
}

/// Reads both outputs until they end. Says whether they did before a silence and before the deadline.
async fn drain(
    running: &mut Running,
    hurry: &CancellationToken,
    deadline: Instant,
    silence: Duration,
) -> bool {
    while !running.stdout.is_over() || !running.stderr.is_over() {
        // A reader without room is not silence: it gets as long as a background child.
        let waits = running.stdout.pending.is_some() || running.stderr.pending.is_some();
        let until = if waits {
            deadline
        } else {
            deadline.min(Instant::now() + silence)
        };
        tokio::select! {
            () = running.stdout.step(hurry) => {}
            () = running.stderr.step(hurry) => {}
            // What has come while this process stood still is no silence.
            () = tokio::time::sleep_until(until) => {
                let stdout = running.stdout.step(hurry).now_or_never();
                if stdout.or_else(|| running.stderr.step(hurry).now_or_never()).is_none() {
                    return false;
                }
            }
        }
        if Instant::now() >= deadline {
            return running.stdout.is_over() && running.stderr.is_over();
        }
    }
    true
}

/// Goes on reading and dropping what a background child prints, so that it is not ended by a pipe nobody reads.
pub(super) fn read_on(sandbox: &Arc<Sandbox>, running: &mut Running) {
    async fn dropping(mut reader: impl AsyncRead + Send + Unpin + 'static) {
        let _dropped = tokio::io::copy(&mut reader, &mut tokio::io::sink()).await;
    }
    if let Some(reader) = running.stdout.reader.take() {
        sandbox.keep_reading(dropping(reader));
    }
    if let Some(reader) = running.stderr.reader.take() {
        sandbox.keep_reading(dropping(reader));
    }
}

/// The exit code, 128+n for one that signal n ended.
pub(super) fn code(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(255)
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::process::start;
    use crate::local::{LocalConfig, LocalProvider, LocalRaw};
    use crate::provider::SandboxProvider;
    use crate::spec::{ExecOptions, SandboxSpec};

    #[tokio::test]
    async fn what_has_come_is_read_however_late_it_is_looked_for() {
        let root = tempfile::tempdir().unwrap();
        let config = LocalConfig::default().with_workspace_root(root.path());
        let provider = LocalProvider::new(config).unwrap();
        let handle = provider.create(&SandboxSpec::default()).await.unwrap();
        let sandbox = &handle.raw::<LocalRaw>().unwrap().sandbox;
        let hurry = CancellationToken::new();
        // What is ready at once is taken in any order.
        for _ in 0..20 {
            let outputs = Outputs::new(1024);
            let sinks = (outputs.stdout.clone(), outputs.stderr.clone());
            let options = ExecOptions::new("echo out; echo err >&2");
            let mut running = start(sandbox, "/bin/sh", &options, sinks).ok().unwrap();
            running.child.wait().await.unwrap();
            // The runtime looks for what is ready when there is nothing else to do.
            tokio::time::sleep(Duration::from_millis(5)).await;
            let far = Instant::now() + Duration::from_secs(600);
            assert!(drain(&mut running, &hurry, far, Duration::ZERO).await);
            let (stdout, stderr) = outputs.finish();
            assert_eq!((&*stdout.text(), &*stderr.text()), ("out\n", "err\n"));
        }
        provider.close(&handle).await.unwrap();
    }
}
