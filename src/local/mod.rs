//! The local provider: commands as processes of this machine, files below a folder. It isolates nothing.
//! Knows no engine.

mod config;
mod copy;
mod create;
mod download;
mod drive;
mod exec;
mod files;
mod kill;
mod place;
mod process;
mod pty;
mod session;
mod transfer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;

use crate::error::{Error, ErrorKind, Operation, Result, SandboxReason};
use crate::provider::{
    FilesProvider, InspectProvider, OpenSessions, PtyProvider, Reaper, SandboxHandle, SandboxProvider,
    SpawnProvider,
};
use crate::spec::{
    ExecOptions, ExecPath, ExecResult, Mapping, SandboxDetail, SandboxSpec, SandboxStatus, calendar,
};

pub use config::LocalConfig;

use create::Sandbox;

/// The name of this provider.
const PROVIDER: &str = "local";

/// Runs commands as processes of this machine, in a folder of its own for each sandbox (contract 2.16).
///
/// **It does not isolate.** A command may do whatever the user may who runs this program: read and change files
/// elsewhere, use the network, see other processes. It is for trusted code, for tests, and for machines without an
/// engine; it says so in the log once per provider.
///
/// A sandbox is a folder, its workspace: the spec's `workdir`, which must be absolute and stays when the sandbox is
/// closed, or a new folder, which is removed then. Commands run there unless they name another directory; a relative
/// one is relative to the workspace. Files are copied only to and from places below the workspace, and links that lead
/// out of it are not followed.
///
/// Terminal sessions are terminals of this machine. They end with this process: there is no leaving and joining them.
///
/// `image`, `ttl`, `ready_timeout`, `ports` and resource limits of a spec have no effect, which a warning says; an
/// entrypoint and provider options are refused.
///
/// A timeout or a dropped call kills the command's process group and every other process that is found to belong to it
/// by its parents, session, output or the variable `GYM_SANDBOX_EXEC`. A child that got rid of all of these lives on.
///
/// ```
/// use std::sync::Arc;
/// use gym_sandbox::{AsyncSandbox, SandboxSpec, local::{LocalConfig, LocalProvider}};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> gym_sandbox::Result<()> {
/// let provider = Arc::new(LocalProvider::new(LocalConfig::default().with_shell("/bin/sh"))?);
/// let result = AsyncSandbox::scope(provider, SandboxSpec::default(), async |sandbox| {
///     sandbox.write_file("task.txt", "hello").await?;
///     sandbox.exec("cat task.txt").await
/// })
/// .await?;
/// assert_eq!(result.stdout().as_deref(), Some("hello"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LocalProvider {
    shared: Arc<Shared>,
}

struct Shared {
    config: LocalConfig,
    /// One for all providers of this process with the same limit (contract O8).
    lane: Arc<Semaphore>,
    reaper: Reaper,
    warned: AtomicBool,
    sessions: OpenSessions,
}

/// What the local provider keeps in a handle. Not stable and not part of a descriptor.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LocalRaw {
    /// The folder of the sandbox, without links in its path.
    pub workspace: PathBuf,
    sandbox: Arc<Sandbox>,
}

impl LocalProvider {
    /// Makes a provider from a checked configuration, without I/O.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] naming the setting that is wrong.
    pub fn new(config: LocalConfig) -> Result<Self> {
        config.check()?;
        Ok(Self {
            shared: Arc::new(Shared {
                lane: exec::lane(config.concurrency),
                config,
                reaper: Reaper::new(),
                warned: AtomicBool::new(false),
                sessions: OpenSessions::default(),
            }),
        })
    }

    /// Makes a provider from the settings of a configuration block, without I/O.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] naming an unknown or wrong setting.
    pub fn from_settings(settings: &Mapping) -> Result<Self> {
        Self::new(LocalConfig::from_settings(settings)?)
    }

    fn config(&self) -> &LocalConfig {
        &self.shared.config
    }

    fn reaper(&self) -> &Reaper {
        &self.shared.reaper
    }

    fn sessions(&self) -> &OpenSessions {
        &self.shared.sessions
    }
}

fn sandbox_of(handle: &SandboxHandle, operation: Operation) -> Result<&Arc<Sandbox>> {
    Ok(&handle.raw_for::<LocalRaw>(PROVIDER, operation)?.sandbox)
}

/// The sandbox of a handle, unless it is gone.
fn living(handle: &SandboxHandle, operation: Operation) -> Result<&Arc<Sandbox>> {
    let sandbox = sandbox_of(handle, operation)?;
    if sandbox.is_gone() {
        return Err(Error::new(
            ErrorKind::Sandbox(SandboxReason::Removed),
            operation,
            "the sandbox has been removed",
        )
        .with_sandbox(handle.sandbox_id()));
    }
    Ok(sandbox)
}

#[async_trait]
impl SandboxProvider for LocalProvider {
    fn name(&self) -> &str {
        PROVIDER
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<SandboxHandle> {
        self.create_sandbox(spec).await
    }

    async fn exec(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<ExecResult> {
        self.run_command(sandbox_of(handle, Operation::Exec)?, options)
            .await
    }

    async fn upload_file(&self, handle: &SandboxHandle, local: &Path, remote: &str) -> Result<()> {
        self.upload_one(living(handle, Operation::Upload)?, local, remote)
            .await
    }

    async fn download_file(&self, handle: &SandboxHandle, remote: &str, local: &Path) -> Result<()> {
        self.download_one(living(handle, Operation::Download)?, remote, local)
            .await
    }

    async fn status(&self, handle: &SandboxHandle) -> Result<SandboxStatus> {
        Ok(sandbox_of(handle, Operation::Status)?.status())
    }

    async fn close(&self, handle: &SandboxHandle) -> Result<()> {
        create::close(sandbox_of(handle, Operation::Close)?).await
    }

    async fn aclose(&self) -> Result<()> {
        self.sessions().close_all().await;
        self.reaper().wait_idle(Duration::from_secs(60)).await
    }

    fn cleanup(&self) -> Option<&Reaper> {
        Some(self.reaper())
    }

    fn as_spawn(&self) -> Option<&dyn SpawnProvider> {
        Some(self)
    }

    fn as_inspect(&self) -> Option<&dyn InspectProvider> {
        Some(self)
    }

    fn as_pty(&self) -> Option<&dyn PtyProvider> {
        Some(self)
    }

    fn as_files(&self) -> Option<&dyn FilesProvider> {
        Some(self)
    }
}

#[async_trait]
impl InspectProvider for LocalProvider {
    async fn inspect(&self, handle: &SandboxHandle) -> Result<SandboxDetail> {
        let sandbox = sandbox_of(handle, Operation::Inspect)?;
        if sandbox.is_gone() {
            return Err(Error::new(
                ErrorKind::NotFound,
                Operation::Inspect,
                "the sandbox does not exist any more",
            )
            .with_sandbox(&sandbox.id));
        }
        let created = sandbox
            .created
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        let seconds = i64::try_from(created.as_secs()).unwrap_or(i64::MAX);
        let created = calendar::rfc3339(seconds, created.subsec_nanos());
        let mut detail = SandboxDetail::new(
            sandbox.id.clone(),
            PROVIDER,
            SandboxStatus::Running,
            ExecPath::Host,
        );
        detail.labels.clone_from(&sandbox.labels);
        detail.started = Some(created.clone());
        detail.created = Some(created);
        Ok(detail)
    }
}

impl fmt::Debug for LocalProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalProvider")
            .field("config", &self.shared.config)
            .finish_non_exhaustive()
    }
}
