//! One look of the engine at one path, and what its refusals about paths mean.

use std::time::{Duration, SystemTime};

use bollard::query_parameters::ContainerArchiveInfoOptionsBuilder;

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result};
use crate::spec::FileKind;

use super::super::failure::{EngineFailure, QUICK, call};
use super::super::status::removed;
use super::super::{DockerProvider, DockerRaw};
use super::path_error;

/// Bits of Go's `os.FileMode`, which the engine sends.
const GO_DIRECTORY: u32 = 1 << 31;
const GO_LINK: u32 = 1 << 27;
const GO_SPECIAL: u32 = (1 << 26) | (1 << 25) | (1 << 24) | (1 << 21);

/// What the engine says of a path whose last name is not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: FileKind,
    /// Where a link leads in the end, as an absolute path.
    pub(super) link_target: Option<String>,
}

impl DockerProvider {
    /// What is at an absolute path; None when nothing is. A refusal of any other kind is an error.
    pub(super) async fn head(
        &self,
        raw: &DockerRaw,
        operation: Operation,
        path: &str,
    ) -> Result<Option<Head>> {
        let client = &self.engine().await?.client;
        let options = ContainerArchiveInfoOptionsBuilder::new().path(path).build();
        match call(
            QUICK,
            client.get_container_archive_info(&raw.container_id, Some(options)),
        )
        .await
        {
            Ok(stat) => {
                let kind = kind_of(stat.file_mode);
                let link_target = (kind == FileKind::Symlink).then_some(stat.link_target);
                Ok(Some(Head { kind, link_target }))
            }
            Err(failure) if failure.is_status(404) => {
                // The answer to this call has no text: a path and a container that are missing look alike.
                if path == "/" {
                    return Err(removed(operation));
                }
                Ok(None)
            }
            // A loop of links, or a path below a file, which the look at the file itself tells.
            Err(EngineFailure::Refused { status, text }) => Err(path_error(
                operation,
                PathProblem::NotFound,
                format!("`{}` can't be followed in the sandbox", path.escape_debug()),
            )
            .with_source(EngineFailure::Refused { status, text })
            .with_hint("a link in the path may lead in a circle")),
            Err(failure) => Err(failure_error(operation, path, failure)),
        }
    }
}

fn kind_of(file_mode: u32) -> FileKind {
    if file_mode & GO_LINK != 0 {
        FileKind::Symlink
    } else if file_mode & GO_DIRECTORY != 0 {
        FileKind::Directory
    } else if file_mode & GO_SPECIAL != 0 {
        FileKind::Special
    } else {
        FileKind::File
    }
}

/// What a refusal of a path means, by the engine's texts and by those of the programs in a sandbox; the statuses differ
/// between engines, the texts hardly (engine-facts S4).
const PATH_TEXTS: [(&str, PathProblem); 13] = [
    ("read-only", PathProblem::ReadOnly),
    ("could not find the file", PathProblem::NotFound),
    ("no such file or directory", PathProblem::NotFound),
    ("cannot overwrite directory", PathProblem::IsADirectory),
    ("cannot overwrite non-directory", PathProblem::NotADirectory),
    ("is a directory", PathProblem::IsADirectory),
    ("not a directory", PathProblem::NotADirectory),
    ("not empty", PathProblem::Exists),
    ("permission denied", PathProblem::Permission),
    ("not permitted", PathProblem::Permission),
    ("device or resource busy", PathProblem::NotServable),
    ("file name too long", PathProblem::TooLarge),
    ("file too large", PathProblem::TooLarge),
];

/// The problem that a text names.
pub(super) fn problem_in(text: &str) -> Option<ErrorKind> {
    let text = text.to_lowercase();
    if text.contains("no space left on device") {
        return Some(ErrorKind::ResourceExhausted(crate::error::Resource::Disk));
    }
    PATH_TEXTS
        .iter()
        .find(|(part, _)| text.contains(part))
        .map(|&(_, problem)| ErrorKind::Path(problem))
}

/// The error for a refusal of an archive call about a path.
pub(super) fn failure_error(operation: Operation, path: &str, failure: EngineFailure) -> Error {
    let text = failure.text().unwrap_or_default();
    if text.to_lowercase().contains("no such container") {
        return removed(operation).with_source(failure);
    }
    let kind = problem_in(text).unwrap_or(ErrorKind::Internal);
    failure.into_error(
        operation,
        format!(
            "the engine did not take or give the path `{}` in the sandbox",
            path.escape_debug()
        ),
        kind,
    )
}

/// Seconds since 1970 of an archive.
pub(super) fn time_of(seconds: u64) -> SystemTime {
    // Far times overflow on some file systems: the year 9999 is enough for everybody.
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.min(253_402_300_799))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_engines_and_programs_name_the_problem() {
        for (text, kind) in [
            (
                "container rootfs is marked read-only",
                ErrorKind::Path(PathProblem::ReadOnly),
            ),
            (
                "sh: can't create /x: Read-only file system",
                ErrorKind::Path(PathProblem::ReadOnly),
            ),
            (
                "Could not find the file /no in container n",
                ErrorKind::Path(PathProblem::NotFound),
            ),
            (
                "cannot overwrite directory \"/d\" with non-directory \"/\"",
                ErrorKind::Path(PathProblem::IsADirectory),
            ),
            (
                "unlinkat /etc/hostname: device or resource busy",
                ErrorKind::Path(PathProblem::NotServable),
            ),
            (
                "write /x: no space left on device",
                ErrorKind::ResourceExhausted(crate::error::Resource::Disk),
            ),
        ] {
            assert_eq!(problem_in(text), Some(kind), "{text}");
        }
        assert_eq!(problem_in("boom"), None);
    }
}
