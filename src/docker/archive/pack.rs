//! From local files to a tar stream, on a blocking thread, in bounded memory: small files are read whole and checked
//! before their header is sent, larger ones are streamed.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Error, Operation, PathProblem};
use crate::spec::{FileOwner, SpecialFiles};

use super::entry::{Entry, Kind, TRAILER, header_bytes, padding};
use super::stream::{CHUNK_BYTES, ChunkWriter, Moved};
use super::{local_error, path_error};

/// A file up to this size is read before anything of it is sent.
pub(super) const SMALL_BYTES: u64 = 1 << 20;

/// Why packing ended early.
#[derive(Debug)]
pub(in crate::docker) enum PackError {
    /// Nobody reads the stream any more.
    Cut,
    /// A file grew, shrank or was replaced while it was read.
    Changed(PathBuf),
    /// A device, socket or pipe.
    Special(PathBuf),
    /// A local file can't be read.
    Local(PathBuf, io::Error),
    /// One of these, after a part of that file was sent.
    Torn(PathBuf, Box<PackError>),
}

impl PackError {
    pub(super) fn into_error(self) -> Error {
        self.into_error_of(Operation::Upload)
    }

    pub(in crate::docker) fn into_error_of(self, operation: Operation) -> Error {
        match self {
            Self::Cut => Error::new(
                crate::error::ErrorKind::Unavailable,
                operation,
                "the engine ended the transfer before it was complete",
            ),
            Self::Changed(path) => path_error(
                operation,
                PathProblem::Changed,
                format!("`{}` changed while it was read", path.display()),
            )
            .with_hint("copy it first, or upload it when nobody writes to it"),
            Self::Special(path) => path_error(
                operation,
                PathProblem::NotServable,
                format!("`{}` is a device, socket or pipe", path.display()),
            )
            .with_hint("leave it out, or set `SpecialFiles::Skip`"),
            Self::Local(path, error) => local_error(operation, &path, error),
            Self::Torn(_, error) => error.into_error_of(operation),
        }
    }
}

/// What is the same for all entries of one archive.
#[derive(Debug, Clone)]
pub(super) struct Stamp {
    pub(super) owner: FileOwner,
    /// Seconds since 1970 instead of each file's own.
    pub(super) mtime: Option<u64>,
    pub(super) special_files: SpecialFiles,
}

impl Stamp {
    fn entry(&self, name: &[u8], kind: Kind, metadata: &Metadata, size: u64) -> Entry {
        Entry {
            name: name.to_vec(),
            kind,
            size,
            mode: metadata.permissions().mode() & 0o7777,
            mtime: self
                .mtime
                .unwrap_or_else(|| u64::try_from(metadata.mtime()).unwrap_or_default()),
            uid: self.owner.uid,
            gid: self.owner.gid,
            link: Vec::new(),
        }
    }
}

/// Chooses what of a tree is packed.
pub(in crate::docker) trait Selection: std::fmt::Debug + Send + Sync {
    /// Decides about an entry by its name in the archive.
    fn choose(&self, name: &[u8], is_directory: bool) -> Choice;
}

/// What becomes of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::docker) enum Choice {
    Pack,
    /// It is left out, with everything in it.
    LeaveOut,
    /// The directory has no entry of its own, but what is in it may have.
    LookInside,
}

/// What of a local directory's tree is packed, and under which name.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) source: PathBuf,
    /// The name of the directory in the archive; empty for the place where the archive is unpacked.
    pub(super) name: Vec<u8>,
    /// Whether the directory itself gets an entry: one re-owns a directory that exists.
    pub(super) own_entry: bool,
    /// Entries that come before.
    pub(super) parents: Vec<u8>,
    pub(super) stamp: Stamp,
    /// None: everything is packed.
    pub(super) selection: Option<Box<dyn Selection>>,
}

/// Packs a directory. Cancelled, it ends after the file that it is at, with a whole archive.
pub(super) fn pack_tree(tree: &Tree, writer: &mut ChunkWriter, moved: &Moved) -> Result<(), PackError> {
    let mut packer = Packer {
        tree,
        writer,
        moved,
        links: HashMap::new(),
        buffer: Vec::new(),
    };
    let outcome = packer.pack();
    if outcome.is_err() {
        writer.cut();
    }
    outcome
}

struct Packer<'a> {
    tree: &'a Tree,
    writer: &'a mut ChunkWriter,
    moved: &'a Moved,
    /// The first name of each file that has several.
    links: HashMap<(u64, u64), Vec<u8>>,
    buffer: Vec<u8>,
}

impl Packer<'_> {
    fn pack(&mut self) -> Result<(), PackError> {
        let tree = self.tree;
        self.send(&tree.parents)?;
        if tree.own_entry {
            let metadata = fs::metadata(&tree.source).map_err(|error| local(&tree.source, error))?;
            self.begin(&tree.stamp.entry(&tree.name, Kind::Directory, &metadata, 0))?;
        }
        let mut open = vec![(names(&tree.source)?, tree.source.clone(), tree.name.clone())];
        while let Some((left, directory, name)) = open.last_mut() {
            if self.moved.is_cancelled() {
                break;
            }
            // Where nothing is chosen nothing is sent, and this would not be noticed.
            if self.writer.is_unread() {
                return Err(PackError::Cut);
            }
            let Some(child) = left.pop() else {
                open.pop();
                continue;
            };
            let path = directory.join(OsStr::from_bytes(&child));
            let name = if name.is_empty() {
                child
            } else {
                [name.as_slice(), b"/", &child].concat()
            };
            if self.child(&path, &name)? {
                open.push((names(&path)?, path, name));
            }
        }
        self.send(&TRAILER)?;
        self.writer.flush().map_err(|_| PackError::Cut)
    }

    /// Packs one child and says whether it is a directory with children of its own.
    fn child(&mut self, path: &Path, name: &[u8]) -> Result<bool, PackError> {
        let metadata = fs::symlink_metadata(path).map_err(|error| local(path, error))?;
        let stamp = &self.tree.stamp;
        let kind = metadata.file_type();
        let selection = self.tree.selection.as_deref();
        match selection.map_or(Choice::Pack, |selection| selection.choose(name, kind.is_dir())) {
            Choice::Pack => {}
            Choice::LeaveOut => return Ok(false),
            Choice::LookInside => return Ok(kind.is_dir()),
        }
        if kind.is_dir() {
            self.begin(&stamp.entry(name, Kind::Directory, &metadata, 0))?;
            return Ok(true);
        }
        if !kind.is_file() && !kind.is_symlink() {
            return match stamp.special_files {
                SpecialFiles::Refuse => Err(PackError::Special(path.to_owned())),
                SpecialFiles::Skip => Ok(false),
            };
        }
        if metadata.nlink() > 1 {
            let inode = (metadata.dev(), metadata.ino());
            if let Some(first) = self.links.get(&inode) {
                let mut entry = stamp.entry(name, Kind::HardLink, &metadata, 0);
                entry.link.clone_from(first);
                return self.begin(&entry).map(|()| false);
            }
            self.links.insert(inode, name.to_vec());
        }
        if kind.is_symlink() {
            let target = fs::read_link(path).map_err(|error| local(path, error))?;
            let mut entry = stamp.entry(name, Kind::Symlink, &metadata, 0);
            entry.link = target.into_os_string().into_vec();
            return self.begin(&entry).map(|()| false);
        }
        self.file(path, name, &metadata).map(|()| false)
    }

    fn file(&mut self, path: &Path, name: &[u8], seen: &Metadata) -> Result<(), PackError> {
        let mut file = File::open(path).map_err(|error| local(path, error))?;
        let metadata = file.metadata().map_err(|error| local(path, error))?;
        if (metadata.dev(), metadata.ino()) != (seen.dev(), seen.ino()) {
            return Err(PackError::Changed(path.to_owned()));
        }
        let size = metadata.len();
        let entry = self.tree.stamp.entry(name, Kind::File, &metadata, size);
        if size <= SMALL_BYTES {
            let mut content = std::mem::take(&mut self.buffer);
            read_small(&mut file, path, size, &mut content)?;
            self.begin(&entry)?;
            self.send(&content)?;
            self.moved.add_bytes(content.len());
            self.buffer = content;
        } else {
            self.begin(&entry)?;
            copy_exactly(&mut file, path, size, self.writer, self.moved).map_err(|error| match error {
                PackError::Cut => PackError::Cut,
                error => PackError::Torn(path.to_owned(), Box::new(error)),
            })?;
        }
        self.send(&TRAILER[..padding(size)])
    }

    fn begin(&mut self, entry: &Entry) -> Result<(), PackError> {
        self.moved.add_entry();
        self.send(&header_bytes(entry))
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), PackError> {
        self.writer.write_all(bytes).map_err(|_| PackError::Cut)
    }
}

/// The names of a directory, the first one last.
fn names(directory: &Path) -> Result<Vec<Vec<u8>>, PackError> {
    let names = fs::read_dir(directory).and_then(|entries| {
        entries
            .map(|entry| Ok(entry?.file_name().into_vec()))
            .collect::<io::Result<Vec<_>>>()
    });
    let mut names = names.map_err(|error| local(directory, error))?;
    names.sort_unstable_by(|one, other| other.cmp(one));
    Ok(names)
}

/// Reads a small file whole; one byte more or less than it had is a change.
pub(super) fn read_small(
    file: &mut File,
    path: &Path,
    size: u64,
    content: &mut Vec<u8>,
) -> Result<(), PackError> {
    content.clear();
    file.take(size + 1)
        .read_to_end(content)
        .map_err(|error| local(path, error))?;
    if content.len() as u64 == size {
        Ok(())
    } else {
        Err(PackError::Changed(path.to_owned()))
    }
}

/// Sends a large file between what comes before and after it; a change cuts the stream.
pub(super) fn pack_file(
    mut file: &File,
    path: &Path,
    size: u64,
    around: &(Vec<u8>, Vec<u8>),
    writer: &mut ChunkWriter,
    moved: &Moved,
) -> Result<(), PackError> {
    let packed = writer
        .write_all(&around.0)
        .map_err(|_| PackError::Cut)
        .and_then(|()| copy_exactly(&mut file, path, size, writer, moved))
        .and_then(|()| {
            writer
                .write_all(&around.1)
                .and_then(|()| writer.flush())
                .map_err(|_| PackError::Cut)
        });
    if packed.is_err() {
        writer.cut();
    }
    packed
}

fn copy_exactly(
    file: &mut impl Read,
    path: &Path,
    size: u64,
    writer: &mut impl Write,
    moved: &Moved,
) -> Result<(), PackError> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut left = size;
    loop {
        // At the end one byte more is asked for: a file that grew is not the file that was announced.
        let most = usize::try_from(left.max(1))
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let read = match file.read(&mut buffer[..most]) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(local(path, error)),
        };
        match (left, read) {
            (0, 0) => return Ok(()),
            (0, _) | (_, 0) => return Err(PackError::Changed(path.to_owned())),
            _ => {}
        }
        writer.write_all(&buffer[..read]).map_err(|_| PackError::Cut)?;
        moved.add_bytes(read);
        left -= read as u64;
    }
}

fn local(path: &Path, error: io::Error) -> PackError {
    PackError::Local(path.to_owned(), error)
}

#[cfg(test)]
#[path = "pack_tests.rs"]
mod tests;
