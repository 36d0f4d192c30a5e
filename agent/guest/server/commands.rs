//! What clients ask and what runners report, and how one becomes the other.

use super::Server;
use super::client::{Channel, ClientId, read_buffer};
use super::command::{Command, Got, Phase};
use super::lost::{self, LostTree};
use crate::link::{Order, Report};
use crate::protocol::{
    AgentMessage, ClientMessage, ExecRequest, Exit, ExitCause, HEADER_BYTES, Header, INPUT_WINDOW_BYTES,
    MAX_PAYLOAD_BYTES, OLDEST_VERSION, StartStage, Stream, VERSION,
};
use crate::sys::{errno, signal};

/// How many commands may be known at once; each has a process and four descriptors.
const MOST_COMMANDS: usize = 8192;
/// How many bytes of a ping are sent back.
const PONG_BYTES: usize = 64;
/// How long a kill that nobody waits for is pursued with haste.
const UNWATCHED_KILL_MS: u32 = 10_000;
/// Output up to this length is copied out of the read buffer; longer takes the buffer along.
const COPIED_BYTES: usize = 16 * 1024;

impl Server {
    pub(super) fn hear_client(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        client.fill(&mut self.buffer);
        while let Some((channel, message)) = self.clients.get_mut(&id).and_then(super::Client::next) {
            self.timers.note_message();
            if let Err(reason) = self.obey(id, channel, message)
                && let Some(client) = self.clients.get_mut(&id)
            {
                client.refuse(reason);
            }
        }
    }

    /// Does what a client asks. An error is a breach of the protocol.
    fn obey(&mut self, id: ClientId, channel: u32, message: ClientMessage) -> Result<(), &'static str> {
        let Some(client) = self.clients.get_mut(&id) else {
            return Ok(());
        };
        if !client.has_greeted && !matches!(message, ClientMessage::Hello(_)) {
            return Err("the first message is not hello");
        }
        match message {
            ClientMessage::Hello(hello) => {
                if hello.version < OLDEST_VERSION || VERSION < hello.oldest_version {
                    return Err("no version of the protocol is common to client and agent");
                }
                client.has_greeted = true;
            }
            ClientMessage::Ping(mut bytes) => {
                bytes.truncate(PONG_BYTES);
                client.tell(channel, &AgentMessage::Pong(bytes));
            }
            ClientMessage::Lease(milliseconds) => self.timers.set_lease(milliseconds),
            ClientMessage::Exec(request) => {
                self.check_new(id, channel)?;
                self.start_command(id, channel, &request);
            }
            ClientMessage::ReadFile(request) => {
                self.check_new(id, channel)?;
                self.open_file(id, channel, &request);
            }
            ClientMessage::WriteFile(request) => {
                self.check_new(id, channel)?;
                self.create_file(id, channel, request);
            }
            ClientMessage::Stat(path) => {
                self.check_new(id, channel)?;
                self.stat(id, channel, path);
            }
            ClientMessage::List(request) => {
                self.check_new(id, channel)?;
                self.list(id, channel, &request);
            }
            message => return self.obey_on_channel(id, channel, message),
        }
        Ok(())
    }

    fn check_new(&self, id: ClientId, channel: u32) -> Result<(), &'static str> {
        let is_known = self
            .clients
            .get(&id)
            .is_some_and(|client| client.channels.contains_key(&channel));
        if channel == 0 || is_known {
            Err("a channel is used twice")
        } else {
            Ok(())
        }
    }

    fn obey_on_channel(
        &mut self,
        id: ClientId,
        channel: u32,
        message: ClientMessage,
    ) -> Result<(), &'static str> {
        let known = self
            .clients
            .get(&id)
            .and_then(|client| client.channels.get(&channel))
            .copied();
        match (known, message) {
            (Some(Channel::File(number)), message) => {
                self.obey_for_file(number, message);
                Ok(())
            }
            (Some(Channel::Command(number)), message) => self.obey_for_command(number, message),
            // It can have ended while the message was under way.
            (None, ClientMessage::Kill(_)) => {
                let killed = AgentMessage::Killed {
                    cause: ExitCause::Request,
                    killed: 0,
                    survivors: Vec::new(),
                    is_unsure: false,
                };
                self.tell(id, channel, &killed);
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }

    fn obey_for_command(&mut self, number: u64, message: ClientMessage) -> Result<(), &'static str> {
        let Some(command) = self.commands.get_mut(&number) else {
            return Ok(());
        };
        match message {
            ClientMessage::Input(bytes) => {
                let Some(input) = &mut command.input else {
                    return Ok(());
                };
                if input.is_over(bytes.len(), INPUT_WINDOW_BYTES) {
                    return Err("more input than there is credit for");
                }
                input.add(&bytes);
                self.feed(number, false);
            }
            ClientMessage::InputEnd => {
                if let Some(input) = &mut command.input {
                    input.end();
                    self.feed(number, false);
                }
            }
            ClientMessage::Credit(stream, bytes) => {
                let output = command.output(stream);
                output.credit = output.credit.saturating_add(bytes.into());
            }
            ClientMessage::Signal(signal, target) => {
                if !(1..=64).contains(&signal) {
                    return Err("there is no such signal");
                }
                command.order(Order::Signal(signal, target));
            }
            ClientMessage::Kill(wait_ms) => {
                command.kill(ExitCause::Request, wait_ms, true);
                self.answer_if_lost(number);
            }
            ClientMessage::Detach => command.detach(),
            _ => {}
        }
        Ok(())
    }

    fn start_command(&mut self, id: ClientId, channel: u32, request: &ExecRequest) {
        let failed = |stage, errno| AgentMessage::StartFailed {
            stage,
            errno,
            subject: String::new(),
        };
        if self.commands.len() >= MOST_COMMANDS {
            return self.tell(id, channel, &failed(StartStage::Resources, errno::EAGAIN));
        }
        match Command::start(id, channel, request, &self.context, &self.null) {
            Ok(command) => {
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

    pub(super) fn tell(&mut self, id: ClientId, channel: u32, message: &AgentMessage) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.tell(channel, message);
        }
    }

    /// Sends an event of a command to its client, if it still has one.
    fn tell_of(&mut self, number: u64, message: &AgentMessage) {
        if let Some(command) = self.commands.get(&number)
            && let Some(client) = command.client.and_then(|id| self.clients.get_mut(&id))
        {
            client.tell(command.channel, message);
        }
    }

    fn tell_in_order(&mut self, number: u64, message: &AgentMessage) {
        if let Some(command) = self.commands.get(&number)
            && let Some(client) = command.client.and_then(|id| self.clients.get_mut(&id))
        {
            client.tell_in_order(command.channel, message);
        }
    }

    pub(super) fn hear_runner(&mut self, number: u64) {
        use std::io::{ErrorKind, Read};
        loop {
            let Some(command) = self.commands.get_mut(&number) else {
                return;
            };
            let Some(link) = &mut command.link else { return };
            let mut bytes = [0; 4096];
            match link.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => command.records.push(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => break,
            }
            while let Some(report) = self
                .commands
                .get_mut(&number)
                .and_then(|command| command.records.report())
            {
                self.note_report(number, report);
            }
        }
        self.lose_runner(number);
    }

    fn note_report(&mut self, number: u64, report: Report) {
        let Some(command) = self.commands.get_mut(&number) else {
            return;
        };
        match report {
            Report::Started(pid) => {
                command.phase = Phase::Running;
                self.tell_of(number, &AgentMessage::Started(pid));
            }
            Report::Failed(stage, errno) => {
                let message = AgentMessage::StartFailed {
                    stage,
                    errno,
                    subject: command.subject(stage),
                };
                self.tell_of(number, &message);
                // A kill that came meanwhile is answered as one of a channel that is gone.
                self.answer_kills(number, 0, false);
                self.forget(number);
            }
            Report::Exited {
                status,
                user_us,
                system_us,
            } => {
                let killer = u8::try_from(status & 0x7f).unwrap_or(0);
                let code = u8::try_from((status >> 8) & 0xff).unwrap_or(0);
                self.note_exit(
                    number,
                    (killer == 0).then_some(code),
                    (killer != 0).then_some(killer),
                    [user_us, system_us],
                );
            }
            Report::Survivor(pid) => command.survivors.push(pid),
            Report::Killed(killed) => self.answer_kills(number, killed, false),
            Report::Empty => {
                command.is_empty = true;
                command.link = None;
                self.answer_kills(number, 0, false);
            }
        }
    }

    fn note_exit(&mut self, number: u64, code: Option<u8>, signal: Option<u8>, times: [u64; 2]) {
        let was_killed = code == Some(137) || signal == Some(9);
        let mut oom_kills = 0;
        if was_killed {
            let now = lost::oom_kills();
            oom_kills = u32::try_from(now.saturating_sub(self.oom_kills)).unwrap_or(u32::MAX);
            self.oom_kills = now;
        }
        let Some(command) = self.commands.get_mut(&number) else {
            return;
        };
        command.phase = Phase::Exited;
        command.deadline = None;
        for output in &mut command.outputs {
            output.expect_drain();
        }
        // Nobody who could be told reads it any more; a background child sees the end of its input.
        let [user_us, system_us] = times;
        let exit = Exit {
            code,
            signal,
            cause: command.cause,
            oom_kills,
            user_us,
            system_us,
        };
        self.tell_of(number, &AgentMessage::Exited(exit));
        // What it wrote at its very end is told in the same turn, so that a short command needs one write.
        for index in 0..2 {
            self.read_output(number, index);
        }
    }

    /// The runner is gone. Without a word of the tree's end it was killed itself: what it watched over is looked for.
    fn lose_runner(&mut self, number: u64) {
        let Some(command) = self.commands.get_mut(&number) else {
            return;
        };
        command.link = None;
        if command.is_empty {
            return;
        }
        command.is_empty = true;
        command.is_lost = true;
        let was_starting = command.phase == Phase::Starting;
        let had_exited = command.phase == Phase::Exited;
        let tree = LostTree::new(number, &command.marker);
        if was_starting {
            self.tell_of(number, &AgentMessage::Started(0));
        }
        if !had_exited {
            self.note_exit(number, None, None, [0, 0]);
        }
        self.lost.push(tree);
    }

    fn answer_if_lost(&mut self, number: u64) {
        let is_lost = self.commands.get(&number).is_some_and(|command| command.is_lost);
        if is_lost && !self.lost.iter().any(|tree| tree.command == number) {
            self.answer_kills(number, 0, true);
        }
    }

    /// Tells everybody who waits for a kill of this command what came of it.
    pub(super) fn answer_kills(&mut self, number: u64, killed: u32, is_unsure: bool) {
        let Some(command) = self.commands.get_mut(&number) else {
            return;
        };
        command.kill_answer_at = None;
        let survivors = std::mem::take(&mut command.survivors);
        for cause in std::mem::take(&mut command.kills) {
            let survivors = survivors.clone();
            self.tell_of(
                number,
                &AgentMessage::Killed {
                    cause,
                    killed,
                    survivors,
                    is_unsure,
                },
            );
        }
    }

    pub(super) fn read_output(&mut self, number: u64, index: usize) {
        let Some(command) = self.commands.get_mut(&number) else {
            return;
        };
        let client = command.client.and_then(|id| self.clients.get_mut(&id));
        let output = &mut command.outputs[index];
        if !output.wants_to_read(client.as_ref().is_some_and(|client| client.outbox.is_full())) {
            return;
        }
        match output.read(&mut self.buffer, HEADER_BYTES) {
            Got::Nothing => {}
            Got::Bytes(count) => {
                if let Some(client) = client
                    && !output.is_dropped
                {
                    let frame = framed(&mut self.buffer, command.channel, output.stream, count);
                    client.outbox.add(command.channel, frame);
                }
            }
            Got::End => {
                let message = AgentMessage::StreamEnd {
                    stream: output.stream,
                    total_bytes: output.total_bytes,
                };
                self.tell_in_order(number, &message);
            }
        }
        self.tell_drained(number, index);
    }

    fn tell_drained(&mut self, number: u64, index: usize) {
        let Some(command) = self.commands.get_mut(&number) else {
            return;
        };
        let output = &mut command.outputs[index];
        if output.pipe.is_some() && output.take_drained() {
            let message = AgentMessage::Drained(output.stream);
            self.tell_in_order(number, &message);
        }
    }

    /// Looks whether the outputs of ended commands hold anything from before their end. A pipe that is empty is not ready,
    /// so waiting alone would never tell.
    pub(super) fn look_for_drains(&mut self) {
        let open = |command: &Command| {
            command
                .outputs
                .iter()
                .any(|output| output.pipe.is_some() && output.until_drained.is_some())
        };
        let looking: Vec<u64> = self
            .commands
            .iter()
            .filter(|(_, command)| command.phase == Phase::Exited && open(command))
            .map(|(number, _)| *number)
            .collect();
        for number in looking {
            for index in 0..2 {
                let drains = self
                    .commands
                    .get(&number)
                    .is_some_and(|command| command.outputs[index].until_drained.is_some());
                if drains {
                    self.read_output(number, index);
                }
            }
        }
    }

    /// Gives a command as much of its input as it takes.
    pub(super) fn feed(&mut self, number: u64, is_broken: bool) {
        let Some(command) = self.commands.get_mut(&number) else {
            return;
        };
        let Some(input) = &mut command.input else { return };
        let flushed = if is_broken {
            Err(std::io::ErrorKind::BrokenPipe.into())
        } else {
            input.flush()
        };
        if let Ok(count) = flushed {
            if input.is_done() {
                command.input = None;
            }
            if count > 0 {
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                self.tell_of(number, &AgentMessage::InputCredit(count));
            }
        } else {
            command.input = None;
            self.tell_of(number, &AgentMessage::InputClosed);
        }
    }

    /// Its client is gone: what still runs is killed, unless it was meant to live on.
    pub(super) fn disconnect_commands(&mut self, id: ClientId) {
        for command in self
            .commands
            .values_mut()
            .filter(|command| command.client == Some(id))
        {
            command.client = None;
            command.detach();
            command.kills.clear();
            command.input = None;
            if command.phase != Phase::Exited && !command.keeps_on_disconnect {
                command.kill(ExitCause::Disconnect, UNWATCHED_KILL_MS, false);
            }
        }
    }

    /// The last word of a command.
    pub(super) fn forget_command(&mut self, number: u64) {
        if self.lost.iter().any(|tree| tree.command == number) {
            return;
        }
        self.tell_in_order(number, &AgentMessage::Gone);
        self.forget(number);
    }

    fn forget(&mut self, number: u64) {
        if let Some(command) = self.commands.remove(&number)
            && let Some(client) = command.client.and_then(|id| self.clients.get_mut(&id))
        {
            client.channels.remove(&command.channel);
        }
    }
}

/// The frame of output that was read into the buffer behind the room for its header.
pub(super) fn framed(buffer: &mut Vec<u8>, channel: u32, stream: Stream, count: usize) -> Vec<u8> {
    let payload_bytes = u32::try_from(count).unwrap_or(0);
    let header = Header {
        payload_bytes,
        channel,
        kind: AgentMessage::output_kind(stream),
        more: false,
    };
    buffer[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
    let length = HEADER_BYTES + count;
    if count <= COPIED_BYTES {
        return buffer[..length].to_vec();
    }
    let mut frame = std::mem::replace(buffer, read_buffer());
    frame.truncate(length);
    frame
}

const _: () = assert!(signal::KILL == 9 && MAX_PAYLOAD_BYTES <= u32::MAX as usize);
