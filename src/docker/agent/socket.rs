//! The local channel: a folder of this process with a socket in it, mounted into one sandbox, whose agent dials out.
//! Because it is the sandbox that dials, it can never point this process at another socket.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::UnixListener;

use super::link::{Lost, Wire};
use super::outbox::Writer;

/// Where the folder is in the sandbox, and the socket in the folder.
pub(super) const FOLDER: &str = "/.gym-sandbox-socket";
const SOCKET: &str = "agent";

/// The path of the socket as the agent sees it.
pub(super) fn path_in_sandbox() -> String {
    format!("{FOLDER}/{SOCKET}")
}

/// The folders of all sandboxes of one provider, in one that only this user can enter.
#[derive(Debug, Default)]
pub(in crate::docker) struct Sockets(Mutex<Option<TempDir>>);

impl Sockets {
    /// Makes the folder of one sandbox. The files are few and small, so that this does not keep a runtime waiting.
    pub(super) fn prepare(&self, name: &str) -> io::Result<Doorway> {
        let folder = {
            let mut root = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let root = match &mut *root {
                Some(root) => root,
                none => none.insert(tempfile::Builder::new().prefix("gym-sandbox-").tempdir()?),
            };
            root.path().join(name)
        };
        fs::create_dir(&folder)?;
        let mut doorway = Doorway {
            folder,
            listener: None,
        };
        // The agent may be any user; others of this machine do not get past the folder above.
        fs::set_permissions(&doorway.folder, Permissions::from_mode(0o755))?;
        let socket = doorway.folder.join(SOCKET);
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

    /// Nobody has dialled yet.
    pub(super) fn is_open(&self) -> bool {
        self.listener.is_some()
    }

    /// Waits for the agent to dial. Can be done once.
    pub(super) async fn accept(&mut self, patience: Duration) -> Result<Wire, Lost> {
        let Some(listener) = self.listener.take() else {
            return Err(Lost("the agent's socket was used before".into()));
        };
        let accepted = tokio::time::timeout(patience, listener.accept()).await;
        drop(listener);
        let _gone = fs::remove_file(self.folder.join(SOCKET)).is_ok();
        match accepted {
            Ok(Ok((stream, _))) => {
                let (reader, writer) = stream.into_split();
                Ok(Wire {
                    reader: Box::pin(reader),
                    writer: Writer::Socket(writer),
                })
            }
            Ok(Err(error)) => Err(Lost(format!("the agent's socket failed: {error}").into())),
            Err(_) => Err(Lost(
                format!("the agent did not dial its socket in {patience:?}").into(),
            )),
        }
    }
}

impl Drop for Doorway {
    fn drop(&mut self) {
        // Left over it does no harm, and the folder above goes with the process.
        let _gone = fs::remove_dir_all(&self.folder).is_ok();
    }
}
