//! What was kept of an output stream: its first and last bytes, and how many there were.

use std::borrow::Cow;
use std::collections::VecDeque;

use bytes::Bytes;

/// The kept part of one output stream (contract D2, D32).
///
/// Up to the cap everything is kept. Over it, the first half of the cap and the last half are kept, and
/// [`total_bytes`](Self::total_bytes) still counts every byte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    head: Bytes,
    tail: Bytes,
    total_bytes: u64,
}

impl CapturedOutput {
    /// Keeps all of it.
    pub fn complete(bytes: impl Into<Bytes>) -> Self {
        let head = bytes.into();
        Self {
            total_bytes: head.len() as u64,
            head,
            tail: Bytes::new(),
        }
    }

    /// The kept bytes; where something is missing, the first part and the last part follow each other without a mark.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        if self.tail.is_empty() {
            Cow::Borrowed(&self.head)
        } else {
            Cow::Owned([self.head.as_ref(), self.tail.as_ref()].concat())
        }
    }

    /// The kept bytes before the gap; all of them where there is no gap.
    pub fn head(&self) -> &Bytes {
        &self.head
    }

    /// The kept bytes after the gap; empty where there is no gap.
    pub fn tail(&self) -> &Bytes {
        &self.tail
    }

    /// How many bytes the command wrote.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Says whether bytes are missing.
    pub fn is_truncated(&self) -> bool {
        self.missing_bytes() > 0
    }

    /// How many bytes are missing between head and tail.
    pub fn missing_bytes(&self) -> u64 {
        self.total_bytes - (self.head.len() + self.tail.len()) as u64
    }

    /// Counts bytes that were printed and are not kept anywhere.
    pub(crate) fn with_lost(mut self, bytes: u64) -> Self {
        self.total_bytes = self.total_bytes.saturating_add(bytes);
        self
    }

    /// The kept bytes as text, what is not UTF-8 replaced, with one marker line at the gap.
    pub fn text(&self) -> String {
        if !self.is_truncated() {
            return String::from_utf8_lossy(&self.bytes()).into_owned();
        }
        format!(
            "{}\n[... {} bytes not kept ...]\n{}",
            String::from_utf8_lossy(&self.head),
            self.missing_bytes(),
            String::from_utf8_lossy(&self.tail)
        )
    }
}

/// Collects one stream under a cap: memory never grows over the cap, whatever is written.
#[derive(Debug)]
pub(crate) struct Capture {
    head_cap: usize,
    tail_cap: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total_bytes: u64,
}

impl Capture {
    pub(crate) fn new(cap_bytes: usize) -> Self {
        let tail_cap = cap_bytes / 2;
        Self {
            head_cap: cap_bytes - tail_cap,
            tail_cap,
            head: Vec::new(),
            tail: VecDeque::new(),
            total_bytes: 0,
        }
    }

    pub(crate) fn push(&mut self, mut chunk: &[u8]) {
        self.total_bytes += chunk.len() as u64;
        let room = self.head_cap - self.head.len();
        if room > 0 {
            let (first, rest) = chunk.split_at(room.min(chunk.len()));
            self.head.extend_from_slice(first);
            chunk = rest;
        }
        if chunk.len() >= self.tail_cap {
            chunk = &chunk[chunk.len() - self.tail_cap..];
            self.tail.clear();
        }
        let overflow = (self.tail.len() + chunk.len()).saturating_sub(self.tail_cap);
        self.tail.drain(..overflow);
        self.tail.extend(chunk);
    }

    pub(crate) fn finish(self) -> CapturedOutput {
        let tail = Vec::from(self.tail);
        let kept = self.head.len() + tail.len();
        if kept as u64 == self.total_bytes {
            // No gap: one piece, so that the text view decodes characters across the old border.
            let mut all = self.head;
            all.extend_from_slice(&tail);
            return CapturedOutput::complete(all);
        }
        CapturedOutput {
            head: self.head.into(),
            tail: tail.into(),
            total_bytes: self.total_bytes,
        }
    }
}
