//! Tells one build of the agent from another, and a whole file from a half one, in about a millisecond.

const WORDS: usize = 4;
const BLOCK_BYTES: usize = WORDS * 8;
const PRIMES: [u64; WORDS] = [
    0x9e37_79b1_85eb_ca87,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0x85eb_ca77_c2b2_ae63,
];

/// A 128-bit checksum of a file. It is no cryptographic hash: it guards against half and old files, not against
/// somebody who wants to deceive (who, inside a sandbox, could answer anything anyway).
#[derive(Debug, Clone)]
pub struct Fingerprint {
    lanes: [u64; WORDS],
    pending: [u8; BLOCK_BYTES],
    pending_bytes: usize,
    total_bytes: u64,
}

impl Default for Fingerprint {
    fn default() -> Self {
        Self::new()
    }
}

impl Fingerprint {
    /// Starts with no bytes.
    pub fn new() -> Self {
        Self {
            lanes: PRIMES,
            pending: [0; BLOCK_BYTES],
            pending_bytes: 0,
            total_bytes: 0,
        }
    }

    /// The fingerprint of these bytes.
    pub fn of(bytes: &[u8]) -> [u8; 16] {
        let mut fingerprint = Self::new();
        fingerprint.update(bytes);
        fingerprint.finish()
    }

    /// A fingerprint as 32 hex digits.
    pub fn hex(fingerprint: [u8; 16]) -> String {
        let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('0');
        fingerprint
            .iter()
            .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
            .collect()
    }

    /// Adds bytes. How they are cut into calls does not matter.
    pub fn update(&mut self, mut bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        if self.pending_bytes > 0 {
            let taken = bytes.len().min(BLOCK_BYTES - self.pending_bytes);
            self.pending[self.pending_bytes..self.pending_bytes + taken].copy_from_slice(&bytes[..taken]);
            self.pending_bytes += taken;
            bytes = &bytes[taken..];
            if self.pending_bytes < BLOCK_BYTES {
                return;
            }
            let block = self.pending;
            self.mix(&block);
            self.pending_bytes = 0;
        }
        let mut blocks = bytes.chunks_exact(BLOCK_BYTES);
        for block in &mut blocks {
            self.mix(block);
        }
        let rest = blocks.remainder();
        self.pending[..rest.len()].copy_from_slice(rest);
        self.pending_bytes = rest.len();
    }

    /// The fingerprint of all bytes so far.
    pub fn finish(mut self) -> [u8; 16] {
        let mut last = self.pending;
        last[self.pending_bytes..].fill(0);
        self.mix(&last);
        let mut sums = [self.total_bytes, !self.total_bytes];
        for round in 0..3 {
            for (index, lane) in self.lanes.iter().enumerate() {
                let sum = &mut sums[index % 2];
                *sum = (*sum ^ lane).wrapping_mul(PRIMES[(index + round) % WORDS]);
                *sum ^= *sum >> 29;
            }
            sums = [sums[0].wrapping_add(sums[1]), sums[1] ^ sums[0].rotate_left(23)];
        }
        let mut result = [0; 16];
        result[..8].copy_from_slice(&sums[0].to_le_bytes());
        result[8..].copy_from_slice(&sums[1].to_le_bytes());
        result
    }

    fn mix(&mut self, block: &[u8]) {
        for (index, (lane, word)) in self.lanes.iter_mut().zip(block.chunks_exact(8)).enumerate() {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(word);
            *lane = (*lane ^ u64::from_le_bytes(bytes))
                .wrapping_mul(PRIMES[index])
                .rotate_left(31);
        }
    }
}
