//! Start and stop of the synchronous facade.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Operation, Result};
use crate::spec::SandboxSpec;

use super::Sandbox;

impl Sandbox {
    /// Makes the sandbox that [`with_spec`](Self::with_spec) described, waits until it is ready and writes the spec's
    /// files. Returns the sandbox for chaining.
    ///
    /// # Errors
    /// As [`AsyncSandbox::start`](crate::AsyncSandbox::start) and [`exec`](Self::exec).
    pub fn start(&self) -> Result<&Self> {
        match self.spec.clone() {
            Some(spec) => self.start_owned(spec),
            None => self
                .run(Operation::Start, move |sandbox| async move {
                    sandbox.start().await.map(|_| ())
                })
                .map(|()| self),
        }
    }

    /// As [`start`](Self::start), with this spec instead of the one given before.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(&self, spec: &SandboxSpec) -> Result<&Self> {
        self.start_owned(spec.clone())
    }

    fn start_owned(&self, spec: SandboxSpec) -> Result<&Self> {
        self.run(Operation::Start, move |sandbox| async move {
            sandbox.start_with(&spec).await.map(|_| ())
        })
        .map(|()| self)
    }

    /// Removes the sandbox, closes the provider where the sandbox owns it, and ends the thread, also when removing
    /// fails (contract V4): what could not be removed is tried again in the background when the sandbox is dropped.
    /// Called again it does nothing.
    ///
    /// # Errors
    /// As [`AsyncSandbox::stop`](crate::AsyncSandbox::stop) and [`exec`](Self::exec). Inside an async runtime nothing
    /// is done, and the thread lives on.
    pub fn stop(&self) -> Result<()> {
        self.runner.check(Operation::Stop)?;
        if self.runner.is_closed() {
            return Ok(());
        }
        let stopped = self.run(
            Operation::Stop,
            move |sandbox| async move { sandbox.stop().await },
        );
        self.runner.close();
        stopped
    }

    /// Stops it for a bounded time, from a drop. In a runtime nothing is waited for.
    pub(super) fn stop_briefly(&self) {
        let Some(inner) = self.inner.as_ref().map(Arc::clone) else {
            return;
        };
        let timeout: Duration = self.runner.close_timeout();
        let stopped = self
            .runner
            .run_for(Operation::Stop, timeout, async move { inner.stop().await });
        if let Err(error) = stopped {
            tracing::debug!(%error, "a dropped sandbox is stopped in the background");
        }
    }
}
