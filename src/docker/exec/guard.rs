//! What is killed when a command's future is dropped, and by whom.

use tokio::time::Instant;

use crate::spec::User;

use super::super::{DockerProvider, DockerRaw};
use super::kill;

/// The processes of one command, as a second exec finds them.
#[derive(Debug, Clone)]
pub(in crate::docker) struct KillTarget {
    pub(super) container_id: String,
    /// The shell that runs the kill; none in an image without one.
    pub(super) shell: Option<String>,
    /// As whom the command runs: root without capabilities may not kill another user's process, this user may.
    pub(super) user: Option<String>,
    pub(super) marker: String,
    /// The engine's id of the exec, once there is one.
    pub(super) exec_id: Option<String>,
    /// When that was: the command is not older.
    pub(super) armed_at: Option<Instant>,
}

/// Kills a command's process tree in the background unless it is disarmed (contract D3, X12).
pub(in crate::docker) struct KillGuard {
    provider: DockerProvider,
    target: KillTarget,
    armed: bool,
}

impl KillGuard {
    pub(in crate::docker) fn new(provider: &DockerProvider, raw: &DockerRaw, user: Option<&User>) -> Self {
        let target = KillTarget {
            container_id: raw.container_id.clone(),
            shell: raw.shell.clone(),
            user: user.map(|user| user.as_str().to_owned()),
            marker: uuid::Uuid::new_v4().simple().to_string(),
            exec_id: None,
            armed_at: None,
        };
        Self {
            provider: provider.clone(),
            target,
            armed: false,
        }
    }

    pub(in crate::docker) fn marker(&self) -> &str {
        &self.target.marker
    }

    pub(in crate::docker) fn target(&self) -> &KillTarget {
        &self.target
    }

    /// From here on there may be something to kill.
    pub(in crate::docker) fn arm(&mut self, exec_id: &str) {
        self.target.exec_id = Some(exec_id.to_owned());
        self.target.armed_at = Some(Instant::now());
        self.armed = true;
    }

    /// Nothing is left to kill.
    pub(in crate::docker) fn disarm(&mut self) {
        self.armed = false;
    }
}

impl Drop for KillGuard {
    fn drop(&mut self) {
        if self.armed {
            let provider = self.provider.clone();
            let target = self.target.clone();
            self.provider
                .reaper()
                .submit("kill a cancelled command", async move {
                    kill::kill_abandoned(&provider, &target).await;
                });
        }
    }
}
