//! What is killed when a command's future is dropped, and by whom.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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
    /// One for all guards of the command.
    armed: Arc<AtomicBool>,
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
            armed: Arc::default(),
        }
    }

    /// Another guard of the same command: the first that is dropped while it runs has it killed.
    pub(super) fn twin(&self) -> Self {
        Self {
            provider: self.provider.clone(),
            target: self.target.clone(),
            armed: Arc::clone(&self.armed),
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
        self.armed.store(true, Ordering::SeqCst);
    }

    /// Has what there is to kill killed in the background. Once this has returned, who waits for the background waits for
    /// that, too.
    pub(in crate::docker) fn fire(&mut self) {
        if self.armed.swap(false, Ordering::SeqCst)
            && self.provider.shared.kills.abandoned.add(self.target.clone())
        {
            let mut job = Job {
                provider: self.provider.clone(),
                container_id: self.target.container_id.clone(),
                has_begun: false,
            };
            self.provider
                .reaper()
                .submit("kill cancelled commands", async move {
                    let targets = job.begin();
                    kill::kill_abandoned(&job.provider, targets).await;
                });
        }
    }

    /// Nothing is left to kill.
    pub(in crate::docker) fn disarm(&mut self) {
        self.armed.store(false, Ordering::SeqCst);
    }
}

impl Drop for KillGuard {
    fn drop(&mut self) {
        self.fire();
    }
}

/// Commands whose futures were dropped and that no job has begun to kill, by their containers.
#[derive(Debug, Default)]
pub(super) struct Abandoned(Mutex<HashMap<String, Vec<KillTarget>>>);

impl Abandoned {
    /// Says whether it is the first of its container: then it takes a job.
    fn add(&self, target: KillTarget) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let targets = waiting.entry(target.container_id.clone()).or_default();
        targets.push(target);
        targets.len() == 1
    }

    fn take(&self, container_id: &str) -> Vec<KillTarget> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(container_id).unwrap_or_default()
    }
}

/// The job for the dropped commands of one container.
struct Job {
    provider: DockerProvider,
    container_id: String,
    has_begun: bool,
}

impl Job {
    /// Those that were dropped until now; who comes later makes a new job.
    fn begin(&mut self) -> Vec<KillTarget> {
        self.has_begun = true;
        self.provider.shared.kills.abandoned.take(&self.container_id)
    }
}

impl Drop for Job {
    /// A job that nobody takes leaves what it was for to the sweep, and its place to the next one.
    fn drop(&mut self) {
        if !self.has_begun {
            self.begin();
        }
    }
}
