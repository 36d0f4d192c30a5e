//! The states of a sandbox.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a sandbox is doing (contract 1.1, D7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SandboxStatus {
    /// Being made, or restarting.
    Starting,
    /// Its main process runs.
    Running,
    /// Its processes are frozen.
    Paused,
    /// Its main process has ended, or it does not exist any more.
    Stopped,
    /// The engine can neither run nor remove it.
    Error,
    /// Not known: never started, or the engine does not answer.
    Unknown,
}

impl SandboxStatus {
    /// The word that stands for it in JSON and in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Error => "error",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for SandboxStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
