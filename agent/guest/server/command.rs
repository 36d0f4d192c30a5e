//! One command from the agent's side: its runner's link, its pipes, and what is still to be told of it. Forks the runner.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::client::ClientId;
use super::sessions::Session;
use crate::context::Context;
use crate::link::{Order, Records};
use crate::protocol::{ExecRequest, ExitCause, MAX_PAYLOAD_BYTES, StartStage, Stream};
use crate::runner::{self, Job};
use crate::sys;

/// How much longer than it was told to take a runner may take to report a kill before the agent does not believe in it.
const RUNNER_GRACE_MS: u64 = 1000;
/// A stream that has given so much gets a larger pipe, so that command and agent need not take turns so often. Not from
/// the start: the kernel counts the memory of all pipes of a user, and most commands print little.
const MUCH_BYTES: u64 = 1024 * 1024;
const MUCH_PIPE_BYTES: i32 = 512 * 1024;

/// A command that was asked for.
#[derive(Debug)]
pub(super) struct Command {
    /// None when its client is gone.
    pub(super) client: Option<ClientId>,
    pub(super) channel: u32,
    pub(super) marker: Vec<u8>,
    pub(super) link: Option<UnixStream>,
    pub(super) records: Records,
    pub(super) runner: i32,
    pub(super) began: u64,
    pub(super) input: Option<Input>,
    pub(super) outputs: [Output; 2],
    pub(super) phase: Phase,
    /// No process of the tree is left.
    pub(super) is_empty: bool,
    /// The runner was lost before it could say so.
    pub(super) is_lost: bool,
    pub(super) cause: ExitCause,
    /// Who waits for the report of a kill.
    pub(super) kills: Vec<ExitCause>,
    /// When the agent answers them itself.
    pub(super) kill_answer_at: Option<u64>,
    pub(super) survivors: Vec<u32>,
    pub(super) deadline: Option<u64>,
    pub(super) kill_wait_ms: u32,
    pub(super) keeps_on_disconnect: bool,
    /// It outlives its clients.
    pub(super) session: Option<Session>,
    /// Program, directory and user as they were asked for, for the report of a failed start.
    subjects: [Vec<u8>; 3],
}

/// How far a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Starting,
    Running,
    Exited,
}

/// The pipe to a command's standard input.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) pipe: PipeWriter,
    pending: VecDeque<u8>,
    is_ending: bool,
}

/// The pipe from one of a command's outputs.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) stream: Stream,
    /// None after its end.
    pub(super) pipe: Option<PipeReader>,
    pub(super) credit: u64,
    pub(super) total_bytes: u64,
    /// Read it and throw it away.
    pub(super) is_dropped: bool,
    /// After the exit: so many bytes more, and all that was in the pipe at that time has been read.
    pub(super) until_drained: Option<usize>,
    capacity: usize,
}

/// What one read of an output gave.
pub(super) enum Got {
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    End,
}

/// What a command is connected to: this process's ends, and its own.
pub(super) struct Streams {
    input: Option<Input>,
    outputs: [Output; 2],
    stdio: [OwnedFd; 3],
}

impl Streams {
    pub(super) fn pipes(request: &ExecRequest, null: &File) -> std::io::Result<Self> {
        let (input, stdin): (_, OwnedFd) = if request.has_input {
            let (reader, writer) = pipe()?;
            (Some(Input::new(writer)?), reader.into())
        } else {
            (None, null.try_clone()?.into())
        };
        let (stdout_reader, stdout) = pipe()?;
        let (stderr_reader, stderr) = pipe()?;
        Ok(Self {
            input,
            outputs: [
                Output::new(Stream::Stdout, stdout_reader, request.stdout_credit)?,
                Output::new(Stream::Stderr, stderr_reader, request.stderr_credit)?,
            ],
            stdio: [stdin, stdout.into(), stderr.into()],
        })
    }

    /// One terminal for all three. It is read and written as a pipe is; the end of its program is an error of the read.
    pub(super) fn terminal(reader: OwnedFd, writer: OwnedFd, programs: OwnedFd) -> std::io::Result<Self> {
        let nothing = Output {
            stream: Stream::Stderr,
            pipe: None,
            credit: 0,
            total_bytes: 0,
            is_dropped: false,
            until_drained: None,
            capacity: 0,
        };
        Ok(Self {
            input: Some(Input::new(writer.into())?),
            outputs: [Output::new(Stream::Stdout, reader.into(), 0)?, nothing],
            stdio: [programs.try_clone()?, programs.try_clone()?, programs],
        })
    }
}

impl Command {
    /// Forks the runner of a new command. The error number when that is not possible.
    pub(super) fn start(
        client: ClientId,
        channel: u32,
        request: &ExecRequest,
        context: &Context,
        streams: Streams,
        is_terminal: bool,
    ) -> std::io::Result<Self> {
        let Streams {
            input,
            outputs,
            stdio,
        } = streams;
        let (link, runner_link) = UnixStream::pair()?;
        link.set_nonblocking(true)?;
        let job = Job {
            request,
            context,
            link: runner_link.into(),
            stdio,
            is_terminal,
        };
        let runner = sys::fork_process()?;
        if runner == 0 {
            runner::run(job)
        }
        drop(job);
        Ok(Self {
            client: Some(client),
            channel,
            marker: request.id.clone(),
            link: Some(link),
            records: Records::default(),
            runner,
            began: sys::now_ms(),
            input,
            outputs,
            phase: Phase::Starting,
            is_empty: false,
            is_lost: false,
            cause: ExitCause::Itself,
            kills: Vec::new(),
            kill_answer_at: None,
            survivors: Vec::new(),
            deadline: (request.timeout_ms > 0).then(|| sys::now_ms().saturating_add(request.timeout_ms)),
            kill_wait_ms: request.kill_wait_ms,
            keeps_on_disconnect: request.keep_on_disconnect,
            session: None,
            subjects: [
                request.argv.first().cloned().unwrap_or_default(),
                request.cwd.clone(),
                request.user.clone(),
            ],
        })
    }

    /// What a failed start is about.
    pub(super) fn subject(&self, stage: StartStage) -> String {
        let index = match stage {
            StartStage::Cwd => 1,
            StartStage::User => 2,
            _ => 0,
        };
        String::from_utf8_lossy(&self.subjects[index]).into_owned()
    }

    /// Tells the runner something. One that is lost is noticed by reading.
    pub(super) fn order(&mut self, order: Order) {
        if let Some(link) = &mut self.link {
            let _ = link.write_all(&order.to_record());
        }
    }

    /// Begins to kill the tree. `answered`: somebody is told what came of it.
    pub(super) fn kill(&mut self, cause: ExitCause, wait_ms: u32, answered: bool) {
        if self.phase != Phase::Exited && self.cause == ExitCause::Itself {
            self.cause = cause;
        }
        self.deadline = None;
        if answered {
            self.kills.push(cause);
        }
        let answer_at = sys::now_ms()
            .saturating_add(u64::from(wait_ms))
            .saturating_add(RUNNER_GRACE_MS);
        self.kill_answer_at = Some(answer_at);
        self.order(Order::Kill(wait_ms));
    }

    /// Stops sending its output.
    pub(super) fn detach(&mut self) {
        for output in &mut self.outputs {
            output.is_dropped = true;
        }
    }

    /// Nothing will be told of it any more.
    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Exited
            && self.is_empty
            && self.kills.is_empty()
            && self.outputs.iter().all(|output| output.pipe.is_none())
            && self.session.as_ref().is_none_or(Session::is_released)
    }

    /// What is read of an output has a place.
    pub(super) fn has_room(&self, index: usize) -> bool {
        self.outputs[index].is_dropped
            || self
                .session
                .as_ref()
                .is_none_or(|session| session.has_room(index, self.client.is_some()))
    }

    pub(super) fn output(&mut self, stream: Stream) -> &mut Output {
        match stream {
            Stream::Stdout => &mut self.outputs[0],
            Stream::Stderr => &mut self.outputs[1],
        }
    }
}

impl Input {
    fn new(pipe: PipeWriter) -> std::io::Result<Self> {
        sys::set_nonblocking(&pipe)?;
        Ok(Self {
            pipe,
            pending: VecDeque::new(),
            is_ending: false,
        })
    }

    /// How many bytes may be sent that were not.
    pub(super) fn room(&self, window: u32) -> u32 {
        window.saturating_sub(u32::try_from(self.pending.len()).unwrap_or(u32::MAX))
    }

    /// How much more may be kept for the command.
    pub(super) fn is_over(&self, more: usize, window: u32) -> bool {
        self.pending.len() + more > window as usize
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.pending.extend(bytes);
    }

    pub(super) fn end(&mut self) {
        self.is_ending = true;
    }

    pub(super) fn wants_to_write(&self) -> bool {
        !self.pending.is_empty()
    }

    /// All was written and no more comes: the pipe is to be closed.
    pub(super) fn is_done(&self) -> bool {
        self.is_ending && self.pending.is_empty()
    }

    /// Writes what the command takes, and says how much that was. An error: nobody reads any more.
    pub(super) fn flush(&mut self) -> std::io::Result<usize> {
        let mut count = 0;
        while !self.pending.is_empty() {
            match self.pipe.write(self.pending.as_slices().0) {
                Ok(written) => {
                    self.pending.drain(..written);
                    count += written;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }
}

impl Output {
    fn new(stream: Stream, pipe: PipeReader, credit: u32) -> std::io::Result<Self> {
        sys::set_nonblocking(&pipe)?;
        let capacity = sys::pipe_capacity(&pipe);
        Ok(Self {
            stream,
            pipe: Some(pipe),
            credit: credit.into(),
            total_bytes: 0,
            is_dropped: false,
            until_drained: None,
            capacity,
        })
    }

    /// The command has exited: from now on the end of what it wrote is looked for.
    pub(super) fn expect_drain(&mut self) {
        self.until_drained = Some(self.capacity);
    }

    /// What is read has another limit than the credit of a client.
    pub(super) fn take_all(&mut self) {
        self.credit = u64::MAX;
    }

    /// It may be read now, as far as its client has room.
    pub(super) fn wants_to_read(&self, is_full: bool) -> bool {
        self.pipe.is_some() && (self.is_dropped || (self.credit > 0 && !is_full))
    }

    /// Reads once into the buffer behind `start`.
    pub(super) fn read(&mut self, buffer: &mut [u8], start: usize) -> Got {
        let Some(pipe) = &mut self.pipe else {
            return Got::Nothing;
        };
        let most = if self.is_dropped {
            MAX_PAYLOAD_BYTES as u64
        } else {
            self.credit
        };
        let most = usize::try_from(most)
            .unwrap_or(MAX_PAYLOAD_BYTES)
            .min(MAX_PAYLOAD_BYTES);
        match pipe.read(&mut buffer[start..start + most]) {
            Ok(0) => {
                self.pipe = None;
                Got::End
            }
            Ok(count) => {
                let was_little = self.total_bytes < MUCH_BYTES;
                self.total_bytes += count as u64;
                if was_little && self.total_bytes >= MUCH_BYTES {
                    sys::enlarge_pipe(pipe, MUCH_PIPE_BYTES);
                    self.capacity = sys::pipe_capacity(pipe);
                }
                if !self.is_dropped {
                    self.credit -= count as u64;
                }
                self.until_drained = self.until_drained.map(|left| left.saturating_sub(count));
                Got::Bytes(count)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                if error.kind() == ErrorKind::WouldBlock && self.until_drained.is_some() {
                    self.until_drained = Some(0);
                }
                Got::Nothing
            }
            Err(_) => {
                self.pipe = None;
                Got::End
            }
        }
    }

    /// Says once that all from before the exit has been read.
    pub(super) fn take_drained(&mut self) -> bool {
        self.until_drained.take_if(|left| *left == 0).is_some()
    }
}
