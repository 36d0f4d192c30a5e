//! The provider's side of files: each call on a handle of ours, its errors named after the sandbox.

use std::path::Path;

use async_trait::async_trait;

use crate::error::{Operation, Result};
use crate::provider::{FilesProvider, SandboxHandle};
use crate::spec::{
    DownloadOptions, DownloadTarget, FileEntry, FileStat, RemoveMode, TransferProgress, UploadOptions,
    UploadSource,
};

use super::super::{DockerProvider, DockerRaw, PROVIDER};
use super::Accept;

impl DockerProvider {
    /// One file in, by its path (the core trait's call).
    pub(in super::super) async fn upload_one(
        &self,
        handle: &SandboxHandle,
        local: &Path,
        remote: &str,
    ) -> Result<()> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Upload)?;
        let (source, options) = (UploadSource::Path(local), UploadOptions::default());
        let sent = Box::pin(self.upload_source(raw, source, remote, &options, Accept::File)).await;
        sent.map(|_| ())
            .map_err(|error| error.with_sandbox(handle.sandbox_id()))
    }

    /// One file out, by its path (the core trait's call).
    pub(in super::super) async fn download_one(
        &self,
        handle: &SandboxHandle,
        remote: &str,
        local: &Path,
    ) -> Result<()> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Download)?;
        let (target, options) = (DownloadTarget::Path(local), DownloadOptions::default());
        let taken = Box::pin(self.download_to(raw, remote, target, &options, Accept::File)).await;
        taken
            .map(|_| ())
            .map_err(|error| error.with_sandbox(handle.sandbox_id()))
    }
}

#[async_trait]
impl FilesProvider for DockerProvider {
    async fn upload(
        &self,
        handle: &SandboxHandle,
        source: UploadSource<'_>,
        remote: &str,
        options: &UploadOptions,
    ) -> Result<TransferProgress> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Upload)?;
        Box::pin(self.upload_source(raw, source, remote, options, Accept::Any))
            .await
            .map_err(|error| error.with_sandbox(handle.sandbox_id()))
    }

    async fn download(
        &self,
        handle: &SandboxHandle,
        remote: &str,
        target: DownloadTarget<'_>,
        options: &DownloadOptions,
    ) -> Result<TransferProgress> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Download)?;
        Box::pin(self.download_to(raw, remote, target, options, Accept::Any))
            .await
            .map_err(|error| error.with_sandbox(handle.sandbox_id()))
    }

    async fn stat(&self, handle: &SandboxHandle, remote: &str) -> Result<Option<FileStat>> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Files)?;
        self.path_stat(raw, remote)
            .await
            .map_err(|error| error.with_sandbox(handle.sandbox_id()))
    }

    async fn list(&self, handle: &SandboxHandle, remote: &str) -> Result<Vec<FileEntry>> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Files)?;
        self.path_list(raw, remote)
            .await
            .map_err(|error| error.with_sandbox(handle.sandbox_id()))
    }

    async fn remove(&self, handle: &SandboxHandle, remote: &str, mode: RemoveMode) -> Result<bool> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Files)?;
        self.path_remove(raw, remote, mode)
            .await
            .map_err(|error| error.with_sandbox(handle.sandbox_id()))
    }

    async fn make_directory(
        &self,
        handle: &SandboxHandle,
        remote: &str,
        options: &UploadOptions,
    ) -> Result<()> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Files)?;
        self.path_make_directory(raw, remote, options)
            .await
            .map_err(|error| error.with_sandbox(handle.sandbox_id()))
    }
}
