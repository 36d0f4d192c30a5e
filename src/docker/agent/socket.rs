//! The local channel: a folder of this process with a socket in it, mounted into one sandbox, whose agent dials out.
//! Because it is the sandbox that dials, it can never point this process at another socket.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::unix::pipe::Receiver;
use tokio::net::{UnixListener, UnixStream};

use super::apart;
use super::link::{Lost, Wire};
use super::outbox::Writer;

/// Where the folder is in the sandbox, and the socket in the folder.
pub(super) const FOLDER: &str = "/.gym-sandbox-socket";
const SOCKET: &str = "agent";

/// The path of the socket as the agent sees it.
pub(super) fn path_in_sandbox() -> String {
    format!("{FOLDER}/{SOCKET}")
}

/// How the names of the folders begin.
const PREFIX: &str = "gym-sandbox-agents-";

/// Locked for as long as the process of a folder lives.
const LOCK: &str = "lock";

/// A folder that is younger than this may have no lock yet.
const NEW: Duration = Duration::from_secs(60);

/// The folders of all sandboxes of one provider, in one that only this user can enter.
#[derive(Debug, Default)]
pub(in crate::docker) struct Sockets(Mutex<Option<Root>>);

#[derive(Debug)]
struct Root {
    folder: TempDir,
    /// Let go of with the process, however it ends.
    _lock: File,
}

impl Root {
    fn new() -> io::Result<Self> {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| remove_dead(&std::env::temp_dir(), NEW));
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        let lock = File::create(folder.path().join(LOCK))?;
        lock.try_lock().map_err(io::Error::from)?;
        Ok(Self { folder, _lock: lock })
    }
}

/// Removes the folders of processes that were killed. What can't be removed is left: it does no harm.
fn remove_dead(place: &Path, new: Duration) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_ours = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes());
        if !is_ours || entry.metadata().is_ok_and(|found| !found.is_dir()) {
            continue;
        }
        let lock = entry.path().join(LOCK);
        let age = fs::symlink_metadata(&lock)
            .ok()
            .filter(fs::Metadata::is_file)
            .and_then(|found| found.modified().ok()?.elapsed().ok());
        let is_dead = age.is_some_and(|age| age >= new)
            && OpenOptions::new()
                .write(true)
                .open(&lock)
                .is_ok_and(|lock| lock.try_lock().is_ok());
        if is_dead {
            let _left = fs::remove_dir_all(entry.path()).is_err();
        }
    }
}

impl Sockets {
    /// Makes the folder of one sandbox. The files are few and small, so that this does not keep a runtime waiting.
    pub(super) fn prepare(&self, name: &str) -> io::Result<Doorway> {
        let folder = {
            let mut root = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let root = match &mut *root {
                Some(root) => root,
                none => none.insert(Root::new()?),
            };
            root.folder.path().join(name)
        };
        fs::create_dir(&folder)?;
        let mut doorway = Doorway {
            folder,
            listener: None,
        };
        // The agent may be any user; others of this machine do not get past the folder above.
        fs::set_permissions(&doorway.folder, Permissions::from_mode(0o755))?;
        let socket = doorway.folder.join(SOCKET);
        let _entered = apart::runtime()?.enter();
        let listener = UnixListener::bind(&socket)?;
        fs::set_permissions(&socket, Permissions::from_mode(0o666))?;
        doorway.listener = Some(listener);
        Ok(doorway)
    }
}

/// The folder of one sandbox. It stays for as long as the sandbox may be restarted, and is removed when dropped.
#[derive(Debug)]
pub(super) struct Doorway {
    folder: PathBuf,
    /// Taken by the first connection: nobody else inside is to be mistaken for the agent later.
    listener: Option<UnixListener>,
}

impl Doorway {
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The socket, for the first who asks.
    pub(super) fn listen(&mut self) -> Option<Listening> {
        let listener = self.listener.take()?;
        let path = self.folder.join(SOCKET);
        Some(Listening { listener, path })
    }
}

/// A socket that the agent has not dialled yet.
#[derive(Debug)]
pub(super) struct Listening {
    listener: UnixListener,
    path: PathBuf,
}

impl Listening {
    /// Waits for the agent to dial.
    pub(super) async fn accept(self, patience: Duration) -> Result<Wire, Lost> {
        let accepted = tokio::time::timeout(patience, self.listener.accept()).await;
        match accepted {
            Ok(Ok((stream, _))) => wire(stream).map_err(|error| failed(&error)),
            Ok(Err(error)) => Err(failed(&error)),
            Err(_) => Err(Lost(
                format!("the agent did not dial its socket in {patience:?}").into(),
            )),
        }
    }
}

/// A stream of the runtime is also watched for room to write, and each message that the agent takes makes some: two
/// wakes for every command that nobody waits for. So only what comes in is watched, as the end of a pipe is; reading it is
/// the same call.
fn wire(stream: UnixStream) -> io::Result<Wire> {
    let writer = stream.into_std()?;
    let reader = Receiver::from_owned_fd_unchecked(writer.try_clone()?.into())?;
    Ok(Wire {
        reader: Box::pin(reader),
        writer: Writer::Socket(writer),
    })
}

fn failed(error: &io::Error) -> Lost {
    Lost(format!("the agent's socket failed: {error}").into())
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _gone = fs::remove_file(&self.path).is_ok();
    }
}

impl Drop for Doorway {
    fn drop(&mut self) {
        // Left over it does no harm, and the folder above goes with the process.
        let _gone = fs::remove_dir_all(&self.folder).is_ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_processes_that_are_gone_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let folder = place.path().join(name);
            fs::create_dir_all(folder.join("sandbox")).unwrap();
            File::create(folder.join(LOCK)).unwrap()
        };
        let living = make("gym-sandbox-agents-living");
        living.lock().unwrap();
        drop(make("gym-sandbox-agents-dead"));
        drop(make("another-program"));
        let names = || {
            let mut names: Vec<_> = fs::read_dir(place.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        remove_dead(place.path(), NEW);
        assert_eq!(names().len(), 3, "they are new");
        remove_dead(place.path(), Duration::ZERO);
        assert_eq!(names(), ["another-program", "gym-sandbox-agents-living"]);
    }
}
