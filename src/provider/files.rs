//! Files and directories of a sandbox as a capability of its provider.
//! Says what is copied where; knows no way of doing it.

use async_trait::async_trait;

use crate::error::Result;
use crate::spec::{
    DownloadOptions, DownloadTarget, FileEntry, FileStat, RemoveMode, TransferProgress, UploadOptions,
    UploadSource,
};

use super::{SandboxHandle, SandboxProvider};

/// Files and directories beyond one file (contract D13, D14).
///
/// One rule for targets, both ways:
/// - A path that ends in `/` means "into this directory", which is made where it is missing: a file gets there under
///   its own name. Any other path is the target itself; a file never replaces a directory, nor a directory a file.
/// - A directory is copied as its content: the target is the directory that has the content afterwards. Other things in
///   it stay.
/// - Missing parents are made, mode 0755, owned as the files; existing ones, and an existing target directory, stay as
///   they are. Directories below it get mode, owner and time of those that are copied.
/// - Links among the parents are followed, inside the sandbox. A link that is the target itself is replaced, and never
///   written through to somewhere else. What is read is followed; [`stat`](Self::stat) and [`remove`](Self::remove) are
///   about the link itself, unless the path ends in `/`.
///
/// All paths in the sandbox are absolute; `.` and `..` mean there what they mean to a program in the sandbox.
#[async_trait]
pub trait FilesProvider: SandboxProvider {
    /// Copies a file or directory into the sandbox and says how much it was.
    ///
    /// # Behavior
    /// - Sizes of local files are believed once: one that grows or shrinks while it is read fails the upload with
    ///   [`PathProblem::Changed`](crate::PathProblem::Changed), and the target stays as it was.
    ///
    /// # Errors
    /// [`ErrorKind::Path`](crate::ErrorKind::Path) where a path is at fault, naming it;
    /// [`ErrorKind::Sandbox`](crate::ErrorKind::Sandbox) where the state of the sandbox is in the way;
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) when nothing moves for the options' stall timeout.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the target file as it was; of a directory, whole files that were copied until then.
    /// Parents that were made stay.
    async fn upload(
        &self,
        handle: &SandboxHandle,
        source: UploadSource<'_>,
        remote: &str,
        options: &UploadOptions,
    ) -> Result<TransferProgress>;

    /// Copies a file or directory out of the sandbox and says how much it was. Nothing is written outside the target,
    /// whatever the sandbox sends.
    ///
    /// # Behavior
    /// - Everything is written under a temporary name beside the target, or in it where it is a directory, and
    ///   renamed at the end: a failure leaves the target as it was.
    /// - Files belong to who runs this program, whoever owns them in the sandbox.
    ///
    /// # Errors
    /// As [`upload`](Self::upload); [`PathProblem::UnsafeArchive`](crate::PathProblem::UnsafeArchive) for what the
    /// options refuse, [`PathProblem::TooLarge`](crate::PathProblem::TooLarge) for what is over their limits.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the target as it was; a writer has what came until then.
    async fn download(
        &self,
        handle: &SandboxHandle,
        remote: &str,
        target: DownloadTarget<'_>,
        options: &DownloadOptions,
    ) -> Result<TransferProgress>;

    /// Says what is at a path; None where nothing is.
    ///
    /// # Errors
    /// As [`upload`](Self::upload); a parent that is a file is
    /// [`PathProblem::NotADirectory`](crate::PathProblem::NotADirectory).
    async fn stat(&self, handle: &SandboxHandle, remote: &str) -> Result<Option<FileStat>>;

    /// Lists a directory in the order of its names' bytes.
    ///
    /// # Errors
    /// As [`stat`](Self::stat), and [`PathProblem::NotFound`](crate::PathProblem::NotFound).
    async fn list(&self, handle: &SandboxHandle, remote: &str) -> Result<Vec<FileEntry>>;

    /// Removes what is at a path and says whether there was something.
    ///
    /// # Errors
    /// As [`stat`](Self::stat); [`PathProblem::Exists`](crate::PathProblem::Exists) for a directory that is not empty
    /// and not removed recursively; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where nothing in the
    /// sandbox can remove files.
    ///
    /// # Cancel safety
    /// Dropping the future may leave a part.
    async fn remove(&self, handle: &SandboxHandle, remote: &str, mode: RemoveMode) -> Result<bool>;

    /// Makes a directory and its missing parents, by the owner and the mode (0755 by default) of the options. One that
    /// exists stays as it is.
    ///
    /// # Errors
    /// As [`stat`](Self::stat); [`PathProblem::NotADirectory`](crate::PathProblem::NotADirectory) where something else
    /// is at the path.
    ///
    /// # Cancel safety
    /// Dropping the future may leave it made.
    async fn make_directory(
        &self,
        handle: &SandboxHandle,
        remote: &str,
        options: &UploadOptions,
    ) -> Result<()>;
}
