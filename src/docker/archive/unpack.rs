//! From an archive that a sandbox made to a directory that nobody else writes. Nothing in the archive is believed, and
//! nothing is written outside of the directory whatever it says (contract D14).

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use crate::error::{Error, Operation, PathProblem, Result};
use crate::spec::{CaseCollisions, DownloadOptions, OutwardLinks, SpecialFiles};

use super::content::{broken, copy, create, local, set_marks, too_large};
use super::entry::{Entry, Kind, Reader};
use super::path_error;
use super::stat::time_of;
use super::stream::{CHUNK_BYTES, Moved};

const OPERATION: Operation = Operation::Download;

/// No path of Linux is longer.
const PATH_BYTES: usize = 4096;

/// Mode and time of a directory, set when its content is there.
#[derive(Debug, Clone, Copy)]
pub(super) struct DirectoryMarks {
    mode: u32,
    mtime: SystemTime,
}

impl DirectoryMarks {
    pub(super) fn of(entry: &Entry) -> Self {
        Self {
            mode: entry.mode,
            mtime: time_of(entry.mtime),
        }
    }

    pub(super) fn set(self, directory: &Path) -> io::Result<()> {
        File::open(directory)?.set_modified(self.mtime)?;
        fs::set_permissions(directory, fs::Permissions::from_mode(self.mode))
    }
}

/// Unpacks the rest of an archive whose first entry was the directory itself.
pub(super) fn unpack_tree(
    reader: &mut Reader<impl Read>,
    first: &Entry,
    directory: &Path,
    options: &DownloadOptions,
    moved: &Moved,
) -> Result<DirectoryMarks> {
    let mut unpacker = Unpacker {
        directory,
        options,
        moved,
        top: components(&first.name)?,
        open: Vec::new(),
        checked: directory.to_owned(),
        names: HashMap::new(),
        buffer: vec![0; CHUNK_BYTES],
    };
    let mut marks = DirectoryMarks::of(first);
    while let Some(entry) = reader.next().map_err(broken)? {
        if moved.progress().entries >= options.max_entries {
            return Err(too_large(&format!(
                "it has more than {} entries",
                options.max_entries
            )));
        }
        moved.add_entry();
        unpacker.entry(reader, &entry, &mut marks)?;
    }
    unpacker.close_all_but(&[])?;
    reader.drain().map_err(broken)?;
    Ok(marks)
}

struct Unpacker<'a> {
    directory: &'a Path,
    options: &'a DownloadOptions,
    moved: &'a Moved,
    /// The name of the directory itself in the archive.
    top: Vec<OsString>,
    /// The directories on the way to the last entry, outermost first, with what they get when they are left.
    open: Vec<(Vec<OsString>, DirectoryMarks)>,
    /// The last parent that was seen to be a directory, as all above it. Directories are never replaced.
    checked: PathBuf,
    names: HashMap<String, Vec<u8>>,
    buffer: Vec<u8>,
}

impl Unpacker<'_> {
    fn entry(
        &mut self,
        reader: &mut Reader<impl Read>,
        entry: &Entry,
        marks: &mut DirectoryMarks,
    ) -> Result<()> {
        let names = self.below_top(&entry.name)?;
        if names.is_empty() {
            return match entry.kind {
                Kind::Directory => {
                    *marks = DirectoryMarks::of(entry);
                    Ok(())
                }
                _ => Err(unsafe_entry(
                    &entry.name,
                    "replaces the directory that was asked for",
                )),
            };
        }
        self.check_case(&names)?;
        self.close_all_but(&names)?;
        let place = self.parent_of(&names, &entry.name)?;
        match entry.kind {
            Kind::Directory => {
                Self::make_directory(&place, entry)?;
                self.open.push((names, DirectoryMarks::of(entry)));
                Ok(())
            }
            Kind::File => self.file(reader, &place, entry),
            Kind::Symlink => self.symlink(&place, &names, entry),
            Kind::HardLink => self.hard_link(&place, entry),
            Kind::Special => match self.options.special_files {
                SpecialFiles::Refuse => Err(unsafe_entry(&entry.name, "is a device, socket or pipe")
                    .with_hint("leave such files out with `SpecialFiles::Skip`")),
                SpecialFiles::Skip => Ok(()),
            },
        }
    }

    /// The names of an entry below the directory.
    fn below_top(&self, name: &[u8]) -> Result<Vec<OsString>> {
        let names = components(name)?;
        match names.strip_prefix(self.top.as_slice()) {
            Some(below) => Ok(below.to_vec()),
            None => Err(unsafe_entry(name, "lies outside of what was asked for")),
        }
    }

    fn check_case(&mut self, names: &[OsString]) -> Result<()> {
        if self.options.case_collisions == CaseCollisions::Allow {
            return Ok(());
        }
        let mut path = Vec::new();
        for name in names {
            path.extend_from_slice(name.as_bytes());
            let folded = String::from_utf8_lossy(&path).to_lowercase();
            let known = self.names.entry(folded).or_insert_with(|| path.clone());
            if *known != path {
                return Err(unsafe_entry(&path, "differs from another entry only in case"));
            }
            path.push(b'/');
        }
        Ok(())
    }

    /// Where an entry goes. Its parents are directories and no links, and are made where they are missing.
    fn parent_of(&mut self, names: &[OsString], shown: &[u8]) -> Result<PathBuf> {
        let (last, parents) = names
            .split_last()
            .expect("the caller has handled an entry without names");
        let parent = parents
            .iter()
            .fold(self.directory.to_owned(), |path, name| path.join(name));
        if parent != self.checked {
            let mut path = self.directory.to_owned();
            for name in parents {
                path.push(name);
                match fs::symlink_metadata(&path) {
                    Ok(metadata) if metadata.is_dir() => {}
                    Ok(_) => {
                        return Err(unsafe_entry(
                            shown,
                            "would be written through something that is no directory",
                        ));
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        DirBuilder::new()
                            .mode(0o755)
                            .create(&path)
                            .map_err(|error| local(&path, error))?;
                    }
                    Err(error) => return Err(local(&path, error)),
                }
            }
            self.checked.clone_from(&parent);
        }
        Ok(parent.join(last))
    }

    fn make_directory(place: &Path, entry: &Entry) -> Result<()> {
        match fs::symlink_metadata(place) {
            Ok(metadata) if metadata.is_dir() => {
                // It may be left already, with a mode that keeps us out.
                fs::set_permissions(place, fs::Permissions::from_mode(0o700))
                    .map_err(|error| local(place, error))
            }
            Ok(_) => Err(unsafe_entry(
                &entry.name,
                "replaces something that is no directory",
            )),
            Err(_) => DirBuilder::new()
                .mode(0o700)
                .create(place)
                .map_err(|error| local(place, error)),
        }
    }

    fn file(&mut self, reader: &mut Reader<impl Read>, place: &Path, entry: &Entry) -> Result<()> {
        make_room(place, entry)?;
        let mut file = create(place)?;
        copy(
            reader,
            entry.size,
            &mut file,
            place,
            &mut self.buffer,
            self.options,
            self.moved,
        )?;
        set_marks(&file, entry, self.options).map_err(|error| local(place, error))
    }

    fn symlink(&self, place: &Path, names: &[OsString], entry: &Entry) -> Result<()> {
        if leads_out(names.len() - 1, &entry.link) {
            match self.options.outward_links {
                OutwardLinks::Keep => {}
                OutwardLinks::Skip => return Ok(()),
                OutwardLinks::Refuse => {
                    return Err(unsafe_entry(
                        &entry.name,
                        "is a link that leads out of what was asked for",
                    ));
                }
            }
        }
        make_room(place, entry)?;
        symlink(OsStr::from_bytes(&entry.link), place).map_err(|error| local(place, error))?;
        let time = Timespec {
            tv_sec: i64::try_from(entry.mtime).unwrap_or_default(),
            tv_nsec: 0,
        };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        // Not every file system keeps the time of a link.
        let _unsupported = utimensat(CWD, place, &times, AtFlags::SYMLINK_NOFOLLOW).is_err();
        Ok(())
    }

    fn hard_link(&mut self, place: &Path, entry: &Entry) -> Result<()> {
        let names = self.below_top(&entry.link)?;
        let unsafe_link = || {
            unsafe_entry(
                &entry.name,
                "is a hard link to something that is not in the archive",
            )
        };
        let mut other = self.directory.to_owned();
        for (index, name) in names.iter().enumerate() {
            other.push(name);
            let metadata = fs::symlink_metadata(&other).map_err(|_| unsafe_link())?;
            let is_last = index + 1 == names.len();
            if metadata.is_dir() == is_last || (!is_last && metadata.is_symlink()) {
                return Err(unsafe_link());
            }
        }
        if names.is_empty() {
            return Err(unsafe_link());
        }
        if other == place {
            return Ok(());
        }
        make_room(place, entry)?;
        fs::hard_link(&other, place).map_err(|error| local(place, error))
    }

    /// Leaves the directories that the next entry is not in.
    fn close_all_but(&mut self, next: &[OsString]) -> Result<()> {
        while let Some((names, marks)) = self
            .open
            .pop_if(|(names, _)| !next.starts_with(names) || next == names)
        {
            let place = names
                .iter()
                .fold(self.directory.to_owned(), |path, name| path.join(name));
            marks.set(&place).map_err(|error| local(&place, error))?;
        }
        Ok(())
    }
}

/// The plain names of an archive's name.
fn components(name: &[u8]) -> Result<Vec<OsString>> {
    if name.len() > PATH_BYTES || name.contains(&0) {
        return Err(unsafe_entry(name, "has a name that no file can have"));
    }
    let mut names = Vec::new();
    for part in name.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return Err(unsafe_entry(name, "leads out of what was asked for")),
            part => names.push(OsString::from_vec(part.to_vec())),
        }
    }
    Ok(names)
}

/// Whether the text of a link in a directory of this depth leads out of the top. `..` behind a name counts as leading
/// out: the name may be a link itself.
fn leads_out(depth: usize, link: &[u8]) -> bool {
    let mut up = 0;
    let mut seen_name = false;
    for part in link.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if seen_name => return true,
            b".." => up += 1,
            _ => seen_name = true,
        }
    }
    link.starts_with(b"/") || up > depth
}

/// Removes a file or link that an entry of the same archive replaces.
fn make_room(place: &Path, entry: &Entry) -> Result<()> {
    match fs::symlink_metadata(place) {
        Ok(metadata) if metadata.is_dir() => Err(unsafe_entry(&entry.name, "replaces a directory")),
        Ok(_) => fs::remove_file(place).map_err(|error| local(place, error)),
        Err(_) => Ok(()),
    }
}

fn unsafe_entry(name: &[u8], what: &str) -> Error {
    let name = String::from_utf8_lossy(&name[..name.len().min(PATH_BYTES)])
        .escape_debug()
        .to_string();
    path_error(
        OPERATION,
        PathProblem::UnsafeArchive,
        format!("`{name}` in what the sandbox sent {what}"),
    )
}

#[cfg(test)]
#[path = "unpack_tests.rs"]
mod tests;
