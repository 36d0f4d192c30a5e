//! A running command's streams, passed on while it runs: byte for byte, each to its own, nothing kept.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use gym_sandbox::{Error, ErrorKind, ExecResult, ExecSession, Operation, Result};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncWriteExt, BufReader};

/// How much is read at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// How one stream ended.
enum Passed {
    /// With the command.
    All,
    /// Nobody reads it any more. What is still printed is lost.
    ReaderGone,
}

/// Passes the streams on until the command has ended.
///
/// When the reader of standard output goes away, the command gets SIGPIPE, as it would in a pipe of this machine; a
/// command that ignores it runs on.
///
/// # Errors
/// Those of the session, and [`ErrorKind::Io`] when a stream can't be written; the command is killed then.
pub(super) async fn to_the_end(mut session: Box<dyn ExecSession>) -> Result<ExecResult> {
    let stdout = pass_on(session.take_stdout(), own(io::stdout().as_fd())?);
    let stderr = pass_on(session.take_stderr(), own(io::stderr().as_fd())?);
    let passed = async {
        let stdout = async {
            if matches!(stdout.await?, Passed::ReaderGone) {
                // It may have ended already, or there is nothing to signal it with: then it runs to its end.
                let _ = session.signal("PIPE").await;
            }
            Ok(())
        };
        let stderr = async { stderr.await.map(|_| ()) };
        tokio::try_join!(stdout, stderr)
    };
    if let Err(error) = passed.await {
        let error = Error::new(
            ErrorKind::Io,
            Operation::Exec,
            "the output of the command could not be written",
        )
        .with_source(error);
        return Err(match session.kill().await {
            Ok(_) => error,
            Err(cleanup) => error.with_cleanup_error(cleanup),
        });
    }
    session.wait().await
}

async fn pass_on(stream: Option<Box<dyn AsyncRead + Send + Unpin>>, mut target: File) -> io::Result<Passed> {
    let Some(stream) = stream else {
        return Ok(Passed::All);
    };
    let mut stream = BufReader::with_capacity(BUFFER_BYTES, stream);
    let copied = async {
        tokio::io::copy_buf(&mut stream, &mut target).await?;
        target.flush().await
    };
    match copied.await {
        Ok(()) => Ok(Passed::All),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Passed::ReaderGone),
        Err(error) => Err(error),
    }
}

/// This process's standard input as a stream.
///
/// # Errors
/// [`ErrorKind::Io`] where it has none.
pub(super) fn standard_input() -> Result<File> {
    own(io::stdin().as_fd())
}

/// This process's standard output as a stream.
///
/// # Errors
/// [`ErrorKind::Io`] where it has none.
pub(super) fn standard_output() -> Result<File> {
    own(io::stdout().as_fd())
}

/// A descriptor of our own for it, so that closing this one closes no other.
fn own(descriptor: std::os::fd::BorrowedFd<'_>) -> Result<File> {
    let owned: OwnedFd = descriptor.try_clone_to_owned().map_err(|error| {
        Error::new(
            ErrorKind::Io,
            Operation::Exec,
            "a standard stream of this process can't be used",
        )
        .with_source(error)
    })?;
    Ok(File::from_std(owned.into()))
}
