//! Starting and preparing a sandbox as one step (contract L15).

use crate::error::Result;
use crate::spec::SandboxSpec;

use super::AsyncSandbox;
use super::lifecycle::State;

impl AsyncSandbox {
    /// Starts the sandbox and prepares it with the closure; when that fails, the sandbox is stopped (contract L15).
    /// Returns the sandbox for chaining.
    ///
    /// A command that ends with another code than 0 is a result and no failure: a closure that wants it to be one says so.
    ///
    /// ```no_run
    /// use gym_sandbox::{AsyncSandbox, Error, ErrorKind, Operation, SandboxSpec};
    /// # async fn example(sandbox: AsyncSandbox) -> gym_sandbox::Result<()> {
    /// let spec = SandboxSpec::new("debian:bookworm").with_workdir("/work");
    /// sandbox
    ///     .start_with_setup(&spec, async |sandbox| {
    ///         sandbox.upload("project", "/work").await?;
    ///         let made = sandbox.exec("make").await?;
    ///         if made.is_success() {
    ///             return Ok(());
    ///         }
    ///         Err(Error::new(ErrorKind::NotReady, Operation::Start, "the project can't be made"))
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`start_with`](Self::start_with); then that of the closure, with the error of the stop attached
    /// ([`Error::cleanup_errors`](crate::Error::cleanup_errors)) where that failed, too: call [`stop`](Self::stop) again.
    ///
    /// # Cancel safety
    /// Dropping the future, or a panic of the closure, removes the sandbox once, in the background; it is stopped then.
    pub async fn start_with_setup<F>(&self, spec: &SandboxSpec, setup: F) -> Result<&Self>
    where
        F: AsyncFnOnce(&AsyncSandbox) -> Result<()>,
    {
        self.start_with(spec).await?;
        let mut guard = SetupGuard {
            sandbox: self,
            is_armed: true,
        };
        let outcome = setup(self).await;
        let Err(error) = outcome else {
            guard.is_armed = false;
            return Ok(self);
        };
        // The guard stays armed: dropped in the middle of the stop, it hands the removal over.
        let stopped = self.stop().await;
        guard.is_armed = false;
        Err(match stopped {
            Ok(()) => error,
            Err(cleanup) => error.with_cleanup_error(cleanup),
        })
    }
}

/// Removes the sandbox of a setup that did not come to its end.
struct SetupGuard<'a> {
    sandbox: &'a AsyncSandbox,
    is_armed: bool,
}

impl Drop for SetupGuard<'_> {
    fn drop(&mut self) {
        if !self.is_armed {
            return;
        }
        let mut state = self.sandbox.state();
        match std::mem::replace(&mut *state, State::Stopped) {
            State::Started(started) | State::Stopping(started) => {
                drop(state);
                self.sandbox.remove_later(started.handle.clone());
            }
            other => *state = other,
        }
    }
}
