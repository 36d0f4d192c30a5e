//! What clients ask and what runners report, and how one becomes the other.

use super::Server;
use super::client::{Channel, ClientId};
use super::command::{Command, Phase, Streams};
use crate::link::Order;
use crate::protocol::{
    AgentMessage, ClientMessage, ExecRequest, ExitCause, INPUT_WINDOW_BYTES, OLDEST_VERSION, StartStage,
    VERSION,
};
use crate::sys::errno;

/// How many commands may be known at once; each has a process and four descriptors.
pub(super) const MOST_COMMANDS: usize = 8192;
/// How many bytes of a ping are sent back.
const PONG_BYTES: usize = 64;
/// How long a kill that nobody waits for is pursued with haste.
const UNWATCHED_KILL_MS: u32 = 10_000;

impl Server {
    pub(super) fn hear_client(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        client.fill(&mut self.buffer);
        while let Some((channel, message)) = self.clients.get_mut(&id).and_then(super::Client::next) {
            self.timers
                .note_message(matches!(message, ClientMessage::Lease(_)));
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
            ClientMessage::OpenSession(request) => {
                self.check_new(id, channel)?;
                self.open_session(id, channel, *request);
            }
            ClientMessage::AttachSession(request) => {
                self.check_new(id, channel)?;
                self.attach_session(id, channel, &request);
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
            ClientMessage::Rename(request) => {
                self.check_new(id, channel)?;
                self.expect_name(id, channel, &request);
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
            (None, ClientMessage::Kill(_) | ClientMessage::CloseSession(_)) => {
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
        let Some(message) = self.obey_for_session(number, message) else {
            return Ok(());
        };
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
                self.answer_without_runner(number);
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
        let started = Streams::pipes(request, &self.null)
            .and_then(|streams| Command::start(id, channel, request, &self.context, streams, false));
        match started {
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
    pub(super) fn tell_of(&mut self, number: u64, message: &AgentMessage) {
        if let Some(command) = self.commands.get(&number)
            && let Some(client) = command.client.and_then(|id| self.clients.get_mut(&id))
        {
            client.tell(command.channel, message);
        }
    }

    pub(super) fn tell_in_order(&mut self, number: u64, message: &AgentMessage) {
        if let Some(command) = self.commands.get(&number)
            && let Some(client) = command.client.and_then(|id| self.clients.get_mut(&id))
        {
            client.tell_in_order(command.channel, message);
        }
    }

    /// Its client is gone: what still runs is killed, unless it was meant to live on.
    pub(super) fn disconnect_commands(&mut self, id: ClientId) {
        for command in self
            .commands
            .values_mut()
            .filter(|command| command.client == Some(id))
        {
            if command.session.is_some() {
                Self::disconnect_session(command);
                continue;
            }
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

    pub(super) fn forget(&mut self, number: u64) {
        if let Some(command) = self.commands.remove(&number)
            && let Some(client) = command.client.and_then(|id| self.clients.get_mut(&id))
        {
            client.channels.remove(&command.channel);
        }
    }
}
