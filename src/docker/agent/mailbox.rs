//! What has come for one command and was not looked at yet. Bounded by the credit that was given: the task that reads
//! the connection puts it here and never waits for anybody.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use gym_sandbox_agent::protocol::{AgentMessage, Attached, Exit, ExitCause, Malformed, StartStage, Stream};
use tokio::sync::Notify;

/// How many bytes of each stream of a command may be under way or waiting here.
pub(super) const WINDOW_BYTES: u32 = 512 * 1024;

/// Shorter chunks are joined: a chunk keeps the memory of the whole read that brought it.
const SMALL_BYTES: usize = 8 * 1024;

/// What came of a kill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Killed {
    pub(super) cause: ExitCause,
    pub(super) count: u32,
    pub(super) survivors: u32,
    /// There may be survivors that nobody saw.
    pub(super) is_unsure: bool,
}

/// Why a command did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StartFailed {
    pub(super) stage: StartStage,
    pub(super) errno: i32,
    pub(super) subject: String,
}

/// What is known of a command so far.
#[derive(Debug, Clone, Default)]
pub(super) struct News {
    pub(super) started: bool,
    pub(super) start_failed: Option<StartFailed>,
    pub(super) exit: Option<Exit>,
    /// The last kill that was reported.
    pub(super) killed: Option<Killed>,
    /// The session was joined.
    pub(super) attached: Option<Attached>,
    /// The session was taken over.
    pub(super) evicted: bool,
    /// Nothing of it lives any more. A kill that was on its way then is not reported.
    pub(super) gone: bool,
    /// The connection is lost, and why.
    pub(super) lost: Option<Arc<str>>,
}

impl News {
    /// Nothing is left to kill, or nobody is there who could.
    pub(super) fn is_killed(&self) -> bool {
        self.killed.is_some() || self.start_failed.is_some() || self.gone || self.lost.is_some()
    }
}

/// How a stream stands when nothing of it waits any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamState {
    /// More may come.
    Open,
    /// All that the command wrote has come; somebody else holds the stream.
    Drained,
    /// Nobody holds it any more.
    Ended,
}

#[derive(Debug)]
struct Arrived {
    chunks: VecDeque<Bytes>,
    small: BytesMut,
    /// How many bytes may still come.
    allowed: usize,
    state: StreamState,
}

#[derive(Debug)]
struct Inbox {
    stdout: Arrived,
    stderr: Arrived,
    news: News,
    input_credit: usize,
    input_closed: bool,
}

/// The mailbox of one command. One task looks into it, and one other waits for input credit.
#[derive(Debug)]
pub(super) struct Mailbox {
    inbox: Mutex<Inbox>,
    changed: Notify,
    input: Notify,
    start: Start,
    /// Something was put in that its reader was not woken for yet.
    stirred: AtomicBool,
}

/// What a command's start is to its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// It waits for it.
    News,
    /// It waits for the end only: to wake it for the start costs as much as the rest of a short command.
    Noted,
}

impl Mailbox {
    /// A mailbox for a command that was given [`WINDOW_BYTES`] for each stream.
    pub(super) fn new(input_credit: u32, start: Start) -> Self {
        Self {
            inbox: Mutex::new(Inbox {
                stdout: Arrived::new(),
                stderr: Arrived::new(),
                news: News::default(),
                input_credit: input_credit as usize,
                input_closed: false,
            }),
            changed: Notify::new(),
            input: Notify::new(),
            start,
            stirred: AtomicBool::new(false),
        }
    }

    /// Puts output in. Its reader is woken by [`tell`](Self::tell).
    pub(super) fn put_output(&self, stream: Stream, bytes: Bytes) -> Result<(), Malformed> {
        self.inbox().stream(stream).put(bytes)?;
        self.stirred.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Puts a message in, of which the reader is told by [`tell`](Self::tell). Says whether it was the last one.
    pub(super) fn put(&self, message: AgentMessage) -> Result<bool, Malformed> {
        let mut inbox = self.inbox();
        match message {
            AgentMessage::Started(_) => {
                inbox.news.started = true;
                if self.start == Start::Noted {
                    return Ok(false);
                }
            }
            AgentMessage::StartFailed {
                stage,
                errno,
                subject,
            } => {
                inbox.news.start_failed = Some(StartFailed {
                    stage,
                    errno,
                    subject,
                });
            }
            AgentMessage::StreamEnd { stream, .. } => inbox.stream(stream).state = StreamState::Ended,
            AgentMessage::Drained(stream) => {
                let arrived = inbox.stream(stream);
                if arrived.state == StreamState::Open {
                    arrived.state = StreamState::Drained;
                }
            }
            AgentMessage::Exited(exit) => inbox.news.exit = Some(exit),
            AgentMessage::InputCredit(bytes) => {
                inbox.input_credit = inbox.input_credit.saturating_add(bytes as usize);
                drop(inbox);
                self.input.notify_one();
                return Ok(false);
            }
            AgentMessage::InputClosed => {
                inbox.input_closed = true;
                drop(inbox);
                self.input.notify_one();
                return Ok(false);
            }
            AgentMessage::Killed {
                cause,
                killed,
                survivors,
                is_unsure,
            } => {
                let survivors = u32::try_from(survivors.len()).unwrap_or(u32::MAX);
                inbox.news.killed = Some(Killed {
                    cause,
                    count: killed,
                    survivors,
                    is_unsure,
                });
            }
            AgentMessage::Attached(attached) => {
                inbox.news.attached = Some(attached);
                inbox.input_credit = inbox.input_credit.saturating_add(attached.input_credit as usize);
                self.input.notify_one();
            }
            AgentMessage::Evicted => {
                inbox.news.evicted = true;
                inbox.input_closed = true;
                self.input.notify_one();
            }
            AgentMessage::Gone => {
                inbox.news.gone = true;
                return Ok(true);
            }
            _ => return Err(Malformed("a command's channel has another message")),
        }
        self.stirred.store(true, Ordering::Relaxed);
        Ok(inbox.news.start_failed.is_some() || inbox.news.evicted)
    }

    /// Wakes the reader when something was put in since the last call.
    pub(super) fn tell(&self) {
        if self.stirred.swap(false, Ordering::Relaxed) {
            self.changed.notify_one();
        }
    }

    /// Says that nothing more will come.
    pub(super) fn lose(&self, why: &Arc<str>) {
        let mut inbox = self.inbox();
        inbox.news.lost = Some(Arc::clone(why));
        inbox.input_closed = true;
        drop(inbox);
        self.changed.notify_one();
        self.input.notify_one();
    }

    /// The command's program runs, or did.
    pub(super) fn has_started(&self) -> bool {
        self.inbox().news.started
    }

    /// Waits until something was put in since the last call. Dropping the future loses nothing.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What is known now.
    pub(super) fn news(&self) -> News {
        self.inbox().news.clone()
    }

    /// Takes a chunk of a stream; without one, says how the stream stands.
    pub(super) fn take(&self, stream: Stream) -> Result<Bytes, StreamState> {
        self.inbox().stream(stream).take()
    }

    /// Notes that the agent is being told of so much more room.
    pub(super) fn allow(&self, stream: Stream, bytes: u32) {
        self.inbox().stream(stream).allowed += bytes as usize;
    }

    /// Waits until input may be sent, and takes at most so much credit. None when nobody reads it any more.
    pub(super) async fn input_credit(&self, most: usize) -> Option<usize> {
        loop {
            {
                let mut inbox = self.inbox();
                if inbox.input_closed {
                    return None;
                }
                let taken = inbox.input_credit.min(most);
                if taken > 0 {
                    inbox.input_credit -= taken;
                    return Some(taken);
                }
            }
            self.input.notified().await;
        }
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        // Nothing that is done under the lock can panic half-way.
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inbox {
    fn stream(&mut self, stream: Stream) -> &mut Arrived {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

impl Arrived {
    fn new() -> Self {
        Self {
            chunks: VecDeque::new(),
            small: BytesMut::new(),
            allowed: WINDOW_BYTES as usize,
            state: StreamState::Open,
        }
    }

    fn put(&mut self, bytes: Bytes) -> Result<(), Malformed> {
        self.allowed = self
            .allowed
            .checked_sub(bytes.len())
            .ok_or(Malformed("more output came than there was room for"))?;
        if bytes.len() < SMALL_BYTES {
            self.small.extend_from_slice(&bytes);
            if self.small.len() < 8 * SMALL_BYTES {
                return Ok(());
            }
        }
        if !self.small.is_empty() {
            self.chunks.push_back(self.small.split().freeze());
        }
        if bytes.len() >= SMALL_BYTES {
            self.chunks.push_back(bytes);
        }
        Ok(())
    }

    fn take(&mut self) -> Result<Bytes, StreamState> {
        if let Some(chunk) = self.chunks.pop_front() {
            return Ok(chunk);
        }
        if self.small.is_empty() {
            Err(self.state)
        } else {
            Ok(self.small.split().freeze())
        }
    }
}

#[cfg(test)]
#[path = "mailbox_tests.rs"]
mod tests;
