//! What one downloaded file gets: its content, mode and time, within the limits of the download.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result};
use crate::spec::{DownloadOptions, SetIdBits, TransferProgress};

use super::entry::{Entry, Reader};
use super::stat::time_of;
use super::stream::Moved;
use super::{local_error, path_error};

const OPERATION: Operation = Operation::Download;

/// Makes a file that was not there, for nobody else to read until it has its mode.
pub(super) fn create(place: &Path) -> Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(place)
        .map_err(|error| local(place, error))
}

/// Copies the content of an entry. Blocks of zeros become holes.
pub(super) fn copy(
    reader: &mut Reader<impl Read>,
    size: u64,
    file: &mut File,
    place: &Path,
    buffer: &mut [u8],
    options: &DownloadOptions,
    moved: &Moved,
) -> Result<()> {
    check_size(moved.progress(), size, options)?;
    let mut hole = false;
    loop {
        let read = reader.read(buffer).map_err(broken)?;
        if read == 0 {
            break;
        }
        moved.add_bytes(read);
        let bytes = &buffer[..read];
        hole = read >= 4096 && bytes.iter().all(|&byte| byte == 0);
        let written = if hole {
            file.seek_relative(i64::try_from(read).unwrap_or_default())
        } else {
            file.write_all(bytes)
        };
        written.map_err(|error| local(place, error))?;
    }
    if hole {
        file.set_len(size).map_err(|error| local(place, error))?;
    }
    Ok(())
}

/// Refuses content that would go over the limit, before any of it is written.
pub(super) fn check_size(so_far: TransferProgress, more: u64, options: &DownloadOptions) -> Result<()> {
    if so_far.bytes.saturating_add(more) > options.max_bytes {
        return Err(too_large(&format!(
            "it has more than {} bytes",
            options.max_bytes
        )));
    }
    Ok(())
}

/// Sets mode and time of a file.
pub(super) fn set_marks(file: &File, entry: &Entry, options: &DownloadOptions) -> io::Result<()> {
    let kept = match options.set_id_bits {
        SetIdBits::Clear => 0o1777,
        SetIdBits::Keep => 0o7777,
    };
    file.set_modified(time_of(entry.mtime))?;
    file.set_permissions(fs::Permissions::from_mode(entry.mode & kept))
}

pub(super) fn broken(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, OPERATION, "what the sandbox sent is cut or broken").with_source(error)
}

pub(super) fn local(path: &Path, error: io::Error) -> Error {
    local_error(OPERATION, path, error)
}

pub(super) fn too_large(what: &str) -> Error {
    path_error(
        OPERATION,
        PathProblem::TooLarge,
        format!("the download is refused: {what}"),
    )
    .with_hint("raise the limit in the download's options if that is expected")
}
