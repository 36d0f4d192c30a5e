//! The two ends of a transfer: chunks between the engine's stream and a blocking thread, and a count of what moved that
//! tells progress and stalls.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::{ProgressCallback, TransferProgress};

/// Chunks on their way: with their size this bounds the memory of a transfer.
pub(super) const CHUNKS: usize = 16;

/// The size of a chunk.
pub(super) const CHUNK_BYTES: usize = 128 * 1024;

/// A piece of a stream. The end is said: a sender that is dropped was cut off.
#[derive(Debug)]
pub(super) enum Chunk {
    Data(Bytes),
    End,
}

/// What moved so far. Clones count together.
#[derive(Debug, Clone)]
pub(super) struct Moved {
    shared: Arc<Counts>,
    callback: Option<ProgressCallback>,
}

#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicU64,
    entries: AtomicU64,
    total: AtomicU64,
    /// Moves with anything that shows life.
    steps: AtomicU64,
    cancelled: AtomicBool,
}

impl Moved {
    pub(super) fn new(callback: Option<ProgressCallback>, total: Option<u64>) -> Self {
        let moved = Self {
            shared: Arc::default(),
            callback,
        };
        moved.set_total(total);
        moved
    }

    pub(super) fn set_total(&self, total: Option<u64>) {
        self.shared
            .total
            .store(total.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn add_bytes(&self, bytes: usize) {
        self.shared.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.tell();
    }

    pub(super) fn add_entry(&self) {
        self.shared.entries.fetch_add(1, Ordering::Relaxed);
        self.tell();
    }

    pub(super) fn step(&self) {
        self.shared.steps.fetch_add(1, Ordering::Relaxed);
    }

    fn tell(&self) {
        self.step();
        if let Some(callback) = &self.callback {
            callback.call(self.progress());
        }
    }

    pub(super) fn progress(&self) -> TransferProgress {
        let total = self.shared.total.load(Ordering::Relaxed);
        TransferProgress {
            bytes: self.shared.bytes.load(Ordering::Relaxed),
            total_bytes: (total != u64::MAX).then_some(total),
            entries: self.shared.entries.load(Ordering::Relaxed),
        }
    }

    /// Says that nobody waits for the transfer any more.
    pub(super) fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Relaxed)
    }

    /// Makes an error when nothing moves for so long; there is no bound on the whole.
    pub(super) async fn unless_stalled<T>(
        &self,
        timeout: Duration,
        operation: Operation,
        work: impl Future<Output = T>,
    ) -> Result<T> {
        // On the heap: transfers are large futures, and each caller would hold one more copy.
        let mut work = Box::pin(work);
        let mut seen = self.shared.steps.load(Ordering::Relaxed);
        let mut deadline = Instant::now() + timeout;
        loop {
            if let Ok(done) = tokio::time::timeout_at(deadline, &mut work).await {
                return Ok(done);
            }
            let now = self.shared.steps.load(Ordering::Relaxed);
            if now == seen {
                return Err(Error::new(
                    ErrorKind::Timeout,
                    operation,
                    format!("the transfer did not move for {timeout:?}"),
                )
                .with_retryable(true)
                .with_hint(
                    "the engine hangs or is overloaded; raise the stall timeout of the options if not",
                ));
            }
            seen = now;
            deadline = Instant::now() + timeout;
        }
    }
}

/// Cancels when it is dropped before it is disarmed.
#[derive(Debug)]
pub(super) struct CancelOnDrop(pub(super) Moved);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        // A transfer that has ended does not look any more.
        self.0.cancel();
    }
}

/// Reads the chunks of a channel on a blocking thread.
#[derive(Debug)]
pub(super) struct ChunkReader {
    receiver: mpsc::Receiver<Chunk>,
    chunk: Bytes,
    ended: bool,
}

impl ChunkReader {
    pub(super) fn new(receiver: mpsc::Receiver<Chunk>) -> Self {
        Self {
            receiver,
            chunk: Bytes::new(),
            ended: false,
        }
    }
}

impl Read for ChunkReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            if self.ended {
                return Ok(0);
            }
            match self.receiver.blocking_recv() {
                Some(Chunk::Data(chunk)) => self.chunk = chunk,
                Some(Chunk::End) => self.ended = true,
                None => {
                    return Err(io::Error::new(
                        io::ErrorKind::ConnectionAborted,
                        "the transfer was cut off",
                    ));
                }
            }
        }
        let read = buffer.len().min(self.chunk.len());
        buffer[..read].copy_from_slice(&self.chunk.split_to(read));
        Ok(read)
    }
}

/// Cuts writes of a blocking thread into chunks for the body of a request.
#[derive(Debug)]
pub(super) struct ChunkWriter {
    sender: mpsc::Sender<io::Result<Bytes>>,
    buffer: BytesMut,
}

impl ChunkWriter {
    pub(super) fn new(sender: mpsc::Sender<io::Result<Bytes>>) -> Self {
        Self {
            sender,
            buffer: BytesMut::with_capacity(CHUNK_BYTES),
        }
    }

    /// Says whether nobody reads any more.
    pub(super) fn is_unread(&self) -> bool {
        self.sender.is_closed()
    }

    /// Cuts the stream off in a way that its reader can't take for an end.
    pub(super) fn cut(&self) {
        // When nobody reads any more, it is cut already.
        let _nobody = self
            .sender
            .blocking_send(Err(io::Error::other("the source of the transfer failed")))
            .is_err();
    }
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(CHUNK_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        if self.buffer.len() >= CHUNK_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.buffer, BytesMut::with_capacity(CHUNK_BYTES)).freeze();
        self.sender
            .blocking_send(Ok(chunk))
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
