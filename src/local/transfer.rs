//! Files into a local sandbox: which place, which rules, and the copy on a thread that may block.

use std::ffi::OsStr;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result};
use crate::spec::{TransferProgress, UploadOptions, UploadSource};

use super::LocalProvider;
use super::copy::{Copier, Found};
use super::create::Sandbox;
use super::place::{LastLink, find, of_path, problem_of};
use super::process::blocking;

/// Tells the thread of a transfer that nobody waits any more.
pub(super) struct Waiting(Arc<AtomicBool>);

impl Waiting {
    pub(super) fn new() -> (Self, Arc<AtomicBool>) {
        let dropped = Arc::new(AtomicBool::new(false));
        (Self(Arc::clone(&dropped)), dropped)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What kinds the core calls take: files only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Files,
    Anything,
}

impl LocalProvider {
    pub(super) async fn upload_one(&self, sandbox: &Arc<Sandbox>, local: &Path, remote: &str) -> Result<()> {
        upload_path(sandbox, local, remote, &UploadOptions::default(), Takes::Files)
            .await
            .map(|_| ())
    }
}

pub(super) async fn upload(
    sandbox: &Arc<Sandbox>,
    source: UploadSource<'_>,
    remote: &str,
    options: &UploadOptions,
) -> Result<TransferProgress> {
    match source {
        UploadSource::Path(local) => upload_path(sandbox, local, remote, options, Takes::Anything).await,
        UploadSource::Bytes(content) => {
            let target = file_target(sandbox, remote)?;
            let (_waiting, dropped) = Waiting::new();
            let (mut copier, owner) = (Copier::of_upload(options, dropped), options.owner);
            blocking(Operation::Upload, move || {
                make_parents(&target, owner)?;
                let found = Found::new(content.len() as u64);
                copier.content(&mut Cursor::new(content), &found, &target)?;
                Ok(copier.progress())
            })
            .await
        }
        UploadSource::Reader { mut reader, size } => {
            let target = file_target(sandbox, remote)?;
            // The content waits under a name of its own: a target is never half a file.
            let staged = tempfile::NamedTempFile::new().map_err(staging)?;
            let read = stage(&mut *reader, &staged, options, &target).await?;
            if size.is_some_and(|size| size != read) {
                let what = "was not written: its source gave another number of bytes than it announced";
                return Err(problem_of(Operation::Upload, &target, PathProblem::Changed, what));
            }
            let (_waiting, dropped) = Waiting::new();
            let (mut copier, owner) = (Copier::of_upload(options, dropped), options.owner);
            blocking(Operation::Upload, move || {
                make_parents(&target, owner)?;
                let mut content = staged.reopen().map_err(staging)?;
                copier.content(&mut content, &Found::new(read), &target)?;
                Ok(copier.progress())
            })
            .await
        }
    }
}

/// The target of content that has no name of its own.
fn file_target(sandbox: &Sandbox, remote: &str) -> Result<PathBuf> {
    if remote.ends_with('/') {
        let what = "is a directory, and the content has no name of its own";
        return Err(problem_of(
            Operation::Upload,
            remote,
            PathProblem::IsADirectory,
            what,
        ));
    }
    find(&sandbox.roots, remote, LastLink::Keep, Operation::Upload)
}

fn staging(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, Operation::Upload, "a temporary file can't be used").with_source(error)
}

async fn stage(
    reader: &mut (dyn AsyncRead + Send + Unpin),
    staged: &tempfile::NamedTempFile,
    options: &UploadOptions,
    target: &Path,
) -> Result<u64> {
    let mut file = tokio::fs::File::from_std(staged.reopen().map_err(staging)?);
    let mut buffer = vec![0; 64 * 1024];
    let mut total = 0;
    loop {
        let read = match tokio::time::timeout(options.stall_timeout, reader.read(&mut buffer)).await {
            Ok(Ok(0)) => break,
            Ok(Ok(read)) => read,
            Ok(Err(error)) => {
                return Err(Error::new(
                    ErrorKind::Io,
                    Operation::Upload,
                    format!("the source of `{}` can't be read", target.display()),
                )
                .with_source(error));
            }
            Err(_) => {
                return Err(Error::new(
                    ErrorKind::Timeout,
                    Operation::Upload,
                    format!("the source gave nothing for {:?}", options.stall_timeout),
                ));
            }
        };
        file.write_all(&buffer[..read]).await.map_err(staging)?;
        total += read as u64;
    }
    file.flush().await.map_err(staging)?;
    Ok(total)
}

async fn upload_path(
    sandbox: &Arc<Sandbox>,
    local: &Path,
    remote: &str,
    options: &UploadOptions,
    takes: Takes,
) -> Result<TransferProgress> {
    let operation = Operation::Upload;
    let (roots, local, mut remote) = (sandbox.roots.clone(), local.to_owned(), remote.to_owned());
    let has_mode = options.mode.is_some();
    let (_waiting, dropped) = Waiting::new();
    let (mut copier, owner) = (Copier::of_upload(options, dropped), options.owner);
    blocking(operation, move || {
        // A wrong remote path is told before a wrong local one.
        find(&roots, &remote, LastLink::Keep, operation)?;
        let found = fs::metadata(&local).map_err(|error| of_path(operation, &local, error))?;
        if found.is_dir() {
            if takes == Takes::Files {
                let what = "is a directory, and only a file is copied here";
                return Err(problem_of(operation, &local, PathProblem::IsADirectory, what));
            }
            if has_mode {
                return Err(Error::invalid(
                    operation,
                    "a mode is for one file, and this is a directory",
                ));
            }
            let target = find(&roots, &remote, LastLink::Follow, operation)?;
            make_directories(&target, owner, operation)?;
            copier.tree(&local, &target)?;
        } else {
            if remote.ends_with('/') {
                remote.push_str(&name_of(&local, operation)?.to_string_lossy());
            }
            let target = find(&roots, &remote, LastLink::Keep, operation)?;
            make_parents(&target, owner)?;
            copier.file(&local, &target)?;
        }
        Ok(copier.progress())
    })
    .await
}

pub(super) fn name_of(path: &Path, operation: Operation) -> Result<&OsStr> {
    path.file_name()
        .ok_or_else(|| Error::invalid(operation, format!("`{}` has no file name", path.display())))
}

fn make_parents(target: &Path, owner: Option<crate::spec::FileOwner>) -> Result<()> {
    make_directories(
        target.parent().unwrap_or(Path::new("/")),
        owner,
        Operation::Upload,
    )
}

/// Makes a directory and its missing parents, mode 0755. Existing ones stay as they are.
pub(super) fn make_directories(
    place: &Path,
    owner: Option<crate::spec::FileOwner>,
    operation: Operation,
) -> Result<()> {
    if place.is_dir() {
        return Ok(());
    }
    if let Some(parent) = place.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_directories(parent, owner, operation)?;
    }
    match fs::create_dir(place) {
        Ok(()) => {}
        Err(_) if place.is_dir() => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let what = "is there and is not a directory";
            return Err(problem_of(operation, place, PathProblem::NotADirectory, what));
        }
        Err(error) => return Err(of_path(operation, place, error)),
    }
    let marked = match owner {
        Some(owner) => std::os::unix::fs::chown(place, Some(owner.uid), Some(owner.gid)),
        None => Ok(()),
    };
    marked.map_err(|error| of_path(operation, place, error))
}
