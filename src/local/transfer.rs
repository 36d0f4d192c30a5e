//! Files into and out of a local sandbox: which place, which rules, and the copy on a thread that may block.

use std::ffi::OsStr;
use std::fs;
use std::io::Cursor;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result};
use crate::spec::{DownloadOptions, DownloadTarget, TransferProgress, UploadOptions, UploadSource};

use super::LocalProvider;
use super::copy::{Copier, Found};
use super::create::Sandbox;
use super::place::{LastLink, find, of_path, problem_of};
use super::process::blocking;

/// Tells the thread of a transfer that nobody waits any more.
struct Waiting(Arc<AtomicBool>);

impl Waiting {
    fn new() -> (Self, Arc<AtomicBool>) {
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
enum Takes {
    Files,
    Anything,
}

impl LocalProvider {
    pub(super) async fn upload_one(&self, sandbox: &Arc<Sandbox>, local: &Path, remote: &str) -> Result<()> {
        upload_path(sandbox, local, remote, &UploadOptions::default(), Takes::Files)
            .await
            .map(|_| ())
    }

    pub(super) async fn download_one(
        &self,
        sandbox: &Arc<Sandbox>,
        remote: &str,
        local: &Path,
    ) -> Result<()> {
        download_path(sandbox, remote, local, &DownloadOptions::default(), Takes::Files)
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

pub(super) async fn download(
    sandbox: &Arc<Sandbox>,
    remote: &str,
    target: DownloadTarget<'_>,
    options: &DownloadOptions,
) -> Result<TransferProgress> {
    match target {
        DownloadTarget::Path(local) => download_path(sandbox, remote, local, options, Takes::Anything).await,
        DownloadTarget::Writer(writer) => download_writer(sandbox, remote, writer, options).await,
    }
}

async fn download_path(
    sandbox: &Arc<Sandbox>,
    remote: &str,
    local: &Path,
    options: &DownloadOptions,
    takes: Takes,
) -> Result<TransferProgress> {
    let operation = Operation::Download;
    let (roots, remote, local) = (sandbox.roots.clone(), remote.to_owned(), local.to_owned());
    let (_waiting, dropped) = Waiting::new();
    let mut copier = Copier::of_download(options, dropped);
    blocking(operation, move || {
        let source = find(&roots, &remote, LastLink::Follow, operation)?;
        let found = fs::metadata(&source).map_err(|error| of_path(operation, &remote, error))?;
        if found.is_dir() && takes == Takes::Files {
            let what = "is a directory, and only a file is copied here";
            return Err(problem_of(operation, &remote, PathProblem::IsADirectory, what));
        }
        if found.is_dir() {
            download_tree(&mut copier, &source, &local)?;
        } else {
            let target = if local.as_os_str().as_bytes().ends_with(b"/") {
                local.join(name_of(Path::new(&remote), operation)?)
            } else {
                local
            };
            let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
            make_directories(parent.unwrap_or(Path::new(".")), None, operation)?;
            copier.file(&source, &absolute(&target, operation)?)?;
        }
        Ok(copier.progress())
    })
    .await
}

/// Copies a directory under a name of its own first, so that a failure leaves the target as it was.
fn download_tree(copier: &mut Copier, source: &Path, local: &Path) -> Result<()> {
    let operation = Operation::Download;
    let target = absolute(local, operation)?;
    let there = match fs::metadata(&target) {
        Ok(there) if !there.is_dir() => {
            let what = "is a file, and a directory does not replace it";
            return Err(problem_of(operation, &target, PathProblem::NotADirectory, what));
        }
        Ok(_) => true,
        Err(_) => false,
    };
    let folder = if there {
        &target
    } else {
        target.parent().unwrap_or(Path::new("/"))
    };
    make_directories(folder, None, operation)?;
    let staged = tempfile::Builder::new()
        .prefix(".gym-sandbox-")
        .tempdir_in(folder);
    let staged = staged.map_err(|error| of_path(operation, folder, error))?;
    let content = staged.path().join("content");
    fs::create_dir(&content).map_err(|error| of_path(operation, &content, error))?;
    copier.tree(source, &content)?;
    if there {
        check_kinds(&content, &target)?;
        return settle(&content, &target).map_err(|error| of_path(operation, &target, error));
    }
    fs::rename(&content, &target).map_err(|error| of_path(operation, &target, error))
}

/// Refuses what would replace a directory by something else, or the other way round, before anything is moved.
fn check_kinds(staged: &Path, target: &Path) -> Result<()> {
    let operation = Operation::Download;
    for entry in fs::read_dir(staged).map_err(|error| of_path(operation, staged, error))? {
        let entry = entry.map_err(|error| of_path(operation, staged, error))?;
        let to = target.join(entry.file_name());
        let Ok(there) = fs::symlink_metadata(&to) else {
            continue;
        };
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        match (is_directory, there.is_dir()) {
            (true, true) => check_kinds(&entry.path(), &to)?,
            (true, false) => {
                let what = "is no directory, and a directory does not replace it";
                return Err(problem_of(operation, &to, PathProblem::NotADirectory, what));
            }
            (false, true) => {
                let what = "is a directory, and stays one";
                return Err(problem_of(operation, &to, PathProblem::IsADirectory, what));
            }
            (false, false) => {}
        }
    }
    Ok(())
}

fn settle(staged: &Path, target: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(staged)? {
        let entry = entry?;
        let to = target.join(entry.file_name());
        if entry.file_type()?.is_dir() && to.is_dir() {
            settle(&entry.path(), &to)?;
        } else {
            fs::rename(entry.path(), &to)?;
        }
    }
    Ok(())
}

async fn download_writer(
    sandbox: &Arc<Sandbox>,
    remote: &str,
    writer: &mut (dyn AsyncWrite + Send + Unpin),
    options: &DownloadOptions,
) -> Result<TransferProgress> {
    let operation = Operation::Download;
    let (roots, path) = (sandbox.roots.clone(), remote.to_owned());
    let (file, size) = blocking(operation, move || {
        let source = find(&roots, &path, LastLink::Follow, operation)?;
        let found = fs::metadata(&source).map_err(|error| of_path(operation, &path, error))?;
        if found.is_dir() {
            let what = "is a directory, and a writer takes one file";
            return Err(problem_of(operation, &path, PathProblem::IsADirectory, what));
        }
        if !found.is_file() {
            return Err(problem_of(
                operation,
                &path,
                PathProblem::NotServable,
                "is no regular file",
            ));
        }
        let file = fs::File::open(&source).map_err(|error| of_path(operation, &path, error))?;
        Ok((file, found.len()))
    })
    .await?;
    if size > options.max_bytes {
        return Err(problem_of(
            operation,
            remote,
            PathProblem::TooLarge,
            "is over the limit of bytes",
        ));
    }
    let (_waiting, dropped) = Waiting::new();
    let mut copier = Copier::of_download(options, dropped);
    let mut file = tokio::fs::File::from_std(file).take(size);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = file
            .read(&mut buffer)
            .await
            .map_err(|error| of_path(operation, remote, error))?;
        if read == 0 {
            break;
        }
        match tokio::time::timeout(options.stall_timeout, writer.write_all(&buffer[..read])).await {
            Ok(written) => written.map_err(writing)?,
            Err(_) => {
                return Err(Error::new(
                    ErrorKind::Timeout,
                    operation,
                    format!("the writer took nothing for {:?}", options.stall_timeout),
                ));
            }
        }
        copier.moved(read as u64);
    }
    writer.flush().await.map_err(writing)?;
    let progress = copier.progress();
    if progress.bytes != size {
        return Err(problem_of(
            operation,
            remote,
            PathProblem::Changed,
            "changed while it was read",
        ));
    }
    Ok(progress)
}

fn writing(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, Operation::Download, "the writer failed").with_source(error)
}

fn name_of(path: &Path, operation: Operation) -> Result<&OsStr> {
    path.file_name()
        .ok_or_else(|| Error::invalid(operation, format!("`{}` has no file name", path.display())))
}

fn absolute(path: &Path, operation: Operation) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| of_path(operation, path, error))
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
