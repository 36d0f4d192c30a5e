//! Owner files: a file that a process keeps locked while it has sandboxes. The lock ends with the process, however it
//! ends, so that others of this machine see its death at once. Knows no engine.
//!
//! The files are in a folder that only this user can write. The folder has an id of its own, made once per boot, which
//! is the first part of every owner's id: who sees another folder, on another machine or in a container with a `/tmp`
//! of its own, sees another id and takes nothing from the files.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use uuid::Uuid;

use super::owner;

/// What the file of an owner proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::docker) enum Proof {
    /// It is locked: the process lives, also when it is stopped.
    Alive,
    /// Nobody holds the lock: the process has ended.
    Dead,
    /// There is no such file here: the owner is elsewhere, or has no sandbox.
    Nothing,
}

/// The locked file of this process. Where it can't be had the lease alone shows that this process lives.
#[derive(Debug)]
pub(in crate::docker) struct Presence(());

/// How many presences there are, and the file while there are any.
static FILE: Mutex<(usize, Option<OwnFile>)> = Mutex::new((0, None));

#[derive(Debug)]
struct OwnFile {
    path: PathBuf,
    locked: File,
}

/// The longest notice.
const NOTICE_BYTES: usize = 64 * 1024;

/// Writes what others of this machine may know of this process into its file. Where it shows no presence, nothing. Who
/// reads in this moment may get a part of it.
pub(in crate::docker) fn publish(notice: &str) {
    let shown = FILE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(file) = &shown.1
        && notice.len() <= NOTICE_BYTES
    {
        let written = file
            .locked
            .set_len(0)
            .and_then(|()| file.locked.write_all_at(notice.as_bytes(), 0));
        if let Err(error) = written {
            tracing::debug!(%error, "the owner file was not written");
        }
    }
}

/// What the living processes of this user on this machine have published, this one among them, by their owner ids.
pub(in crate::docker) fn notices() -> Vec<(String, String)> {
    place().map(Place::notices).unwrap_or_default()
}

impl Presence {
    /// Shows this process to others until it is dropped. A few calls of the file system, on memory as a rule.
    pub(in crate::docker) fn show() -> Self {
        let mut shown = FILE.lock().unwrap_or_else(PoisonError::into_inner);
        shown.0 += 1;
        if shown.1.is_none()
            && let Some(place) = place()
        {
            match lock_new(&place.folder, &owner().id) {
                Ok(file) => shown.1 = Some(file),
                Err(error) => tracing::debug!(%error, "this process has no owner file"),
            }
        }
        Self(())
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let mut shown = FILE.lock().unwrap_or_else(PoisonError::into_inner);
        shown.0 -= 1;
        if shown.0 == 0
            && let Some(file) = shown.1.take()
        {
            // Removed while it is locked: nobody takes an owner without sandboxes for a dead one.
            let _gone = fs::remove_file(&file.path).is_ok();
        }
    }
}

/// Makes an owner's id for this process.
pub(super) fn new_owner_id() -> String {
    let process = Uuid::new_v4().simple().to_string();
    match place() {
        Some(place) => format!("{}-{process}", place.id),
        // An id that no folder has.
        None => format!(
            "{}-{process}",
            &Uuid::new_v4().simple().to_string()[..PLACE_DIGITS]
        ),
    }
}

/// What the file of an owner proves, if this is where it would be.
pub(in crate::docker) fn proof_of(owner: &str) -> Proof {
    place().map_or(Proof::Nothing, |place| place.proof_of(owner))
}

/// How long the file of a dead owner stays after everything of it was removed: what the engine was still at when the
/// owner died comes later, and is found by the next sweep only if its owner is known to be dead.
const REMEMBERED: Duration = Duration::from_secs(15 * 60);

/// Notes that everything of these dead owners has been removed, and removes the files of those of which that has been
/// so for long.
pub(in crate::docker) fn forget<'a>(owners: impl Iterator<Item = &'a str>) {
    if let Some(place) = place() {
        place.forget(owners, SystemTime::now());
    }
}

/// The folder of owner files.
#[derive(Debug)]
struct Place {
    folder: PathBuf,
    id: String,
}

const PLACE_DIGITS: usize = 12;

fn place() -> Option<&'static Place> {
    static PLACE: OnceLock<Option<Place>> = OnceLock::new();
    PLACE
        .get_or_init(|| match Place::open(&candidates()) {
            Ok(place) => Some(place),
            Err(error) => {
                tracing::debug!(%error, "there is no place for owner files");
                None
            }
        })
        .as_ref()
}

/// Where the folder may be, best first.
fn candidates() -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("gym-sandbox"));
    let user = fs::metadata("/proc/self").map_or(0, |process| process.uid());
    let temporary = std::env::temp_dir().join(format!("gym-sandbox-owners-{user}"));
    runtime.into_iter().chain([temporary]).collect()
}

impl Place {
    fn open(candidates: &[PathBuf]) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for folder in candidates {
            match own_folder(folder).and_then(|()| place_id(folder)) {
                Ok(id) => {
                    return Ok(Self {
                        folder: folder.clone(),
                        id,
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn notices(&self) -> Vec<(String, String)> {
        let mut notices = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                continue;
            };
            let mut notice = String::new();
            let read = File::open(entry.path())
                .and_then(|file| file.take(NOTICE_BYTES as u64).read_to_string(&mut notice));
            if read.is_ok_and(|bytes| bytes > 0) && self.proof_of(&name) == Proof::Alive {
                notices.push((name, notice));
            }
        }
        notices
    }

    fn proof_of(&self, owner: &str) -> Proof {
        // The id comes from a label, which anybody can write: only the form that ids have is looked for.
        let is_here = owner.split_once('-').is_some_and(|(place, process)| {
            place == self.id && process.len() == 32 && process.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        if !is_here {
            return Proof::Nothing;
        }
        let Ok(file) = File::open(self.folder.join(owner)) else {
            return Proof::Nothing;
        };
        // Shared: two who look at once do not take each other for the owner.
        match file.try_lock_shared() {
            Ok(()) => Proof::Dead,
            Err(TryLockError::WouldBlock) => Proof::Alive,
            Err(TryLockError::Error(_)) => Proof::Nothing,
        }
    }
}

impl Place {
    /// A file that is not empty is that of a dead owner of which everything was removed, at the time of its last change.
    fn forget<'a>(&self, owners: impl Iterator<Item = &'a str>, now: SystemTime) {
        for owner in owners.filter(|owner| self.proof_of(owner) == Proof::Dead) {
            // Without the note it stays until the next boot, and only takes a name.
            let _noted = self.note(owner).is_ok();
        }
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        for entry in entries.flatten() {
            let is_old = entry.metadata().is_ok_and(|file| {
                let noted = file.modified().ok().filter(|_| file.len() == NOTE.len() as u64);
                noted.is_some_and(|noted| now.duration_since(noted).is_ok_and(|age| age > REMEMBERED))
            });
            let name = entry.file_name();
            if is_old
                && name
                    .to_str()
                    .is_some_and(|name| self.proof_of(name) == Proof::Dead)
            {
                let _gone = fs::remove_file(entry.path()).is_ok();
            }
        }
    }

    fn note(&self, owner: &str) -> io::Result<()> {
        let mut file = File::options().write(true).open(self.folder.join(owner))?;
        if file.metadata()?.len() == 0 {
            file.write_all(NOTE)?;
        }
        Ok(())
    }
}

/// What the file of a dead owner holds once everything of it was removed.
const NOTE: &[u8] = b"swept\n";

/// Makes the folder where it is missing, and refuses one that somebody else could write.
fn own_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(folder)?;
    let me = tempfile::tempfile_in(folder)?.metadata()?.uid();
    if found.is_dir() && found.uid() == me && found.mode() & 0o022 == 0 {
        Ok(())
    } else {
        Err(io::Error::from(io::ErrorKind::PermissionDenied))
    }
}

/// The id of a folder, which whoever comes first makes. After a boot there is another one.
fn place_id(folder: &Path) -> io::Result<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let path = folder.join(format!("place-{}", boot.trim()));
    for _ in 0..2 {
        match fs::read_to_string(&path) {
            Ok(id) if id.len() == PLACE_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                return Ok(id);
            }
            Ok(_) => return Err(io::Error::from(io::ErrorKind::InvalidData)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(&Uuid::new_v4().simple().to_string().as_bytes()[..PLACE_DIGITS])?;
        // Somebody else may have been quicker; then theirs is read.
        let _made = new.persist_noclobber(&path).is_ok();
    }
    Err(io::Error::from(io::ErrorKind::NotFound))
}

/// Makes a locked file. It has its name only once it is locked: a file that is not locked is one of a dead owner.
fn lock_new(folder: &Path, name: &str) -> io::Result<OwnFile> {
    let new = tempfile::NamedTempFile::new_in(folder)?;
    new.as_file().lock()?;
    let path = folder.join(name);
    let locked = new.persist(&path).map_err(|error| error.error)?;
    Ok(OwnFile { path, locked })
}

#[cfg(test)]
mod tests;
