//! Files in and out through the engine's archive calls, as tar streams of bounded memory (contract 2.11, D13, D14).

mod pack;
mod remote;
mod unpack;

use std::path::{Path, PathBuf};

use bollard::query_parameters::{DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder};
use futures::StreamExt;
use tokio::sync::mpsc;

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result};

use super::failure::EngineFailure;
use super::lanes::Lane;
use super::{DockerProvider, DockerRaw};

use remote::{RemoteKind, RemotePath};

/// What a call takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accept {
    /// One file.
    File,
    /// A file or a directory.
    Any,
}

/// Chunks on their way between the engine and the disk: with their size this bounds the memory of a transfer.
const CHUNKS: usize = 16;

impl DockerProvider {
    /// Copies a local file or directory into a container.
    pub(super) async fn upload_path(
        &self,
        raw: &DockerRaw,
        local: &Path,
        remote: &str,
        accept: Accept,
    ) -> Result<()> {
        let metadata = tokio::fs::metadata(local)
            .await
            .map_err(|error| local_error(Operation::Upload, local, error))?;
        if metadata.is_dir() && accept == Accept::File {
            return Err(path_error(
                Operation::Upload,
                PathProblem::IsADirectory,
                format!("`{}` is a directory; a file is needed", local.display()),
            ));
        }
        let target = RemotePath::parse(Operation::Upload, remote)?;
        let target = if target.names_directory() && !metadata.is_dir() {
            target.join(&file_name(local)?)
        } else {
            target
        };
        self.check_upload_target(raw, &target, metadata.is_dir()).await?;
        let _slot = self.lanes().slot(Lane::Transfer).await?;
        let engine = self.engine().await?;
        let (sender, receiver) = mpsc::channel(CHUNKS);
        let source = local.to_owned();
        let entry = target.as_entry_name();
        let packing = tokio::task::spawn_blocking(move || pack::pack(&source, &entry, sender));
        // Full names below `/`: engines differ in how they follow links below another path (engine-facts S3).
        let options = UploadToContainerOptionsBuilder::new()
            .path("/")
            .no_overwrite_dir_non_dir("true")
            .build();
        let body = futures::stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|chunk| (chunk, receiver))
        });
        let sent = engine
            .client
            .upload_to_container(&raw.container_id, Some(options), bollard::body_try_stream(body))
            .await;
        let packed = packing.await.map_err(|error| {
            Error::new(ErrorKind::Internal, Operation::Upload, "packing did not end").with_source(error)
        })?;
        match (sent, packed) {
            (Ok(()), Ok(())) => Ok(()),
            // What the engine says is the cause when it hung up on the packer, and not when the packer gave up first.
            (Err(error), Ok(()) | Err(pack::PackError::Cut)) => {
                Err(remote::upload_error(&target, error.into()))
            }
            (_, Err(error)) => Err(error.into_error(local)),
        }
    }

    /// A file never replaces a directory, nor a directory a file.
    async fn check_upload_target(&self, raw: &DockerRaw, target: &RemotePath, directory: bool) -> Result<()> {
        match self.remote_stat(raw, Operation::Upload, target).await? {
            Some(RemoteKind::Directory) if !directory => Err(path_error(
                Operation::Upload,
                PathProblem::IsADirectory,
                format!("`{target}` is a directory in the sandbox"),
            )
            .with_hint("end the path with `/` to copy into the directory")),
            Some(RemoteKind::File) if directory => Err(path_error(
                Operation::Upload,
                PathProblem::NotADirectory,
                format!("`{target}` is a file in the sandbox, and a directory is to be copied there"),
            )),
            _ => Ok(()),
        }
    }

    /// Copies a file or directory out of a container.
    pub(super) async fn download_path(
        &self,
        raw: &DockerRaw,
        remote: &str,
        local: &Path,
        accept: Accept,
    ) -> Result<()> {
        let source = RemotePath::parse(Operation::Download, remote)?;
        let source = self.follow_links(raw, &source).await?;
        let into_directory = local.as_os_str().to_string_lossy().ends_with('/') || local.is_dir();
        let _slot = self.lanes().slot(Lane::Transfer).await?;
        let engine = self.engine().await?;
        let options = DownloadFromContainerOptionsBuilder::new()
            .path(source.as_str())
            .build();
        let mut stream = engine
            .client
            .download_from_container(&raw.container_id, Some(options));
        let (sender, receiver) = mpsc::channel(CHUNKS);
        let plan = unpack::Plan {
            target: local.to_owned(),
            into_directory,
            accept,
        };
        let remote_name = source.to_string();
        let unpacking = tokio::task::spawn_blocking(move || unpack::unpack(receiver, &plan, &remote_name));
        let mut failure = None;
        while let Some(chunk) = stream.next().await {
            match chunk {
                Ok(chunk) => {
                    if sender.send(Ok(chunk)).await.is_err() {
                        break;
                    }
                }
                Err(error) => {
                    let cut = std::io::Error::other("the engine ended the transfer");
                    failure = Some(EngineFailure::from(error));
                    // The unpacker may have given up before; then its own error says more.
                    let _given_up = sender.send(Err(cut)).await.is_err();
                    break;
                }
            }
        }
        drop(sender);
        let unpacked = unpacking.await.map_err(|error| {
            Error::new(ErrorKind::Internal, Operation::Download, "unpacking did not end").with_source(error)
        })?;
        match failure {
            Some(failure) => Err(remote::download_error(&source, failure)),
            None => unpacked,
        }
    }
}

pub(super) fn path_error(operation: Operation, problem: PathProblem, message: String) -> Error {
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
        Io::ReadOnlyFilesystem => ErrorKind::Path(PathProblem::ReadOnly),
        Io::StorageFull => ErrorKind::ResourceExhausted(crate::error::Resource::Disk),
        _ => ErrorKind::Io,
    };
    Error::new(
        kind,
        operation,
        format!("`{}` on this machine can't be used", path.display()),
    )
    .with_source(error)
}

fn file_name(local: &Path) -> Result<String> {
    let name: Option<PathBuf> = local.file_name().map(PathBuf::from);
    name.and_then(|name| name.to_str().map(str::to_owned))
        .ok_or_else(|| {
            path_error(
                Operation::Upload,
                PathProblem::NotServable,
                format!("`{}` has no file name in UTF-8", local.display()),
            )
        })
}
