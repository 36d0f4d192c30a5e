//! How much memory the sandboxes of a provider may have together.

use std::time::Duration;

use serde::Deserialize;

use crate::error::{Error, Operation, Result};

use super::optional_seconds;

/// How much memory the sandboxes of a provider may have together, by their limits. Off by default.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AdmissionConfig {
    /// The part of the engine's memory that all limits together may take, over 0 and at most 1. None by default: no bound.
    pub memory_fraction: Option<f64>,
    /// What a sandbox without a limit counts, in MiB. Default 1024.
    pub unlimited_counts_mib: u64,
    /// How long a create waits for memory. None by default: until there is some.
    #[serde(rename = "max_wait_s", deserialize_with = "optional_seconds")]
    pub max_wait: Option<Duration>,
}

impl Default for AdmissionConfig {
    fn default() -> Self {
        Self {
            memory_fraction: None,
            unlimited_counts_mib: 1024,
            max_wait: None,
        }
    }
}

impl AdmissionConfig {
    pub(super) fn check(&self) -> Result<()> {
        if self
            .memory_fraction
            .is_some_and(|fraction| !(fraction > 0.0 && fraction <= 1.0))
        {
            return Err(Error::invalid(
                Operation::Configure,
                "admission.memory_fraction must be over 0 and at most 1",
            ));
        }
        Ok(())
    }
}
