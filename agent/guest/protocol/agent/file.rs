//! What is told of files.

use super::super::wire::{Malformed, Reader, Writer};

/// What kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, pipe or socket.
    Other,
}

/// What is known of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInfo {
    /// The name in its directory for an entry, the path as asked for otherwise.
    pub name: Vec<u8>,
    /// Its kind.
    pub kind: FileKind,
    /// The permission bits, with set-id and sticky bits.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The size in bytes. 0 for many files of /proc that are not empty.
    pub size: u64,
    /// When it was modified, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Where a link points to; empty for other kinds.
    pub target: Vec<u8>,
}

/// Why a file could not be read, written or listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFailure {
    /// The system's error number.
    pub errno: i32,
    /// What was tried, such as `open` or `rename`.
    pub what: String,
}

impl FileInfo {
    pub(super) const SMALLEST_BYTES: usize = 37;

    pub(super) fn write(&self, writer: Writer) -> Writer {
        let kind = match self.kind {
            FileKind::File => 1,
            FileKind::Directory => 2,
            FileKind::Link => 3,
            FileKind::Other => 4,
        };
        writer
            .u8(kind)
            .u32(self.mode)
            .u32(self.uid)
            .u32(self.gid)
            .u64(self.size)
            .i64(self.modified_ns)
            .bytes(&self.name)
            .bytes(&self.target)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let kind = match reader.u8()? {
            1 => FileKind::File,
            2 => FileKind::Directory,
            3 => FileKind::Link,
            _ => FileKind::Other,
        };
        Ok(Self {
            kind,
            mode: reader.u32()?,
            uid: reader.u32()?,
            gid: reader.u32()?,
            size: reader.u64()?,
            modified_ns: reader.i64()?,
            name: reader.bytes()?,
            target: reader.bytes()?,
        })
    }
}
