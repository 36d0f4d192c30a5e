//! What is said of snapshots. No I/O.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The provider option that starts a sandbox from a snapshot: its value is [`Snapshot::id`].
pub const SNAPSHOT_OPTION: &str = "snapshot_id";

/// How a snapshot is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotOptions {
    /// Labels of the snapshot. Keys that start with `gym-sandbox` are refused.
    pub labels: BTreeMap<String, String>,
}

impl SnapshotOptions {
    /// Adds a label.
    pub fn with_label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }
}

/// The files of a sandbox at one moment, to start others from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Snapshot {
    /// What names it: the value of the provider option [`SNAPSHOT_OPTION`].
    pub id: String,
    /// When it was made, RFC 3339 by the provider's clock.
    pub created: Option<String>,
    /// The size of all its files.
    pub size_bytes: u64,
    /// Its labels, the library's own among them.
    pub labels: BTreeMap<String, String>,
}

impl Snapshot {
    /// Names a snapshot; everything else is empty.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }
}
