//! Paths in a sandbox as the user typed them, and as lists of names. Asks no engine.

use std::collections::VecDeque;
use std::fmt;

use crate::error::{Error, Operation, Result};

/// An absolute path in a sandbox. What `..` means depends on links that only the sandbox sees, so it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemotePath {
    typed: String,
    parts: VecDeque<String>,
    names_directory: bool,
}

impl RemotePath {
    pub(super) fn parse(operation: Operation, path: &str) -> Result<Self> {
        if !path.starts_with('/') || path.contains('\0') {
            return Err(Error::invalid(
                operation,
                format!("`{}` is not an absolute path in the sandbox", path.escape_debug()),
            ));
        }
        Ok(Self {
            typed: path.to_owned(),
            parts: split(path),
            names_directory: path.ends_with('/') || path.ends_with("/.") || path.ends_with("/.."),
        })
    }

    /// Written with a slash at its end, or as a directory can only be.
    pub(super) fn names_directory(&self) -> bool {
        self.names_directory
    }

    pub(super) fn parts(&self) -> VecDeque<String> {
        self.parts.clone()
    }

    /// A name in this directory.
    pub(super) fn join(&self, name: &str) -> Self {
        let mut parts = self.parts.clone();
        parts.push_back(name.to_owned());
        Self {
            typed: format!("{}/{name}", self.typed.trim_end_matches('/')),
            parts,
            names_directory: false,
        }
    }
}

impl fmt::Display for RemotePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.typed.escape_debug())
    }
}

/// The names of a path; `..` stays.
pub(super) fn split(path: &str) -> VecDeque<String> {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .map(str::to_owned)
        .collect()
}

/// The absolute path of some names.
pub(super) fn absolute<'a>(parts: impl IntoIterator<Item = &'a String>) -> String {
    let mut path = String::new();
    for part in parts {
        path.push('/');
        path.push_str(part);
    }
    if path.is_empty() {
        path.push('/');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_a_program_in_the_sandbox_would() {
        for (typed, path, names_directory) in [
            ("/", "/", true),
            ("/a", "/a", false),
            ("//a//b/", "/a/b", true),
            ("/a/./b/.", "/a/b", true),
            ("/a/../b", "/a/../b", false),
            ("/a/..", "/a/..", true),
            ("/a b$'\n", "/a b$'\n", false),
        ] {
            let parsed = RemotePath::parse(Operation::Upload, typed).unwrap();
            assert_eq!(absolute(&parsed.parts()), path, "{typed}");
            assert_eq!(parsed.names_directory(), names_directory, "{typed}");
        }
        for bad in ["", "a", "/a\0"] {
            assert!(RemotePath::parse(Operation::Upload, bad).is_err());
        }
    }
}
