//! Files in and out of containers (contract 2.11, D13, D14): as tar streams of bounded memory through the engine's
//! archive calls, and through programs of the sandbox where those calls don't see.

mod account;
mod content;
mod context;
mod discard;
mod download;
mod entry;
mod facts;
mod large;
mod listing;
mod look;
mod pack;
mod path;
mod pour;
mod provider;
mod put;
mod quick;
mod resolve;
mod settle;
mod sink;
mod stat;
mod stream;
mod tool;
mod transfer;
mod unpack;
mod upload;

use std::path::Path;

use crate::error::{Error, ErrorKind, Operation, PathProblem};

pub(super) use context::{Context, packed};
pub(super) use facts::FactsCache;
pub(super) use pack::{Choice, PackError, Selection};
pub(super) use put::put_file;

/// Takes an archive as a download of a directory does. For the fuzz target: not for use.
///
/// # Errors
/// As a download.
#[cfg(feature = "fuzzing")]
pub fn unpack_for_fuzzing(archive: &[u8], target: &Path) -> crate::Result<()> {
    let mut reader = entry::Reader::new(archive);
    let first = reader.next().map_err(content::broken)?;
    let Some(first) = first.filter(|first| first.kind == entry::Kind::Directory) else {
        return Ok(());
    };
    let target = settle::LocalTarget::new(target);
    let (options, moved) = (crate::DownloadOptions::default(), stream::Moved::new(None, None));
    settle::tree(&mut reader, &first, &target, &options, &moved)
}

/// What a call takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accept {
    /// One file.
    File,
    /// A file or a directory.
    Any,
}

fn path_error(operation: Operation, problem: PathProblem, message: String) -> Error {
    Error::new(ErrorKind::Path(problem), operation, message)
}

/// The error for a path on this machine.
pub(super) fn local_error(operation: Operation, path: &Path, error: std::io::Error) -> Error {
    use std::io::ErrorKind as Io;
    let kind = match error.kind() {
        Io::NotFound => ErrorKind::Path(PathProblem::NotFound),
        Io::PermissionDenied => ErrorKind::Path(PathProblem::Permission),
        Io::IsADirectory => ErrorKind::Path(PathProblem::IsADirectory),
        Io::NotADirectory => ErrorKind::Path(PathProblem::NotADirectory),
        Io::AlreadyExists | Io::DirectoryNotEmpty => ErrorKind::Path(PathProblem::Exists),
        Io::InvalidFilename | Io::FileTooLarge => ErrorKind::Path(PathProblem::TooLarge),
        Io::ReadOnlyFilesystem => ErrorKind::Path(PathProblem::ReadOnly),
        Io::StorageFull | Io::QuotaExceeded => ErrorKind::ResourceExhausted(crate::error::Resource::Disk),
        _ => ErrorKind::Io,
    };
    Error::new(
        kind,
        operation,
        format!("`{}` on this machine can't be used", path.display()),
    )
    .with_source(error)
}
