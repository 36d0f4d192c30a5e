//! What a sandbox's program needs of its runtime beside resources.

use serde::{Deserialize, Serialize};

/// Capabilities and shared memory that a sandbox must be made with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RuntimeRequirements {
    /// Capabilities beside those that the engine gives, as in `NET_ADMIN`.
    pub cap_add: Vec<String>,
    /// The size of `/dev/shm` in bytes. None is the engine's default.
    pub shm_size: Option<u64>,
}

impl RuntimeRequirements {
    /// Nothing is needed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Needs a capability.
    pub fn with_capability(mut self, name: impl Into<String>) -> Self {
        self.cap_add.push(name.into());
        self
    }

    /// Needs so many bytes of shared memory.
    pub fn with_shm_size(mut self, bytes: u64) -> Self {
        self.shm_size = Some(bytes);
        self
    }
}
