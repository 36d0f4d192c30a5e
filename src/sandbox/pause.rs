//! Pausing and resuming the sandbox of a facade (contract L18).

use std::sync::Arc;

use crate::error::{Operation, Result};
use crate::provider::{Capability, PauseProvider};

use super::AsyncSandbox;
use super::lifecycle::{Started, State};

impl AsyncSandbox {
    /// Freezes the sandbox with everything that runs in it. Pausing a paused one succeeds.
    ///
    /// Commands are refused at once while it is paused (their result has the reason `paused`), the time limits of
    /// commands that run already go on, and [`stop`](Self::stop) works. Terminal sessions stay with their callers; none of
    /// them serves commands of [`pty`](Self::pty) by itself any more.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the provider can't,
    /// [`ErrorKind::NotStarted`](crate::ErrorKind::NotStarted), [`ErrorKind::Stopped`](crate::ErrorKind::Stopped),
    /// [`ErrorKind::Sandbox`](crate::ErrorKind::Sandbox) when it is not running;
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) when commands that are being started do not begin in time.
    ///
    /// # Cancel safety
    /// Dropping the future leaves it running or paused; call either again.
    pub async fn pause(&self) -> Result<()> {
        let provider = self.pausing(Operation::Pause)?;
        let started = self.started(Operation::Pause)?;
        provider.pause(&started.handle).await?;
        self.pty.forget_all();
        Ok(())
    }

    /// Lets a paused sandbox run again and waits until it runs commands, for at most the spec's `ready_timeout`.
    /// Resuming a running one succeeds.
    ///
    /// # Errors
    /// As [`pause`](Self::pause); [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) when it is not ready in time: ask
    /// for its status then.
    ///
    /// # Cancel safety
    /// Dropping the future leaves it running or paused; call either again.
    pub async fn resume(&self) -> Result<()> {
        let provider = self.pausing(Operation::Resume)?;
        let started = self.started(Operation::Resume)?;
        let handle = provider.resume(&started.handle, started.ready_timeout).await?;
        let mut state = self.state();
        // A stop that came in between has the last word.
        if matches!(&*state, State::Started(current) if Arc::ptr_eq(current, &started)) {
            *state = State::Started(Arc::new(Started {
                handle,
                ..(*started).clone()
            }));
        }
        Ok(())
    }

    fn pausing(&self, operation: Operation) -> Result<&dyn PauseProvider> {
        self.provider
            .as_pause()
            .ok_or_else(|| self.unsupported(operation, Capability::Pause))
    }
}
