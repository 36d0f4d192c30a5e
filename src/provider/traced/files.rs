//! Spans of the calls about files.

use async_trait::async_trait;
use tracing::{Instrument, field::Empty, info_span};

use crate::error::{Operation, Result};
use crate::provider::{Capability, FilesProvider, SandboxHandle};
use crate::spec::{
    DownloadOptions, DownloadTarget, FileEntry, FileStat, RemoveMode, TransferProgress, UploadOptions,
    UploadSource,
};

use super::{Traced, lost, noted};

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl FilesProvider for Traced {
    async fn upload(
        &self,
        handle: &SandboxHandle,
        source: UploadSource<'_>,
        remote: &str,
        options: &UploadOptions,
    ) -> Result<TransferProgress> {
        let span = self.span(handle, call_span!("sandbox.upload"));
        async {
            noted(
                self.files(Operation::Upload)?
                    .upload(handle, source, remote, options)
                    .await,
            )
        }
        .instrument(span)
        .await
    }

    async fn download(
        &self,
        handle: &SandboxHandle,
        remote: &str,
        target: DownloadTarget<'_>,
        options: &DownloadOptions,
    ) -> Result<TransferProgress> {
        let span = self.span(handle, call_span!("sandbox.download"));
        async {
            noted(
                self.files(Operation::Download)?
                    .download(handle, remote, target, options)
                    .await,
            )
        }
        .instrument(span)
        .await
    }

    async fn stat(&self, handle: &SandboxHandle, remote: &str) -> Result<Option<FileStat>> {
        let span = self.span(handle, call_span!("sandbox.stat"));
        async { noted(self.files(Operation::Files)?.stat(handle, remote).await) }
            .instrument(span)
            .await
    }

    async fn list(&self, handle: &SandboxHandle, remote: &str) -> Result<Vec<FileEntry>> {
        let span = self.span(handle, call_span!("sandbox.list"));
        async { noted(self.files(Operation::Files)?.list(handle, remote).await) }
            .instrument(span)
            .await
    }

    async fn remove(&self, handle: &SandboxHandle, remote: &str, mode: RemoveMode) -> Result<bool> {
        let span = self.span(handle, call_span!("sandbox.remove"));
        async { noted(self.files(Operation::Files)?.remove(handle, remote, mode).await) }
            .instrument(span)
            .await
    }

    async fn make_directory(
        &self,
        handle: &SandboxHandle,
        remote: &str,
        options: &UploadOptions,
    ) -> Result<()> {
        let span = self.span(handle, call_span!("sandbox.make_directory"));
        async {
            noted(
                self.files(Operation::Files)?
                    .make_directory(handle, remote, options)
                    .await,
            )
        }
        .instrument(span)
        .await
    }
}

impl Traced {
    fn files(&self, operation: Operation) -> Result<&dyn FilesProvider> {
        self.inner
            .as_files()
            .ok_or_else(|| lost(self, operation, Capability::Files))
    }
}
