//! One file that is written: beside its place first, then renamed, so that nobody sees half of it.

use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, fchown, lchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::files::{Outcome, failure, path_of, trying};
use crate::protocol::{FileFailure, WriteRequest};
use crate::sys::{self, errno};

/// A file under way to its place.
pub(super) struct Writing {
    request: WriteRequest,
    file: File,
    /// Where it is written, to be renamed. None when it is written in its place.
    temporary: Option<PathBuf>,
    done: u64,
    failure: Option<FileFailure>,
}

impl Writing {
    pub(super) fn begin(request: WriteRequest) -> Outcome<Self> {
        let path = path_of(&request.path)?;
        let (Some(parent), Some(_)) = (path.parent(), path.file_name()) else {
            return Err(failure("path", errno::EISDIR));
        };
        if request.make_parents {
            make_directories(parent, &request)?;
        }
        if request.in_place {
            let file = trying("open", open_in_place(&path))?;
            return Ok(Self {
                request,
                file,
                temporary: None,
                done: 0,
                failure: None,
            });
        }
        // Said before a single byte is sent, instead of when it is renamed.
        if let Ok(found) = fs::symlink_metadata(&path) {
            if found.is_dir() {
                return Err(failure("open", errno::EISDIR));
            }
            // A device, pipe or socket is nothing to put a file in the place of unasked.
            if !found.is_file() && !found.is_symlink() {
                return Err(failure("open", errno::EOPNOTSUPP));
            }
        }
        let (file, temporary) = create_beside(parent)?;
        Ok(Self {
            request,
            file,
            temporary: Some(temporary),
            done: 0,
            failure: None,
        })
    }

    /// Goes on taking bytes after a failure, so that the client's credit is right.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        if self.failure.is_none() {
            self.failure = trying("write", self.file.write_all(bytes)).err();
            self.done += bytes.len() as u64;
        }
    }

    pub(super) fn finish(mut self) -> Outcome<u64> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let path = path_of(&self.request.path)?;
        let Some(temporary) = self.temporary.clone() else {
            return Ok(self.done);
        };
        self.dress()?;
        match fs::rename(&temporary, &path) {
            Ok(()) => self.temporary = None,
            // A file that is itself a mount, such as /etc/hosts, can't be replaced, only filled.
            Err(error) if error.raw_os_error() == Some(errno::EBUSY) => {
                let copied = File::open(&temporary).and_then(|mut from| {
                    let mut to = open_in_place(&path)?;
                    std::io::copy(&mut from, &mut to)
                });
                trying("write", copied)?;
            }
            Err(error) => return trying("rename", Err(error)),
        }
        Ok(self.done)
    }

    /// Owner before mode: a change of owner takes the set-id bits away.
    fn dress(&self) -> Outcome<()> {
        let WriteRequest {
            uid,
            gid,
            mode,
            modified_ns,
            ..
        } = self.request;
        let given = |id: u32| (id != u32::MAX).then_some(id);
        if given(uid).or(given(gid)).is_some() {
            trying("chown", fchown(&self.file, given(uid), given(gid)))?;
        }
        trying(
            "chmod",
            self.file.set_permissions(Permissions::from_mode(mode & 0o7777)),
        )?;
        if modified_ns != i64::MIN {
            let since = Duration::from_nanos(modified_ns.unsigned_abs());
            let time = if modified_ns < 0 {
                SystemTime::UNIX_EPOCH.checked_sub(since)
            } else {
                SystemTime::UNIX_EPOCH.checked_add(since)
            };
            let time = time.ok_or_else(|| failure("utimes", errno::EINVAL))?;
            trying("utimes", self.file.set_times(FileTimes::new().set_modified(time)))?;
        }
        Ok(())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Never through a link, and never waiting for the other side of a pipe.
fn open_in_place(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new()
        .write(true)
        .truncate(true)
        .custom_flags(sys::O_NOFOLLOW | sys::O_NONBLOCK)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(std::io::Error::from_raw_os_error(errno::EOPNOTSUPP))
    }
}

fn create_beside(parent: &Path) -> Outcome<(File, PathBuf)> {
    let mut attempt = sys::now_ms();
    loop {
        attempt = attempt.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        let path = parent.join(format!(".gym-sandbox-{}-{attempt:016x}", std::process::id()));
        // The name is new or the call fails, so that nobody's link is followed.
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
        {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.raw_os_error() == Some(errno::EEXIST) => {}
            Err(error) => return trying("create", Err(error)),
        }
    }
}

/// Makes what is missing, each with the file's owner.
fn make_directories(path: &Path, request: &WriteRequest) -> Outcome<()> {
    if fs::metadata(path).is_ok_and(|found| found.is_dir()) || path.as_os_str().as_bytes() == b"/" {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_directories(parent, request)?;
    }
    match fs::create_dir(path) {
        Ok(()) => {}
        // Somebody else may have made it meanwhile.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => return Ok(()),
        Err(error) => return trying("mkdir", Err(error)),
    }
    trying("chmod", fs::set_permissions(path, Permissions::from_mode(0o755)))?;
    let given = |id: u32| (id != u32::MAX).then_some(id);
    trying("chown", lchown(path, given(request.uid), given(request.gid)))
}
