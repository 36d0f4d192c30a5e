//! What is there on an engine, and getting rid of what nobody needs any more (contract D35).

use async_trait::async_trait;

use crate::error::Result;
use crate::spec::{SandboxFilter, SandboxSummary, SweepOptions, SweepReport};

use super::SandboxProvider;

/// Lists of sandboxes, also those that other processes made (contract D35).
#[async_trait]
pub trait ListProvider: SandboxProvider {
    /// Lists the sandboxes that match, oldest first, whoever made them and whatever they are doing.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) or [`ErrorKind::Timeout`](crate::ErrorKind::Timeout).
    ///
    /// # Cancel safety
    /// Nothing is changed.
    async fn list_sandboxes(&self, filter: &SandboxFilter) -> Result<Vec<SandboxSummary>>;
}

/// Removal of what nobody needs any more (contract D16, D35).
#[async_trait]
pub trait SweepProvider: SandboxProvider {
    /// Removes what dead owners have left and what has expired.
    ///
    /// # Behavior
    /// - Nothing of a live owner is removed, but for sandboxes whose ttl has ended.
    /// - An owner is dead when that is proven, not when it was not heard of; see `docs/leaks.md`.
    /// - What could not be removed is named in the report and is no error.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) or [`ErrorKind::Timeout`](crate::ErrorKind::Timeout)
    /// when the engine's objects can't be listed.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the sweep half done; the next one goes on.
    async fn sweep(&self, options: &SweepOptions) -> Result<SweepReport>;

    /// Removes everything that this process has made and not kept on purpose, at once and in parallel: for the end of
    /// the process. Creates that are under way are removed as they appear.
    ///
    /// # Errors
    /// The first object that could not be removed, with the others attached; what is left the lease ends.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the rest; call it again.
    async fn remove_own(&self) -> Result<()>;
}
