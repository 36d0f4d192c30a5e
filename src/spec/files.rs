//! What is said of files: how they are copied, what is found, how far a transfer is. No I/O.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};

use super::FileOwner;

/// How many entries an archive from a sandbox may have by default (contract D14).
pub const DEFAULT_MAX_ENTRIES: u64 = 1_000_000;

/// How many bytes of files a download may bring by default: 64 GiB (contract D14).
pub const DEFAULT_MAX_DOWNLOAD_BYTES: u64 = 64 << 30;

/// How many bytes [`AsyncSandbox::read_file`](crate::AsyncSandbox::read_file) takes into memory by default: 64 MiB.
pub const DEFAULT_MAX_READ_BYTES: u64 = 64 << 20;

/// How long a transfer may go without moving a byte by default.
pub const DEFAULT_STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Where the content of an upload comes from.
#[non_exhaustive]
pub enum UploadSource<'a> {
    /// A local file or directory. A symbolic link is followed; links inside a directory stay links.
    Path(&'a Path),
    /// These bytes, as a file.
    Bytes(Bytes),
    /// What a reader gives until its end, as a file.
    Reader {
        /// The reader.
        reader: Box<dyn AsyncRead + Send + Unpin + 'a>,
        /// How many bytes it gives. A reader that gives fewer or more fails the upload and leaves the target as it was.
        /// Without it the content is first written to a temporary file on this machine: an archive names sizes first.
        size: Option<u64>,
    },
}

impl<'a> UploadSource<'a> {
    /// Takes the content from a reader.
    pub fn reader(reader: impl AsyncRead + Send + Unpin + 'a, size: Option<u64>) -> Self {
        Self::Reader {
            reader: Box::new(reader),
            size,
        }
    }
}

impl fmt::Debug for UploadSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::Reader { size, .. } => write!(f, "Reader({size:?} bytes)"),
        }
    }
}

/// Where the content of a download goes.
#[non_exhaustive]
pub enum DownloadTarget<'a> {
    /// A local file or directory, by the rule of [`FilesProvider`](crate::provider::FilesProvider).
    Path(&'a Path),
    /// A writer, for one file. It gets what has come when the download fails.
    Writer(&'a mut (dyn AsyncWrite + Send + Unpin)),
}

impl fmt::Debug for DownloadTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Writer(_) => f.write_str("Writer"),
        }
    }
}

/// What is done with devices, sockets and pipes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecialFiles {
    /// The transfer fails with [`PathProblem::UnsafeArchive`](crate::PathProblem::UnsafeArchive) before it makes one.
    #[default]
    Refuse,
    /// They are left out.
    Skip,
}

/// What is done with symbolic links of a downloaded directory whose text leads out of it. Nothing is ever written
/// through a link, whatever this says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutwardLinks {
    /// They are made with the same text, as any other. Who reads through them reads files of this machine.
    #[default]
    Keep,
    /// The download fails with [`PathProblem::UnsafeArchive`](crate::PathProblem::UnsafeArchive).
    Refuse,
    /// They are left out.
    Skip,
}

/// What is done with names of one directory that differ only in case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaseCollisions {
    /// Both are made. On a file system that does not tell them apart the second one fails.
    #[default]
    Allow,
    /// The download fails with [`PathProblem::UnsafeArchive`](crate::PathProblem::UnsafeArchive).
    Refuse,
}

/// What is done with the set-user-id and set-group-id bits of downloaded files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetIdBits {
    /// They are cleared: a program of the sandbox that runs as somebody else here would break out of it.
    #[default]
    Clear,
    /// They are kept.
    Keep,
}

/// How far a transfer is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TransferProgress {
    /// How many bytes of file content have moved.
    pub bytes: u64,
    /// How many there are. None for directories and where the sender does not say.
    pub total_bytes: Option<u64>,
    /// How many files, directories and links were begun.
    pub entries: u64,
}

/// Called while a transfer moves, on any thread, at most once a chunk. It must not block.
#[derive(Clone)]
pub struct ProgressCallback(Arc<dyn Fn(TransferProgress) + Send + Sync>);

impl ProgressCallback {
    /// Wraps a function.
    pub fn new(callback: impl Fn(TransferProgress) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }

    /// Calls it.
    pub fn call(&self, progress: TransferProgress) {
        (self.0)(progress);
    }
}

impl fmt::Debug for ProgressCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressCallback")
    }
}

/// How an upload is made. The default keeps mode and time of local files and gives everything to the sandbox's user.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UploadOptions {
    /// Who owns what is made, also parents. None: the user of the sandbox.
    pub owner: Option<FileOwner>,
    /// The mode of the file, set-id and sticky bits included. None: the local file's, 0644 for bytes and readers.
    /// Refused for a directory, whose files have a mode each.
    pub mode: Option<u32>,
    /// The time of everything that is uploaded, in whole seconds. None: that of the local files, now for bytes and
    /// readers.
    pub mtime: Option<SystemTime>,
    /// What is done with devices, sockets and pipes of a local directory.
    pub special_files: SpecialFiles,
    /// How long the transfer may go without moving a byte. There is no bound on the whole of it.
    pub stall_timeout: Duration,
    /// Told how far it is.
    pub progress: Option<ProgressCallback>,
}

impl Default for UploadOptions {
    fn default() -> Self {
        Self {
            owner: None,
            mode: None,
            mtime: None,
            special_files: SpecialFiles::default(),
            stall_timeout: DEFAULT_STALL_TIMEOUT,
            progress: None,
        }
    }
}

impl UploadOptions {
    /// Sets who owns what is made.
    pub fn with_owner(mut self, owner: FileOwner) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Sets the mode of the file.
    pub fn with_mode(mut self, mode: u32) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Sets the time of everything that is uploaded.
    pub fn with_mtime(mut self, mtime: SystemTime) -> Self {
        self.mtime = Some(mtime);
        self
    }

    /// Sets what is done with devices, sockets and pipes.
    pub fn with_special_files(mut self, special_files: SpecialFiles) -> Self {
        self.special_files = special_files;
        self
    }

    /// Sets how long the transfer may go without moving a byte.
    pub fn with_stall_timeout(mut self, timeout: Duration) -> Self {
        self.stall_timeout = timeout;
        self
    }

    /// Sets what is told how far it is.
    pub fn with_progress(mut self, progress: ProgressCallback) -> Self {
        self.progress = Some(progress);
        self
    }
}

/// How a download is made, and how much of it is taken. The sandbox is not trusted: see each field.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DownloadOptions {
    /// How many files, directories and links are taken; one more fails the download.
    pub max_entries: u64,
    /// How many bytes of file content are taken; a file that would go over fails the download before it is written.
    pub max_bytes: u64,
    /// What is done with devices, sockets and pipes.
    pub special_files: SpecialFiles,
    /// What is done with links that lead out of the downloaded directory.
    pub outward_links: OutwardLinks,
    /// What is done with names that differ only in case.
    pub case_collisions: CaseCollisions,
    /// What is done with set-id bits of files.
    pub set_id_bits: SetIdBits,
    /// How long the transfer may go without moving a byte. There is no bound on the whole of it.
    pub stall_timeout: Duration,
    /// Told how far it is.
    pub progress: Option<ProgressCallback>,
}

impl Default for DownloadOptions {
    fn default() -> Self {
        Self {
            max_entries: DEFAULT_MAX_ENTRIES,
            max_bytes: DEFAULT_MAX_DOWNLOAD_BYTES,
            special_files: SpecialFiles::default(),
            outward_links: OutwardLinks::default(),
            case_collisions: CaseCollisions::default(),
            set_id_bits: SetIdBits::default(),
            stall_timeout: DEFAULT_STALL_TIMEOUT,
            progress: None,
        }
    }
}

impl DownloadOptions {
    /// Sets how many entries are taken.
    pub fn with_max_entries(mut self, entries: u64) -> Self {
        self.max_entries = entries;
        self
    }

    /// Sets how many bytes are taken.
    pub fn with_max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets what is done with devices, sockets and pipes.
    pub fn with_special_files(mut self, special_files: SpecialFiles) -> Self {
        self.special_files = special_files;
        self
    }

    /// Sets what is done with links that lead out.
    pub fn with_outward_links(mut self, links: OutwardLinks) -> Self {
        self.outward_links = links;
        self
    }

    /// Sets what is done with names that differ only in case.
    pub fn with_case_collisions(mut self, collisions: CaseCollisions) -> Self {
        self.case_collisions = collisions;
        self
    }

    /// Sets what is done with set-id bits.
    pub fn with_set_id_bits(mut self, bits: SetIdBits) -> Self {
        self.set_id_bits = bits;
        self
    }

    /// Sets how long the transfer may go without moving a byte.
    pub fn with_stall_timeout(mut self, timeout: Duration) -> Self {
        self.stall_timeout = timeout;
        self
    }

    /// Sets what is told how far it is.
    pub fn with_progress(mut self, progress: ProgressCallback) -> Self {
        self.progress = Some(progress);
        self
    }
}
