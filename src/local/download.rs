//! Files out of a local sandbox: staged beside the target and moved there at the end.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result};
use crate::spec::{DownloadOptions, DownloadTarget, TransferProgress};

use super::LocalProvider;
use super::copy::Copier;
use super::create::Sandbox;
use super::place::{LastLink, find, of_path, problem_of};
use super::process::blocking;
use super::transfer::{Takes, Waiting, make_directories, name_of};

impl LocalProvider {
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

fn absolute(path: &Path, operation: Operation) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| of_path(operation, path, error))
}
