//! Candidates of a folder, what they are expected to be worth, and what came of judging them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gym_sandbox::SandboxProvider;

use crate::clear::clear;
use crate::common::{Failure, verdict};

/// A file to be judged, and the reward that a right judgement gives it.
pub(crate) struct Expected {
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    pub(crate) reward: f64,
}

/// Reads `expected.json` and finds the file of each name in it. A name without a file, a file without a name and an empty
/// list are refused: with them "every reward is right" would say less than it seems to. The order is that of the list.
pub(crate) fn read_expected(folder: &Path, files: &str, extension: &str) -> Result<Vec<Expected>, Failure> {
    let list = folder.join("expected.json");
    let unreadable = |error: &dyn std::fmt::Display| format!("`{}` can't be read: {error}", list.display());
    let text = fs::read_to_string(&list).map_err(|error| unreadable(&error))?;
    let expected: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
    if expected.is_empty() {
        return Err(format!("`{}` names no candidate", list.display()).into());
    }
    let files = folder.join(files);
    for entry in fs::read_dir(&files)? {
        let path = entry?.path();
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if !expected.contains_key(name) {
            return Err(format!("`{}` has no expected reward", path.display()).into());
        }
    }
    let candidate = |(name, reward): (String, serde_json::Value)| {
        let file = files.join(format!("{name}.{extension}"));
        let reward = reward
            .as_f64()
            .ok_or_else(|| format!("the reward of `{name}` is no number"))?;
        if file.is_file() {
            Ok(Expected { name, file, reward })
        } else {
            Err(format!("`{}` is expected and does not exist", file.display()).into())
        }
    };
    expected.into_iter().map(candidate).collect()
}

/// Says whether a reward is the expected one.
pub(crate) fn is_expected(reward: f64, expected: f64) -> bool {
    (reward - expected).abs() < 1e-9
}

/// Waits for the judgements, or for Ctrl-C: then nothing of them is left, and this is the exit code.
pub(crate) async fn until_interrupt<T>(
    provider: &dyn SandboxProvider,
    judging: impl Future<Output = T>,
) -> Result<Result<T, ExitCode>, Failure> {
    tokio::select! {
        judgements = judging => Ok(Ok(judgements)),
        _ = tokio::signal::ctrl_c() => {
            // What was dropped is being removed in the background.
            clear(provider).await?;
            Ok(Err(ExitCode::from(130)))
        }
    }
}

/// What came of all judgements.
pub(crate) struct Summary<'a> {
    pub(crate) total: f64,
    pub(crate) count: usize,
    pub(crate) wrong: usize,
    pub(crate) seconds: f64,
    /// What was judged, in the plural.
    pub(crate) what: &'a str,
    pub(crate) left: &'a [String],
    pub(crate) left_where: &'a str,
}

impl Summary<'_> {
    /// Says it, and whether all was as expected.
    pub(crate) fn tell(&self) -> ExitCode {
        println!(
            "\ntotal reward {:.1} of {} {} in {:.1} s",
            self.total, self.count, self.what, self.seconds
        );
        match self.wrong {
            0 => println!("every reward is right"),
            wrong => println!("wrong rewards: {wrong}"),
        }
        match self.left {
            [] => println!("nothing is left {}", self.left_where),
            left => println!("left {}: {}", self.left_where, left.join(", ")),
        }
        verdict(self.wrong == 0 && self.left.is_empty())
    }
}
