//! Where one output stream of a command goes: kept up to a cap, or handed to a reader who took the stream.
//! Knows no way of running commands.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::{StreamExt, stream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::io::StreamReader;
use tokio_util::sync::CancellationToken;

use crate::spec::{Capture, CapturedOutput, Stdin};

/// Chunks that may wait for the reader of a taken stream; then the command waits, too.
const CHUNKS: usize = 16;

/// A chunk that must wait until the reader of a taken stream has room.
pub(crate) struct Pending {
    reader: mpsc::Sender<Bytes>,
    chunk: Bytes,
}

/// Hands a waiting chunk over. Dropping the future keeps it waiting. A reader that is gone loses its output; the
/// command goes on. So does one that has no room when there is a hurry.
pub(crate) async fn deliver(pending: &mut Option<Pending>, hurry: &CancellationToken) {
    let Some(waiting) = pending.as_ref() else {
        return std::future::pending().await;
    };
    let room = tokio::select! {
        biased;
        room = waiting.reader.clone().reserve_owned() => room.ok(),
        () = hurry.cancelled() => None,
    };
    if let (Some(waiting), Some(room)) = (pending.take(), room) {
        room.send(waiting.chunk);
    }
}

/// The destination of one stream. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Sink(Arc<Mutex<State>>);

#[derive(Debug)]
enum State {
    Kept(Capture),
    Taken(mpsc::Sender<Bytes>),
    Finished(CapturedOutput),
}

impl Sink {
    pub(crate) fn new(cap_bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(State::Kept(Capture::new(cap_bytes)))))
    }

    pub(crate) fn push(&self, chunk: Bytes) -> Option<Pending> {
        match &mut *self.state() {
            State::Kept(capture) => {
                capture.push(&chunk);
                None
            }
            State::Taken(reader) => Some(Pending {
                reader: reader.clone(),
                chunk,
            }),
            State::Finished(_) => None,
        }
    }

    /// Hands the stream to a reader, which first gets what was kept until now. None when it was taken before.
    pub(crate) fn take(&self) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        let mut state = self.state();
        let (kept, rest) = match &*state {
            State::Taken(_) => return None,
            State::Kept(_) => {
                let (sender, receiver) = mpsc::channel(CHUNKS);
                let State::Kept(capture) = std::mem::replace(&mut *state, State::Taken(sender)) else {
                    return None;
                };
                (capture.finish(), Some(receiver))
            }
            State::Finished(kept) => {
                let kept = kept.clone();
                *state = State::Finished(CapturedOutput::default());
                (kept, None)
            }
        };
        let first = stream::iter([kept.head().clone(), kept.tail().clone()].map(Ok::<_, io::Error>));
        let then = stream::unfold(rest, |receiver| async {
            let mut receiver = receiver?;
            let chunk = receiver.recv().await?;
            Some((Ok(chunk), Some(receiver)))
        });
        Some(Box::new(StreamReader::new(Box::pin(first.chain(then)))))
    }

    pub(crate) fn finish(&self) -> CapturedOutput {
        let mut state = self.state();
        let finished = match std::mem::replace(&mut *state, State::Finished(CapturedOutput::default())) {
            State::Kept(capture) => capture.finish(),
            // Dropping the sender is the end of the stream for its reader.
            State::Taken(_) => CapturedOutput::default(),
            State::Finished(kept) => kept,
        };
        *state = State::Finished(finished.clone());
        finished
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change of the state is one assignment, so a panic can't have left half of one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the input and half-closes it, so that the command sees its end (bugs B03). A command that does not read all
/// of it is no error.
pub(crate) async fn feed(stdin: Stdin, input: Option<impl AsyncWrite + Unpin>) -> io::Result<()> {
    let Some(mut input) = input else { return Ok(()) };
    match stdin {
        Stdin::Empty => {}
        Stdin::Bytes(bytes) => {
            if input.write_all(&bytes).await.is_err() {
                return Ok(());
            }
        }
        Stdin::Reader(mut reader) => {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let read = match reader.read(&mut buffer).await {
                    Ok(0) => break,
                    Ok(read) => read,
                    Err(error) => {
                        // The command sees the end of its input before the call fails.
                        let _closed = input.shutdown().await;
                        return Err(error);
                    }
                };
                if input.write_all(&buffer[..read]).await.is_err() || input.flush().await.is_err() {
                    return Ok(());
                }
            }
        }
    }
    let _closed = input.shutdown().await;
    Ok(())
}
