//! One client: its two descriptors, what it has sent so far and what waits for it. Starts no command.

use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::outbox::Outbox;
use crate::protocol::{AgentMessage, ClientMessage, Decoder, HEADER_BYTES, MAX_PAYLOAD_BYTES, Malformed};
use crate::sys;

/// The number of a client, never used again.
pub(super) type ClientId = u64;

/// What a channel of a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    Command(u64),
    File(u64),
}

/// A connected client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) input: File,
    pub(super) output: File,
    /// The `connect` process whose descriptors these are: it lives for as long as this end is open.
    pub(super) tether: Option<UnixStream>,
    pub(super) origin: Origin,
    pub(super) outbox: Outbox,
    pub(super) channels: HashMap<u32, Channel>,
    pub(super) has_greeted: bool,
    /// Set when the connection is over; it is taken away at the end of the turn.
    pub(super) is_over: bool,
    decoder: Decoder,
}

/// How a client came to be connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// This process's own standard input and output.
    Bootstrap,
    /// A socket that the agent was told to dial at its start.
    Dialled,
    /// Descriptors handed over by another process.
    HandedOver,
}

impl Client {
    pub(super) fn new(
        streams: [OwnedFd; 2],
        tether: Option<UnixStream>,
        origin: Origin,
    ) -> std::io::Result<Self> {
        for stream in &streams {
            sys::set_nonblocking(stream)?;
        }
        let [input, output] = streams;
        Ok(Self {
            input: input.into(),
            output: output.into(),
            tether,
            origin,
            outbox: Outbox::default(),
            channels: HashMap::new(),
            has_greeted: false,
            is_over: false,
            decoder: Decoder::new(),
        })
    }

    /// Sends an event, before all data that waits.
    pub(super) fn tell(&mut self, channel: u32, message: &AgentMessage) {
        message.append(self.outbox.urgent(), channel);
    }

    /// Sends a message behind the channel's data.
    pub(super) fn tell_in_order(&mut self, channel: u32, message: &AgentMessage) {
        let mut frame = Vec::new();
        message.append(&mut frame, channel);
        self.outbox.add(channel, frame);
    }

    /// Reads once. The connection is over at the end of its input or an error.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) {
        match self.input.read(buffer) {
            Ok(0) => self.is_over = true,
            Ok(count) => self.decoder.push(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.is_over = true,
        }
    }

    /// Takes the next message. An error ends the connection; the reason is sent as far as that goes at once.
    pub(super) fn next(&mut self) -> Option<(u32, ClientMessage)> {
        if self.is_over {
            return None;
        }
        match self.parse() {
            Ok(message) => message,
            Err(Malformed(reason)) => {
                self.refuse(reason);
                None
            }
        }
    }

    fn parse(&mut self) -> Result<Option<(u32, ClientMessage)>, Malformed> {
        let Some(frame) = self.decoder.next()? else {
            return Ok(None);
        };
        let channel = frame.channel;
        Ok(Some((channel, ClientMessage::decode(frame)?)))
    }

    pub(super) fn refuse(&mut self, reason: &str) {
        self.tell(0, &AgentMessage::Refused(reason.to_owned()));
        self.flush();
        self.is_over = true;
    }

    pub(super) fn flush(&mut self) {
        if self.outbox.flush(&self.output).is_err() {
            self.is_over = true;
        }
    }
}

/// A buffer for one read of a client: a frame of the longest payload.
pub(super) fn read_buffer() -> Vec<u8> {
    vec![0; MAX_PAYLOAD_BYTES + HEADER_BYTES]
}
