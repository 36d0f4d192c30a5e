//! Files of a sandbox through the synchronous facade.

use std::path::Path;

use bytes::Bytes;

use crate::error::{Operation, Result};
use crate::spec::{
    DownloadOptions, DownloadTarget, FileEntry, FileStat, RemoveMode, TransferProgress, UploadOptions,
    UploadSource,
};

use super::Sandbox;

impl Sandbox {
    /// Copies a local file or directory into the sandbox.
    ///
    /// # Errors
    /// As [`AsyncSandbox::upload`](crate::AsyncSandbox::upload) and [`exec`](Self::exec).
    pub fn upload(&self, local: impl AsRef<Path>, remote: impl AsRef<str>) -> Result<()> {
        let (local, remote) = (local.as_ref().to_owned(), remote.as_ref().to_owned());
        self.run(Operation::Upload, move |sandbox| async move {
            sandbox.upload(local, remote).await
        })
    }

    /// Copies a local file or directory into the sandbox, with options, and says how much it was.
    ///
    /// # Errors
    /// As [`AsyncSandbox::upload_with`](crate::AsyncSandbox::upload_with) and [`exec`](Self::exec).
    pub fn upload_with(
        &self,
        local: impl AsRef<Path>,
        remote: impl AsRef<str>,
        options: &UploadOptions,
    ) -> Result<TransferProgress> {
        let (local, remote) = (local.as_ref().to_owned(), remote.as_ref().to_owned());
        let options = options.clone();
        self.run(Operation::Upload, move |sandbox| async move {
            let source = UploadSource::Path(&local);
            sandbox.upload_with(source, remote, &options).await
        })
    }

    /// Writes bytes to a file of the sandbox, mode 0644.
    ///
    /// # Errors
    /// As [`upload`](Self::upload).
    pub fn write_file(&self, remote: impl AsRef<str>, content: impl Into<Bytes>) -> Result<()> {
        let (remote, content) = (remote.as_ref().to_owned(), content.into());
        self.run(Operation::Upload, move |sandbox| async move {
            sandbox.write_file(remote, content).await
        })
    }

    /// Copies a file or directory out of the sandbox.
    ///
    /// # Errors
    /// As [`AsyncSandbox::download`](crate::AsyncSandbox::download) and [`exec`](Self::exec).
    pub fn download(&self, remote: impl AsRef<str>, local: impl AsRef<Path>) -> Result<()> {
        let (remote, local) = (remote.as_ref().to_owned(), local.as_ref().to_owned());
        self.run(Operation::Download, move |sandbox| async move {
            sandbox.download(remote, local).await
        })
    }

    /// Copies a file or directory out of the sandbox, with options, and says how much it was.
    ///
    /// # Errors
    /// As [`AsyncSandbox::download_with`](crate::AsyncSandbox::download_with) and [`exec`](Self::exec).
    pub fn download_with(
        &self,
        remote: impl AsRef<str>,
        local: impl AsRef<Path>,
        options: &DownloadOptions,
    ) -> Result<TransferProgress> {
        let (remote, local) = (remote.as_ref().to_owned(), local.as_ref().to_owned());
        let options = options.clone();
        self.run(Operation::Download, move |sandbox| async move {
            let target = DownloadTarget::Path(&local);
            sandbox.download_with(remote, target, &options).await
        })
    }

    /// Reads a file of the sandbox into memory.
    ///
    /// # Errors
    /// As [`AsyncSandbox::read_file`](crate::AsyncSandbox::read_file) and [`exec`](Self::exec).
    pub fn read_file(&self, remote: impl AsRef<str>) -> Result<Bytes> {
        let remote = remote.as_ref().to_owned();
        self.run(Operation::Download, move |sandbox| async move {
            sandbox.read_file(remote).await
        })
    }

    /// Says what is at a path of the sandbox; None where nothing is.
    ///
    /// # Errors
    /// As [`AsyncSandbox::stat`](crate::AsyncSandbox::stat) and [`exec`](Self::exec).
    pub fn stat(&self, remote: impl AsRef<str>) -> Result<Option<FileStat>> {
        let remote = remote.as_ref().to_owned();
        self.run(Operation::Files, move |sandbox| async move {
            sandbox.stat(remote).await
        })
    }

    /// Says whether there is something at a path of the sandbox.
    ///
    /// # Errors
    /// As [`AsyncSandbox::exists`](crate::AsyncSandbox::exists) and [`exec`](Self::exec).
    pub fn exists(&self, remote: impl AsRef<str>) -> Result<bool> {
        let remote = remote.as_ref().to_owned();
        self.run(Operation::Files, move |sandbox| async move {
            sandbox.exists(remote).await
        })
    }

    /// Lists a directory of the sandbox, in the order of its names' bytes.
    ///
    /// # Errors
    /// As [`AsyncSandbox::list`](crate::AsyncSandbox::list) and [`exec`](Self::exec).
    pub fn list(&self, remote: impl AsRef<str>) -> Result<Vec<FileEntry>> {
        let remote = remote.as_ref().to_owned();
        self.run(Operation::Files, move |sandbox| async move {
            sandbox.list(remote).await
        })
    }

    /// Removes what is at a path of the sandbox and says whether there was something.
    ///
    /// # Errors
    /// As [`AsyncSandbox::remove`](crate::AsyncSandbox::remove) and [`exec`](Self::exec).
    pub fn remove(&self, remote: impl AsRef<str>, mode: RemoveMode) -> Result<bool> {
        let remote = remote.as_ref().to_owned();
        self.run(Operation::Files, move |sandbox| async move {
            sandbox.remove(remote, mode).await
        })
    }

    /// Makes a directory of the sandbox and its missing parents.
    ///
    /// # Errors
    /// As [`AsyncSandbox::make_directory`](crate::AsyncSandbox::make_directory) and [`exec`](Self::exec).
    pub fn make_directory(&self, remote: impl AsRef<str>) -> Result<()> {
        let remote = remote.as_ref().to_owned();
        self.run(Operation::Files, move |sandbox| async move {
            sandbox.make_directory(remote).await
        })
    }
}
