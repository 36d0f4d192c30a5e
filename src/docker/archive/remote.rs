//! Paths inside a container, what is there, and what the engine's refusals about them mean.

use std::fmt;

use bollard::query_parameters::ContainerArchiveInfoOptionsBuilder;

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result, SandboxReason};

use super::super::failure::{EngineFailure, QUICK, call};
use super::super::{DockerProvider, DockerRaw};
use super::path_error;

/// An absolute path in a sandbox. `..` is refused: what it means depends on links that only the sandbox sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemotePath {
    path: String,
    names_directory: bool,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RemoteKind {
    File,
    Directory,
    Link { target: String },
    Special,
}

impl RemotePath {
    pub(super) fn parse(operation: Operation, path: &str) -> Result<Self> {
        if !path.starts_with('/') || path.contains('\0') {
            return Err(Error::invalid(
                operation,
                format!("`{}` is not an absolute path in the sandbox", path.escape_debug()),
            ));
        }
        let mut parts = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    return Err(Error::invalid(
                        operation,
                        format!("the path `{}` in the sandbox holds `..`", path.escape_debug()),
                    ));
                }
                part => parts.push(part),
            }
        }
        let names_directory = path.ends_with('/') || path.ends_with("/.");
        Ok(Self {
            path: format!("/{}", parts.join("/")),
            names_directory,
        })
    }

    /// Written with a slash at its end.
    pub(super) fn names_directory(&self) -> bool {
        self.names_directory
    }

    pub(super) fn as_str(&self) -> &str {
        &self.path
    }

    pub(super) fn join(&self, name: &str) -> Self {
        Self {
            path: format!("{}/{name}", self.path.trim_end_matches('/')),
            names_directory: false,
        }
    }

    /// The name in an archive that is unpacked at `/`.
    pub(super) fn as_entry_name(&self) -> String {
        self.path.trim_start_matches('/').to_owned()
    }
}

impl fmt::Display for RemotePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

/// Bits of Go's `os.FileMode`, which the engine sends.
const GO_DIRECTORY: u32 = 1 << 31;
const GO_LINK: u32 = 1 << 27;
const GO_SPECIAL: u32 = (1 << 26) | (1 << 25) | (1 << 24) | (1 << 21);

/// More links than this in a row are a loop.
const LINKS: usize = 32;

impl DockerProvider {
    /// What is at a path; None when nothing is.
    pub(super) async fn remote_stat(
        &self,
        raw: &DockerRaw,
        operation: Operation,
        path: &RemotePath,
    ) -> Result<Option<RemoteKind>> {
        let client = &self.engine().await?.client;
        let options = ContainerArchiveInfoOptionsBuilder::new()
            .path(path.as_str())
            .build();
        let answer = call(
            QUICK,
            client.get_container_archive_info(&raw.container_id, Some(options)),
        )
        .await;
        match answer {
            Ok(stat) => Ok(Some(kind_of(stat.file_mode, stat.link_target))),
            Err(failure) if failure.is_status(404) && !is_gone(&failure) => Ok(None),
            Err(failure) => Err(failure_error(operation, path, failure)),
        }
    }

    /// Follows symbolic links, as reading a path does.
    pub(super) async fn follow_links(&self, raw: &DockerRaw, path: &RemotePath) -> Result<RemotePath> {
        let mut path = path.clone();
        for _ in 0..LINKS {
            match self.remote_stat(raw, Operation::Download, &path).await? {
                Some(RemoteKind::Link { target }) => {
                    let target = if target.starts_with('/') {
                        target
                    } else {
                        let parent = path.as_str().rsplit_once('/').map_or("", |(parent, _)| parent);
                        format!("{parent}/{target}")
                    };
                    path = RemotePath::parse(Operation::Download, &target)?;
                }
                Some(RemoteKind::Special) => {
                    return Err(path_error(
                        Operation::Download,
                        PathProblem::NotServable,
                        format!("`{path}` is a device, socket or pipe"),
                    ));
                }
                Some(RemoteKind::File | RemoteKind::Directory) => return Ok(path),
                None => {
                    return Err(path_error(
                        Operation::Download,
                        PathProblem::NotFound,
                        format!("`{path}` does not exist in the sandbox"),
                    ));
                }
            }
        }
        Err(path_error(
            Operation::Download,
            PathProblem::NotFound,
            format!("`{path}` leads in a circle of links"),
        ))
    }
}

fn kind_of(file_mode: u32, link_target: String) -> RemoteKind {
    if file_mode & GO_LINK != 0 {
        RemoteKind::Link { target: link_target }
    } else if file_mode & GO_DIRECTORY != 0 {
        RemoteKind::Directory
    } else if file_mode & GO_SPECIAL != 0 {
        RemoteKind::Special
    } else {
        RemoteKind::File
    }
}

fn is_gone(failure: &EngineFailure) -> bool {
    failure
        .text()
        .is_some_and(|text| text.to_lowercase().contains("no such container"))
}

/// What an engine's refusal of a path means; the statuses differ between engines, the texts hardly (engine-facts S4).
const PATH_TEXTS: [(&str, PathProblem); 8] = [
    ("read-only", PathProblem::ReadOnly),
    ("could not find the file", PathProblem::NotFound),
    ("no such file or directory", PathProblem::NotFound),
    ("cannot overwrite directory", PathProblem::IsADirectory),
    ("cannot overwrite non-directory", PathProblem::NotADirectory),
    ("not a directory", PathProblem::NotADirectory),
    ("permission denied", PathProblem::Permission),
    ("device or resource busy", PathProblem::NotServable),
];

fn failure_error(operation: Operation, path: &RemotePath, failure: EngineFailure) -> Error {
    if is_gone(&failure) {
        return Error::new(
            ErrorKind::Sandbox(SandboxReason::Removed),
            operation,
            "the sandbox does not exist any more",
        )
        .with_source(failure);
    }
    let text = failure.text().unwrap_or_default().to_lowercase();
    let kind = PATH_TEXTS
        .iter()
        .find(|(part, _)| text.contains(part))
        .map_or(ErrorKind::Internal, |&(_, problem)| ErrorKind::Path(problem));
    failure.into_error(
        operation,
        format!("the engine refused the path `{path}` in the sandbox"),
        kind,
    )
}

pub(super) fn upload_error(path: &RemotePath, failure: EngineFailure) -> Error {
    failure_error(Operation::Upload, path, failure)
}

pub(super) fn download_error(path: &RemotePath, failure: EngineFailure) -> Error {
    failure_error(Operation::Download, path, failure)
}
