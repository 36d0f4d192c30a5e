//! The candidates of a folder and what they are expected to be worth.

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
    /// Says whether it may only run where it can't reach this machine: it leaves daemons, or takes all memory.
    pub(crate) fn needs_a_wall(&self) -> bool {
        ["daemons", "memory"].iter().any(|word| self.name.contains(word))
    }

    /// Reads `expected.json` and finds the patch of each name in it. A name without a patch, a patch without a name
    /// and an empty list are refused: with them "every reward is right" would say less than it seems to. The order is
    /// that of the file.
    pub(crate) fn read_all(folder: &Path) -> Result<Vec<Self>, Failure> {
        let file = folder.join("expected.json");
        let unreadable =
            |error: &dyn std::fmt::Display| format!("`{}` can't be read: {error}", file.display());
        let text = fs::read_to_string(&file).map_err(|error| unreadable(&error))?;
        let expected: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
        if expected.is_empty() {
            return Err(format!("`{}` names no candidate", file.display()).into());
        }
        let patches = folder.join("patches");
        for entry in fs::read_dir(&patches)? {
            let path = entry?.path();
            let name = path
                .file_stem()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if !expected.contains_key(name) {
                return Err(format!("`{}` has no expected reward", path.display()).into());
            }
        }
        let candidate = |(name, expected): (String, serde_json::Value)| {
            let patch = patches.join(format!("{name}.patch"));
            let expected = expected
                .as_f64()
                .ok_or_else(|| format!("the reward of `{name}` is no number"))?;
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
