//! Freezing a sandbox and letting it run again.

use std::time::Duration;

use async_trait::async_trait;

use crate::error::Result;

use super::{SandboxHandle, SandboxProvider};

/// Freezing a sandbox with everything in it, and letting it run again (contract D8, L18, L19).
///
/// A paused sandbox keeps its memory, files and processes and uses no processor time. A command in it is a result with
/// the reason `paused`, at once; the time limit of a command that already runs goes on; closing works.
#[async_trait]
pub trait PauseProvider: SandboxProvider {
    /// Freezes every process of the sandbox.
    ///
    /// # Behavior
    /// - Pausing a paused sandbox succeeds and changes nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Sandbox`](crate::ErrorKind::Sandbox) when it is not running or gone;
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout), [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable).
    ///
    /// # Cancel safety
    /// Dropping the future leaves it running or paused; either call may be repeated.
    async fn pause(&self, handle: &SandboxHandle) -> Result<()>;

    /// Lets a paused sandbox run again, waits until it runs commands, and gives its handle as it is now.
    ///
    /// `ready_timeout` bounds the wait; without it the provider's own bound does.
    ///
    /// # Behavior
    /// - Resuming a running sandbox succeeds once it is ready.
    /// - What could not be found out while it was paused is found out now and is in the new handle.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) when it is not ready in time: its state is not known then,
    /// ask [`status`](SandboxProvider::status) (contract L18). [`ErrorKind::Sandbox`](crate::ErrorKind::Sandbox) when
    /// it is not running or gone.
    ///
    /// # Cancel safety
    /// Dropping the future leaves it running or paused; either call may be repeated.
    async fn resume(&self, handle: &SandboxHandle, ready_timeout: Option<Duration>) -> Result<SandboxHandle>;
}
