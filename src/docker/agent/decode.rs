//! Cuts what the agent sends into messages. Takes nothing on trust: everything here came out of a sandbox.

use std::collections::HashMap;

use bytes::{Bytes, BytesMut};
use gym_sandbox_agent::protocol::{
    AgentMessage, Frame, HEADER_BYTES, Header, MAX_MESSAGE_BYTES, MAX_PAYLOAD_BYTES, Malformed, Stream,
};

/// Room that is made for one read: a whole frame and the head of the next.
const READ_BYTES: usize = 2 * MAX_PAYLOAD_BYTES;

/// Less room than this is not worth a read.
const LEAST_READ_BYTES: usize = 16 * 1024;

/// A message and whom it concerns.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Incoming {
    pub(super) channel: u32,
    pub(super) content: Content,
}

/// Output is most of what is sent and is handed on without a copy.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    Output(Stream, Bytes),
    Message(AgentMessage),
}

/// Takes bytes as they come and gives whole messages. Holds at most [`MAX_MESSAGE_BYTES`] of unfinished ones beside what
/// one read brought.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    buffer: BytesMut,
    parts: HashMap<u32, (u8, Vec<u8>)>,
    part_bytes: usize,
}

impl Decoder {
    /// Where the next bytes of the stream go, with room for some.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < LEAST_READ_BYTES {
            self.buffer.reserve(READ_BYTES);
        }
        &mut self.buffer
    }

    /// What has come and is no part of a message that was taken.
    pub(super) fn rest(&self) -> &[u8] {
        &self.buffer
    }

    /// Takes the next whole message, None until more bytes come.
    pub(super) fn next(&mut self) -> Result<Option<Incoming>, Malformed> {
        loop {
            let Some(head) = self.buffer.first_chunk::<HEADER_BYTES>() else {
                return Ok(None);
            };
            let header = Header::parse(*head)?;
            let payload_bytes = header.payload_bytes as usize;
            if self.buffer.len() < HEADER_BYTES + payload_bytes {
                return Ok(None);
            }
            let mut payload = self.buffer.split_to(HEADER_BYTES + payload_bytes);
            let payload = payload.split_off(HEADER_BYTES).freeze();
            if let Some(incoming) = self.join(header, payload)? {
                return Ok(Some(incoming));
            }
        }
    }

    fn join(&mut self, header: Header, payload: Bytes) -> Result<Option<Incoming>, Malformed> {
        let Header {
            channel, kind, more, ..
        } = header;
        let begun = if self.parts.is_empty() {
            None
        } else {
            self.parts.remove(&channel)
        };
        if begun.is_none() && !more {
            return whole(channel, kind, payload).map(Some);
        }
        let (first_kind, mut joined) = begun.unwrap_or((kind, Vec::new()));
        if first_kind != kind {
            return Err(Malformed("another message stands between two parts of one"));
        }
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
        whole(channel, kind, joined.into()).map(Some)
    }
}

fn whole(channel: u32, kind: u8, payload: Bytes) -> Result<Incoming, Malformed> {
    for stream in [Stream::Stdout, Stream::Stderr] {
        if kind == AgentMessage::output_kind(stream) {
            return Ok(Incoming {
                channel,
                content: Content::Output(stream, payload),
            });
        }
    }
    let message = AgentMessage::decode(Frame {
        channel,
        kind,
        payload: payload.into(),
    })?;
    Ok(Incoming {
        channel,
        content: Content::Message(message),
    })
}

#[cfg(test)]
mod tests {
    use gym_sandbox_agent::protocol::{Exit, ExitCause};
    use proptest::prelude::*;

    use super::*;

    fn decode(bytes: &[u8], cuts: usize) -> Result<Vec<Incoming>, Malformed> {
        let mut decoder = Decoder::default();
        let mut all = Vec::new();
        for piece in bytes.chunks(cuts.max(1)) {
            decoder.buffer().extend_from_slice(piece);
            while let Some(incoming) = decoder.next()? {
                all.push(incoming);
            }
        }
        Ok(all)
    }

    fn messages() -> impl Strategy<Value = (u32, AgentMessage)> {
        let message = prop_oneof![
            any::<u32>().prop_map(AgentMessage::Started),
            (any::<bool>(), prop::collection::vec(any::<u8>(), 0..300)).prop_map(|(out, bytes)| {
                AgentMessage::Output(if out { Stream::Stdout } else { Stream::Stderr }, bytes)
            }),
            any::<Option<u8>>().prop_map(|code| {
                AgentMessage::Exited(Exit {
                    code,
                    signal: None,
                    cause: ExitCause::Itself,
                    oom_kills: 0,
                    user_us: 1,
                    system_us: 2,
                })
            }),
            prop::collection::vec(any::<u32>(), 0..50).prop_map(|survivors| AgentMessage::Killed {
                cause: ExitCause::Timeout,
                killed: 3,
                survivors,
                is_unsure: false,
            }),
            Just(AgentMessage::Gone),
        ];
        (any::<u32>(), message)
    }

    proptest! {
        #[test]
        fn messages_come_out_as_they_were_sent_however_the_stream_is_cut(
            sent in prop::collection::vec(messages(), 0..20),
            cuts in 1_usize..700,
        ) {
            let mut bytes = Vec::new();
            for (channel, message) in &sent {
                message.append(&mut bytes, *channel);
            }
            let received = decode(&bytes, cuts).unwrap();
            prop_assert_eq!(received.len(), sent.len());
            for (incoming, (channel, message)) in received.into_iter().zip(sent) {
                prop_assert_eq!(incoming.channel, channel);
                let content = match incoming.content {
                    Content::Output(stream, bytes) => AgentMessage::Output(stream, bytes.to_vec()),
                    Content::Message(message) => message,
                };
                prop_assert_eq!(content, message);
            }
        }

        #[test]
        fn any_bytes_are_messages_or_malformed_and_never_kept_without_bound(
            bytes in prop::collection::vec(any::<u8>(), 0..5000),
            cuts in 1_usize..700,
        ) {
            let _either = decode(&bytes, cuts);
        }

        #[test]
        fn a_changed_byte_harms_nothing_but_its_own_stream(
            sent in prop::collection::vec(messages(), 1..8),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut bytes = Vec::new();
            for (channel, message) in &sent {
                message.append(&mut bytes, *channel);
            }
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _either = decode(&bytes, 64);
        }
    }

    #[test]
    fn a_message_in_parts_is_joined_and_bounded() {
        let long = AgentMessage::Killed {
            cause: ExitCause::Request,
            killed: 1,
            survivors: vec![7; 40_000],
            is_unsure: true,
        };
        let mut bytes = Vec::new();
        long.append(&mut bytes, 9);
        let received = decode(&bytes, 1000).unwrap();
        assert_eq!(
            received,
            [Incoming {
                channel: 9,
                content: Content::Message(long)
            }]
        );

        let endless = Header {
            payload_bytes: 65_536,
            channel: 1,
            kind: 0x99,
            more: true,
        };
        let mut decoder = Decoder::default();
        let mut failed = false;
        for _ in 0..200 {
            decoder.buffer().extend_from_slice(&endless.to_bytes());
            decoder.buffer().extend_from_slice(&vec![0; 65_536]);
            match decoder.next() {
                Ok(None) => {}
                Ok(Some(_)) => panic!("an unfinished message came out"),
                Err(_) => {
                    failed = true;
                    break;
                }
            }
        }
        assert!(failed, "an endless message is taken in for ever");
    }
}
