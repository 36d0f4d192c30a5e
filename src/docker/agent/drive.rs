//! Reading one command to its end: output, input, exit, deadline, all at once. The agent keeps the time as well; here it
//! is kept for sandboxes that are paused, and agents that are gone.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gym_sandbox_agent::protocol::{ClientMessage, Exit, ExitCause, MAX_PAYLOAD_BYTES, Stream};
use tokio::io::AsyncReadExt;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::spec::{ExecResult, Stdin};

use super::super::DockerProvider;
use super::super::exec::output::{Outputs, Pending, Sink, deliver};
use super::ending;
use super::guard::CommandGuard;
use super::link::{Link, Opened};
use super::mailbox::{Killed, Mailbox, StartFailed, StreamState, WINDOW_BYTES};

/// How long the kill of a command's tree may take until it is reported. Hundreds of processes take a tenth of a second; a
/// fork bomb on a busy machine leaves little time for anybody else.
pub(super) const KILL_WAIT: Duration = Duration::from_secs(15);

/// How long an agent that lives may take to say so when a command has run out of time: its own command may keep the
/// machine busy with all that it forks. One that does not is waited for as long as a kill may take, unless its sandbox is
/// paused or gone.
pub(super) const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

/// How long the last output of a killed command may take.
const LAST_OUTPUT: Duration = Duration::from_millis(500);

/// A background child that was told to write elsewhere has so long to begin with that (contract D4).
const SHORT_DRAIN: Duration = Duration::from_millis(20);

/// A command that did not start in this time may be in a sandbox that is paused.
const SLOW_START: Duration = Duration::from_millis(250);

/// A command that was sent. Dropped while it may run, it is killed.
pub(super) struct Running {
    pub(super) link: Arc<Link>,
    pub(super) channel: u32,
    mailbox: Arc<Mailbox>,
    pub(super) guard: CommandGuard,
}

impl Running {
    pub(super) fn new(
        provider: &DockerProvider,
        container_id: &str,
        link: Arc<Link>,
        opened: Opened,
    ) -> Self {
        let guard = CommandGuard::new(provider, container_id, &link, opened.channel, &opened.mailbox);
        Self {
            link,
            channel: opened.channel,
            mailbox: opened.mailbox,
            guard,
        }
    }
}

/// How a command ended.
#[derive(Debug)]
pub(super) enum End {
    Exited {
        exit: Exit,
        background_output_open: bool,
        killed: Option<Killed>,
    },
    StartFailed(StartFailed),
    /// With the report about its processes, where there is one.
    TimedOut(Option<Killed>),
    /// The reader of the standard input failed.
    InputFailed(io::Error),
    /// The agent was lost, and why.
    Lost(Arc<str>),
    /// The sandbox does not run it.
    NotUsable(Box<ExecResult>),
}

/// When a command has run out of time, and who sees to that.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    pub(super) at: Instant,
    /// The agent was told and kills the command's tree.
    pub(super) by_agent: bool,
}

/// Reads until the command has ended or the deadline is over.
pub(super) async fn drive(
    provider: &DockerProvider,
    container_id: &str,
    running: &Running,
    stdin: Stdin,
    outputs: &Outputs,
    deadline: Option<Deadline>,
) -> End {
    let feeding = feed(running, stdin);
    let watching = watch_start(provider, container_id, &running.mailbox);
    tokio::pin!(feeding, watching);
    let (mut fed, mut watched) = (false, false);
    let mut stdout = Tap::new(Stream::Stdout, &outputs.stdout);
    let mut stderr = Tap::new(Stream::Stderr, &outputs.stderr);
    let mut ending: Option<Ending> = None;
    let mut drained_until: Option<Instant> = None;
    loop {
        let news = running.mailbox.news();
        stdout.pump(running);
        stderr.pump(running);
        if let Some(failed) = news.start_failed {
            return End::StartFailed(failed);
        }
        let complete = stdout.is_done() && stderr.is_done();
        if let Some(exit) = news.exit {
            let asked_for = matches!(exit.cause, ExitCause::Request | ExitCause::Timeout);
            if complete && (!asked_for || news.killed.is_some()) {
                if !all_ended(&stdout, &stderr) && drained_until.is_none() {
                    drained_until = Some(Instant::now() + SHORT_DRAIN);
                }
                if drained_until.is_none_or(|until| Instant::now() >= until || all_ended(&stdout, &stderr)) {
                    return ended(exit, [&stdout, &stderr], news.killed);
                }
            }
            if asked_for && ending.is_none() {
                ending = Some(Ending::waiting_for_report());
            }
        }
        if let (Some(ending), Some(_)) = (&mut ending, &news.killed) {
            ending.reported();
        }
        if let Some(why) = news.lost {
            return End::Lost(why);
        }
        let wake = drained_until
            .or(ending.as_ref().map(|ending| ending.until))
            .or(deadline.map(|deadline| deadline.at));
        tokio::select! {
            () = running.mailbox.changed() => {}
            () = deliver(&mut stdout.pending, &outputs.hurry), if stdout.pending.is_some() => {}
            () = deliver(&mut stderr.pending, &outputs.hurry), if stderr.pending.is_some() => {}
            result = &mut feeding, if !fed => {
                fed = true;
                if let Err(error) = result {
                    return End::InputFailed(error);
                }
            }
            result = &mut watching, if !watched && !news.started => {
                watched = true;
                if let Some(result) = result {
                    return End::NotUsable(result);
                }
            }
            () = Ending::alive(&mut ending), if ending.is_some() => {}
            () = sleep_until(wake) => match (&ending, news.exit) {
                (Some(asked), None) if asked.pong.is_some() && !asked.looked => {
                    if ending::not_usable(provider, container_id).await.is_some() {
                        return End::TimedOut(news.killed);
                    }
                    ending = ending.map(Ending::of_a_running_sandbox);
                }
                (Some(_), None) => return End::TimedOut(news.killed),
                // It ended; a reader who took a stream has not read all of it, or the report of a kill is late.
                (_, Some(exit)) => return ended(exit, [&stdout, &stderr], news.killed),
                (None, None) if deadline.is_some_and(|deadline| deadline.by_agent) => {
                    ending = Some(Ending::asking(&running.link));
                }
                (None, None) => return End::TimedOut(None),
            },
        }
    }
}

fn all_ended(stdout: &Tap<'_>, stderr: &Tap<'_>) -> bool {
    stdout.state == StreamState::Ended && stderr.state == StreamState::Ended
}

fn ended(exit: Exit, taps: [&Tap<'_>; 2], killed: Option<Killed>) -> End {
    if exit.cause == ExitCause::Timeout {
        return End::TimedOut(killed);
    }
    let background_output_open = taps.iter().any(|tap| tap.state != StreamState::Ended);
    End::Exited {
        exit,
        background_output_open,
        killed,
    }
}

/// The time between the end of a command's time and the report of what was killed.
struct Ending {
    until: Instant,
    pong: Option<oneshot::Receiver<()>>,
    /// The engine was asked whether the sandbox runs.
    looked: bool,
    has_report: bool,
}

impl Ending {
    /// The agent may be frozen with its sandbox: it is given little time to show that it is not.
    fn asking(link: &Link) -> Self {
        Self {
            until: Instant::now() + SIGN_OF_LIFE,
            pong: Some(link.ping()),
            looked: false,
            has_report: false,
        }
    }

    fn waiting_for_report() -> Self {
        Self {
            until: Instant::now() + KILL_WAIT + SIGN_OF_LIFE,
            pong: None,
            looked: true,
            has_report: false,
        }
    }

    /// The agent says nothing although nothing holds it: it gets the time of a kill.
    fn of_a_running_sandbox(self) -> Self {
        Self {
            until: Instant::now() + KILL_WAIT,
            looked: true,
            ..self
        }
    }

    fn reported(&mut self) {
        if !self.has_report {
            self.has_report = true;
            self.pong = None;
            self.until = Instant::now() + LAST_OUTPUT;
        }
    }

    async fn alive(ending: &mut Option<Self>) {
        let answered = match ending.as_mut().and_then(|ending| ending.pong.as_mut()) {
            Some(pong) => pong.await.is_ok(),
            None => std::future::pending().await,
        };
        if let Some(ending) = ending {
            ending.pong = None;
            if answered && !ending.has_report {
                ending.until = Instant::now() + KILL_WAIT + SIGN_OF_LIFE;
            }
        }
    }
}

/// One output stream on its way from the mailbox to where it goes.
struct Tap<'a> {
    stream: Stream,
    sink: &'a Sink,
    pending: Option<Pending>,
    state: StreamState,
    /// Bytes that were taken and whose room the agent was not told of yet.
    untold: u32,
}

impl<'a> Tap<'a> {
    fn new(stream: Stream, sink: &'a Sink) -> Self {
        Self {
            stream,
            sink,
            pending: None,
            state: StreamState::Open,
            untold: 0,
        }
    }

    /// Moves what there is, up to a chunk that must wait for its reader. The other stream goes on.
    fn pump(&mut self, running: &Running) {
        while self.pending.is_none() {
            match running.mailbox.take(self.stream) {
                Ok(chunk) => {
                    self.untold += u32::try_from(chunk.len()).unwrap_or(0);
                    self.pending = self.sink.push(chunk);
                    if self.untold >= WINDOW_BYTES / 4 {
                        running.mailbox.allow(self.stream, self.untold);
                        running
                            .link
                            .push(&ClientMessage::Credit(self.stream, self.untold), running.channel);
                        self.untold = 0;
                    }
                }
                Err(state) => {
                    self.state = state;
                    return;
                }
            }
        }
    }

    fn is_done(&self) -> bool {
        self.pending.is_none() && self.state != StreamState::Open
    }
}

/// Sends the input as far as there is credit, and its end. A command that does not read all of it is no error.
async fn feed(running: &Running, stdin: Stdin) -> io::Result<()> {
    match stdin {
        Stdin::Empty => return Ok(()),
        Stdin::Bytes(bytes) => {
            if !send_input(running, bytes).await {
                return Ok(());
            }
        }
        Stdin::Reader(mut reader) => {
            let mut buffer = vec![0; MAX_PAYLOAD_BYTES];
            loop {
                let read = match reader.read(&mut buffer).await {
                    Ok(0) => break,
                    Ok(read) => read,
                    Err(error) => {
                        // The command sees the end of its input before the call fails.
                        running.link.push(&ClientMessage::InputEnd, running.channel);
                        return Err(error);
                    }
                };
                if !send_input(running, Bytes::copy_from_slice(&buffer[..read])).await {
                    return Ok(());
                }
            }
        }
    }
    running.link.push(&ClientMessage::InputEnd, running.channel);
    Ok(())
}

/// False when nobody reads it any more.
async fn send_input(running: &Running, mut bytes: Bytes) -> bool {
    while !bytes.is_empty() {
        let Some(room) = running
            .mailbox
            .input_credit(bytes.len().min(MAX_PAYLOAD_BYTES))
            .await
        else {
            return false;
        };
        let part = bytes.split_to(room);
        if !running
            .link
            .send(&ClientMessage::Input(part.into()), running.channel)
            .await
        {
            return false;
        }
    }
    true
}

/// Looks into it when a command does not start: it may have been sent in the moment when its sandbox was paused.
async fn watch_start(
    provider: &DockerProvider,
    container_id: &str,
    mailbox: &Mailbox,
) -> Option<Box<ExecResult>> {
    tokio::time::sleep(SLOW_START).await;
    // Nobody is woken for a start.
    if mailbox.has_started() {
        return None;
    }
    let result = ending::not_usable(provider, container_id).await?;
    (!mailbox.has_started() && !ending::is_unknown(&result)).then(|| Box::new(result))
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
