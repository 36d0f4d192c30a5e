//! One connection to one agent: a task that reads, a task that writes, and the commands that share it.
//! Knows the protocol; does not know how the connection was made.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gym_sandbox_agent::protocol::{
    AgentHello, AgentMessage, ClientHello, ClientMessage, ExecRequest, INPUT_WINDOW_BYTES, Malformed,
};
use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::answer::{FileAnswer, Limits};
use super::decode::{Content, Decoder, Incoming};
use super::greeting::{check, hello, refused};
use super::mailbox::{Mailbox, Start};
use super::outbox::{Outbox, Writer};
use super::reading::{Stirred, read};

/// The two directions of a connection.
pub(super) struct Wire {
    pub(super) reader: Pin<Box<dyn AsyncRead + Send>>,
    pub(super) writer: Writer,
}

/// An agent that has said hello. The connection ends with it, and with the connection the commands that still run.
pub(super) struct Link {
    shared: Arc<Shared>,
    hello: AgentHello,
    tasks: [AbortHandle; 2],
}

pub(super) struct Shared {
    table: Mutex<Table>,
    outbox: Outbox,
    began: Instant,
    /// When the agent was last heard, in microseconds since `began`.
    heard_us: AtomicU64,
}

#[derive(Default)]
struct Table {
    last_channel: u32,
    channels: HashMap<u32, Receiver>,
    pings: HashMap<u64, oneshot::Sender<()>>,
    last_ping: u64,
    lost: Option<Arc<str>>,
}

/// Who the messages of a channel are for.
#[derive(Clone)]
enum Receiver {
    Command(Arc<Mailbox>),
    File(Arc<FileAnswer>),
}

/// The connection is lost, and why.
#[derive(Debug, Clone)]
pub(super) struct Lost(pub(super) Arc<str>);

/// A command on its way: number and mailbox of its channel.
pub(super) struct Opened {
    pub(super) channel: u32,
    pub(super) mailbox: Arc<Mailbox>,
}

impl Link {
    /// Says hello and waits for the answer. Without one before it is too late, or with another program's, says why.
    pub(super) async fn open(mut wire: Wire, too_late: impl Future<Output = ()>) -> Result<Self, Lost> {
        let mut decoder = Decoder::default();
        let (outbox, writing) = Outbox::new(wire.writer);
        let writing = tokio::spawn(writing);
        let writer_task = AbortOnDrop(writing.abort_handle());
        outbox.push(&ClientMessage::Hello(ClientHello::default()), 0);
        let hello = tokio::select! {
            biased;
            hello = hello(&mut wire.reader, &mut decoder) => hello?,
            () = too_late => return Err(Lost("the agent did not say hello in time".into())),
        };
        check(&hello)?;
        let shared = Arc::new(Shared {
            table: Mutex::default(),
            outbox,
            began: Instant::now(),
            heard_us: AtomicU64::new(0),
        });
        let reading = tokio::spawn(run(Arc::clone(&shared), wire.reader, decoder, writing));
        let writer_task = writer_task.keep();
        Ok(Self {
            shared,
            hello,
            tasks: [reading.abort_handle(), writer_task],
        })
    }

    pub(super) fn hello(&self) -> &AgentHello {
        &self.hello
    }

    /// Why the connection is lost, if it is.
    pub(super) fn lost(&self) -> Option<Lost> {
        self.shared.table().lost.clone().map(Lost)
    }

    /// How long ago the agent was last heard.
    pub(super) fn silence(&self) -> Duration {
        self.shared.silence()
    }

    /// Asks for a sign of life. The answer may never come: wait with a deadline.
    pub(super) fn ping(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let token = {
            let mut table = self.shared.table();
            // Those who gave up waiting are forgotten, so that a silent agent costs nothing.
            table.pings.retain(|_, waiting| !waiting.is_closed());
            table.last_ping += 1;
            let token = table.last_ping;
            if table.lost.is_none() {
                table.pings.insert(token, sender);
            }
            token
        };
        self.shared
            .outbox
            .push(&ClientMessage::Ping(token.to_le_bytes().to_vec()), 0);
        receiver
    }

    /// Sends a command when there is room for it. Dropped before its end, nothing was sent.
    pub(super) async fn exec(&self, request: ExecRequest) -> Result<Opened, Lost> {
        let request = ClientMessage::Exec(Box::new(request));
        self.open_channel(&request, INPUT_WINDOW_BYTES, Start::Noted)
            .await
    }

    /// Sends what opens a channel for a session. Dropped before its end, nothing was sent.
    pub(super) async fn open_with(&self, request: &ClientMessage, input_credit: u32) -> Result<Opened, Lost> {
        self.open_channel(request, input_credit, Start::News).await
    }

    async fn open_channel(
        &self,
        request: &ClientMessage,
        input_credit: u32,
        start: Start,
    ) -> Result<Opened, Lost> {
        let mailbox = Arc::new(Mailbox::new(input_credit, start));
        let receiver = Receiver::Command(Arc::clone(&mailbox));
        let channel = self.ask(receiver, request).await?;
        Ok(Opened { channel, mailbox })
    }

    /// Asks for something of a file when there is room for it. Dropped before its end, nothing was sent.
    pub(super) async fn ask_file(
        &self,
        request: &ClientMessage,
        limits: Limits,
    ) -> Result<(u32, Arc<FileAnswer>), Lost> {
        let answer = Arc::new(FileAnswer::new(limits));
        let channel = self.ask(Receiver::File(Arc::clone(&answer)), request).await?;
        Ok((channel, answer))
    }

    async fn ask(&self, receiver: Receiver, request: &ClientMessage) -> Result<u32, Lost> {
        let channel = {
            let mut table = self.shared.table();
            if let Some(why) = &table.lost {
                return Err(Lost(Arc::clone(why)));
            }
            let Some(channel) = table.last_channel.checked_add(1) else {
                return Err(Lost("the connection has run out of numbers for commands".into()));
            };
            table.last_channel = channel;
            table.channels.insert(channel, receiver);
            channel
        };
        let mut entry = Entry {
            shared: &self.shared,
            channel,
            keep: false,
        };
        if !self.shared.outbox.send(request, channel).await {
            return Err(self
                .lost()
                .unwrap_or_else(|| Lost("the connection is closed".into())));
        }
        entry.keep = true;
        Ok(channel)
    }

    /// Sends a short message about a command.
    pub(super) fn push(&self, message: &ClientMessage, channel: u32) {
        // On a lost connection there is nobody to tell: the agent has ended what ran on it.
        let _sent = self.shared.outbox.push(message, channel);
    }

    /// Renews the lease of the sandbox, where it has one. Waits for nothing. False when the connection is lost.
    pub(super) fn renew(&self, lease: Duration) -> bool {
        if self.hello.lease_ms == 0 {
            return self.lost().is_none();
        }
        let milliseconds = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX).max(1);
        self.shared.outbox.offer(&ClientMessage::Lease(milliseconds), 0)
    }

    /// Sends a part of a command's input when there is room. False when the connection is lost.
    pub(super) async fn send(&self, message: &ClientMessage, channel: u32) -> bool {
        self.shared.outbox.send(message, channel).await
    }

    /// Takes no more messages of a channel. Says whether its last one has not come yet.
    pub(super) fn forget(&self, channel: u32) -> bool {
        self.shared.table().channels.remove(&channel).is_some()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.lose("the connection was closed");
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("pid", &self.hello.pid)
            .field("uid", &self.hello.uid)
            .finish_non_exhaustive()
    }
}

/// Forgets a channel whose command was never sent.
struct Entry<'a> {
    shared: &'a Shared,
    channel: u32,
    keep: bool,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        if !self.keep {
            self.shared.table().channels.remove(&self.channel);
        }
    }
}

struct AbortOnDrop(AbortHandle);

impl AbortOnDrop {
    fn keep(self) -> AbortHandle {
        let handle = self.0.clone();
        std::mem::forget(self);
        handle
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reads until the connection ends. Never waits for whoever a message is for.
async fn run(
    shared: Arc<Shared>,
    reader: Pin<Box<dyn AsyncRead + Send>>,
    decoder: Decoder,
    mut writing: tokio::task::JoinHandle<std::io::Error>,
) {
    // Also when this task is dropped with its runtime, those who wait are told.
    let _lost = LoseOnDrop(Arc::clone(&shared));
    let why = tokio::select! {
        why = read(&shared, reader, decoder) => why,
        ended = &mut writing => match ended {
            Ok(error) => format!("the connection broke: {error}"),
            Err(_) => "the connection was closed".to_owned(),
        },
    };
    writing.abort();
    shared.lose(&why);
}

struct LoseOnDrop(Arc<Shared>);

impl Drop for LoseOnDrop {
    fn drop(&mut self) {
        self.0.lose("the runtime of the connection has ended");
    }
}

impl Shared {
    /// Puts a message where it belongs. Gives a reason when the agent ends the connection.
    pub(super) fn deliver(
        &self,
        incoming: Incoming,
        stirred: &mut Stirred,
    ) -> Result<Option<Lost>, Malformed> {
        let Incoming { channel, content } = incoming;
        match content {
            Content::Message(AgentMessage::Pong(token)) => {
                if let Ok(token) = token.try_into()
                    && let Some(waiting) = self.table().pings.remove(&u64::from_le_bytes(token))
                {
                    // Whoever asked may have given up.
                    let _gone = waiting.send(()).is_err();
                }
                Ok(None)
            }
            Content::Message(AgentMessage::Refused(reason)) => Ok(Some(refused(&reason))),
            content => {
                let receiver = {
                    let table = self.table();
                    if channel == 0 || channel > table.last_channel {
                        return Err(Malformed("a message is for a command that never was"));
                    }
                    table.channels.get(&channel).cloned()
                };
                // Messages for a command that nobody asks about any more are still on their way: they are dropped.
                let is_last = match (receiver, content) {
                    (None, _) => return Ok(None),
                    (Some(Receiver::File(answer)), content) => answer.put(content)?,
                    (Some(Receiver::Command(mailbox)), content) => {
                        let is_last = match content {
                            Content::Output(stream, bytes) => {
                                mailbox.put_output(stream, bytes).map(|()| false)?
                            }
                            Content::Message(message) => mailbox.put(message)?,
                        };
                        stirred.add(mailbox);
                        is_last
                    }
                };
                if is_last {
                    self.table().channels.remove(&channel);
                }
                Ok(None)
            }
        }
    }

    /// Notes that the agent was heard.
    pub(super) fn heard(&self) {
        let heard = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.heard_us.store(heard, Ordering::Relaxed);
    }

    /// How long ago the agent was last heard.
    fn silence(&self) -> Duration {
        let heard = Duration::from_micros(self.heard_us.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(heard)
    }

    fn lose(&self, why: &str) {
        let channels = {
            let mut table = self.table();
            if table.lost.is_some() {
                return;
            }
            table.lost = Some(why.into());
            table.pings.clear();
            std::mem::take(&mut table.channels)
        };
        self.outbox.close();
        let why: Arc<str> = why.into();
        for receiver in channels.into_values() {
            match receiver {
                Receiver::Command(mailbox) => mailbox.lose(&why),
                Receiver::File(answer) => answer.lose(),
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing that is done under the lock can panic half-way.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
