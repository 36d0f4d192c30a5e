//! Sessions: commands that outlive their clients. Their output goes into a ring first, from which whoever has joined is
//! sent; without anybody the oldest bytes make room for new ones.

use std::fs::File;

use super::Server;
use super::client::{Channel, ClientId};
use super::command::{Command, Got, Phase, Streams};
use super::ring::{Ring, Stage};
use crate::protocol::{
    AgentMessage, AttachRequest, Attached, ClientMessage, Exit, ExitCause, HEADER_BYTES, INPUT_WINDOW_BYTES,
    KEPT_BYTES, MAX_PAYLOAD_BYTES, SessionRequest, StartStage, Stream,
};
use crate::sys::{self, errno};

/// How many sessions whose program has ended wait to be joined; the oldest goes first.
const MOST_ENDED: usize = 16;

/// What a command has that is a session.
#[derive(Debug)]
pub(super) struct Session {
    name: Vec<u8>,
    /// Our side of the terminal; None for pipes.
    terminal: Option<File>,
    rings: [Ring; 2],
    exit: Option<Exit>,
    /// Its creator wants nothing more of it.
    is_released: bool,
}

impl Session {
    pub(super) fn is_released(&self) -> bool {
        self.is_released
    }

    pub(super) fn note_exit(&mut self, exit: Exit) {
        self.exit = Some(exit);
    }

    pub(super) fn add_credit(&mut self, stream: Stream, bytes: u32) {
        let ring = &mut self.rings[usize::from(stream == Stream::Stderr)];
        ring.credit = ring.credit.saturating_add(bytes.into());
    }

    /// More may be read of a stream: somebody who is slow makes the program wait, nobody does not.
    pub(super) fn has_room(&self, index: usize, is_held: bool) -> bool {
        // A whole read must fit behind what was not sent yet.
        !is_held || self.rings[index].unsent() + MAX_PAYLOAD_BYTES <= KEPT_BYTES
    }

    fn can_send(&self) -> bool {
        self.rings.iter().any(|ring| ring.unsent() > 0 && ring.credit > 0)
    }

    fn stop_sending(&mut self) {
        for ring in &mut self.rings {
            ring.credit = 0;
        }
    }
}

impl Server {
    pub(super) fn open_session(&mut self, id: ClientId, channel: u32, mut request: SessionRequest) {
        let failed = |stage, errno| AgentMessage::StartFailed {
            stage,
            errno,
            subject: String::new(),
        };
        if self.find_session(&request.name).is_some() {
            return self.tell(id, channel, &failed(StartStage::Request, errno::EEXIST));
        }
        if self.commands.len() >= super::commands::MOST_COMMANDS {
            return self.tell(id, channel, &failed(StartStage::Resources, errno::EAGAIN));
        }
        let credits = [request.exec.stdout_credit, request.exec.stderr_credit];
        request.exec.has_input = true;
        request.exec.keep_on_disconnect = true;
        request.exec.timeout_ms = 0;
        match self.start_session(id, channel, &request) {
            Ok((mut command, terminal)) => {
                let mut rings = [Ring::default(), Ring::default()];
                for (ring, credit) in rings.iter_mut().zip(credits) {
                    ring.credit = credit.into();
                }
                if request.is_terminal {
                    rings[1].stage = Stage::Ended;
                }
                for output in &mut command.outputs {
                    output.take_all();
                }
                command.session = Some(Session {
                    name: request.name,
                    terminal,
                    rings,
                    exit: None,
                    is_released: false,
                });
                let number = self.number();
                self.commands.insert(number, command);
                if let Some(client) = self.clients.get_mut(&id) {
                    client.channels.insert(channel, Channel::Command(number));
                }
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(0);
                self.tell(id, channel, &failed(StartStage::Resources, errno));
            }
        }
    }

    fn start_session(
        &self,
        id: ClientId,
        channel: u32,
        request: &SessionRequest,
    ) -> std::io::Result<(Command, Option<File>)> {
        let (streams, terminal) = if request.is_terminal {
            let (ours, programs) = sys::open_terminal()?;
            sys::set_terminal_size(&ours, request.rows, request.cols)?;
            let streams = Streams::terminal(ours.try_clone()?.into(), ours.try_clone()?.into(), programs)?;
            (streams, Some(ours))
        } else {
            (Streams::pipes(&request.exec, &self.null)?, None)
        };
        let command = Command::start(
            id,
            channel,
            &request.exec,
            &self.context,
            streams,
            request.is_terminal,
        )?;
        Ok((command, terminal))
    }

    fn find_session(&self, name: &[u8]) -> Option<u64> {
        let mut sessions = self.commands.iter();
        sessions
            .find(|(_, command)| {
                command
                    .session
                    .as_ref()
                    .is_some_and(|session| session.name == name && !session.is_released)
            })
            .map(|(number, _)| *number)
    }

    pub(super) fn attach_session(&mut self, id: ClientId, channel: u32, request: &AttachRequest) {
        let refused = |errno| AgentMessage::StartFailed {
            stage: StartStage::Request,
            errno,
            subject: String::new(),
        };
        let Some(number) = self.find_session(&request.name) else {
            return self.tell(id, channel, &refused(errno::ENOENT));
        };
        let holder = self
            .commands
            .get(&number)
            .and_then(|command| Some((command.client?, command.channel)));
        if let Some((holder, its_channel)) = holder {
            if !request.takeover {
                return self.tell(id, channel, &refused(errno::EBUSY));
            }
            if let Some(client) = self.clients.get_mut(&holder) {
                client.channels.remove(&its_channel);
                client.tell(its_channel, &AgentMessage::Evicted);
            }
        }
        let Some(command) = self.commands.get_mut(&number) else {
            return;
        };
        command.client = Some(id);
        command.channel = channel;
        command.kills.clear();
        let input_credit = command
            .input
            .as_ref()
            .map_or(0, |input| input.room(INPUT_WINDOW_BYTES));
        let has_input = command.input.is_some();
        let is_starting = command.phase == Phase::Starting;
        let Some(session) = &mut command.session else {
            return;
        };
        session.rings[0].seek(request.stdout_since, request.stdout_credit);
        session.rings[1].seek(request.stderr_since, request.stderr_credit);
        let attached = Attached {
            is_terminal: session.terminal.is_some(),
            stdout_offset: session.rings[0].next,
            stderr_offset: session.rings[1].next,
            input_credit,
        };
        let exit = session.exit;
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        client.channels.insert(channel, Channel::Command(number));
        client.tell(channel, &AgentMessage::Attached(attached));
        if !is_starting && !has_input {
            client.tell(channel, &AgentMessage::InputClosed);
        }
        if let Some(exit) = exit {
            client.tell(channel, &AgentMessage::Exited(exit));
        }
        self.send_session(number);
    }

    /// Does what a client asks of the session that it holds. Gives back what is the same for all commands.
    pub(super) fn obey_for_session(&mut self, number: u64, message: ClientMessage) -> Option<ClientMessage> {
        let command = self.commands.get_mut(&number)?;
        let Some(session) = &mut command.session else {
            return Some(message);
        };
        match message {
            ClientMessage::Resize(rows, cols) => {
                if let Some(terminal) = &session.terminal {
                    // A terminal whose program has ended needs no size.
                    let _ = sys::set_terminal_size(terminal, rows, cols);
                }
            }
            ClientMessage::Credit(stream, bytes) => {
                session.add_credit(stream, bytes);
                self.send_session(number);
            }
            // The key ^D is what ends the input of a terminal.
            ClientMessage::InputEnd if session.terminal.is_some() => {}
            ClientMessage::Detach => {
                session.stop_sending();
                self.tell_in_order(number, &AgentMessage::Gone);
                self.leave_session(number);
            }
            ClientMessage::CloseSession(wait_ms) => {
                session.is_released = true;
                let is_running = command.phase != Phase::Exited;
                command.detach();
                if is_running {
                    command.kill(ExitCause::Request, wait_ms, true);
                    self.answer_without_runner(number);
                } else {
                    command.kills.push(ExitCause::Request);
                    self.answer_kills(number, 0, false);
                }
            }
            message => return Some(message),
        }
        None
    }

    fn leave_session(&mut self, number: u64) {
        if let Some(command) = self.commands.get_mut(&number)
            && let Some(id) = command.client.take()
            && let Some(client) = self.clients.get_mut(&id)
        {
            client.channels.remove(&command.channel);
        }
    }

    /// Reads once of a session's output, into its ring.
    pub(super) fn read_session(&mut self, number: u64, index: usize) {
        let Some(command) = self.commands.get_mut(&number) else {
            return;
        };
        let is_held = command.client.is_some();
        let output = &mut command.outputs[index];
        let Some(session) = &mut command.session else {
            return;
        };
        if !output.wants_to_read(false) || !(output.is_dropped || session.has_room(index, is_held)) {
            return;
        }
        let ring = &mut session.rings[index];
        match output.read(&mut self.buffer, HEADER_BYTES) {
            Got::Bytes(count) if !output.is_dropped => {
                ring.push(&self.buffer[HEADER_BYTES..HEADER_BYTES + count]);
            }
            Got::Nothing | Got::Bytes(_) => {}
            Got::End => ring.stage = Stage::Ended,
        }
        if output.pipe.is_some() && output.take_drained() {
            ring.stage = ring.stage.max(Stage::Drained);
        }
        self.send_session(number);
    }

    /// Sends what there is to whoever has joined, as far as there is room for it.
    pub(super) fn send_session(&mut self, number: u64) {
        let Some(command) = self.commands.get_mut(&number) else {
            return;
        };
        let Some(client) = command.client.and_then(|id| self.clients.get_mut(&id)) else {
            return;
        };
        let Some(session) = &mut command.session else {
            return;
        };
        for (ring, stream) in session.rings.iter_mut().zip([Stream::Stdout, Stream::Stderr]) {
            while !client.outbox.is_full()
                && let Some(frame) = ring.frame(command.channel, stream)
            {
                client.outbox.add(command.channel, frame);
            }
            if ring.unsent() > 0 {
                continue;
            }
            if ring.stage == ring.told {
                continue;
            }
            ring.told = ring.stage;
            let message = if ring.stage == Stage::Ended {
                let total_bytes = ring.end();
                AgentMessage::StreamEnd { stream, total_bytes }
            } else {
                AgentMessage::Drained(stream)
            };
            client.tell_in_order(command.channel, &message);
        }
    }

    /// Sends on where a client has taken what filled its queue.
    pub(super) fn send_sessions(&mut self) {
        for number in self.sessions_to_send() {
            self.send_session(number);
        }
    }

    /// Something can be sent at once.
    pub(super) fn sessions_to_send(&self) -> Vec<u64> {
        let can_send = |command: &Command| {
            command
                .client
                .and_then(|id| self.clients.get(&id))
                .is_some_and(|client| !client.outbox.is_full())
                && command.session.as_ref().is_some_and(Session::can_send)
        };
        let mut numbers = Vec::new();
        for (number, command) in &self.commands {
            if can_send(command) {
                numbers.push(*number);
            }
        }
        numbers
    }

    /// A client that had joined is gone; the session is not.
    pub(super) fn disconnect_session(command: &mut Command) {
        command.client = None;
        command.kills.clear();
        if let Some(session) = &mut command.session {
            session.stop_sending();
        }
    }

    /// Forgets the oldest of those that nobody has asked for.
    pub(super) fn limit_ended_sessions(&mut self) {
        let waits = |command: &Command| {
            command.client.is_none()
                && command
                    .session
                    .as_ref()
                    .is_some_and(|session| session.exit.is_some() && !session.is_released)
        };
        let waiting: Vec<u64> = self
            .commands
            .iter()
            .filter(|(_, command)| waits(command))
            .map(|(number, _)| *number)
            .collect();
        let over = waiting.len().saturating_sub(MOST_ENDED);
        for number in waiting.into_iter().take(over) {
            if let Some(command) = self.commands.get_mut(&number)
                && let Some(session) = &mut command.session
            {
                session.is_released = true;
                command.detach();
            }
        }
    }
}
