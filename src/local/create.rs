//! A sandbox of the local provider: its folder, and what is known of it until it is closed.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result};
use crate::provider::{Reaper, SandboxHandle, check_provider_options};
use crate::spec::{SandboxId, SandboxResources, SandboxSpec, SandboxStatus, check_environment};

use super::kill::{self, Target};
use super::process::blocking;
use super::{LocalProvider, LocalRaw, PROVIDER};

/// How often removing a folder is tried in which processes still write.
const REMOVALS: usize = 20;

#[derive(Debug)]
pub(super) struct Sandbox {
    pub(super) id: SandboxId,
    pub(super) workspace: PathBuf,
    /// The workspace, and where else files may be copied to and from.
    pub(super) roots: Vec<PathBuf>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) created: SystemTime,
    /// Cancelled when the sandbox is closed: running commands end as lost ones.
    pub(super) closed: CancellationToken,
    keeps_workspace: bool,
    commands: AtomicU64,
    /// Tasks that read and drop what background children of ended commands print.
    drains: Mutex<JoinSet<()>>,
}

impl Sandbox {
    /// The mark of the next command, unique on this machine.
    pub(super) fn next_marker(&self) -> String {
        format!("{}/{}", self.id, self.commands.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn is_gone(&self) -> bool {
        self.closed.is_cancelled() || !self.workspace.is_dir()
    }

    /// Running while the folder exists (contract O7).
    pub(super) fn status(&self) -> SandboxStatus {
        if self.is_gone() {
            SandboxStatus::Stopped
        } else {
            SandboxStatus::Running
        }
    }

    /// Has a task run until it ends or the sandbox is closed.
    pub(super) fn keep_reading(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut drains = self.drains.lock().unwrap_or_else(PoisonError::into_inner);
        while drains.try_join_next().is_some() {}
        drains.spawn(task);
    }

    fn stop_reading(&self) {
        self.drains
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .abort_all();
    }
}

/// A folder that was made and is removed in the background unless somebody takes it.
struct Made {
    workspace: Option<PathBuf>,
    keeps: bool,
    reaper: Reaper,
}

impl Made {
    fn take(mut self) -> Option<PathBuf> {
        self.workspace.take()
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(workspace) = self.workspace.take()
            && !self.keeps
        {
            self.reaper
                .submit("remove the folder of a local sandbox", async move {
                    let removed = blocking(Operation::Close, move || remove_folder(&workspace)).await;
                    if let Err(error) = removed {
                        tracing::warn!(%error, "the folder of a local sandbox could not be removed");
                    }
                });
        }
    }
}

impl LocalProvider {
    pub(super) async fn create_sandbox(&self, spec: &SandboxSpec) -> Result<SandboxHandle> {
        check(spec)?;
        self.warn(spec);
        let mut name = uuid::Uuid::new_v4().simple().to_string();
        name.truncate(12);
        let id = SandboxId::new(format!("local-{name}"))?;
        let given = spec.workdir().map(PathBuf::from);
        let root = self.config().workspace_root.clone();
        let others = self.config().file_roots.clone();
        let (folder, reaper) = (id.to_string(), self.reaper().clone());
        // Where the caller is gone by then, the folder is still made: closing the provider waits until it is removed.
        let pledge = reaper.pledge();
        let (made, roots, _pledge) = blocking(Operation::Create, move || {
            let keeps = given.is_some();
            let path = match given {
                Some(given) => {
                    std::fs::create_dir_all(&given).map_err(|error| failed(&given, error))?;
                    given
                }
                None => make_folder(&root.unwrap_or_else(std::env::temp_dir), &folder)?,
            };
            let workspace = path.canonicalize().map_err(|error| failed(&path, error))?;
            let mut roots = vec![workspace.clone()];
            roots.extend(
                others
                    .iter()
                    .map(|root| root.canonicalize().unwrap_or_else(|_| root.clone())),
            );
            let made = Made {
                workspace: Some(workspace),
                keeps,
                reaper,
            };
            // In this order they are dropped.
            Ok((made, roots, pledge))
        })
        .await?;
        let keeps_workspace = made.keeps;
        let workspace = made.take().unwrap_or_default();
        let sandbox = Arc::new(Sandbox {
            id: id.clone(),
            workspace: workspace.clone(),
            roots,
            env: spec.env().clone(),
            labels: spec.metadata().clone(),
            created: SystemTime::now(),
            closed: CancellationToken::new(),
            keeps_workspace,
            commands: AtomicU64::new(0),
            drains: Mutex::default(),
        });
        Ok(SandboxHandle::new(id, PROVIDER)
            .with_ports(spec.ports().clone())
            .with_raw(LocalRaw { workspace, sandbox }))
    }

    /// Says what has no effect (contract O2), and once that nothing is isolated (contract D30).
    fn warn(&self, spec: &SandboxSpec) {
        if !self.shared.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "the local provider does not isolate: commands run on this machine as the user of this program"
            );
        }
        let ignored = ignored(spec);
        if !ignored.is_empty() {
            tracing::warn!(
                "the local provider ignores {}; it has no resource limits either",
                ignored.join(", ")
            );
        }
    }
}

/// The fields of a spec that are set and have no effect.
pub(super) fn ignored(spec: &SandboxSpec) -> Vec<&'static str> {
    [
        ("image", spec.image().is_some()),
        ("ttl_s", spec.ttl().is_some()),
        ("ready_timeout_s", spec.ready_timeout().is_some()),
        ("ports", !spec.ports().as_slice().is_empty()),
        ("resources", *spec.resources() != SandboxResources::default()),
    ]
    .into_iter()
    .filter_map(|(name, set)| set.then_some(name))
    .collect()
}

fn check(spec: &SandboxSpec) -> Result<()> {
    check_environment(Operation::Create, spec.env())?;
    check_provider_options(
        Operation::Create,
        "provider options",
        spec.provider_options(),
        &[],
    )?;
    if !spec.entrypoint().is_empty() {
        return Err(Error::unsupported(Operation::Create, PROVIDER, "an entrypoint")
            .with_hint("a local sandbox has no main process; spawn the command instead"));
    }
    match spec.workdir() {
        Some(workdir) if !Path::new(workdir).is_absolute() || workdir.contains('\0') => Err(Error::invalid(
            Operation::Create,
            format!("the workdir `{}` is not absolute", workdir.escape_debug()),
        )
        .with_hint("a local sandbox works in that folder of this machine; give its whole path")),
        _ => Ok(()),
    }
}

fn make_folder(root: &Path, name: &str) -> Result<PathBuf> {
    std::fs::create_dir_all(root).map_err(|error| failed(root, error))?;
    let path = root.join(name);
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&path)
        .map_err(|error| failed(&path, error))?;
    Ok(path)
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::new(
        ErrorKind::CreateFailed,
        Operation::Create,
        format!("the folder `{}` can't be used", path.display()),
    )
    .with_source(error)
}

/// Ends every process of the sandbox and removes its folder, unless the caller gave it (contract O1).
pub(super) async fn close(sandbox: &Arc<Sandbox>) -> Result<()> {
    sandbox.closed.cancel();
    sandbox.stop_reading();
    let closing = Arc::clone(sandbox);
    blocking(Operation::Close, move || {
        let report = kill::kill_tree(&Target::of_sandbox(&closing.id));
        if report.survivors > 0 {
            return Err(Error::new(
                ErrorKind::Timeout,
                Operation::Close,
                format!("{} processes of the sandbox could not be ended", report.survivors),
            ));
        }
        if closing.keeps_workspace {
            return Ok(());
        }
        remove_folder(&closing.workspace)
    })
    .await
    .map_err(|error| error.with_sandbox(&sandbox.id))
}

fn remove_folder(folder: &Path) -> Result<()> {
    let mut last = None;
    for _ in 0..REMOVALS {
        match std::fs::remove_dir_all(folder) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !folder.exists() => return Ok(()),
            Err(error) => last = Some(error),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let kind = match last.as_ref().map(std::io::Error::kind) {
        Some(std::io::ErrorKind::PermissionDenied) => ErrorKind::Path(PathProblem::Permission),
        _ => ErrorKind::Io,
    };
    let error = Error::new(
        kind,
        Operation::Close,
        format!("the folder `{}` could not be removed", folder.display()),
    );
    Err(match last {
        Some(source) => error.with_source(source),
        None => error,
    })
}
