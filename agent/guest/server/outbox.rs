//! What waits to be sent to one client, in the order in which it matters. Knows frames as bytes, no socket.

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Write};

/// Data up to this length overtakes longer data of other channels.
const LIGHT_BYTES: usize = 4 * 1024;
/// How much goes into one write.
const WRITE_BYTES: usize = 64 * 1024;
/// How much data may wait before no more is read from commands.
const FULL_BYTES: usize = 256 * 1024;
/// How much may be written in one turn, so that one fast client does not keep the agent from the others.
const TURN_BYTES: usize = 1024 * 1024;

/// Frames to be sent.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Events: before everything else.
    urgent: Vec<u8>,
    /// Short data of channels that have nothing in `heavy`.
    light: VecDeque<(u32, Vec<u8>)>,
    heavy: VecDeque<(u32, Vec<u8>)>,
    /// How many frames of a channel are in `heavy`: what follows them has to stay behind them.
    heavy_of: HashMap<u32, usize>,
    data_bytes: usize,
    writing: Vec<u8>,
    written: usize,
    last_was_light: bool,
}

impl Outbox {
    /// The buffer for events.
    pub(super) fn urgent(&mut self) -> &mut Vec<u8> {
        &mut self.urgent
    }

    /// Adds a frame that must stay behind all that was added like this for its channel.
    pub(super) fn add(&mut self, channel: u32, frame: Vec<u8>) {
        self.data_bytes += frame.len();
        let behind = self.heavy_of.get_mut(&channel);
        if behind.is_none() && frame.len() <= LIGHT_BYTES {
            self.light.push_back((channel, frame));
            return;
        }
        *self.heavy_of.entry(channel).or_default() += 1;
        self.heavy.push_back((channel, frame));
    }

    /// No more data should be added for now.
    pub(super) fn is_full(&self) -> bool {
        self.data_bytes >= FULL_BYTES
    }

    /// So many events wait that nothing which makes more should be read from this client.
    pub(super) fn is_flooded(&self) -> bool {
        self.urgent.len() >= FULL_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.written == self.writing.len()
            && self.urgent.is_empty()
            && self.light.is_empty()
            && self.heavy.is_empty()
    }

    /// Writes until all is written, the other side takes no more, or the turn is over.
    pub(super) fn flush(&mut self, mut to: impl Write) -> std::io::Result<()> {
        let mut turn = 0;
        while turn < TURN_BYTES {
            if self.written == self.writing.len() && !self.refill() {
                return Ok(());
            }
            match to.write(&self.writing[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.written += count;
                    turn += count;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes what is sent next. False when there is nothing.
    fn refill(&mut self) -> bool {
        self.writing.clear();
        self.written = 0;
        // Light frames may not keep heavy ones waiting for ever.
        let takes_light = match self.heavy.front() {
            // A channel's own light frames were added before its first heavy one.
            Some((channel, _)) if self.last_was_light => self.light.iter().any(|(light, _)| light == channel),
            None | Some(_) => !self.light.is_empty(),
        };
        self.writing.append(&mut self.urgent);
        if takes_light {
            while self.writing.len() < WRITE_BYTES
                && let Some((_, frame)) = self.light.pop_front()
            {
                self.data_bytes -= frame.len();
                self.writing.extend_from_slice(&frame);
            }
            self.last_was_light = true;
            return true;
        }
        if !self.writing.is_empty() {
            return true;
        }
        let Some((channel, frame)) = self.heavy.pop_front() else {
            // A long message may have made it large.
            self.writing.shrink_to(WRITE_BYTES);
            return false;
        };
        self.data_bytes -= frame.len();
        self.last_was_light = false;
        if let Some(count) = self.heavy_of.get_mut(&channel) {
            *count -= 1;
            if *count == 0 {
                self.heavy_of.remove(&channel);
            }
        }
        self.writing = frame;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(outbox: &mut Outbox) -> Vec<u8> {
        let mut bytes = Vec::new();
        outbox.flush(&mut bytes).expect("a vector takes all");
        bytes
    }

    #[test]
    fn events_overtake_data_and_short_data_overtakes_long() {
        let mut outbox = Outbox::default();
        outbox.add(1, vec![b'h'; LIGHT_BYTES + 1]);
        outbox.add(2, b"light".to_vec());
        outbox.urgent().extend_from_slice(b"urgent");
        let bytes = sent(&mut outbox);
        assert!(bytes.starts_with(b"urgentlighth"));
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_channel_keeps_its_order() {
        let mut outbox = Outbox::default();
        outbox.add(1, vec![b'h'; LIGHT_BYTES + 1]);
        outbox.add(1, b"end".to_vec());
        outbox.add(2, b"other".to_vec());
        let bytes = sent(&mut outbox);
        assert!(bytes.starts_with(b"otherh"));
        assert!(bytes.ends_with(b"end"));
    }

    #[test]
    fn long_data_does_not_overtake_what_its_channel_has_sent_before() {
        let mut outbox = Outbox::default();
        for round in 0..3 {
            outbox.add(2, vec![b'a' + round; 10]);
            sent(&mut outbox);
        }
        outbox.add(1, b"first".to_vec());
        outbox.add(1, vec![b'h'; LIGHT_BYTES + 1]);
        let bytes = sent(&mut outbox);
        assert!(bytes.starts_with(b"firsth"));
    }

    #[test]
    fn short_data_does_not_starve_long() {
        let mut outbox = Outbox::default();
        for _ in 0..100 {
            outbox.add(2, vec![b'l'; LIGHT_BYTES]);
        }
        outbox.add(1, vec![b'h'; LIGHT_BYTES + 1]);
        let bytes = sent(&mut outbox);
        let first = bytes.iter().position(|byte| *byte == b'h').expect("sent");
        assert!(first <= 2 * WRITE_BYTES, "{first}");
    }

    #[test]
    fn full_means_much_data() {
        let mut outbox = Outbox::default();
        outbox.add(1, vec![0; FULL_BYTES]);
        assert!(outbox.is_full());
        sent(&mut outbox);
        assert!(!outbox.is_full());
    }
}
