//! What a sweep is to remove, and what it did.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::SandboxFilter;

/// How a sweep is made (contract D35). The default removes what dead owners have left, and what has expired; it takes a
/// second look, a while later, where one does not prove that an owner is dead. Images, snapshots among them, are never
/// removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepOptions {
    /// Whether anything is removed.
    pub mode: SweepMode,
    /// Whether a second look is waited for.
    pub second_look: SecondLook,
    /// What becomes of objects that all sandboxes share.
    pub shared: SharedObjects,
    /// What becomes of sandboxes that were kept on purpose.
    pub kept: KeptSandboxes,
    /// What the sweep is about; everything else is left alone.
    pub filter: SandboxFilter,
}

impl SweepOptions {
    /// Sets whether anything is removed.
    pub fn with_mode(mut self, mode: SweepMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets whether a second look is waited for.
    pub fn with_second_look(mut self, second_look: SecondLook) -> Self {
        self.second_look = second_look;
        self
    }

    /// Sets what becomes of objects that all sandboxes share.
    pub fn with_shared(mut self, shared: SharedObjects) -> Self {
        self.shared = shared;
        self
    }

    /// Sets what becomes of sandboxes that were kept on purpose.
    pub fn with_kept(mut self, kept: KeptSandboxes) -> Self {
        self.kept = kept;
        self
    }

    /// Sets what the sweep is about.
    pub fn with_filter(mut self, filter: SandboxFilter) -> Self {
        self.filter = filter;
        self
    }
}

/// Whether a sweep removes anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SweepMode {
    /// It does.
    #[default]
    Remove,
    /// It only says what it would remove.
    DryRun,
}

/// Whether a sweep waits for the second look that some owners need: those whose lease is not there at all, which may
/// have been removed by somebody else's prune.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecondLook {
    /// It waits, for as long as such an owner needs to renew its lease and the grace on top. It does not wait where no
    /// owner needs it.
    #[default]
    Wait,
    /// It does not: what such owners have left stays, and the report names it as unsure.
    Never,
}

/// What a sweep does with objects that belong to no single owner, such as the volume with the resident agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SharedObjects {
    /// They stay.
    #[default]
    Leave,
    /// Those of other versions of this library that no container uses are removed.
    RemoveUnused,
}

/// What a sweep does with sandboxes that were made to outlive their process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeptSandboxes {
    /// They stay until their ttl ends.
    #[default]
    Leave,
    /// They are removed, whoever made them.
    Remove,
}

/// What a sweep did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SweepReport {
    /// What was removed; what would be, in a dry run.
    pub removed: Vec<SweptObject>,
    /// What should have been removed and could not be. The next sweep tries again.
    pub failed: Vec<SweptObject>,
    /// What was left because nothing proves yet that its owner is dead.
    pub unsure: Vec<SweptObject>,
    /// How many other objects were left: those of live owners, kept ones, shared ones.
    pub left: usize,
}

/// An object of the engine, and why a sweep did with it what it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SweptObject {
    /// What it is.
    pub kind: ObjectKind,
    /// Its name.
    pub name: String,
    /// The id of the process that made it.
    pub owner: Option<String>,
    /// Why, for a person.
    pub why: String,
}

impl SweptObject {
    /// Names an object.
    pub fn new(
        kind: ObjectKind,
        name: impl Into<String>,
        owner: Option<String>,
        why: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            name: name.into(),
            owner,
            why: why.into(),
        }
    }
}

/// A kind of object that an engine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ObjectKind {
    /// A container: a sandbox, or a helper of one.
    Container,
    /// A network.
    Network,
    /// A volume.
    Volume,
}

impl ObjectKind {
    /// The word that stands for it in JSON and in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::Network => "network",
            Self::Volume => "volume",
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
