//! What the client asks about files.

use super::wire::{Malformed, Reader, Writer};

/// Which file to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadRequest {
    /// The absolute path. A link is followed.
    pub path: Vec<u8>,
    /// More bytes than this are an error (EFBIG) and not a part of the file.
    pub max_bytes: u64,
    /// How many bytes the client has room for at first.
    pub credit: u32,
}

/// Which file to write, and as what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteRequest {
    /// The absolute path. Links in its parents are followed, a link as its last part is replaced.
    pub path: Vec<u8>,
    /// The permission bits.
    pub mode: u32,
    /// The owner; `u32::MAX` for the agent's own.
    pub uid: u32,
    /// The group; `u32::MAX` for the agent's own.
    pub gid: u32,
    /// The modification time in nanoseconds since 1970; `i64::MIN` for now.
    pub modified_ns: i64,
    /// Makes missing parents, with mode 0755 and the same owner.
    pub make_parents: bool,
    /// Writes into the file that is there instead of replacing it. For files that are mounted or in /proc.
    pub in_place: bool,
}

/// Which directory to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// The absolute path. A link is followed.
    pub path: Vec<u8>,
    /// More entries than this are an error (EOVERFLOW).
    pub max_entries: u32,
}

/// Which file gets which name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenameRequest {
    /// The absolute path that it has. A link as its last part is not followed.
    pub from: Vec<u8>,
    /// The absolute path that it gets, in the same file system. A file or link there is replaced, a directory is not.
    pub to: Vec<u8>,
}

const MAKE_PARENTS: u32 = 1;
const IN_PLACE: u32 = 2;

impl WriteRequest {
    pub(super) fn write(&self, writer: Writer) -> Writer {
        let mut flags = 0;
        if self.make_parents {
            flags |= MAKE_PARENTS;
        }
        if self.in_place {
            flags |= IN_PLACE;
        }
        writer
            .u32(flags)
            .u32(self.mode)
            .u32(self.uid)
            .u32(self.gid)
            .i64(self.modified_ns)
            .bytes(&self.path)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let flags = reader.u32()?;
        if flags & !(MAKE_PARENTS | IN_PLACE) != 0 {
            return Err(Malformed("an unknown flag of a file"));
        }
        Ok(Self {
            make_parents: flags & MAKE_PARENTS != 0,
            in_place: flags & IN_PLACE != 0,
            mode: reader.u32()?,
            uid: reader.u32()?,
            gid: reader.u32()?,
            modified_ns: reader.i64()?,
            path: reader.bytes()?,
        })
    }
}
