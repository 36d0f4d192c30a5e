//! The candidates of a folder and what they are expected to be worth.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;

/// A patch and the reward that a right judgement gives it.
pub(crate) struct Candidate {
    pub(crate) name: String,
    pub(crate) patch: PathBuf,
    pub(crate) expected: f64,
}

impl Candidate {
    /// Reads `expected.json` and finds the patch of each name in it.
    pub(crate) fn read_all(folder: &Path) -> Result<Vec<Self>, Failure> {
        let file = folder.join("expected.json");
        let unreadable =
            |error: &dyn std::fmt::Display| format!("`{}` can't be read: {error}", file.display());
        let text = fs::read_to_string(&file).map_err(|error| unreadable(&error))?;
        let expected: BTreeMap<String, f64> =
            serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
        let candidate = |(name, expected): (String, f64)| {
            let patch = folder.join("patches").join(format!("{name}.patch"));
            if patch.is_file() {
                Ok(Self {
                    name,
                    patch,
                    expected,
                })
            } else {
                Err(format!("`{}` is expected and does not exist", patch.display()).into())
            }
        };
        expected.into_iter().map(candidate).collect()
    }
}
