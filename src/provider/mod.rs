//! What a sandbox provider is: the core trait, its optional capabilities, and what every provider shares.
//! Knows `spec` and `error`; knows no backend.

mod attribution;
mod capabilities;
mod check;
mod config;
mod connectable;
mod containers;
mod files;
mod following;
mod forward;
mod handle;
mod images;
mod logs;
mod network;
mod on_signals;
mod pause;
mod policy;
mod pty;
pub(crate) mod pty_core;
mod reaper;
mod registry;
mod requirements;
mod resolve;
mod services;
mod shared_storage;
mod signal;
mod streams;
mod traced;
mod upkeep;

pub use attribution::{
    Attribution, AttributionEnvironment, log_attribution_once, resolve_attribution, resolve_run_id,
};
pub use capabilities::{
    Capability, CapabilitySet, EndpointProvider, ExecSession, InspectProvider, SpawnProvider, capabilities,
};
pub use check::check_provider_options;
pub use config::{ConfigBlock, config_from_yaml};
pub use connectable::{ConnectableProvider, ForeignSandboxes};
pub use containers::{ContainerEvents, ContainersProvider};
pub use files::FilesProvider;
pub(crate) use following::{Following, READERS};
pub use forward::{PortConnection, PortForwardingProvider};
pub use handle::SandboxHandle;
pub use images::{ImageProvider, SnapshotProvider};
pub use logs::{LogsProvider, StatsProvider};
pub use network::NetworkProvider;
pub(crate) use network::{ALIAS, check_host_name, is_alias, is_host_name, shown_name};
pub(crate) use on_signals::is_ending;
pub use on_signals::{RemovedOnSignals, register_cleanup, remove_on_signals};
pub use pause::PauseProvider;
pub use policy::{Namespace, Policy, Violation, policy_error};
pub use pty::{PtyAttachProvider, PtyProvider, PtySession};
pub(crate) use pty_core::OpenSessions;
pub(crate) use reaper::runtime as own_runtime;
pub use reaper::{Reaper, ReaperJob};
pub use registry::{OnExisting, ProviderFactory, create_provider, list_providers, register_provider};
pub use requirements::RuntimeRequirementsProvider;
pub use resolve::{resolve_provider_config, resolve_provider_metadata};
pub(crate) use services::ByCommands;
pub use services::ServicesProvider;
pub use shared_storage::{SharedAccess, SharedStorageProvider};
pub(crate) use signal::signal_name;
pub(crate) use streams::{Pending, Sink, deliver, feed};
pub use traced::Traced;
pub use upkeep::{ListProvider, SweepProvider};

use std::fmt;
use std::path::Path;

use async_trait::async_trait;

use crate::error::Result;
use crate::spec::{ExecOptions, ExecResult, SandboxSpec, SandboxStatus};

/// A backend that makes sandboxes and runs commands in them (contract 1.3).
///
/// The trait has what every provider must do. Everything else is a capability: a small trait behind one of the `as_*`
/// accessors, whose presence can be tested before anything is started. A decorator implements every method, also those
/// with a default, and says so with `#[deny(clippy::missing_trait_methods)]`.
///
/// The conformance suite (feature `conformance`) tests the behaviours listed here over any provider.
#[async_trait]
pub trait SandboxProvider: fmt::Debug + Send + Sync + 'static {
    /// The name of the provider, as in `docker`.
    fn name(&self) -> &str;

    /// Makes a sandbox and waits until it is ready.
    ///
    /// # Behavior
    /// - An option of the spec that the provider can't honour is refused by name before anything is created.
    /// - The files of the spec are not written here: the facade does that (contract L4).
    ///
    /// # Errors
    /// A kind for which [`ErrorKind::is_create_failure`](crate::ErrorKind::is_create_failure) holds, or one that says
    /// what else kept it from being made. Nothing is left behind.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing: what was made until then is removed in the background;
    /// [`aclose`](Self::aclose) waits for that.
    async fn create(&self, spec: &SandboxSpec) -> Result<SandboxHandle>;

    /// Runs a command to its end.
    ///
    /// # Behavior
    /// - Whatever the command or the sandbox does is a result; see [`ExecResult`].
    /// - A timeout kills the command's whole process tree; the sandbox stays usable (contract D3).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for bad arguments, before anything is started;
    /// [`ErrorKind::ForeignHandle`](crate::ErrorKind::ForeignHandle) for another provider's handle.
    ///
    /// # Cancel safety
    /// Dropping the future kills the command's process tree in the background (contract D3).
    async fn exec(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<ExecResult>;

    /// Copies one file into the sandbox. A relative remote path is relative to the sandbox's working directory;
    /// missing parents are made.
    ///
    /// # Errors
    /// A [`PathProblem`](crate::PathProblem) where the path is at fault.
    ///
    /// # Cancel safety
    /// Dropping the future may leave parents that were made, never half a file.
    async fn upload_file(&self, handle: &SandboxHandle, local: &Path, remote: &str) -> Result<()>;

    /// Copies one file out of the sandbox; missing local parents are made.
    ///
    /// # Errors
    /// A [`PathProblem`](crate::PathProblem) where the path is at fault. The local path is then as before.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the local path as it was.
    async fn download_file(&self, handle: &SandboxHandle, remote: &str, local: &Path) -> Result<()>;

    /// Says what the sandbox is doing.
    ///
    /// # Behavior
    /// - Trouble with the engine is [`SandboxStatus::Unknown`] and not an error (contract T2).
    /// - A removed sandbox is [`SandboxStatus::Stopped`].
    ///
    /// # Errors
    /// [`ErrorKind::ForeignHandle`](crate::ErrorKind::ForeignHandle) for another provider's handle.
    async fn status(&self, handle: &SandboxHandle) -> Result<SandboxStatus>;

    /// Removes the sandbox and everything running in it, at once.
    ///
    /// # Behavior
    /// - Called again, or for a sandbox that is gone, it succeeds (contract Q1).
    /// - When it returns, the sandbox does not exist any more.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) or [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable);
    /// call it again later.
    ///
    /// # Cancel safety
    /// Dropping the future may leave the sandbox; call it again.
    async fn close(&self, handle: &SandboxHandle) -> Result<()>;

    /// Waits for clean-up in the background and releases what the provider holds. Sandboxes live on, but for those whose
    /// [`AsyncSandbox`](crate::AsyncSandbox) was dropped: where the provider has a [`cleanup`](Self::cleanup), they are gone
    /// then. May be called twice.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) when clean-up in the background does not end.
    async fn aclose(&self) -> Result<()>;

    /// The clean-up in the background that [`aclose`](Self::aclose) waits for, if the provider has that. Facades that are
    /// dropped without a stop count in it, so that `aclose` waits until their sandboxes and projects are gone.
    fn cleanup(&self) -> Option<&Reaper> {
        None
    }

    /// Commands whose streams the caller handles, if the provider has that.
    fn as_spawn(&self) -> Option<&dyn SpawnProvider> {
        None
    }

    /// Endpoints of ports, if the provider has that.
    fn as_endpoint(&self) -> Option<&dyn EndpointProvider> {
        None
    }

    /// Details of a sandbox, if the provider has that.
    fn as_inspect(&self) -> Option<&dyn InspectProvider> {
        None
    }

    /// Files and directories beyond one file, if the provider has that.
    fn as_files(&self) -> Option<&dyn FilesProvider> {
        None
    }

    /// Containers, networks and volumes, if the provider has that.
    fn as_containers(&self) -> Option<&dyn ContainersProvider> {
        None
    }

    /// Images, if the provider makes sandboxes from them.
    fn as_images(&self) -> Option<&dyn ImageProvider> {
        None
    }

    /// Snapshots, if the provider has that.
    fn as_snapshot(&self) -> Option<&dyn SnapshotProvider> {
        None
    }

    /// Pausing and resuming, if the provider has that.
    fn as_pause(&self) -> Option<&dyn PauseProvider> {
        None
    }

    /// Handing sandboxes over to other processes, if the provider has that.
    fn as_connectable(&self) -> Option<&dyn ConnectableProvider> {
        None
    }

    /// Terminal sessions, if the provider has that.
    fn as_pty(&self) -> Option<&dyn PtyProvider> {
        None
    }

    /// Joining terminal sessions that live in the sandbox, if the provider has that.
    fn as_pty_attach(&self) -> Option<&dyn PtyAttachProvider> {
        None
    }

    /// Lists of sandboxes, if the provider has that.
    fn as_list(&self) -> Option<&dyn ListProvider> {
        None
    }

    /// Removal of what nobody needs any more, if the provider has that.
    fn as_sweep(&self) -> Option<&dyn SweepProvider> {
        None
    }

    /// What main processes print, if the provider keeps it.
    fn as_logs(&self) -> Option<&dyn LogsProvider> {
        None
    }

    /// How much sandboxes use, if the provider measures it.
    fn as_stats(&self) -> Option<&dyn StatsProvider> {
        None
    }

    /// Addresses of sandboxes, and names for them, if the provider has that.
    fn as_network(&self) -> Option<&dyn NetworkProvider> {
        None
    }

    /// Programs that run beside commands, if the provider has that.
    fn as_services(&self) -> Option<&dyn ServicesProvider> {
        None
    }

    /// Carrying TCP connections, if the provider has that.
    fn as_port_forwarding(&self) -> Option<&dyn PortForwardingProvider> {
        None
    }

    /// Capabilities and shared memory that sandboxes must be made with, if the provider has that.
    fn as_runtime_requirements(&self) -> Option<&dyn RuntimeRequirementsProvider> {
        None
    }

    /// Storage of which sandboxes get folders, if the provider has that.
    fn as_shared_storage(&self) -> Option<&dyn SharedStorageProvider> {
        None
    }
}

#[cfg(test)]
pub(crate) mod tests;
