//! The Docker provider: sandboxes as containers of any engine that speaks the Docker Engine API, through bollard.
//! The only module that knows bollard; one file an operation, each with a pure request function and the call.

mod able;
mod admission;
mod agent;
mod archive;
mod attach;
mod close;
mod config;
mod connect;
mod connectable;
mod container;
mod containers;
mod create;
mod doctor;
mod endpoint;
mod exec;
#[cfg(test)]
mod executable;
mod failure;
mod forward;
mod image;
mod inspect;
mod lanes;
mod lease;
mod logs;
mod network;
mod options;
mod owner;
mod pause;
mod per_container;
mod probe;
mod pty;
mod raw;
mod request;
mod requirements;
mod services;
mod shared;
mod shell;
mod snapshot;
mod starting;
mod stats;
mod status;
mod subnets;
mod upkeep;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::OnceCell;

use crate::error::{Operation, Result};
use crate::provider::{
    ConnectableProvider, ContainersProvider, EndpointProvider, FilesProvider, ImageProvider, InspectProvider,
    ListProvider, LogsProvider, NetworkProvider, PauseProvider, PortForwardingProvider, Reaper,
    RuntimeRequirementsProvider, SandboxHandle, SandboxProvider, ServicesProvider, SharedStorageProvider,
    SnapshotProvider, SpawnProvider, StatsProvider, SweepProvider,
};
use crate::provider::{PtyAttachProvider, PtyProvider};
use crate::spec::{ExecOptions, ExecResult, Mapping, SandboxId, SandboxSpec, SandboxStatus};

pub use admission::{CreateQueue, QueuedCreate, WaitingCreate};
pub use agent::ExecPathPolicy;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use agent::agent_stream_for_fuzzing;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use archive::unpack_for_fuzzing;
pub use config::{
    AdmissionConfig, CreateConfig, DockerConfig, ExecConfig, LaneConfig, LeaseConfig, OnTimeout, OnWarning,
    Preset, ProbeConfig, SharedStorageConfig, SweepWhen,
};
pub use doctor::EngineReport;
pub use image::{ImageReference, PullConfig};
pub use raw::DockerRaw;

use admission::Admission;
use connect::Engine;
use lanes::Lanes;
use lease::Keeper;
use options::ExecDefaults;

/// The name of this provider.
const PROVIDER: &str = "docker";

/// Sandboxes as containers of a Docker-compatible engine.
///
/// [`new`](Self::new) checks the configuration and does no I/O; [`connect`](Self::connect) also finds the engine. An
/// unconnected provider connects at its first call (contract D34). Clones share the connection and its limits.
///
/// ```no_run
/// use std::sync::Arc;
/// use gym_sandbox::{AsyncSandbox, SandboxSpec, docker::{DockerConfig, DockerProvider}};
/// # async fn example() -> gym_sandbox::Result<()> {
/// let provider = Arc::new(DockerProvider::connect(DockerConfig::default()).await?);
/// let sandbox = AsyncSandbox::new(provider).with_spec(SandboxSpec::new("debian:bookworm"));
/// # drop(sandbox);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DockerProvider {
    shared: Arc<Shared>,
}

struct Shared {
    config: DockerConfig,
    exec_defaults: ExecDefaults,
    admission: Admission,
    lanes: Lanes,
    engine: OnceCell<Engine>,
    reaper: Reaper,
    fleet: agent::Fleet,
    facts: archive::FactsCache,
    terminals: pty::OpenSessions,
    kills: exec::Kills,
    pulls: image::Pulls,
    shells: containers::KnownShells,
    keeper: OnceLock<Arc<Keeper>>,
    /// The sweep at connect is begun.
    swept: OnceLock<()>,
}

impl DockerProvider {
    /// Makes a provider from a checked configuration, without I/O.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) naming the setting that is wrong.
    pub fn new(config: DockerConfig) -> Result<Self> {
        config.check()?;
        let exec_defaults = config.exec_defaults()?;
        let lanes = Lanes::new(&config.lanes, config.exec.concurrency);
        Ok(Self {
            shared: Arc::new(Shared {
                config,
                exec_defaults,
                admission: Admission::default(),
                lanes,
                engine: OnceCell::new(),
                reaper: Reaper::new(),
                fleet: agent::Fleet::default(),
                facts: archive::FactsCache::default(),
                terminals: pty::OpenSessions::default(),
                kills: exec::Kills::default(),
                pulls: image::Pulls::default(),
                shells: containers::KnownShells::default(),
                keeper: OnceLock::new(),
                swept: OnceLock::new(),
            }),
        })
    }

    /// Makes a provider from the settings of a configuration block, without I/O.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) naming an unknown or wrong setting.
    pub fn from_settings(settings: &Mapping) -> Result<Self> {
        Self::new(DockerConfig::from_settings(settings)?)
    }

    /// Makes a provider and reaches the engine.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) when no engine answers, with
    /// everything that was tried and why it failed; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for an
    /// engine older than API 1.41.
    pub async fn connect(config: DockerConfig) -> Result<Self> {
        let provider = Self::new(config)?;
        provider.engine().await?;
        Ok(provider)
    }

    /// The engine, reached at the first call. A failure is not kept: the next call tries again.
    async fn engine(&self) -> Result<&Engine> {
        let engine = self
            .shared
            .engine
            .get_or_try_init(|| connect::connect(self.shared.config.host.as_deref()))
            .await?;
        if self.shared.config.lease.sweep == SweepWhen::Connect && self.shared.swept.set(()).is_ok() {
            self.sweep_in_background();
        }
        Ok(engine)
    }

    fn config(&self) -> &DockerConfig {
        &self.shared.config
    }

    fn exec_defaults(&self) -> &ExecDefaults {
        &self.shared.exec_defaults
    }

    fn lanes(&self) -> &Lanes {
        &self.shared.lanes
    }

    fn facts_cache(&self) -> &archive::FactsCache {
        &self.shared.facts
    }

    fn pulls(&self) -> &image::Pulls {
        &self.shared.pulls
    }

    fn known_shells(&self) -> &containers::KnownShells {
        &self.shared.shells
    }

    fn reaper(&self) -> &Reaper {
        &self.shared.reaper
    }

    fn fleet(&self) -> &agent::Fleet {
        &self.shared.fleet
    }

    fn terminals(&self) -> &pty::OpenSessions {
        &self.shared.terminals
    }

    fn downgrade(&self) -> Weak<Shared> {
        Arc::downgrade(&self.shared)
    }
}

#[async_trait]
impl SandboxProvider for DockerProvider {
    fn name(&self) -> &str {
        PROVIDER
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<SandboxHandle> {
        Box::pin(self.create_sandbox(spec)).await
    }

    async fn exec(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<ExecResult> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Exec)?;
        self.run_command(handle.sandbox_id(), raw, options).await
    }

    async fn upload_file(&self, handle: &SandboxHandle, local: &Path, remote: &str) -> Result<()> {
        self.upload_one(handle, local, remote).await
    }

    async fn download_file(&self, handle: &SandboxHandle, remote: &str, local: &Path) -> Result<()> {
        self.download_one(handle, remote, local).await
    }

    async fn status(&self, handle: &SandboxHandle) -> Result<SandboxStatus> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Status)?;
        Ok(self.container_status(&raw.container_id).await)
    }

    async fn close(&self, handle: &SandboxHandle) -> Result<()> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Close)?;
        self.remove_container(&raw.container_id)
            .await
            .map_err(|error| error.with_sandbox(handle.sandbox_id()))?;
        if let Some(admitted) = &raw.admitted {
            admitted.release();
        }
        lease::let_go(handle.sandbox_id().as_str());
        Ok(())
    }

    async fn aclose(&self) -> Result<()> {
        self.terminals().close_all().await;
        self.reaper().wait_idle(Duration::from_secs(60)).await?;
        self.lease_released().await
    }

    fn cleanup(&self) -> Option<&Reaper> {
        Some(self.reaper())
    }

    fn as_spawn(&self) -> Option<&dyn SpawnProvider> {
        Some(self)
    }

    fn as_endpoint(&self) -> Option<&dyn EndpointProvider> {
        Some(self)
    }

    fn as_inspect(&self) -> Option<&dyn InspectProvider> {
        Some(self)
    }

    fn as_files(&self) -> Option<&dyn FilesProvider> {
        Some(self)
    }

    fn as_pause(&self) -> Option<&dyn PauseProvider> {
        Some(self)
    }

    fn as_containers(&self) -> Option<&dyn ContainersProvider> {
        Some(self)
    }

    fn as_connectable(&self) -> Option<&dyn ConnectableProvider> {
        Some(self)
    }

    fn as_pty(&self) -> Option<&dyn PtyProvider> {
        Some(self)
    }

    fn as_pty_attach(&self) -> Option<&dyn PtyAttachProvider> {
        // Over an exec of the engine a session ends with its connection.
        (self.config().exec.exec_path != ExecPathPolicy::Engine).then_some(self as &dyn PtyAttachProvider)
    }

    fn as_images(&self) -> Option<&dyn ImageProvider> {
        Some(self)
    }

    fn as_snapshot(&self) -> Option<&dyn SnapshotProvider> {
        Some(self)
    }

    fn as_list(&self) -> Option<&dyn ListProvider> {
        Some(self)
    }

    fn as_sweep(&self) -> Option<&dyn SweepProvider> {
        Some(self)
    }

    fn as_logs(&self) -> Option<&dyn LogsProvider> {
        Some(self)
    }

    fn as_stats(&self) -> Option<&dyn StatsProvider> {
        Some(self)
    }

    fn as_network(&self) -> Option<&dyn NetworkProvider> {
        Some(self)
    }

    fn as_services(&self) -> Option<&dyn ServicesProvider> {
        Some(self)
    }

    fn as_port_forwarding(&self) -> Option<&dyn PortForwardingProvider> {
        Some(self)
    }

    fn as_runtime_requirements(&self) -> Option<&dyn RuntimeRequirementsProvider> {
        Some(self)
    }

    fn as_shared_storage(&self) -> Option<&dyn SharedStorageProvider> {
        self.config()
            .shared_storage
            .is_there()
            .then_some(self as &dyn SharedStorageProvider)
    }
}

impl fmt::Debug for DockerProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DockerProvider")
            .field("host", &self.shared.config.host)
            .field("connected", &self.shared.engine.initialized())
            .finish_non_exhaustive()
    }
}

/// The id of a sandbox that does not exist yet (contract D17).
fn new_sandbox_id() -> Result<SandboxId> {
    SandboxId::new(format!("gym-sandbox-{}", uuid::Uuid::new_v4().simple()))
}
