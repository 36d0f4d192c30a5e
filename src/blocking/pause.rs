//! Pausing and resuming through the synchronous facade.

use crate::error::{Operation, Result};

use super::Sandbox;

impl Sandbox {
    /// Stops all processes of the sandbox without ending them.
    ///
    /// # Errors
    /// As [`AsyncSandbox::pause`](crate::AsyncSandbox::pause) and [`exec`](Self::exec).
    pub fn pause(&self) -> Result<()> {
        self.run(
            Operation::Pause,
            move |sandbox| async move { sandbox.pause().await },
        )
    }

    /// Lets the processes of the sandbox go on, and waits until it is ready.
    ///
    /// # Errors
    /// As [`AsyncSandbox::resume`](crate::AsyncSandbox::resume) and [`exec`](Self::exec).
    pub fn resume(&self) -> Result<()> {
        self.run(
            Operation::Resume,
            move |sandbox| async move { sandbox.resume().await },
        )
    }
}
