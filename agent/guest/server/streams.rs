//! The bytes of commands: outputs to their clients, inputs from them.

use super::Server;
use super::client::read_buffer;
use super::command::{Command, Got, Phase};
use crate::protocol::{AgentMessage, HEADER_BYTES, Header, Stream};

/// Output up to this length is copied out of the read buffer; longer takes the buffer along.
const COPIED_BYTES: usize = 16 * 1024;

impl Server {
    pub(super) fn read_output(&mut self, number: u64, index: usize) {
        let Some(command) = self.commands.get_mut(&number) else {
            return;
        };
        if command.session.is_some() {
            return self.read_session(number, index);
        }
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
        let Some(command) = self
            .commands
            .get_mut(&number)
            .filter(|command| command.phase != Phase::Starting)
        else {
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
