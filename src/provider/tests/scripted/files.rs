//! Copies, and the calls about files that copy nothing.

use async_trait::async_trait;

use crate::error::{Operation, Result};
use crate::provider::{FilesProvider, SandboxHandle};
use crate::spec::{
    DownloadOptions, DownloadTarget, FileEntry, FileStat, RemoveMode, TransferProgress, UploadOptions,
    UploadSource,
};

use super::{Call, Scripted};

#[async_trait]
impl FilesProvider for Scripted {
    async fn upload(
        &self,
        _handle: &SandboxHandle,
        source: UploadSource<'_>,
        remote: &str,
        _options: &UploadOptions,
    ) -> Result<TransferProgress> {
        let shown = match source {
            UploadSource::Path(local) => local.display().to_string(),
            other => format!("{other:?}"),
        };
        self.note(Call::Upload(remote.to_owned(), shown));
        self.step(Operation::Upload).await?;
        Ok(TransferProgress::default())
    }

    async fn download(
        &self,
        _handle: &SandboxHandle,
        remote: &str,
        _target: DownloadTarget<'_>,
        _options: &DownloadOptions,
    ) -> Result<TransferProgress> {
        self.note(Call::Download(remote.to_owned()));
        self.step(Operation::Download).await?;
        Ok(TransferProgress::default())
    }

    async fn stat(&self, _handle: &SandboxHandle, remote: &str) -> Result<Option<FileStat>> {
        self.note(Call::Files("stat", remote.to_owned()));
        self.step(Operation::Files).await?;
        Ok(None)
    }

    async fn list(&self, _handle: &SandboxHandle, remote: &str) -> Result<Vec<FileEntry>> {
        self.note(Call::Files("list", remote.to_owned()));
        self.step(Operation::Files).await?;
        Ok(Vec::new())
    }

    async fn remove(&self, _handle: &SandboxHandle, remote: &str, _mode: RemoveMode) -> Result<bool> {
        self.note(Call::Files("remove", remote.to_owned()));
        self.step(Operation::Files).await?;
        Ok(false)
    }

    async fn make_directory(
        &self,
        _handle: &SandboxHandle,
        remote: &str,
        _options: &UploadOptions,
    ) -> Result<()> {
        self.note(Call::Files("make_directory", remote.to_owned()));
        self.step(Operation::Files).await
    }
}
