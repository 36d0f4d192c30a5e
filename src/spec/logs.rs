//! What a sandbox's main process printed, and how much of the machine the sandbox uses.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// No line of a log is given out in larger pieces than this.
pub const MAX_LOG_LINE_BYTES: usize = 64 * 1024;

/// Which lines of a log are read. By default all there are, of both streams, without their times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogOptions {
    /// Whether to go on until the main process ends.
    pub follow: bool,
    /// Only so many of the last lines. None is all.
    pub tail: Option<u64>,
    /// Only lines from this time on, by the engine's clock, in whole seconds.
    pub since: Option<SystemTime>,
    /// Whether each line has its time.
    pub timestamps: bool,
}

impl LogOptions {
    /// All lines that there are.
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes on until the main process ends.
    pub fn with_follow(mut self) -> Self {
        self.follow = true;
        self
    }

    /// Only so many of the last lines.
    pub fn with_tail(mut self, lines: u64) -> Self {
        self.tail = Some(lines);
        self
    }

    /// Only lines from this time on.
    pub fn with_since(mut self, since: SystemTime) -> Self {
        self.since = Some(since);
        self
    }

    /// Gives each line its time.
    pub fn with_timestamps(mut self) -> Self {
        self.timestamps = true;
        self
    }
}

/// Where a line was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LogStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The terminal of the main process, where both are one.
    Terminal,
}

/// A line of a log, or a piece of one that is too long.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogLine {
    /// Where it was printed.
    pub stream: LogStream,
    /// When, as the engine wrote it (RFC 3339); none unless asked for.
    pub timestamp: Option<String>,
    /// Its bytes without the line end, at most [`MAX_LOG_LINE_BYTES`].
    pub bytes: Bytes,
    /// Whether the line ends here: false for a piece with more to come, and for a last line without an end.
    pub is_complete: bool,
}

impl LogLine {
    /// Makes a line.
    pub fn new(stream: LogStream, bytes: impl Into<Bytes>) -> Self {
        Self {
            stream,
            timestamp: None,
            bytes: bytes.into(),
            is_complete: true,
        }
    }

    /// The line as text; what is not UTF-8 is replaced.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// How much of the machine a sandbox used at one moment. What the engine does not say is none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SandboxStats {
    /// When it was measured, by the engine's clock (RFC 3339).
    pub read_at: Option<String>,
    /// Processor time since the sandbox started, in seconds.
    pub cpu_seconds: Option<f64>,
    /// Processors in use since the sample before, 1.0 being one whole processor. None in the first sample.
    pub cpus_used: Option<f64>,
    /// Memory in use, without the file cache that could be dropped.
    pub memory_bytes: Option<u64>,
    /// The limit of memory, or all that the machine has.
    pub memory_limit_bytes: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// The limit of processes and threads.
    pub pids_limit: Option<u64>,
    /// Bytes read from block devices.
    pub block_read_bytes: Option<u64>,
    /// Bytes written to block devices.
    pub block_write_bytes: Option<u64>,
    /// Bytes received, over all networks.
    pub network_received_bytes: Option<u64>,
    /// Bytes sent, over all networks.
    pub network_sent_bytes: Option<u64>,
}

impl SandboxStats {
    /// The processor time as a duration.
    pub fn cpu_time(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.cpu_seconds?).ok()
    }
}
