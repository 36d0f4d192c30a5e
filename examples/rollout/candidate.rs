//! The candidates, and which of them must not run without a wall around them.

use std::path::Path;

use crate::common::Failure;
use crate::expected::{Expected, read_expected};

/// Reads the candidates of a folder.
pub(crate) fn read_all(folder: &Path) -> Result<Vec<Expected>, Failure> {
    read_expected(folder, "patches", "patch")
}

/// Says whether it may only run where it can't reach this machine: it leaves daemons, or takes all memory.
pub(crate) fn needs_a_wall(candidate: &Expected) -> bool {
    ["daemons", "memory"]
        .iter()
        .any(|word| candidate.name.contains(word))
}
