//! A session as callers hold it: the provider's, with time limits, and as streams.

use std::fmt;
use std::io;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures::Stream;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::PtySession;

/// How much of one call of a writer is handed over at once.
const WRITE_BYTES: usize = 64 * 1024;

/// A terminal session (contract 2.14). Clones are the same session.
///
/// Everything that a [`PtySession`] can is here, too. Dropping the last clone ends what was created here, in the
/// background; see there.
#[derive(Clone)]
pub struct SandboxPtySession {
    session: Arc<dyn PtySession>,
}

impl SandboxPtySession {
    pub(super) fn new(session: Arc<dyn PtySession>) -> Self {
        Self { session }
    }

    pub(super) fn shared(&self) -> &Arc<dyn PtySession> {
        &self.session
    }

    /// As [`PtySession::read`], for at most so long.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] when nothing came (contract Z1); else as there.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing; nor does the timeout.
    pub async fn read_timeout(&self, timeout: Duration) -> Result<Bytes> {
        within(timeout, "no output came", self.session.read()).await
    }

    /// As [`PtySession::read_stderr`], for at most so long.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] when nothing came; else as there.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing; nor does the timeout.
    pub async fn read_stderr_timeout(&self, timeout: Duration) -> Result<Bytes> {
        within(timeout, "no error output came", self.session.read_stderr()).await
    }

    /// As [`PtySession::wait_exit`], for at most so long. Others who wait are not disturbed (contract Z4).
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] when it still runs; else as there.
    ///
    /// # Cancel safety
    /// Others wait on.
    pub async fn wait_exit_timeout(&self, timeout: Duration) -> Result<i32> {
        within(timeout, "the program did not exit", self.session.wait_exit()).await
    }

    /// The output as a stream of chunks, to its end. An error is its last item.
    pub fn stream(&self) -> impl Stream<Item = Result<Bytes>> + Send + Unpin + use<> {
        let state = Some(Arc::clone(&self.session));
        Box::pin(futures::stream::unfold(state, |state| async {
            let session = state?;
            match session.read().await {
                Ok(chunk) if chunk.is_empty() => None,
                Ok(chunk) => Some((Ok(chunk), Some(session))),
                Err(error) => Some((Err(error), None)),
            }
        }))
    }

    /// Reader and writer of the session, which can be moved to different tasks. Each keeps the session alive.
    pub fn split(&self) -> (PtyReader, PtyWriter) {
        (
            PtyReader::new(Arc::clone(&self.session), false),
            PtyWriter {
                session: Arc::clone(&self.session),
                pending: None,
                is_ending: false,
            },
        )
    }

    /// A reader of standard error, in pipe mode.
    pub fn stderr_reader(&self) -> PtyReader {
        PtyReader::new(Arc::clone(&self.session), true)
    }
}

impl Deref for SandboxPtySession {
    type Target = dyn PtySession;

    fn deref(&self) -> &Self::Target {
        &*self.session
    }
}

impl fmt::Debug for SandboxPtySession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SandboxPtySession").field(&self.session).finish()
    }
}

async fn within<T>(
    timeout: Duration,
    what: &str,
    future: impl Future<Output = Result<T>> + Send,
) -> Result<T> {
    match tokio::time::timeout(timeout, future).await {
        Ok(result) => result,
        Err(_) => Err(Error::new(
            ErrorKind::Timeout,
            Operation::Pty,
            format!("{what} in {timeout:?}"),
        )),
    }
}

/// The output of a session as a reader. Its end is the program's exit; a session that was closed or lost is an error.
pub struct PtyReader {
    session: Arc<dyn PtySession>,
    of_stderr: bool,
    reading: Option<BoxFuture<'static, Result<Bytes>>>,
    left: Bytes,
}

impl PtyReader {
    fn new(session: Arc<dyn PtySession>, of_stderr: bool) -> Self {
        Self {
            session,
            of_stderr,
            reading: None,
            left: Bytes::new(),
        }
    }
}

impl AsyncRead for PtyReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left.is_empty() {
            let (session, of_stderr) = (Arc::clone(&self.session), self.of_stderr);
            let reading = self.reading.get_or_insert_with(|| {
                Box::pin(async move {
                    if of_stderr {
                        session.read_stderr().await
                    } else {
                        session.read().await
                    }
                })
            });
            let read = ready!(reading.as_mut().poll(context));
            self.reading = None;
            self.left = read.map_err(io::Error::other)?;
        }
        let count = self.left.len().min(buffer.remaining());
        buffer.put_slice(&self.left[..count]);
        self.left.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for PtyReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PtyReader")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// The input of a session as a writer. A write is taken when it was handed over; flushing waits for the last one.
/// Shutting it down ends the input in pipe mode, and does nothing to a terminal.
pub struct PtyWriter {
    session: Arc<dyn PtySession>,
    pending: Option<BoxFuture<'static, Result<()>>>,
    is_ending: bool,
}

impl PtyWriter {
    fn poll_pending(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(pending) = &mut self.pending {
            let written = ready!(pending.as_mut().poll(context));
            self.pending = None;
            written.map_err(io::Error::other)?;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PtyWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_pending(context))?;
        let taken = Bytes::copy_from_slice(&bytes[..bytes.len().min(WRITE_BYTES)]);
        let count = taken.len();
        let session = Arc::clone(&self.session);
        self.pending = Some(Box::pin(async move { session.write(&taken).await }));
        // Begun at once: who does not flush has written all the same.
        match self.poll_pending(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(count)),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_pending(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_pending(context))?;
        if std::mem::replace(&mut self.is_ending, true) {
            return Poll::Ready(Ok(()));
        }
        let session = Arc::clone(&self.session);
        self.pending = Some(Box::pin(async move {
            match session.close_input().await {
                Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Pty) => Ok(()),
                other => other,
            }
        }));
        self.poll_pending(context)
    }
}

impl fmt::Debug for PtyWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PtyWriter")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}
