//! The optional capabilities of a provider: one small trait each, found by an accessor of the core trait.

use std::collections::BTreeSet;
use std::fmt;

use async_trait::async_trait;
use tokio::io::AsyncRead;

use crate::error::Result;
use crate::spec::{ExecOptions, ExecResult, SandboxDetail, SandboxEndpoint};

use super::{SandboxHandle, SandboxProvider};

/// The optional capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Capability {
    /// [`SpawnProvider`].
    Spawn,
    /// [`EndpointProvider`].
    Endpoint,
    /// [`InspectProvider`].
    Inspect,
    /// [`FilesProvider`](super::FilesProvider).
    Files,
    /// [`ContainersProvider`](super::ContainersProvider).
    Containers,
    /// [`ImageProvider`](super::ImageProvider).
    Images,
    /// [`SnapshotProvider`](super::SnapshotProvider).
    Snapshot,
    /// [`PauseProvider`](super::PauseProvider).
    Pause,
    /// [`ConnectableProvider`](super::ConnectableProvider).
    Connect,
    /// [`PtyProvider`](super::PtyProvider).
    Pty,
    /// [`PtyAttachProvider`](super::PtyAttachProvider).
    PtyAttach,
    /// [`ListProvider`](super::ListProvider).
    List,
    /// [`SweepProvider`](super::SweepProvider).
    Sweep,
    /// [`LogsProvider`](super::LogsProvider).
    Logs,
    /// [`StatsProvider`](super::StatsProvider).
    Stats,
    /// [`NetworkProvider`](super::NetworkProvider).
    Network,
    /// [`ServicesProvider`](super::ServicesProvider).
    Services,
    /// [`PortForwardingProvider`](super::PortForwardingProvider).
    PortForwarding,
    /// [`RuntimeRequirementsProvider`](super::RuntimeRequirementsProvider).
    RuntimeRequirements,
    /// [`SharedStorageProvider`](super::SharedStorageProvider).
    SharedStorage,
}

impl Capability {
    /// What an error says when it is missing.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spawn => "spawned commands",
            Self::Endpoint => "endpoints",
            Self::Inspect => "details of a sandbox",
            Self::Files => "directories",
            Self::Containers => "containers, networks and volumes",
            Self::Images => "images",
            Self::Snapshot => "snapshots",
            Self::Pause => "pausing",
            Self::Connect => "serialize and connect",
            Self::Pty => "PTY sessions",
            Self::PtyAttach => "attaching to PTY sessions",
            Self::List => "lists of sandboxes",
            Self::Sweep => "sweeps",
            Self::Logs => "logs",
            Self::Stats => "statistics",
            Self::Network => "addresses and names",
            Self::Services => "background services",
            Self::PortForwarding => "port forwarding",
            Self::RuntimeRequirements => "runtime requirements",
            Self::SharedStorage => "shared storage",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of capabilities.
pub type CapabilitySet = BTreeSet<Capability>;

/// The capabilities of a provider. They are read from its accessors, so they can't say anything else than those.
pub fn capabilities(provider: &dyn SandboxProvider) -> CapabilitySet {
    [
        provider.as_spawn().map(|_| Capability::Spawn),
        provider.as_endpoint().map(|_| Capability::Endpoint),
        provider.as_inspect().map(|_| Capability::Inspect),
        provider.as_files().map(|_| Capability::Files),
        provider.as_containers().map(|_| Capability::Containers),
        provider.as_images().map(|_| Capability::Images),
        provider.as_snapshot().map(|_| Capability::Snapshot),
        provider.as_pause().map(|_| Capability::Pause),
        provider.as_connectable().map(|_| Capability::Connect),
        provider.as_pty().map(|_| Capability::Pty),
        provider.as_pty_attach().map(|_| Capability::PtyAttach),
        provider.as_list().map(|_| Capability::List),
        provider.as_sweep().map(|_| Capability::Sweep),
        provider.as_logs().map(|_| Capability::Logs),
        provider.as_stats().map(|_| Capability::Stats),
        provider.as_network().map(|_| Capability::Network),
        provider.as_services().map(|_| Capability::Services),
        provider.as_port_forwarding().map(|_| Capability::PortForwarding),
        provider
            .as_runtime_requirements()
            .map(|_| Capability::RuntimeRequirements),
        provider.as_shared_storage().map(|_| Capability::SharedStorage),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Commands whose streams the caller handles (contract D31).
#[async_trait]
pub trait SpawnProvider: SandboxProvider {
    /// Starts a command and returns while it runs. A command that can't be started is a session whose
    /// [`wait`](ExecSession::wait) says so.
    ///
    /// # Errors
    /// As [`SandboxProvider::exec`].
    ///
    /// # Cancel safety
    /// Dropping the future kills what was started, in the background.
    async fn spawn(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<Box<dyn ExecSession>>;
}

/// A running command. Dropping it kills its process tree in the background.
///
/// Output that is not taken is read and kept up to the cap of the options, so that the command never blocks on it.
/// Output that is taken must be read: the command waits while it is not.
#[async_trait]
pub trait ExecSession: fmt::Debug + Send {
    /// Takes standard output. None when it was taken before.
    fn take_stdout(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>>;

    /// Takes standard error. None when it was taken before.
    fn take_stderr(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>>;

    /// Sends a signal to the command's processes, by name (`TERM` or `SIGTERM`).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an unknown name;
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when the command has ended;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the image holds nothing to send it with.
    async fn signal(&mut self, name: &str) -> Result<()>;

    /// Waits for the end of the command, or for its timeout. Taken streams are not part of the result.
    ///
    /// # Errors
    /// As [`SandboxProvider::exec`].
    ///
    /// # Cancel safety
    /// May be called again after the future was dropped.
    async fn wait(&mut self) -> Result<ExecResult>;

    /// Kills the whole process tree and waits for its end; the result says how many were killed.
    ///
    /// # Errors
    /// As [`SandboxProvider::exec`].
    ///
    /// # Cancel safety
    /// May be called again after the future was dropped.
    async fn kill(&mut self) -> Result<ExecResult>;
}

/// Endpoints of the ports of a sandbox (contract E1-E6, N1-N5).
#[async_trait]
pub trait EndpointProvider: SandboxProvider {
    /// Says where a port of the sandbox answers, asking the engine each time.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a port that was not declared;
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when it has no binding;
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) when the engine does not answer.
    async fn endpoint(&self, handle: &SandboxHandle, port: u16) -> Result<SandboxEndpoint>;
}

/// Details of a sandbox (contract D7).
#[async_trait]
pub trait InspectProvider: SandboxProvider {
    /// Gives everything known of the sandbox.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when it does not exist any more.
    async fn inspect(&self, handle: &SandboxHandle) -> Result<SandboxDetail>;
}
