//! What is found at a path of a sandbox. No I/O.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::SystemTime;

use serde::Serialize;

/// The owner of a file in a sandbox, as numbers. Names mean nothing between machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct FileOwner {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

impl FileOwner {
    /// Root.
    pub const ROOT: Self = Self { uid: 0, gid: 0 };

    /// Names a user and a group by number.
    pub fn new(uid: u32, gid: u32) -> Self {
        Self { uid, gid }
    }
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device, socket or pipe.
    Special,
}

/// What is known of a file in a sandbox. Links are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileStat {
    /// What it is.
    pub kind: FileKind,
    /// The size of a file in bytes; 0 for anything else.
    pub size_bytes: u64,
    /// Permissions with set-id and sticky bits, without the type.
    pub mode: u32,
    /// The time of the last change of its content, in whole seconds.
    pub mtime: SystemTime,
    /// Who owns it.
    pub owner: FileOwner,
    /// The text of a link.
    pub link_target: Option<PathBuf>,
}

impl FileStat {
    /// Makes one with mode 0, time 0, owned by root.
    pub fn new(kind: FileKind) -> Self {
        Self {
            kind,
            size_bytes: 0,
            mode: 0,
            mtime: SystemTime::UNIX_EPOCH,
            owner: FileOwner::ROOT,
            link_target: None,
        }
    }
}

/// One entry of a directory in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileEntry {
    /// Its name in the directory, as the bytes it has there.
    pub name: OsString,
    /// What is known of it.
    pub stat: FileStat,
}

impl FileEntry {
    /// Makes one.
    pub fn new(name: impl Into<OsString>, stat: FileStat) -> Self {
        Self {
            name: name.into(),
            stat,
        }
    }
}

/// What is removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoveMode {
    /// A file, a link or an empty directory.
    #[default]
    One,
    /// A directory with all that is in it, too. Links in it are removed and not followed.
    Recursive,
}
