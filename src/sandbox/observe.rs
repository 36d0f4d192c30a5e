//! What a facade's sandbox prints and uses, as streams.

use futures::stream::BoxStream;

use crate::error::{Operation, Result};
use crate::provider::Capability;
use crate::spec::{LogLine, LogOptions, SandboxStats};

use super::AsyncSandbox;

impl AsyncSandbox {
    /// Reads what the main process of the sandbox printed, line by line. Commands print to their own results, not here.
    ///
    /// ```no_run
    /// use futures::StreamExt;
    /// use gym_sandbox::{AsyncSandbox, LogOptions};
    /// # async fn example(sandbox: &AsyncSandbox) -> gym_sandbox::Result<()> {
    /// let mut lines = sandbox.logs(&LogOptions::new().with_tail(10)).await?;
    /// while let Some(line) = lines.next().await {
    ///     println!("{}", line?.text());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the provider can't, or keeps no log;
    /// [`ErrorKind::NotStarted`](crate::ErrorKind::NotStarted), [`ErrorKind::Stopped`](crate::ErrorKind::Stopped);
    /// an error of the reading is the last item of the stream.
    pub async fn logs(&self, options: &LogOptions) -> Result<BoxStream<'static, Result<LogLine>>> {
        let provider = self
            .provider
            .as_logs()
            .ok_or_else(|| self.unsupported(Operation::Logs, Capability::Logs))?;
        let started = self.started(Operation::Logs)?;
        provider.logs(&started.handle, options).await
    }

    /// Measures how much of the machine the sandbox uses, about once a second, until it ends.
    ///
    /// # Errors
    /// As [`logs`](Self::logs); [`ErrorKind::Sandbox`](crate::ErrorKind::Sandbox) when it is not running.
    pub async fn stats(&self) -> Result<BoxStream<'static, Result<SandboxStats>>> {
        let provider = self
            .provider
            .as_stats()
            .ok_or_else(|| self.unsupported(Operation::Stats, Capability::Stats))?;
        let started = self.started(Operation::Stats)?;
        provider.stats(&started.handle).await
    }
}
