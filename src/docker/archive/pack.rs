//! From a local file or directory to a tar stream. Runs on a blocking thread; memory is a few chunks.

use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use bytes::{Bytes, BytesMut};
use tar::{Builder, EntryType, Header};
use tokio::sync::mpsc;

use crate::error::{Error, Operation, PathProblem};

use super::{local_error, path_error};

/// Why packing ended early.
#[derive(Debug)]
pub(super) enum PackError {
    /// Nobody reads the stream any more.
    Cut,
    /// A file changed while it was read.
    Changed,
    /// A local file can't be read.
    Local(io::Error),
}

impl PackError {
    pub(super) fn into_error(self, local: &Path) -> Error {
        match self {
            Self::Local(error) => local_error(Operation::Upload, local, error),
            Self::Changed => path_error(
                Operation::Upload,
                PathProblem::Changed,
                format!(
                    "a file of `{}` changed its size while it was read",
                    local.display()
                ),
            ),
            Self::Cut => local_error(
                Operation::Upload,
                local,
                io::Error::from(io::ErrorKind::BrokenPipe),
            ),
        }
    }
}

type Chunk = Result<Bytes, io::Error>;

/// Packs a file or the content of a directory under an entry name.
pub(super) fn pack(source: &Path, entry: &str, sender: mpsc::Sender<Chunk>) -> Result<(), PackError> {
    let failed = sender.clone();
    let packed = pack_into(source, entry, sender);
    if packed.is_err() {
        // An error in the stream makes the engine drop the request; an end would look like a whole archive.
        let _cut = failed
            .blocking_send(Err(io::Error::other("packing failed")))
            .is_err();
    }
    packed
}

fn pack_into(source: &Path, entry: &str, sender: mpsc::Sender<Chunk>) -> Result<(), PackError> {
    let mut archive = Builder::new(ChunkWriter {
        sender,
        buffer: BytesMut::with_capacity(CHUNK_BYTES),
        cut: false,
    });
    let outcome = append(&mut archive, source, entry).and_then(|()| {
        archive.finish()?;
        archive.get_mut().send()
    });
    let cut = archive.get_ref().cut;
    outcome.map_err(|error| {
        if cut {
            PackError::Cut
        } else if error.kind() == io::ErrorKind::UnexpectedEof {
            PackError::Changed
        } else {
            PackError::Local(error)
        }
    })
}

fn append(archive: &mut Builder<ChunkWriter>, source: &Path, entry: &str) -> io::Result<()> {
    let metadata = std::fs::metadata(source)?;
    if !metadata.is_dir() {
        return append_file(archive, source, entry);
    }
    if !entry.is_empty() {
        append_header(archive, &metadata, EntryType::Directory, entry, 0)?;
    }
    append_children(archive, source, entry)
}

fn append_children(archive: &mut Builder<ChunkWriter>, directory: &Path, entry: &str) -> io::Result<()> {
    let mut children = std::fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    children.sort_by_key(std::fs::DirEntry::file_name);
    for child in children {
        let path = child.path();
        let metadata = std::fs::symlink_metadata(&path)?;
        let name = Path::new(entry).join(child.file_name());
        if metadata.is_dir() {
            append_named(archive, &metadata, EntryType::Directory, &name, io::empty(), 0)?;
            append_children(archive, &path, &name.to_string_lossy())?;
        } else if metadata.is_symlink() {
            let mut header = header_of(&metadata, EntryType::Symlink, 0);
            archive.append_link(&mut header, &name, std::fs::read_link(&path)?)?;
        } else if metadata.is_file() {
            append_named_file(archive, &path, &name)?;
        }
    }
    Ok(())
}

fn append_file(archive: &mut Builder<ChunkWriter>, source: &Path, entry: &str) -> io::Result<()> {
    append_named_file(archive, source, Path::new(entry))
}

fn append_named_file(archive: &mut Builder<ChunkWriter>, source: &Path, name: &Path) -> io::Result<()> {
    let file = std::fs::File::open(source)?;
    let metadata = file.metadata()?;
    let size = metadata.len();
    append_named(
        archive,
        &metadata,
        EntryType::Regular,
        name,
        Exactly {
            reader: file,
            left: size,
        },
        size,
    )
}

fn append_header(
    archive: &mut Builder<ChunkWriter>,
    metadata: &std::fs::Metadata,
    kind: EntryType,
    entry: &str,
    size: u64,
) -> io::Result<()> {
    append_named(archive, metadata, kind, Path::new(entry), io::empty(), size)
}

fn append_named(
    archive: &mut Builder<ChunkWriter>,
    metadata: &std::fs::Metadata,
    kind: EntryType,
    name: &Path,
    content: impl Read,
    size: u64,
) -> io::Result<()> {
    let mut header = header_of(metadata, kind, size);
    archive.append_data(&mut header, name, content)
}

fn header_of(metadata: &std::fs::Metadata, kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(metadata.permissions().mode() & 0o7777);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(u64::try_from(metadata.mtime()).unwrap_or_default());
    header.set_size(size);
    header
}

/// Gives exactly as many bytes as the header says, or an error: an archive with a wrong size is garbage from there on.
struct Exactly<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Read for Exactly<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let read = self.reader.read(&mut buffer[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(read)
    }
}

const CHUNK_BYTES: usize = 128 * 1024;

/// Cuts a stream of writes into chunks for the request's body.
struct ChunkWriter {
    sender: mpsc::Sender<Chunk>,
    buffer: BytesMut,
    cut: bool,
}

impl ChunkWriter {
    fn send(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let chunk = self.buffer.split().freeze();
        self.sender.blocking_send(Ok(chunk)).map_err(|_| {
            self.cut = true;
            io::Error::from(io::ErrorKind::BrokenPipe)
        })
    }
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK_BYTES {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}
