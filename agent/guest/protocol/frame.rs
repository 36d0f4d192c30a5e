//! Cuts a stream of bytes into frames. Knows no message.

use std::collections::HashMap;

use super::wire::Malformed;
use super::{HEADER_BYTES, MAX_MESSAGE_BYTES, MAX_PAYLOAD_BYTES};

/// Set in the flags of every frame of a message but the last.
const MORE: u8 = 1;

/// What stands before each payload: `u32` length of the payload, `u32` channel, `u8` kind, `u8` flags, `u16` zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The bytes of the payload.
    pub payload_bytes: u32,
    /// Whom it concerns: 0 the connection, else one command, file or forwarded port, numbered by the client.
    pub channel: u32,
    /// Which message it is, or is a part of.
    pub kind: u8,
    /// The message goes on in the channel's next frame.
    pub more: bool,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// [`Malformed`] for a payload over [`MAX_PAYLOAD_BYTES`], unknown flags and a reserved field that is not zero.
    pub fn parse(bytes: [u8; HEADER_BYTES]) -> Result<Self, Malformed> {
        let word = |at: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(word)
        };
        let flags = bytes[9];
        let header = Self {
            payload_bytes: word(0),
            channel: word(4),
            kind: bytes[8],
            more: flags & MORE != 0,
        };
        if header.payload_bytes as usize > MAX_PAYLOAD_BYTES {
            return Err(Malformed("a frame is too long"));
        }
        if flags & !MORE != 0 || bytes[10..] != [0, 0] {
            return Err(Malformed("a frame has unknown flags"));
        }
        Ok(header)
    }

    /// The bytes of this header.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.channel.to_le_bytes());
        bytes[8] = self.kind;
        bytes[9] = u8::from(self.more);
        bytes
    }
}

/// One whole message, its parts joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Whom it concerns.
    pub channel: u32,
    /// Which message it is.
    pub kind: u8,
    /// Its bytes.
    pub payload: Vec<u8>,
}

impl Frame {
    /// Appends a message to a buffer, as several frames where it is long.
    pub fn append(buffer: &mut Vec<u8>, channel: u32, kind: u8, payload: &[u8]) {
        let mut rest = payload;
        loop {
            let (part, later) = rest.split_at(rest.len().min(MAX_PAYLOAD_BYTES));
            let more = !later.is_empty();
            let payload_bytes = u32::try_from(part.len()).unwrap_or(u32::MAX);
            buffer.reserve(HEADER_BYTES + part.len());
            buffer.extend_from_slice(
                &Header {
                    payload_bytes,
                    channel,
                    kind,
                    more,
                }
                .to_bytes(),
            );
            buffer.extend_from_slice(part);
            if !more {
                return;
            }
            rest = later;
        }
    }
}

/// Takes bytes as they come and gives whole messages. Holds at most [`MAX_MESSAGE_BYTES`] of unfinished ones beside
/// one frame.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    start: usize,
    parts: HashMap<u32, (u8, Vec<u8>)>,
    part_bytes: usize,
}

impl Decoder {
    /// Starts at the beginning of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes from the stream. Take all messages with [`next`](Self::next) before adding more.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Says whether the stream may end here: no frame and no message is unfinished.
    pub fn is_between_messages(&self) -> bool {
        self.start == self.buffer.len() && self.parts.is_empty()
    }

    /// Takes the next whole message, None until more bytes come.
    ///
    /// # Errors
    /// [`Malformed`] for bytes that are no frame, and for parts that do not belong together or are too long together.
    /// The decoder is of no use afterwards.
    #[allow(
        clippy::should_implement_trait,
        reason = "the end of an iterator is final, None is not"
    )]
    pub fn next(&mut self) -> Result<Option<Frame>, Malformed> {
        loop {
            let waiting = &self.buffer[self.start..];
            let Some((head, after)) = waiting.split_first_chunk::<HEADER_BYTES>() else {
                return Ok(None);
            };
            let header = Header::parse(*head)?;
            let Some(payload) = after.get(..header.payload_bytes as usize) else {
                return Ok(None);
            };
            let payload = payload.to_vec();
            self.start += HEADER_BYTES + payload.len();
            if let Some(frame) = self.join(header, payload)? {
                return Ok(Some(frame));
            }
        }
    }

    fn join(&mut self, header: Header, payload: Vec<u8>) -> Result<Option<Frame>, Malformed> {
        let Header {
            channel, kind, more, ..
        } = header;
        let started = self.parts.remove(&channel);
        if started.is_none() && !more {
            return Ok(Some(Frame {
                channel,
                kind,
                payload,
            }));
        }
        let (first_kind, mut joined) = started.unwrap_or((kind, Vec::new()));
        if first_kind != kind {
            return Err(Malformed("another message stands between two parts of one"));
        }
        // An empty part costs the sender nothing but would keep an entry here.
        if more && payload.is_empty() {
            return Err(Malformed("a part of a message is empty"));
        }
        self.part_bytes += payload.len();
        if self.part_bytes > MAX_MESSAGE_BYTES {
            return Err(Malformed("a message is too long"));
        }
        joined.extend_from_slice(&payload);
        if more {
            self.parts.insert(channel, (kind, joined));
            return Ok(None);
        }
        self.part_bytes -= joined.len();
        Ok(Some(Frame {
            channel,
            kind,
            payload: joined,
        }))
    }
}
