//! Files that somebody else writes and that get their names here: when their client says that all of one is there. One
//! whose client goes away before is removed. What takes its time is done by a process of its own.

use std::ffi::CString;
use std::fs;
use std::io::{PipeReader, Read, Write, pipe};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Server;
use super::files::{Outcome, failure, path_of};
use crate::protocol::{NAMED_OR_NOT, RenameRequest};
use crate::runner::keep_only;
use crate::sys::{self, SignalSet, errno};

/// How long after its client has gone somebody may still write what was on its way, and so make the file once more.
const AGAIN_MS: u64 = 1_000;
/// So many are removed once more, the others only at once.
const MOST_AGAIN: usize = 1_024;

/// A file that waits for its name.
pub(super) struct Naming {
    from: PathBuf,
    to: PathBuf,
    /// Where the process that gives the name says what came of it.
    worker: Option<PipeReader>,
}

impl Naming {
    pub(super) fn begin(request: &RenameRequest) -> Outcome<Self> {
        Ok(Self {
            from: path_of(&request.from)?,
            to: path_of(&request.to)?,
            worker: None,
        })
    }

    pub(super) fn worker(&self) -> Option<&PipeReader> {
        self.worker.as_ref()
    }

    /// Begins to give the name, once.
    pub(super) fn start(&mut self, null: &fs::File) -> std::io::Result<()> {
        if self.worker.is_some() {
            return Ok(());
        }
        let (reader, writer) = pipe()?;
        let null = || null.try_clone().map(std::os::fd::OwnedFd::from);
        let stdio = [null()?, null()?, null()?];
        if sys::fork_process()? == 0 {
            sys::block_signals(&SignalSet::all_but(&[]));
            let Ok(writer) = keep_only(writer.into(), stdio) else {
                sys::exit_now(1)
            };
            let answer = match replace(&self.from, &self.to) {
                Ok(()) => 0,
                Err(error) => error.raw_os_error().unwrap_or(errno::EINVAL),
            };
            let _ = fs::File::from(writer).write_all(&answer.to_le_bytes());
            sys::exit_now(0)
        }
        self.worker = Some(reader);
        Ok(())
    }

    /// What the process said. One that ended without a word may have done its work.
    pub(super) fn answer(&mut self) -> Outcome<()> {
        let mut word = [0; 4];
        let unknown = || failure(NAMED_OR_NOT, errno::EINVAL);
        let Some(worker) = &mut self.worker else {
            return Err(unknown());
        };
        match worker.read_exact(&mut word).map(|()| i32::from_le_bytes(word)) {
            Ok(0) => Ok(()),
            Ok(number) => Err(failure("rename", number)),
            Err(_) => Err(unknown()),
        }
    }
}

/// Puts a file in the place of another one or of a link, never of a directory. There is no moment without either.
///
/// A rename over a file makes some file systems (ext4) write the new one to the disk first, which takes longer than to
/// copy it. To exchange the two does not.
fn replace(from: &Path, to: &Path) -> std::io::Result<()> {
    let is_directory = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    if is_directory(to) {
        return Err(std::io::Error::from_raw_os_error(errno::EISDIR));
    }
    let c_path = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let names = (c_path(from)?, c_path(to)?);
    let exchange = || sys::exchange(&names.0, &names.1);
    // Nothing is there, or the file system can't.
    if exchange().is_err() {
        return fs::rename(from, to);
    }
    let removed = if is_directory(from) {
        // Somebody has made it meanwhile.
        Err(std::io::Error::from_raw_os_error(errno::EISDIR))
    } else {
        fs::remove_file(from)
    };
    if removed.is_err() && exchange().is_err() {
        // It has its name, and nobody may give it that of the old one.
        sys::exit_now(1)
    }
    removed
}

/// A file that is removed once more.
pub(super) struct Unwanted {
    path: PathBuf,
    again_at: u64,
}

impl Server {
    /// Nobody will say any more that the file is whole.
    pub(super) fn give_up_name(&mut self, naming: Naming) {
        let _ = fs::remove_file(&naming.from);
        if self.unwanted.len() < MOST_AGAIN {
            self.unwanted.push(Unwanted {
                path: naming.from,
                again_at: sys::now_ms().saturating_add(AGAIN_MS),
            });
        }
    }

    /// When the next file is removed once more.
    pub(super) fn next_removal(&self) -> Option<u64> {
        self.unwanted.iter().map(|file| file.again_at).min()
    }

    pub(super) fn remove_unwanted(&mut self, now: u64) {
        self.unwanted.retain(|file| {
            let is_over = file.again_at <= now;
            if is_over {
                let _ = fs::remove_file(&file.path);
            }
            !is_over
        });
    }
}
