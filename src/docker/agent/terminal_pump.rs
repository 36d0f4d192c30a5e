//! Reading one session of the agent: output to its readers, the exit, the end, and a new connection for a lost one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gym_sandbox_agent::protocol::{AttachRequest, ClientMessage, Exit, Stream};
use tokio::sync::{mpsc, watch};

use super::super::pty::core::{Core, Over, Taps};
use super::ending;
use super::link::{Link, Lost};
use super::mailbox::{Mailbox, StreamState, WINDOW_BYTES};
use super::patience::until_resumed;
use super::resident::Route;
use super::terminal_close::Home;

/// How often a lost connection is made again without anything coming over it (contract Z13).
const BARREN: u32 = 3;

/// How long an agent may take to answer that a session was joined.
pub(super) const ANSWER: Duration = Duration::from_secs(20);

/// One connection to a session.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) link: Arc<Link>,
    pub(super) channel: u32,
    pub(super) mailbox: Arc<Mailbox>,
}

/// A session could not be joined.
pub(super) enum NotJoined {
    /// The agent refuses, with this error number.
    Refused(i32),
    Lost(Arc<str>),
}

impl Line {
    /// Opens a channel, and waits for the answer of the agent.
    pub(super) async fn attach(connection: Arc<Link>, request: AttachRequest) -> Result<Self, NotJoined> {
        let opened = connection
            .open_with(&ClientMessage::AttachSession(request), 0)
            .await
            .map_err(|Lost(why)| NotJoined::Lost(why))?;
        let line = Self {
            link: connection,
            channel: opened.channel,
            mailbox: opened.mailbox,
        };
        let answered = async {
            loop {
                let news = line.mailbox.news();
                if news.attached.is_some() {
                    return Ok(());
                }
                if let Some(failed) = news.start_failed {
                    return Err(NotJoined::Refused(failed.errno));
                }
                if let Some(why) = news.lost {
                    return Err(NotJoined::Lost(why));
                }
                line.mailbox.changed().await;
            }
        };
        match tokio::time::timeout(ANSWER, answered).await {
            Ok(answer) => answer?,
            Err(_) => return Err(NotJoined::Lost("the agent does not answer".into())),
        }
        Ok(line)
    }

    pub(super) fn push(&self, message: &ClientMessage) {
        self.link.push(message, self.channel);
    }
}

/// The task that reads a session.
pub(super) struct Pump {
    pub(super) core: Arc<Core>,
    pub(super) home: Home,
    pub(super) line: watch::Sender<Line>,
    /// The numbers of the next bytes of both streams.
    pub(super) offsets: [u64; 2],
    pub(super) barren: u32,
}

impl Drop for Pump {
    /// Nobody may wait for a task whose runtime has ended. After the end of the session this changes nothing.
    fn drop(&mut self) {
        if self.core.exit().is_none() {
            self.core
                .end(Over::Lost("the runtime of the session has ended".into()));
        }
    }
}

impl Pump {
    pub(super) async fn run(mut self, taps: Taps) {
        let mut sides = [
            Side::new(Stream::Stdout, taps.stdout),
            Side::new(Stream::Stderr, taps.stderr),
        ];
        loop {
            let line = self.line.borrow().clone();
            let news = line.mailbox.news();
            for (side, offset) in sides.iter_mut().zip(&mut self.offsets) {
                let taken = side.take(&line, news.exit.is_some());
                *offset += taken;
                if taken > 0 {
                    self.barren = 0;
                }
            }
            if let Some(exit) = news.exit {
                if let Some(code) = exit_code(exit) {
                    self.core.note_exit(code);
                } else {
                    let why =
                        "the process that watched over the program was killed; its exit code is not known";
                    self.core.end(Over::Lost(why.into()));
                }
            }
            if news.evicted {
                self.core.end(Over::Evicted);
            }
            if self.core.over().is_some() || (news.exit.is_some() && sides.iter().all(Side::is_done)) {
                return;
            }
            if let Some(why) = news.lost
                && sides.iter().all(|side| side.chunk.is_none())
            {
                if let Err(why) = self.rejoin(&why).await {
                    self.core.end(Over::Lost(why));
                    return;
                }
                continue;
            }
            let [stdout, stderr] = &mut sides;
            tokio::select! {
                () = line.mailbox.changed() => {}
                () = stdout.put(&line), if stdout.chunk.is_some() => {}
                () = stderr.put(&line), if stderr.chunk.is_some() => {}
                _over = self.core.until_over() => return,
            }
        }
    }

    /// Joins the session again where its connection was lost, from the byte behind the last one.
    async fn rejoin(&mut self, why: &Arc<str>) -> Result<(), Arc<str>> {
        let mut why = Arc::clone(why);
        while self.barren < BARREN {
            self.barren += 1;
            let connection = match self
                .home
                .resident
                .route(&self.home.provider, &self.home.container_id)
                .await
            {
                Route::Agent(link) => link,
                Route::Engine => return Err(why),
                // What runs there goes on with its sandbox, and a reader waits for it as with a connection that holds.
                Route::Ended(result) if ending::is_pause(&result) => {
                    self.barren -= 1;
                    let (provider, id) = (&self.home.provider, &self.home.container_id);
                    tokio::select! {
                        () = until_resumed(provider, id, None) => continue,
                        _over = self.core.until_over() => return Err(why),
                    }
                }
                Route::Ended(result) => {
                    return Err(result.message.unwrap_or_else(|| why.to_string()).into());
                }
            };
            let request = AttachRequest {
                name: self.core.session_id.as_bytes().to_vec(),
                takeover: true,
                stdout_since: self.offsets[0],
                stderr_since: self.offsets[1],
                stdout_credit: WINDOW_BYTES,
                stderr_credit: WINDOW_BYTES,
            };
            match Line::attach(connection, request).await {
                // Whoever ends the session does that over a connection of its own, which this one must not keep out.
                Ok(line) if self.core.over().is_some() => {
                    line.push(&ClientMessage::Detach);
                    line.link.forget(line.channel);
                    return Err(why);
                }
                Ok(line) => {
                    let attached = line.mailbox.news().attached.unwrap_or_default();
                    if [attached.stdout_offset, attached.stderr_offset] != self.offsets {
                        return Err(
                            "its connection broke, and some output since then is not kept any more".into(),
                        );
                    }
                    self.line.send_replace(line);
                    return Ok(());
                }
                Err(NotJoined::Refused(_)) => return Err(why),
                Err(NotJoined::Lost(again)) => why = again,
            }
        }
        Err(why)
    }
}

/// One stream on its way to its reader.
struct Side {
    stream: Stream,
    tap: Option<mpsc::Sender<Bytes>>,
    chunk: Option<Bytes>,
}

impl Side {
    fn new(stream: Stream, tap: Option<mpsc::Sender<Bytes>>) -> Self {
        Self {
            stream,
            tap,
            chunk: None,
        }
    }

    fn is_done(&self) -> bool {
        self.tap.is_none()
    }

    /// Takes what has come, and says how much that was. At the end the reader is told.
    fn take(&mut self, line: &Line, has_exited: bool) -> u64 {
        if self.chunk.is_some() || self.tap.is_none() {
            return 0;
        }
        match line.mailbox.take(self.stream) {
            Ok(chunk) => {
                let count = chunk.len() as u64;
                self.chunk = Some(chunk);
                count
            }
            Err(StreamState::Ended) => {
                // A program may close its output long before its end; that shows in the reader's wait for the exit.
                self.tap = None;
                0
            }
            Err(StreamState::Drained) if has_exited => {
                self.tap = None;
                0
            }
            Err(_) => 0,
        }
    }

    /// Hands the chunk over when there is room, and gives credit for as much more. Dropping the future keeps it.
    async fn put(&mut self, line: &Line) {
        let Some(tap) = &self.tap else {
            self.chunk = None;
            return;
        };
        let Ok(room) = tap.reserve().await else {
            self.chunk = None;
            return;
        };
        if let Some(chunk) = self.chunk.take() {
            let count = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
            room.send(chunk);
            line.mailbox.allow(self.stream, count);
            line.push(&ClientMessage::Credit(self.stream, count));
        }
    }
}

fn exit_code(exit: Exit) -> Option<i32> {
    match (exit.code, exit.signal) {
        (Some(code), _) => Some(code.into()),
        (None, Some(signal)) => Some(128 + i32::from(signal)),
        (None, None) => None,
    }
}
