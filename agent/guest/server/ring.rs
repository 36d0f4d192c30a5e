//! The last bytes of one stream of a session, by their numbers. Knows no client and no process.

use std::collections::VecDeque;

use crate::protocol::{AgentMessage, HEADER_BYTES, Header, KEPT_BYTES, MAX_PAYLOAD_BYTES, Stream};

/// The last bytes of one stream, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Ring {
    bytes: VecDeque<u8>,
    /// The number of the first byte that is kept.
    pub(super) start: u64,
    /// The number of the next byte that is sent.
    pub(super) next: u64,
    pub(super) credit: u64,
    pub(super) stage: Stage,
    /// Which stage the client knows of.
    pub(super) told: Stage,
}

/// How far a stream is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    #[default]
    Open,
    /// All that the program wrote has come; somebody else holds the stream.
    Drained,
    Ended,
}

impl Ring {
    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    pub(super) fn unsent(&self) -> usize {
        usize::try_from(self.end() - self.next).unwrap_or(usize::MAX)
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let over = self.bytes.len().saturating_sub(KEPT_BYTES);
        self.bytes.drain(..over);
        self.start += over as u64;
        self.next = self.next.max(self.start);
    }

    /// Sends on from this byte, or the first one behind it that is kept.
    pub(super) fn seek(&mut self, since: u64, credit: u32) {
        self.next = since.clamp(self.start, self.end());
        self.credit = credit.into();
        self.told = Stage::Open;
    }

    /// The next frame, as far as there are bytes and credit.
    pub(super) fn frame(&mut self, channel: u32, stream: Stream) -> Option<Vec<u8>> {
        let credit = usize::try_from(self.credit).unwrap_or(usize::MAX);
        let count = self.unsent().min(credit).min(MAX_PAYLOAD_BYTES);
        if count == 0 {
            return None;
        }
        let header = Header {
            payload_bytes: u32::try_from(count).unwrap_or(0),
            channel,
            kind: AgentMessage::output_kind(stream),
            more: false,
        };
        let mut frame = Vec::with_capacity(HEADER_BYTES + count);
        frame.extend_from_slice(&header.to_bytes());
        let from = self.bytes.len() - self.unsent();
        frame.extend(self.bytes.range(from..from + count));
        self.next += count as u64;
        self.credit -= count as u64;
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_the_last_bytes_by_their_numbers() {
        let mut ring = Ring::default();
        ring.push(&vec![b'a'; KEPT_BYTES]);
        ring.push(b"tail");
        assert_eq!((ring.start, ring.end()), (4, KEPT_BYTES as u64 + 4));
        ring.seek(0, 10);
        assert_eq!(ring.next, 4);
        ring.seek(u64::MAX, 10);
        assert_eq!(ring.next, ring.end());
        assert_eq!(ring.frame(1, Stream::Stdout), None);
        ring.seek(KEPT_BYTES as u64 + 1, 2);
        let frame = ring.frame(1, Stream::Stdout).expect("there are bytes");
        assert_eq!(&frame[HEADER_BYTES..], b"ai");
        assert_eq!(ring.frame(1, Stream::Stdout), None);
        ring.credit = 10;
        let frame = ring.frame(1, Stream::Stdout).expect("there are bytes");
        assert_eq!(&frame[HEADER_BYTES..], b"l");
    }
}
