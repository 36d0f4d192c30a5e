//! The terminal of this process: raw while a session is bridged to it, and as before on every way out.

use std::io;
use std::ops::Deref;
use std::os::fd::AsFd;

use gym_sandbox::provider::PtySession;
use gym_sandbox::{Error, ErrorKind, MAX_TERMINAL_SIDE, Operation, Result, SandboxPtySpec};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::signal::unix::{SignalKind, signal};

use super::stream;

/// How much is read of the keyboard, or of a file in its place, at once.
const INPUT_BYTES: usize = 16 * 1024;

/// What ends the input of a program in a terminal.
const END_OF_INPUT: u8 = 4;

/// Raw mode of this process's terminal, for as long as it lives. Dropping it, also by a panic, restores what was.
#[derive(Debug)]
pub(super) struct RawMode {
    before: Option<Termios>,
}

impl RawMode {
    fn enter() -> Result<Self> {
        let stdin = io::stdin();
        if !isatty(stdin.as_fd()) {
            return Ok(Self { before: None });
        }
        let failed = |error: rustix::io::Errno| {
            Error::new(
                ErrorKind::Io,
                Operation::Pty,
                "this terminal can't be set to raw mode",
            )
            .with_source(io::Error::from(error))
        };
        let before = tcgetattr(stdin.as_fd()).map_err(failed)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin.as_fd(), OptionalActions::Now, &raw).map_err(failed)?;
        Ok(Self { before: Some(before) })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // A terminal that went away needs no restoring.
            let _gone = tcsetattr(io::stdin().as_fd(), OptionalActions::Now, before).is_err();
        }
    }
}

/// Sets this terminal to raw mode, and gives a session its size and kind.
///
/// # Errors
/// [`ErrorKind::Io`] where the terminal does not let itself be set.
pub(super) fn enter(mut spec: SandboxPtySpec) -> Result<(RawMode, SandboxPtySpec)> {
    if let Some((rows, cols)) = size() {
        spec = spec.with_size(rows, cols);
        if let Ok(kind) = std::env::var("TERM") {
            spec.env.entry("TERM".to_owned()).or_insert(kind);
        }
    }
    Ok((RawMode::enter()?, spec))
}

/// Rows and columns of this terminal; none where it is no terminal, or has no size.
fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(io::stdin().as_fd()).ok()?;
    let bounded = |side: u16| (side > 0).then_some(side.min(MAX_TERMINAL_SIDE));
    Some((bounded(size.ws_row)?, bounded(size.ws_col)?))
}

/// Passes keys and output on until the program has exited, and gives its code.
///
/// # Errors
/// Those of the session, and [`ErrorKind::Io`] when the output can't be written; the program is then ended.
pub(super) async fn bridge<S>(session: S) -> Result<i32>
where
    S: Deref<Target = dyn PtySession> + Clone + Send + Sync + 'static,
{
    let failed = |text, error| Error::new(ErrorKind::Io, Operation::Pty, text).with_source(error);
    let mut resized = signal(SignalKind::window_change())
        .map_err(|error| failed("changes of the terminal's size can't be listened for", error))?;
    let mut quit =
        signal(SignalKind::quit()).map_err(|error| failed("signals can't be listened for", error))?;
    // A program that does not read its keys must not hold up its output.
    let keys = tokio::spawn(pass_keys(session.clone()));
    let mut stdout = stream::standard_output()?;
    let passing = async {
        loop {
            tokio::select! {
                chunk = session.read() => {
                    let chunk = chunk?;
                    if chunk.is_empty() {
                        return session.wait_exit().await;
                    }
                    let written = async {
                        stdout.write_all(&chunk).await?;
                        stdout.flush().await
                    };
                    written.await.map_err(|error| failed("the output could not be written", error))?;
                }
                _ = resized.recv() => {
                    if let Some((rows, cols)) = size() {
                        // The program may have ended meanwhile, which is seen in the next read.
                        let _ended = session.resize(rows, cols).await.is_err();
                    }
                }
                _ = quit.recv() => return Ok(128 + 3),
            }
        }
    };
    let outcome = passing.await;
    keys.abort();
    let closed = session.close().await;
    match (outcome, closed) {
        (Err(error), Err(cleanup)) => Err(error.with_cleanup_error(cleanup)),
        (outcome, _) => outcome,
    }
}

async fn pass_keys<S>(session: S)
where
    S: Deref<Target = dyn PtySession> + Send + Sync + 'static,
{
    let Ok(mut input) = stream::standard_input() else {
        return;
    };
    let mut keys = vec![0; INPUT_BYTES];
    loop {
        let count = match input.read(&mut keys).await {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        if session.write(&keys[..count]).await.is_err() {
            return;
        }
    }
    // A file that was given in place of a keyboard has its end, which a terminal is told by a key.
    let _ended = session.write(&[END_OF_INPUT]).await.is_err();
}
