//! What lists of sandboxes hold, and which of them are asked for.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{SandboxId, SandboxStatus};

/// Which sandboxes, and what belongs to them, a call is about. Everything that is set must hold; the default is all
/// that this library has made on the engine, whoever ran it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxFilter {
    /// The id of the process that made them.
    pub owner: Option<String>,
    /// The run they were made in: `GYM_SANDBOX_RUN` of that process, else its owner id.
    pub run: Option<String>,
    /// The project they belong to.
    pub project: Option<String>,
    /// Labels with their values.
    pub labels: BTreeMap<String, String>,
}

impl SandboxFilter {
    /// Only what this owner has made.
    pub fn with_owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Only what was made in this run.
    pub fn with_run(mut self, run: impl Into<String>) -> Self {
        self.run = Some(run.into());
        self
    }

    /// Only what belongs to this project.
    pub fn with_project(mut self, project: impl Into<String>) -> Self {
        self.project = Some(project.into());
        self
    }

    /// Only what has this label with this value.
    pub fn with_label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }
}

/// One sandbox in a list (contract D35).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SandboxSummary {
    /// Its id.
    pub sandbox_id: SandboxId,
    /// The image it was made from, as it was asked for.
    pub image: Option<String>,
    /// What it is doing.
    pub status: SandboxStatus,
    /// When it was created, RFC 3339 by the engine's clock.
    pub created: Option<String>,
    /// How long ago that was, in seconds.
    pub age_s: Option<u64>,
    /// When its ttl ends. None without a ttl.
    pub expires: Option<String>,
    /// The id of the process that made it.
    pub owner: Option<String>,
    /// The id of another process that has taken it over from that one and lives, or may live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Whether its owner lives; where another process has taken it over, whether that one or the owner lives.
    pub owner_state: OwnerState,
    /// The run it was made in.
    pub run: Option<String>,
    /// The project it belongs to.
    pub project: Option<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

impl SandboxSummary {
    /// A sandbox of which only this is known.
    pub fn new(sandbox_id: SandboxId, status: SandboxStatus, owner_state: OwnerState) -> Self {
        Self {
            sandbox_id,
            image: None,
            status,
            created: None,
            age_s: None,
            expires: None,
            owner: None,
            holder: None,
            owner_state,
            run: None,
            project: None,
            labels: BTreeMap::new(),
        }
    }
}

/// Whether the process that made a sandbox lives, as far as the engine and this machine show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum OwnerState {
    /// It is this process.
    Own,
    /// It lives.
    Alive,
    /// It is dead: a sweep removes what it has left.
    Dead,
    /// There is no proof yet.
    Unsure,
    /// The sandbox was made to outlive it, so that it does not matter.
    Kept,
}

impl OwnerState {
    /// The word that stands for it in JSON and in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Alive => "alive",
            Self::Dead => "dead",
            Self::Unsure => "unsure",
            Self::Kept => "kept",
        }
    }
}

impl fmt::Display for OwnerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
