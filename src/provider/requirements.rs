//! What a sandbox must be made with for its program to work.

use async_trait::async_trait;

use crate::error::Result;
use crate::spec::{Mapping, RuntimeRequirements};

use super::{SandboxHandle, SandboxProvider};

/// Capabilities and shared memory that a sandbox must be made with (contract 1.3).
#[async_trait]
pub trait RuntimeRequirementsProvider: SandboxProvider {
    /// Checks the requirements and gives the provider options that a spec needs for them. Does no I/O.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for what is no capability or size, and for what
    /// the provider's policy refuses.
    fn validate_runtime_requirements(&self, requirements: &RuntimeRequirements) -> Result<Mapping>;

    /// Sees to it that a sandbox has them, before its program is started. A provider that can only give them when a
    /// sandbox is made checks that this one was.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) naming what the sandbox was made without;
    /// [`ErrorKind::Sandbox`](crate::ErrorKind::Sandbox) when it is gone.
    async fn configure_runtime(
        &self,
        handle: &SandboxHandle,
        requirements: &RuntimeRequirements,
    ) -> Result<()>;
}
