//! Files of a sandbox through the facade: paths made absolute, and a way by single files for providers that have no
//! other.

use std::path::Path;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result};
use crate::provider::{Capability, FilesProvider, SandboxHandle};
use crate::spec::{
    DEFAULT_MAX_READ_BYTES, DownloadOptions, DownloadTarget, FileEntry, FileStat, RemoveMode,
    TransferProgress, UploadOptions, UploadSource,
};

use super::AsyncSandbox;

impl AsyncSandbox {
    /// Copies a local file or directory into the sandbox.
    ///
    /// A remote path that ends in `/` means "into this directory"; any other path is the target itself. A directory is
    /// copied as its content. Relative remote paths are relative to the working directory of the spec, else to where
    /// the sandbox works by itself: `/` of a container, the folder of a local sandbox. Missing parents are made. Everything belongs to the sandbox's user and keeps its mode and time; a link that is
    /// the target is replaced. The whole rule is that of [`FilesProvider`].
    ///
    /// # Errors
    /// [`ErrorKind::NotStarted`], [`ErrorKind::Stopped`], or a [`PathProblem`](crate::PathProblem) where a path is at
    /// fault; [`ErrorKind::Unsupported`] for a directory where the provider only takes files.
    ///
    /// # Cancel safety
    /// Dropping the future leaves a target file as it was; of a directory, the files that were copied until then, each
    /// whole. Parents that were made stay.
    pub async fn upload(&self, local: impl AsRef<Path> + Send, remote: impl AsRef<str> + Send) -> Result<()> {
        let local = local.as_ref();
        if self.provider.as_files().is_some() {
            return self
                .upload_with(UploadSource::Path(local), remote, &UploadOptions::default())
                .await
                .map(|_| ());
        }
        let (handle, remote) = self.place(Operation::Upload, remote.as_ref())?;
        self.provider.upload_file(&handle, local, &remote).await
    }

    /// Copies from any source into the sandbox, with options, and says how much it was.
    ///
    /// # Errors
    /// As [`upload`](Self::upload), and [`ErrorKind::Unsupported`] where the provider can't.
    ///
    /// # Cancel safety
    /// As [`upload`](Self::upload).
    pub async fn upload_with(
        &self,
        source: UploadSource<'_>,
        remote: impl AsRef<str> + Send,
        options: &UploadOptions,
    ) -> Result<TransferProgress> {
        let files = self.files(Operation::Upload)?;
        let (handle, remote) = self.place(Operation::Upload, remote.as_ref())?;
        files.upload(&handle, source, &remote, options).await
    }

    /// Writes bytes to a file of the sandbox, mode 0644.
    ///
    /// # Errors
    /// As [`upload`](Self::upload).
    ///
    /// # Cancel safety
    /// As [`upload`](Self::upload).
    pub async fn write_file(
        &self,
        remote: impl AsRef<str> + Send,
        content: impl Into<Bytes> + Send,
    ) -> Result<()> {
        let content = content.into();
        if self.provider.as_files().is_some() {
            let source = UploadSource::Bytes(content);
            return self
                .upload_with(source, remote, &UploadOptions::default())
                .await
                .map(|_| ());
        }
        let (handle, remote) = self.place(Operation::Upload, remote.as_ref())?;
        let local = on_disk(Operation::Upload, move || {
            let mut file = tempfile::NamedTempFile::new()?;
            std::io::Write::write_all(&mut file, &content)?;
            Ok(file)
        })
        .await?;
        self.provider.upload_file(&handle, local.path(), &remote).await
    }

    /// Writes what a reader gives to a file of the sandbox, mode 0644. Without a size the content goes through a
    /// temporary file of this machine first.
    ///
    /// # Errors
    /// As [`upload`](Self::upload); [`PathProblem::Changed`] when the reader does not give as many bytes as announced.
    ///
    /// # Cancel safety
    /// As [`upload`](Self::upload).
    pub async fn upload_reader(
        &self,
        reader: impl AsyncRead + Send + Unpin,
        size: Option<u64>,
        remote: impl AsRef<str> + Send,
    ) -> Result<()> {
        let source = UploadSource::reader(reader, size);
        self.upload_with(source, remote, &UploadOptions::default())
            .await
            .map(|_| ())
    }

    /// Copies a file or directory out of the sandbox, by the rules of [`upload`](Self::upload). Nothing is written
    /// outside the target, whatever the sandbox sends.
    ///
    /// # Errors
    /// As [`upload`](Self::upload), and those of [`FilesProvider::download`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves the target as it was.
    pub async fn download(
        &self,
        remote: impl AsRef<str> + Send,
        local: impl AsRef<Path> + Send,
    ) -> Result<()> {
        let local = local.as_ref();
        if self.provider.as_files().is_some() {
            let target = DownloadTarget::Path(local);
            return self
                .download_with(remote, target, &DownloadOptions::default())
                .await
                .map(|_| ());
        }
        let (handle, remote) = self.place(Operation::Download, remote.as_ref())?;
        self.provider.download_file(&handle, &remote, local).await
    }

    /// Copies out of the sandbox to any target, with options, and says how much it was.
    ///
    /// # Errors
    /// As [`download`](Self::download), and [`ErrorKind::Unsupported`] where the provider can't.
    ///
    /// # Cancel safety
    /// As [`download`](Self::download); a writer has what came until then.
    pub async fn download_with(
        &self,
        remote: impl AsRef<str> + Send,
        target: DownloadTarget<'_>,
        options: &DownloadOptions,
    ) -> Result<TransferProgress> {
        let files = self.files(Operation::Download)?;
        let (handle, remote) = self.place(Operation::Download, remote.as_ref())?;
        files.download(&handle, &remote, target, options).await
    }

    /// Reads a file of the sandbox into memory, up to [`DEFAULT_MAX_READ_BYTES`].
    ///
    /// # Errors
    /// As [`download`](Self::download); [`PathProblem::TooLarge`] for a larger one, which
    /// [`download`](Self::download) or [`download_writer`](Self::download_writer) takes.
    ///
    /// # Cancel safety
    /// Nothing changes.
    pub async fn read_file(&self, remote: impl AsRef<str> + Send) -> Result<Bytes> {
        if self.provider.as_files().is_some() {
            let mut content = Vec::new();
            let options = DownloadOptions::default().with_max_bytes(DEFAULT_MAX_READ_BYTES);
            self.download_with(remote, DownloadTarget::Writer(&mut content), &options)
                .await?;
            return Ok(content.into());
        }
        let (handle, remote) = self.place(Operation::Download, remote.as_ref())?;
        let local = on_disk(Operation::Download, tempfile::NamedTempFile::new).await?;
        self.provider
            .download_file(&handle, &remote, local.path())
            .await?;
        let size = on_disk(Operation::Download, {
            let path = local.path().to_owned();
            move || Ok(std::fs::metadata(path)?.len())
        });
        if size.await? > DEFAULT_MAX_READ_BYTES {
            return Err(Error::new(
                ErrorKind::Path(PathProblem::TooLarge),
                Operation::Download,
                format!("the file has more than {DEFAULT_MAX_READ_BYTES} bytes"),
            ));
        }
        on_disk(Operation::Download, move || {
            std::fs::read(local.path()).map(Bytes::from)
        })
        .await
    }

    /// Writes a file of the sandbox to a writer.
    ///
    /// # Errors
    /// As [`download`](Self::download).
    ///
    /// # Cancel safety
    /// The writer has what came until then.
    pub async fn download_writer(
        &self,
        remote: impl AsRef<str> + Send,
        writer: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<()> {
        let target = DownloadTarget::Writer(writer);
        self.download_with(remote, target, &DownloadOptions::default())
            .await
            .map(|_| ())
    }

    /// Says what is at a path of the sandbox; None where nothing is. A link is not followed, unless the path ends in
    /// `/`.
    ///
    /// # Errors
    /// As [`FilesProvider::stat`].
    pub async fn stat(&self, remote: impl AsRef<str> + Send) -> Result<Option<FileStat>> {
        let files = self.files(Operation::Files)?;
        let (handle, remote) = self.place(Operation::Files, remote.as_ref())?;
        files.stat(&handle, &remote).await
    }

    /// Says whether there is something at a path of the sandbox. A path through a file leads to nothing.
    ///
    /// # Errors
    /// As [`FilesProvider::stat`], but for [`PathProblem::NotADirectory`].
    pub async fn exists(&self, remote: impl AsRef<str> + Send) -> Result<bool> {
        match self.stat(remote).await {
            Ok(stat) => Ok(stat.is_some()),
            Err(error) if error.kind() == ErrorKind::Path(PathProblem::NotADirectory) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Lists a directory of the sandbox, in the order of its names' bytes.
    ///
    /// # Errors
    /// As [`FilesProvider::list`].
    pub async fn list(&self, remote: impl AsRef<str> + Send) -> Result<Vec<FileEntry>> {
        let files = self.files(Operation::Files)?;
        let (handle, remote) = self.place(Operation::Files, remote.as_ref())?;
        files.list(&handle, &remote).await
    }

    /// Removes what is at a path of the sandbox and says whether there was something.
    ///
    /// # Errors
    /// As [`FilesProvider::remove`].
    ///
    /// # Cancel safety
    /// Dropping the future may leave a part.
    pub async fn remove(&self, remote: impl AsRef<str> + Send, mode: RemoveMode) -> Result<bool> {
        let files = self.files(Operation::Files)?;
        let (handle, remote) = self.place(Operation::Files, remote.as_ref())?;
        files.remove(&handle, &remote, mode).await
    }

    /// Makes a directory of the sandbox and its missing parents. One that exists stays as it is.
    ///
    /// # Errors
    /// As [`FilesProvider::make_directory`].
    ///
    /// # Cancel safety
    /// Dropping the future may leave it made.
    pub async fn make_directory(&self, remote: impl AsRef<str> + Send) -> Result<()> {
        let files = self.files(Operation::Files)?;
        let (handle, remote) = self.place(Operation::Files, remote.as_ref())?;
        files
            .make_directory(&handle, &remote, &UploadOptions::default())
            .await
    }

    fn files(&self, operation: Operation) -> Result<&dyn FilesProvider> {
        self.provider
            .as_files()
            .ok_or_else(|| self.unsupported(operation, Capability::Files))
    }

    fn place(&self, operation: Operation, remote: &str) -> Result<(SandboxHandle, String)> {
        let started = self.started(operation)?;
        let remote = started.remote_path(operation, remote)?;
        Ok((started.handle.clone(), remote))
    }
}

/// Does something with a local file on a thread that may block.
async fn on_disk<T: Send + 'static>(
    operation: Operation,
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            Err(Error::new(ErrorKind::Io, operation, "a temporary file could not be used").with_source(error))
        }
        Err(error) => Err(Error::new(
            ErrorKind::Internal,
            operation,
            "work on a temporary file did not end",
        )
        .with_source(error)),
    }
}
