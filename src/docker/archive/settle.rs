//! Where a download goes on this machine: under a temporary name first, and to its own at the end. A failure leaves the
//! target as it was.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempDir};

use crate::error::{Operation, PathProblem, Result};
use crate::spec::DownloadOptions;

use super::content::{broken, check_size, copy, local, set_marks};
use super::entry::{Entry, Reader};
use super::path_error;
use super::stream::{CHUNK_BYTES, Moved};
use super::unpack::{self, DirectoryMarks};

const OPERATION: Operation = Operation::Download;
const TEMPORARY: &str = ".gym-sandbox-";

/// A target on this machine.
#[derive(Debug, Clone)]
pub(super) struct LocalTarget {
    pub(super) path: PathBuf,
    /// Written with a slash at its end.
    pub(super) names_directory: bool,
}

impl LocalTarget {
    pub(super) fn new(path: &Path) -> Self {
        use std::os::unix::ffi::OsStrExt;
        let bytes = path.as_os_str().as_bytes();
        let names_directory = bytes.ends_with(b"/")
            || matches!(bytes, b"." | b"..")
            || bytes.ends_with(b"/.")
            || bytes.ends_with(b"/..");
        Self {
            path: path.to_owned(),
            names_directory,
        }
    }

    /// Where a file of this name goes, in a directory that is there from now on.
    fn for_file(&self, name: &str, made: &mut Made) -> Result<PathBuf> {
        let target = if self.names_directory {
            self.path.join(name)
        } else {
            self.path.clone()
        };
        made.directory(parent(&target))?;
        if fs::symlink_metadata(&target).is_ok_and(|metadata| metadata.is_dir()) {
            return Err(path_error(
                OPERATION,
                PathProblem::IsADirectory,
                format!("`{}` is a directory on this machine", target.display()),
            )
            .with_hint("end the path with `/` to copy into the directory"));
        }
        Ok(target)
    }
}

fn parent(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Directories made on the way, removed again on failure.
#[derive(Default)]
struct Made(Vec<PathBuf>);

impl Made {
    fn directory(&mut self, path: &Path) -> Result<()> {
        let missing: Vec<&Path> = path
            .ancestors()
            .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
            .collect();
        for path in missing.into_iter().rev() {
            match fs::create_dir(path) {
                Ok(()) => self.0.push(path.to_owned()),
                // Somebody else was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
                Err(error) => return Err(local(path, error)),
            }
        }
        if path.is_dir() {
            Ok(())
        } else {
            Err(local(path, io::ErrorKind::NotADirectory.into()))
        }
    }

    fn unmake(self) {
        for path in self.0.iter().rev() {
            // One that has got something else in it meanwhile stays.
            let _in_use = fs::remove_dir(path).is_err();
        }
    }
}

/// Content that is written to a file: from an archive, or raw.
pub(super) enum Content<'a, R: Read> {
    Entry(&'a mut Reader<R>),
    Raw(&'a mut R),
}

/// Writes one file.
pub(super) fn file<R: Read>(
    content: Content<'_, R>,
    entry: &Entry,
    name: &str,
    target: &LocalTarget,
    options: &DownloadOptions,
    moved: &Moved,
) -> Result<()> {
    let mut made = Made::default();
    let written = (|| {
        let target = target.for_file(name, &mut made)?;
        let mut temporary = temporary_file(parent(&target))?;
        let mut buffer = vec![0; CHUNK_BYTES];
        match content {
            Content::Entry(reader) => {
                copy(
                    reader,
                    entry.size,
                    temporary.as_file_mut(),
                    &target,
                    &mut buffer,
                    options,
                    moved,
                )?;
                reader.drain().map_err(broken)?;
            }
            Content::Raw(reader) => loop {
                let read = reader.read(&mut buffer).map_err(broken)?;
                if read == 0 {
                    break;
                }
                check_size(moved.progress(), read as u64, options)?;
                moved.add_bytes(read);
                temporary
                    .write_all(&buffer[..read])
                    .map_err(|error| local(&target, error))?;
            },
        }
        set_marks(temporary.as_file(), entry, options).map_err(|error| local(&target, error))?;
        temporary
            .persist(&target)
            .map_err(|error| local(&target, error.error))?;
        Ok(())
    })();
    if written.is_err() {
        made.unmake();
    }
    written
}

fn temporary_file(directory: &Path) -> Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(TEMPORARY)
        .tempfile_in(directory)
        .map_err(|error| local(directory, error))
}

/// Writes a directory, whose own entry has been read.
pub(super) fn tree<R: Read>(
    reader: &mut Reader<R>,
    first: &Entry,
    target: &LocalTarget,
    options: &DownloadOptions,
    moved: &Moved,
) -> Result<()> {
    let mut made = Made::default();
    let written = write_tree(reader, first, target, options, moved, &mut made);
    if written.is_err() {
        made.unmake();
    }
    written
}

fn write_tree<R: Read>(
    reader: &mut Reader<R>,
    first: &Entry,
    target: &LocalTarget,
    options: &DownloadOptions,
    moved: &Moved,
    made: &mut Made,
) -> Result<()> {
    // Without a slash a link is what the path names, and is replaced.
    let there = if target.names_directory {
        fs::metadata(&target.path)
    } else {
        fs::symlink_metadata(&target.path)
    };
    let target = target.path.components().collect::<PathBuf>();
    let exists = match there {
        Ok(metadata) if metadata.is_dir() => true,
        Ok(metadata) if metadata.is_symlink() => false,
        Ok(_) => {
            return Err(path_error(
                OPERATION,
                PathProblem::NotADirectory,
                format!(
                    "`{}` is a file on this machine, and a directory is to be copied there",
                    target.display()
                ),
            ));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(local(&target, error)),
    };
    // In the target where there is one, so that a rename does not cross file systems.
    let beside = if exists { target.as_path() } else { parent(&target) };
    made.directory(beside)?;
    let temporary = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .tempdir_in(beside)
        .map_err(|error| local(beside, error))?;
    let settled = unpack::unpack_tree(reader, first, temporary.path(), options, moved).and_then(|marks| {
        if exists {
            check_merge(temporary.path(), &target)?;
            merge(temporary.path(), &target)
        } else {
            place(&temporary, &target, marks)
        }
    });
    open_up(temporary.path());
    settled
}

fn place(temporary: &TempDir, target: &Path, marks: DirectoryMarks) -> Result<()> {
    if fs::symlink_metadata(target).is_ok_and(|metadata| metadata.is_symlink()) {
        fs::remove_file(target).map_err(|error| local(target, error))?;
    }
    fs::rename(temporary.path(), target).map_err(|error| local(target, error))?;
    marks.set(target).map_err(|error| local(target, error))
}

/// Refuses a merge that would replace a directory or be kept out by a file, before anything is moved.
fn check_merge(from: &Path, to: &Path) -> Result<()> {
    for child in children(from)? {
        let target = to.join(child.file_name());
        let Ok(there) = fs::symlink_metadata(&target) else {
            continue;
        };
        let is_directory = child
            .file_type()
            .map_err(|error| local(&child.path(), error))?
            .is_dir();
        let problem = match (is_directory, there.is_dir()) {
            (true, true) => {
                check_merge(&child.path(), &target)?;
                continue;
            }
            (false, false) => continue,
            (true, false) => PathProblem::NotADirectory,
            (false, true) => PathProblem::IsADirectory,
        };
        let what = if is_directory {
            "no directory on this machine, but"
        } else {
            "a directory on this machine, but not"
        };
        return Err(path_error(
            OPERATION,
            problem,
            format!("`{}` is {what} one in the sandbox", target.display()),
        ));
    }
    Ok(())
}

fn merge(from: &Path, to: &Path) -> Result<()> {
    for child in children(from)? {
        let (source, target) = (child.path(), to.join(child.file_name()));
        let metadata = fs::symlink_metadata(&source).map_err(|error| local(&source, error))?;
        let marks = metadata
            .is_dir()
            .then(|| metadata.modified().map(|time| (metadata.permissions(), time)));
        if metadata.is_dir() {
            // Moving a directory or its content needs the right to write in it.
            fs::set_permissions(&source, fs::Permissions::from_mode(0o700))
                .map_err(|error| local(&source, error))?;
        }
        if metadata.is_dir() && target.is_dir() {
            merge(&source, &target)?;
        } else {
            fs::rename(&source, &target).map_err(|error| local(&target, error))?;
        }
        if let Some(Ok((permissions, time))) = marks {
            fs::File::open(&target)
                .and_then(|directory| directory.set_modified(time))
                .and_then(|()| fs::set_permissions(&target, permissions))
                .map_err(|error| local(&target, error))?;
        }
    }
    Ok(())
}

fn children(directory: &Path) -> Result<Vec<fs::DirEntry>> {
    fs::read_dir(directory)
        .and_then(Iterator::collect::<io::Result<Vec<_>>>)
        .map_err(|error| local(directory, error))
}

/// Makes what is left of a temporary directory removable, whatever modes the sandbox gave its directories.
fn open_up(directory: &Path) {
    if fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).is_err() {
        return;
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}
