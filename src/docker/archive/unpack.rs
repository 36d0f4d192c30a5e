//! From the engine's tar stream to local files. The sandbox made the archive: nothing in it is believed, and nothing is
//! written outside the target (contract D14).

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tar::{Archive, Entry, EntryType};
use tokio::sync::mpsc;

use crate::error::{Error, Operation, PathProblem, Result};

use super::{Accept, local_error, path_error};

/// Where the content goes.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) target: PathBuf,
    /// A single file goes into the target instead of being it.
    pub(super) into_directory: bool,
    pub(super) accept: Accept,
}

/// More entries than this are refused: every one costs the host an inode.
const MOST_ENTRIES: usize = 1_000_000;

/// Reads one archive to its end.
pub(super) fn unpack(receiver: mpsc::Receiver<io::Result<Bytes>>, plan: &Plan, remote: &str) -> Result<()> {
    let mut archive = Archive::new(ChunkReader {
        receiver,
        chunk: Bytes::new(),
    });
    let mut entries = archive.entries().map_err(|error| broken(remote, error))?;
    let Some(first) = entries.next() else {
        return Err(broken(remote, io::Error::from(io::ErrorKind::UnexpectedEof)));
    };
    let first = first.map_err(|error| broken(remote, error))?;
    match first.header().entry_type() {
        EntryType::Directory if plan.accept == Accept::File => Err(path_error(
            Operation::Download,
            PathProblem::IsADirectory,
            format!("`{remote}` is a directory; a file is needed"),
        )),
        EntryType::Directory => {
            let root = first.path().map_err(|error| broken(remote, error))?.into_owned();
            unpack_directory(first, entries, &root, plan, remote)
        }
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            let target = if plan.into_directory {
                plan.target.join(base_name(remote)?)
            } else {
                plan.target.clone()
            };
            write_file(first, &target, remote)
        }
        _ => Err(path_error(
            Operation::Download,
            PathProblem::NotServable,
            format!("`{remote}` is neither a file nor a directory"),
        )),
    }
}

fn unpack_directory(
    first: Entry<'_, ChunkReader>,
    entries: tar::Entries<'_, ChunkReader>,
    root: &Path,
    plan: &Plan,
    remote: &str,
) -> Result<()> {
    let local = |error| local_error(Operation::Download, &plan.target, error);
    fs::create_dir_all(&plan.target).map_err(local)?;
    let target = fs::canonicalize(&plan.target).map_err(local)?;
    // Links are made last: until then no entry can be written through one. Directories get their times after their
    // content.
    let mut links = Vec::new();
    let mut directories = vec![(target.clone(), mode_of(&first), time_of(&first))];
    for (count, entry) in entries.enumerate() {
        if count >= MOST_ENTRIES {
            return Err(path_error(
                Operation::Download,
                PathProblem::TooLarge,
                format!("`{remote}` has more than {MOST_ENTRIES} entries"),
            ));
        }
        let entry = entry.map_err(|error| broken(remote, error))?;
        let name = entry.path().map_err(|error| broken(remote, error))?.into_owned();
        let place = safe_place(&target, root, &name)?;
        match entry.header().entry_type() {
            EntryType::Directory => {
                make_directory(&target, &place)?;
                directories.push((place, mode_of(&entry), time_of(&entry)));
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                make_parents(&target, &place)?;
                write_file(entry, &place, remote)?;
            }
            EntryType::Symlink => {
                let link = entry
                    .link_name()
                    .map_err(|error| broken(remote, error))?
                    .unwrap_or_default()
                    .into_owned();
                links.push((place, link));
            }
            EntryType::Link => {
                let other = entry
                    .link_name()
                    .map_err(|error| broken(remote, error))?
                    .unwrap_or_default()
                    .into_owned();
                let other = safe_place(&target, root, &other)?;
                hard_link(&target, &other, &place)?;
            }
            _ => {
                return Err(path_error(
                    Operation::Download,
                    PathProblem::UnsafeArchive,
                    format!("`{}` is a device, socket or pipe", name.display()),
                ));
            }
        }
    }
    for (place, link) in links {
        make_link(&target, &place, &link)?;
    }
    for (place, mode, time) in directories.into_iter().rev() {
        set_mode_and_time(&place, mode, time)
            .map_err(|error| local_error(Operation::Download, &place, error))?;
    }
    Ok(())
}

/// Where an entry goes: below the target, by plain names only.
fn safe_place(target: &Path, root: &Path, name: &Path) -> Result<PathBuf> {
    let outside = || {
        path_error(
            Operation::Download,
            PathProblem::UnsafeArchive,
            format!(
                "the archive holds `{}`, which lies outside of what was asked for",
                name.display()
            ),
        )
    };
    let relative = name.strip_prefix(root).map_err(|_| outside())?;
    let mut place = target.to_owned();
    for component in relative.components() {
        match component {
            Component::Normal(part) => place.push(part),
            Component::CurDir => {}
            _ => return Err(outside()),
        }
    }
    Ok(place)
}

/// Refuses a place one of whose parents, or itself, is a link that was there before.
fn check_no_link(target: &Path, place: &Path) -> Result<()> {
    let relative = place.strip_prefix(target).unwrap_or(place);
    let mut path = target.to_owned();
    for component in relative.components() {
        path.push(component);
        if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink()) {
            return Err(path_error(
                Operation::Download,
                PathProblem::UnsafeArchive,
                format!(
                    "`{}` is a symbolic link on this machine and is not written through",
                    path.display()
                ),
            ));
        }
    }
    Ok(())
}

fn make_directory(target: &Path, place: &Path) -> Result<()> {
    check_no_link(target, place)?;
    fs::create_dir_all(place).map_err(|error| local_error(Operation::Download, place, error))
}

fn make_parents(target: &Path, place: &Path) -> Result<()> {
    match place.parent() {
        Some(parent) if parent.starts_with(target) => make_directory(target, parent),
        _ => Ok(()),
    }
}

fn hard_link(target: &Path, other: &Path, place: &Path) -> Result<()> {
    check_no_link(target, other)?;
    make_parents(target, place)?;
    replace(place)
        .and_then(|()| fs::hard_link(other, place))
        .map_err(|error| local_error(Operation::Download, place, error))
}

fn make_link(target: &Path, place: &Path, link: &Path) -> Result<()> {
    make_parents(target, place)?;
    replace(place)
        .and_then(|()| symlink(link, place))
        .map_err(|error| local_error(Operation::Download, place, error))
}

/// Removes a file or link that an entry replaces.
fn replace(place: &Path) -> io::Result<()> {
    match fs::symlink_metadata(place) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => fs::remove_file(place),
        Err(_) => Ok(()),
    }
}

/// Writes a file under a temporary name beside its target and renames it, so that a failure leaves the target as it was.
fn write_file(mut entry: Entry<'_, ChunkReader>, target: &Path, remote: &str) -> Result<()> {
    let local = |error| local_error(Operation::Download, target, error);
    let parent = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).map_err(local)?;
    if fs::symlink_metadata(target).is_ok_and(|metadata| metadata.is_dir()) {
        return Err(local(io::ErrorKind::IsADirectory.into()));
    }
    let mut temporary = tempfile::Builder::new()
        .prefix(".gym-sandbox-")
        .tempfile_in(parent)
        .map_err(local)?;
    let (mode, time) = (mode_of(&entry), time_of(&entry));
    copy(&mut entry, temporary.as_file_mut()).map_err(|failure| match failure {
        Copy::Source(error) => broken(remote, error),
        Copy::Target(error) => local(error),
    })?;
    set_file_mode_and_time(temporary.as_file(), mode, time).map_err(local)?;
    temporary.persist(target).map_err(|error| local(error.error))?;
    Ok(())
}

enum Copy {
    Source(io::Error),
    Target(io::Error),
}

fn copy(source: &mut impl Read, target: &mut File) -> Result<(), Copy> {
    let mut buffer = vec![0; 128 * 1024];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => target.write_all(&buffer[..read]).map_err(Copy::Target)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Copy::Source(error)),
        }
    }
}

fn mode_of(entry: &Entry<'_, ChunkReader>) -> u32 {
    // Set-id bits of a sandbox's file mean nothing good on this machine; a file stays readable by its owner.
    entry.header().mode().unwrap_or(0o644) & 0o777
}

fn time_of(entry: &Entry<'_, ChunkReader>) -> SystemTime {
    SystemTime::UNIX_EPOCH
        + Duration::from_secs(
            entry
                .header()
                .mtime()
                .unwrap_or_default()
                .min(u64::from(u32::MAX)),
        )
}

fn set_file_mode_and_time(file: &File, mode: u32, time: SystemTime) -> io::Result<()> {
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.set_modified(time)
}

fn set_mode_and_time(path: &Path, mode: u32, time: SystemTime) -> io::Result<()> {
    // The owner's rights on a directory are kept: without them nobody could remove it.
    set_file_mode_and_time(&File::open(path)?, mode | 0o700, time)
}

fn base_name(remote: &str) -> Result<&str> {
    remote.rsplit('/').find(|part| !part.is_empty()).ok_or_else(|| {
        path_error(
            Operation::Download,
            PathProblem::IsADirectory,
            format!("`{remote}` has no file name"),
        )
    })
}

fn broken(remote: &str, error: io::Error) -> Error {
    Error::new(
        crate::error::ErrorKind::Io,
        Operation::Download,
        format!("the archive of `{remote}` ended early or is broken"),
    )
    .with_source(error)
}

/// Reads the chunks of a channel.
struct ChunkReader {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    chunk: Bytes,
}

impl Read for ChunkReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            match self.receiver.blocking_recv() {
                Some(chunk) => self.chunk = chunk?,
                None => return Ok(0),
            }
        }
        let read = buffer.len().min(self.chunk.len());
        buffer[..read].copy_from_slice(&self.chunk.split_to(read));
        Ok(read)
    }
}
