//! The files capability of the local provider, over the file system of this machine below the workspace.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

use crate::error::{Operation, PathProblem, Result};
use crate::provider::{FilesProvider, SandboxHandle};
use crate::spec::{
    DownloadOptions, DownloadTarget, FileEntry, FileKind, FileOwner, FileStat, RemoveMode, TransferProgress,
    UploadOptions, UploadSource,
};

use super::place::{LastLink, find, of_path, problem_of};
use super::process::blocking;
use super::{LocalProvider, download, living, transfer};

const OPERATION: Operation = Operation::Files;

#[async_trait]
impl FilesProvider for LocalProvider {
    async fn upload(
        &self,
        handle: &SandboxHandle,
        source: UploadSource<'_>,
        remote: &str,
        options: &UploadOptions,
    ) -> Result<TransferProgress> {
        transfer::upload(living(handle, Operation::Upload)?, source, remote, options).await
    }

    async fn download(
        &self,
        handle: &SandboxHandle,
        remote: &str,
        target: DownloadTarget<'_>,
        options: &DownloadOptions,
    ) -> Result<TransferProgress> {
        download::download(living(handle, Operation::Download)?, remote, target, options).await
    }

    async fn stat(&self, handle: &SandboxHandle, remote: &str) -> Result<Option<FileStat>> {
        at(
            handle,
            remote,
            LastLink::Keep,
            |place, remote| match fs::symlink_metadata(&place) {
                Ok(found) => stat_of(&place, &found).map(Some),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(of_path(OPERATION, remote, error)),
            },
        )
        .await
    }

    async fn list(&self, handle: &SandboxHandle, remote: &str) -> Result<Vec<FileEntry>> {
        at(handle, remote, LastLink::Follow, |place, remote| {
            let mut entries = Vec::new();
            for entry in fs::read_dir(&place).map_err(|error| of_path(OPERATION, remote, error))? {
                let entry = entry.map_err(|error| of_path(OPERATION, remote, error))?;
                // One that has gone meanwhile is not there.
                if let Ok(found) = fs::symlink_metadata(entry.path()) {
                    entries.push(FileEntry::new(entry.file_name(), stat_of(&entry.path(), &found)?));
                }
            }
            entries.sort_by(|one, other| one.name.cmp(&other.name));
            Ok(entries)
        })
        .await
    }

    async fn remove(&self, handle: &SandboxHandle, remote: &str, mode: RemoveMode) -> Result<bool> {
        let workspace = living(handle, OPERATION)?.workspace.clone();
        at(handle, remote, LastLink::Keep, move |place, remote| {
            if place == workspace {
                let what = "is the workspace itself, which goes with the sandbox";
                return Err(problem_of(OPERATION, remote, PathProblem::NotServable, what));
            }
            let removed = match fs::symlink_metadata(&place) {
                Ok(found) if found.is_dir() && mode == RemoveMode::Recursive => fs::remove_dir_all(&place),
                Ok(found) if found.is_dir() => fs::remove_dir(&place),
                Ok(_) => fs::remove_file(&place),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
                Err(error) => Err(error),
            };
            removed
                .map(|()| true)
                .map_err(|error| of_path(OPERATION, remote, error))
        })
        .await
    }

    async fn make_directory(
        &self,
        handle: &SandboxHandle,
        remote: &str,
        options: &UploadOptions,
    ) -> Result<()> {
        let (owner, mode) = (options.owner, options.mode);
        at(handle, remote, LastLink::Follow, move |place, remote| {
            if place.is_dir() {
                return Ok(());
            }
            transfer::make_directories(&place, owner, OPERATION)?;
            match mode {
                Some(mode) => fs::set_permissions(&place, fs::Permissions::from_mode(mode))
                    .map_err(|error| of_path(OPERATION, remote, error)),
                None => Ok(()),
            }
        })
        .await
    }
}

/// Does something with the place of a path, on a thread that may block.
async fn at<T: Send + 'static>(
    handle: &SandboxHandle,
    remote: &str,
    last: LastLink,
    work: impl FnOnce(PathBuf, &str) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (roots, remote) = (living(handle, OPERATION)?.roots.clone(), remote.to_owned());
    blocking(OPERATION, move || {
        let place = find(&roots, &remote, last, OPERATION)?;
        work(place, &remote)
    })
    .await
    .map_err(|error| error.with_sandbox(handle.sandbox_id()))
}

fn stat_of(place: &Path, found: &fs::Metadata) -> Result<FileStat> {
    let kind = if found.is_dir() {
        FileKind::Directory
    } else if found.is_symlink() {
        FileKind::Symlink
    } else if found.is_file() {
        FileKind::File
    } else {
        FileKind::Special
    };
    let mut stat = FileStat::new(kind);
    if kind == FileKind::File {
        stat.size_bytes = found.len();
    }
    stat.mode = found.mode() & 0o7777;
    let seconds = Duration::from_secs(found.mtime().unsigned_abs());
    stat.mtime = if found.mtime() < 0 {
        SystemTime::UNIX_EPOCH - seconds
    } else {
        SystemTime::UNIX_EPOCH + seconds
    };
    stat.owner = FileOwner::new(found.uid(), found.gid());
    if kind == FileKind::Symlink {
        stat.link_target = Some(fs::read_link(place).map_err(|error| of_path(OPERATION, place, error))?);
    }
    Ok(stat)
}
