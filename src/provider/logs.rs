//! Reading what a sandbox's main process prints, and how much the sandbox uses, while it runs.

use async_trait::async_trait;
use futures::stream::BoxStream;

use crate::error::Result;
use crate::spec::{LogLine, LogOptions, SandboxStats};

use super::{SandboxHandle, SandboxProvider};

/// What the main process prints, line by line.
#[async_trait]
pub trait LogsProvider: SandboxProvider {
    /// Reads the log of the main process, in the order in which the engine got the lines.
    ///
    /// # Behavior
    /// - A sandbox that has ended still has its log; one that is removed has none.
    /// - With `follow` the stream ends when the main process does, without it when all is read.
    /// - Nothing is buffered beyond one piece of a line: who does not read holds the engine up, not this process.
    ///
    /// # Errors
    /// Of the call or as the last item of the stream: [`ErrorKind::Sandbox`](crate::ErrorKind::Sandbox) when it is
    /// gone; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) when its log can't be read;
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable), [`ErrorKind::Timeout`](crate::ErrorKind::Timeout).
    ///
    /// # Cancel safety
    /// Dropping the stream ends the reading.
    async fn logs(
        &self,
        handle: &SandboxHandle,
        options: &LogOptions,
    ) -> Result<BoxStream<'static, Result<LogLine>>>;
}

/// How much of the machine a sandbox uses.
#[async_trait]
pub trait StatsProvider: SandboxProvider {
    /// Measures the sandbox about once a second, until it ends. The first sample comes at once or within seconds.
    ///
    /// # Errors
    /// Of the call or as the last item of the stream: [`ErrorKind::Sandbox`](crate::ErrorKind::Sandbox) when it is not
    /// running at the beginning, or gone.
    ///
    /// # Cancel safety
    /// Dropping the stream ends the measuring.
    async fn stats(&self, handle: &SandboxHandle) -> Result<BoxStream<'static, Result<SandboxStats>>>;
}
