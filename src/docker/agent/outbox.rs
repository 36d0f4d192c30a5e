//! What is to be sent to the agent: whole messages in order, written by one task. Bounded: whoever has much to say waits
//! for room.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use gym_sandbox_agent::protocol::ClientMessage;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::Notify;

/// Commands and input wait while more than this is unsent.
const LIMIT_BYTES: usize = 512 * 1024;

/// Where messages go.
pub(super) enum Writer {
    /// A socket of this machine that does not block, into which the sender itself can write without waiting.
    Socket(StdUnixStream),
    /// The input of an engine's exec.
    Stream(Pin<Box<dyn AsyncWrite + Send>>),
}

/// The messages that wait for the writer. Clones share it.
#[derive(Clone)]
pub(super) struct Outbox(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    filled: Notify,
    emptied: Notify,
    socket: Option<StdUnixStream>,
}

#[derive(Default)]
struct Queue {
    bytes: BytesMut,
    /// The writing task holds bytes that come before those here.
    is_writing: bool,
    is_closed: bool,
}

impl Outbox {
    /// An outbox and the end of its writing task.
    pub(super) fn new(writer: Writer) -> (Self, impl Future<Output = io::Error> + Send + 'static) {
        let (socket, stream) = match writer {
            Writer::Socket(socket) => (Some(socket), None),
            Writer::Stream(stream) => (None, Some(stream)),
        };
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            filled: Notify::new(),
            emptied: Notify::new(),
            socket,
        });
        (Self(Arc::clone(&shared)), write(shared, stream))
    }

    /// Sends a short message, whatever waits already. Each is an answer to something that is bounded itself. Says
    /// whether it will be sent.
    pub(super) fn push(&self, message: &ClientMessage, channel: u32) -> bool {
        let mut queue = self.0.queue();
        if queue.is_closed {
            return false;
        }
        self.append(&mut queue, message, channel);
        true
    }

    /// Sends a short message that nobody waits for, and that comes again, unless much waits already. False when the
    /// connection is closed.
    pub(super) fn offer(&self, message: &ClientMessage, channel: u32) -> bool {
        let mut queue = self.0.queue();
        if !queue.is_closed && queue.bytes.len() < LIMIT_BYTES {
            self.append(&mut queue, message, channel);
        }
        !queue.is_closed
    }

    /// Sends a message when there is room. False when the connection is closed. Dropped before its end, nothing was
    /// sent.
    pub(super) async fn send(&self, message: &ClientMessage, channel: u32) -> bool {
        loop {
            let emptied = self.0.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            {
                let mut queue = self.0.queue();
                if queue.is_closed {
                    return false;
                }
                if queue.bytes.len() < LIMIT_BYTES {
                    self.append(&mut queue, message, channel);
                    return true;
                }
            }
            emptied.await;
        }
    }

    /// Ends all sending. The agent sees a socket end at once, whoever still holds its other direction.
    pub(super) fn close(&self) {
        self.0.queue().is_closed = true;
        if let Some(socket) = &self.0.socket {
            // It may be closed already.
            let _ended = socket.shutdown(Shutdown::Both).is_ok();
        }
        self.0.emptied.notify_waiters();
        self.0.filled.notify_one();
    }

    fn append(&self, queue: &mut Queue, message: &ClientMessage, channel: u32) {
        // The encoder wants a vector; a message is copied once more than it must be, which only long input feels.
        let mut encoded = Vec::new();
        message.append(&mut encoded, channel);
        let mut rest = encoded.as_slice();
        // Nothing is before it: it goes out at once, without a change of tasks.
        if queue.bytes.is_empty()
            && !queue.is_writing
            && let Some(mut socket) = self.0.socket.as_ref()
            && let Ok(written) = socket.write(rest)
        {
            rest = &rest[written..];
        }
        if !rest.is_empty() {
            queue.bytes.extend_from_slice(rest);
            self.0.filled.notify_one();
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Messages are appended whole or not at all.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write(shared: Arc<Shared>, mut stream: Option<Pin<Box<dyn AsyncWrite + Send>>>) -> io::Error {
    loop {
        let bytes = {
            let mut queue = shared.queue();
            if queue.is_closed {
                return io::Error::from(io::ErrorKind::NotConnected);
            }
            queue.is_writing = !queue.bytes.is_empty();
            queue.bytes.split()
        };
        if bytes.is_empty() {
            shared.filled.notified().await;
            continue;
        }
        shared.emptied.notify_waiters();
        let written = match (&shared.socket, &mut stream) {
            (Some(socket), _) => write_socket(socket, &bytes).await,
            (None, Some(stream)) => match stream.write_all(&bytes).await {
                Ok(()) => stream.flush().await,
                Err(error) => Err(error),
            },
            (None, None) => Ok(()),
        };
        if let Err(error) = written {
            return error;
        }
    }
}

/// Writes all, and watches the socket for room only meanwhile.
async fn write_socket(socket: &StdUnixStream, mut bytes: &[u8]) -> io::Result<()> {
    let watched = UnixStream::from_std(socket.try_clone()?)?;
    while !bytes.is_empty() {
        watched.writable().await?;
        match watched.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
