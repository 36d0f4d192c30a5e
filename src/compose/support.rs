//! What becomes of every key when a project runs: the table of docs/compose-support.md.
//!
//! Data only. The loader reads every key; who runs a project asks here what to do with one.

use super::path::{Segment, YamlPath};

mod keys;

pub use keys::KEYS;

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// It is done.
    Run,
    /// It is done when the caller's policy allows it; it is refused by name otherwise.
    UnderPolicy,
    /// It is refused by name, before anything is created.
    Refused,
    /// It is read and has no effect, and that is said in a warning.
    Ignored,
}

impl Verdict {
    /// Returns the word of the documentation.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::UnderPolicy => "run under policy",
            Self::Refused => "refused",
            Self::Ignored => "ignored",
        }
    }
}

/// What becomes of a key, and why.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct KeySupport {
    /// The path of the key; `*` stands for a name, `[]` for a list position.
    pub path: &'static str,
    /// What becomes of it.
    pub verdict: Verdict,
    /// How, or why not.
    pub note: &'static str,
}

/// Finds what becomes of the key at a path: its own row of the table, or that of the nearest key above it.
///
/// # Examples
///
/// ```
/// use gym_sandbox::compose::YamlPath;
/// use gym_sandbox::compose::support::{Verdict, of};
///
/// let path = YamlPath::of_keys(["services", "web", "privileged"]);
/// assert_eq!(of(&path).map(|key| key.verdict), Some(Verdict::UnderPolicy));
/// ```
pub fn of(path: &YamlPath) -> Option<&'static KeySupport> {
    let segments = path.segments();
    (1..=segments.len())
        .rev()
        .find_map(|length| KEYS.iter().find(|key| fits(key.path, &segments[..length])))
}

/// Finds the row of a path itself.
pub(crate) fn exactly(path: &YamlPath) -> Option<&'static KeySupport> {
    KEYS.iter().find(|key| fits(key.path, path.segments()))
}

fn fits(pattern: &str, segments: &[Segment]) -> bool {
    let mut parts = pattern.split('.');
    let all = segments.iter().all(|segment| {
        parts.next().is_some_and(|part| match segment {
            Segment::Key(key) => part == "*" || part == key,
            Segment::Index(_) => part == "[]",
        })
    });
    all && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Refused, Run, UnderPolicy};
    use super::*;
    use crate::compose::schema;
    use crate::compose::trap::{Strictness, Trap};

    const PAGE: &str = include_str!("../../docs/compose-support.md");

    fn row(key: &KeySupport) -> String {
        format!("| `{}` | {} | {} |", key.path, key.verdict.as_str(), key.note).replace("|  |", "| |")
    }

    #[test]
    fn every_key_of_the_specification_has_a_verdict() {
        let known = schema::all_key_paths();
        for path in &known {
            let covered = KEYS
                .iter()
                .any(|key| path == key.path || path.starts_with(&format!("{}.", key.path)));
            assert!(covered, "{path} has no verdict");
            let depth = path.matches('.').count();
            let own = KEYS.iter().any(|key| key.path == path);
            assert!(
                own || depth != 2 || !path.starts_with("services.*."),
                "{path} needs a row of its own"
            );
        }
        for key in KEYS {
            assert!(
                known.iter().any(|path| path == key.path),
                "{} is no key of the specification",
                key.path
            );
        }
    }

    #[test]
    fn the_page_has_this_table() {
        let section = PAGE
            .split("## Keys")
            .nth(1)
            .and_then(|rest| rest.split("\n## ").next())
            .unwrap_or_default();
        let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
        let expected: Vec<String> = KEYS.iter().map(row).collect();
        assert_eq!(
            rows,
            expected,
            "docs/compose-support.md, section Keys, should be:\n{}",
            expected.join("\n")
        );
    }

    #[test]
    fn the_page_names_every_trap() {
        for trap in Trap::ALL {
            let default = if trap.loses() { "error" } else { "warning" };
            let row = format!("| `{}` | {default} |", trap.name());
            assert!(
                PAGE.contains(&row),
                "docs/compose-support.md, section Traps, has no row {row}"
            );
        }
        assert_eq!(Strictness::default(), Strictness::Careful);
    }

    #[test]
    fn a_key_without_a_row_has_that_of_the_key_above() {
        let verdict = |path: &YamlPath| of(path).map(|key| key.verdict);
        let build = YamlPath::of_keys(["services", "a", "build"]);
        assert_eq!(verdict(&build.key("args")), Some(Run));
        assert_eq!(verdict(&build.key("secrets")), Some(Refused));
        assert_eq!(
            verdict(
                &YamlPath::of_keys(["services", "a", "volumes"])
                    .index(3)
                    .key("bind")
            ),
            Some(UnderPolicy)
        );
        assert_eq!(verdict(&YamlPath::of_keys(["bogus"])), None);
    }
}
