//! Copying files and directories on this machine by the rules of a transfer. Links are never written through. Blocks.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result};
use crate::spec::{
    CaseCollisions, DownloadOptions, FileOwner, OutwardLinks, ProgressCallback, SetIdBits, SpecialFiles,
    TransferProgress, UploadOptions,
};

use super::place::{of_path, problem_of};

const CHUNK_BYTES: usize = 256 * 1024;

/// Directories deeper than this are not copied: no path of Linux is that long.
const DEPTH: usize = 2048;

/// What a transfer does, whichever way it goes.
pub(super) struct Copier {
    operation: Operation,
    owner: Option<FileOwner>,
    mode: Option<u32>,
    mtime: Option<SystemTime>,
    special_files: SpecialFiles,
    outward_links: OutwardLinks,
    case_collisions: CaseCollisions,
    mode_mask: u32,
    max_entries: u64,
    max_bytes: u64,
    callback: Option<ProgressCallback>,
    /// Set when nobody waits for the transfer any more.
    dropped: Arc<AtomicBool>,
    progress: TransferProgress,
}

impl Copier {
    pub(super) fn of_upload(options: &UploadOptions, dropped: Arc<AtomicBool>) -> Self {
        Self {
            operation: Operation::Upload,
            owner: options.owner,
            mode: options.mode,
            mtime: options.mtime,
            special_files: options.special_files,
            outward_links: OutwardLinks::Keep,
            case_collisions: CaseCollisions::Allow,
            mode_mask: 0o7777,
            max_entries: u64::MAX,
            max_bytes: u64::MAX,
            callback: options.progress.clone(),
            dropped,
            progress: TransferProgress::default(),
        }
    }

    pub(super) fn of_download(options: &DownloadOptions, dropped: Arc<AtomicBool>) -> Self {
        Self {
            operation: Operation::Download,
            owner: None,
            mode: None,
            mtime: None,
            special_files: options.special_files,
            outward_links: options.outward_links,
            case_collisions: options.case_collisions,
            mode_mask: match options.set_id_bits {
                SetIdBits::Keep => 0o7777,
                _ => 0o1777,
            },
            max_entries: options.max_entries,
            max_bytes: options.max_bytes,
            callback: options.progress.clone(),
            dropped,
            progress: TransferProgress::default(),
        }
    }

    pub(super) fn progress(&self) -> TransferProgress {
        self.progress
    }

    fn io(&self, path: &Path) -> impl Fn(io::Error) -> Error {
        let (operation, path) = (self.operation, path.to_owned());
        move |error| of_path(operation, &path, error)
    }

    fn problem(&self, path: &Path, problem: PathProblem, what: &str) -> Error {
        problem_of(self.operation, path, problem, what)
    }

    /// Copies one file to a target, which is replaced in one step.
    pub(super) fn file(&mut self, source: &Path, target: &Path) -> Result<()> {
        let mut content = File::open(source).map_err(self.io(source))?;
        let found = content.metadata().map_err(self.io(source))?;
        if found.is_dir() {
            return Err(self.problem(source, PathProblem::IsADirectory, "is a directory, not a file"));
        }
        if !found.is_file() {
            return Err(self.problem(source, PathProblem::NotServable, "is no regular file"));
        }
        self.progress.total_bytes = Some(found.len());
        self.content(&mut content, &Found::of(&found), target)
    }

    /// Writes content of a known size to a target, which is replaced in one step.
    pub(super) fn content(&mut self, content: &mut dyn Read, found: &Found, target: &Path) -> Result<()> {
        if fs::symlink_metadata(target).is_ok_and(|there| there.is_dir()) {
            return Err(self.problem(target, PathProblem::IsADirectory, "is a directory, and stays one"));
        }
        self.begin_entry()?;
        if found.size > self.max_bytes.saturating_sub(self.progress.bytes) {
            return Err(self.problem(target, PathProblem::TooLarge, "is over the limit of bytes"));
        }
        let folder = target.parent().unwrap_or(Path::new("/"));
        let part = tempfile::Builder::new()
            .prefix(".gym-sandbox-")
            .tempfile_in(folder);
        let mut part = part.map_err(self.io(folder))?;
        let copied = self.pour(content, part.as_file_mut(), found.size, target)?;
        if copied != found.size {
            return Err(self.changed(target));
        }
        self.set_marks(part.as_file(), found).map_err(self.io(target))?;
        part.persist(target)
            .map_err(|error| (self.io(target))(error.error))?;
        Ok(())
    }

    fn changed(&self, target: &Path) -> Error {
        self.problem(
            target,
            PathProblem::Changed,
            "was not written: its source changed while it was read",
        )
    }

    fn pour(&mut self, source: &mut dyn Read, part: &mut File, size: u64, target: &Path) -> Result<u64> {
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut copied = 0;
        loop {
            if self.dropped.load(Ordering::Relaxed) {
                return Err(Error::new(
                    ErrorKind::Io,
                    self.operation,
                    "the transfer was dropped",
                ));
            }
            let read = source.read(&mut buffer).map_err(self.io(target))?;
            if read == 0 {
                return Ok(copied);
            }
            copied += read as u64;
            if copied > size {
                return Err(self.changed(target));
            }
            part.write_all(&buffer[..read]).map_err(self.io(target))?;
            self.moved(read as u64);
        }
    }

    /// Counts bytes that have moved.
    pub(super) fn moved(&mut self, bytes: u64) {
        self.progress.bytes += bytes;
        if let Some(callback) = &self.callback {
            callback.call(self.progress);
        }
    }

    fn begin_entry(&mut self) -> Result<()> {
        if self.progress.entries >= self.max_entries {
            return Err(Error::new(
                ErrorKind::Path(PathProblem::TooLarge),
                self.operation,
                format!("there are more than {} entries", self.max_entries),
            ));
        }
        self.progress.entries += 1;
        Ok(())
    }

    fn set_marks(&self, file: &File, found: &Found) -> io::Result<()> {
        if let Some(owner) = self.owner {
            std::os::unix::fs::fchown(file, Some(owner.uid), Some(owner.gid))?;
        }
        file.set_permissions(fs::Permissions::from_mode(
            self.mode.unwrap_or(found.mode) & self.mode_mask,
        ))?;
        file.set_modified(self.mtime.unwrap_or(found.mtime))
    }

    /// Copies the content of a directory into one that exists. Other things in it stay.
    pub(super) fn tree(&mut self, source: &Path, target: &Path) -> Result<()> {
        self.progress.total_bytes = None;
        self.begin_entry()?;
        self.level(source, target, Path::new(""), 0)
    }

    fn level(&mut self, source: &Path, target: &Path, inside: &Path, depth: usize) -> Result<()> {
        if depth > DEPTH {
            return Err(self.problem(source, PathProblem::TooLarge, "is nested too deeply"));
        }
        let mut entries: Vec<_> = fs::read_dir(source)
            .and_then(Iterator::collect)
            .map_err(self.io(source))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        let mut folded = HashSet::new();
        for entry in entries {
            let (from, to) = (entry.path(), target.join(entry.file_name()));
            let inside = inside.join(entry.file_name());
            if self.case_collisions == CaseCollisions::Refuse
                && !folded.insert(entry.file_name().to_string_lossy().to_lowercase())
            {
                return Err(self.problem(
                    &inside,
                    PathProblem::UnsafeArchive,
                    "differs from another name only in case",
                ));
            }
            let found = fs::symlink_metadata(&from).map_err(self.io(&from))?;
            if found.is_dir() {
                self.begin_entry()?;
                self.make_directory(&to)?;
                self.level(&from, &to, &inside, depth + 1)?;
                let directory = File::open(&to).map_err(self.io(&to))?;
                self.set_marks(&directory, &Found::of(&found))
                    .map_err(self.io(&to))?;
            } else if found.is_symlink() {
                self.link(&from, &to, &inside)?;
            } else if found.is_file() {
                let mut content = File::open(&from).map_err(self.io(&from))?;
                self.content(&mut content, &Found::of(&found), &to)?;
            } else {
                self.special(&from, &found)?;
            }
        }
        Ok(())
    }

    fn make_directory(&self, place: &Path) -> Result<()> {
        match fs::symlink_metadata(place) {
            Ok(there) if there.is_dir() => Ok(()),
            Ok(_) => Err(self.problem(
                place,
                PathProblem::NotADirectory,
                "is there and is not a directory",
            )),
            Err(_) => fs::create_dir(place).map_err(self.io(place)),
        }
    }

    fn link(&mut self, source: &Path, target: &Path, inside: &Path) -> Result<()> {
        let text = fs::read_link(source).map_err(self.io(source))?;
        if leads_out(inside, &text) {
            match self.outward_links {
                OutwardLinks::Skip => return Ok(()),
                OutwardLinks::Refuse => {
                    return Err(self.problem(
                        inside,
                        PathProblem::UnsafeArchive,
                        "is a link that leads out of the directory",
                    ));
                }
                OutwardLinks::Keep => {}
            }
        }
        self.begin_entry()?;
        if fs::symlink_metadata(target).is_ok_and(|there| there.is_dir()) {
            return Err(self.problem(target, PathProblem::IsADirectory, "is a directory, and stays one"));
        }
        let part = part_of(target);
        symlink(&text, &part).map_err(self.io(&part))?;
        let made = match self.owner {
            Some(owner) => std::os::unix::fs::lchown(&part, Some(owner.uid), Some(owner.gid)),
            None => Ok(()),
        };
        made.and_then(|()| fs::rename(&part, target)).map_err(|error| {
            // The first error is the one to tell.
            let _removed = fs::remove_file(&part);
            (self.io(target))(error)
        })
    }

    fn special(&self, source: &Path, found: &fs::Metadata) -> Result<()> {
        let kind = found.file_type();
        let what = if kind.is_fifo() {
            "is a pipe"
        } else if kind.is_socket() {
            "is a socket"
        } else {
            "is a device"
        };
        match self.special_files {
            SpecialFiles::Skip => Ok(()),
            SpecialFiles::Refuse => Err(self.problem(source, PathProblem::UnsafeArchive, what)),
        }
    }
}

/// What a file gets from its source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) mtime: SystemTime,
}

impl Found {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            size: metadata.len(),
            mode: metadata.mode() & 0o7777,
            mtime: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
        }
    }

    /// A file that comes from memory or a stream.
    pub(super) fn new(size: u64) -> Self {
        Self {
            size,
            mode: 0o644,
            mtime: SystemTime::now(),
        }
    }
}

fn part_of(target: &Path) -> PathBuf {
    let name = format!(".gym-sandbox-{}", uuid::Uuid::new_v4().simple());
    target.with_file_name(name)
}

/// Says whether the text of a link leads out of the directory that the link is in, `inside` being its path there.
fn leads_out(inside: &Path, text: &Path) -> bool {
    let mut depth = inside.components().count().saturating_sub(1);
    for component in text.components() {
        match component {
            std::path::Component::Normal(_) => depth += 1,
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir if depth > 0 => depth -= 1,
            _ => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_out_are_told() {
        for (inside, text, out) in [
            ("link", "file", false),
            ("link", "a/../b", false),
            ("link", "..", true),
            ("link", "/etc", true),
            ("a/link", "../file", false),
            ("a/link", "../../file", true),
            ("a/link", "b/../../../file", true),
        ] {
            assert_eq!(
                leads_out(Path::new(inside), Path::new(text)),
                out,
                "{inside} -> {text}"
            );
        }
    }
}
