//! The facade over one sandbox of any provider. Knows the core trait and its capabilities, no backend.

mod connect;
mod files;
mod fork;
mod forward;
mod lifecycle;
mod network;
mod observe;
mod pause;
mod pty;
mod scope;
mod service;
mod services;
mod setup;

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{
    Capability, CapabilitySet, EndpointProvider, ExecSession, Reaper, SandboxHandle, SandboxProvider, Traced,
    capabilities, create_provider,
};
use crate::spec::{
    Command, ExecOptions, ExecResult, SandboxDetail, SandboxEndpoint, SandboxId, SandboxSpec, SandboxStatus,
    Value,
};

pub use connect::ConnectOptions;
pub use fork::Fork;

pub use forward::LocalForward;
use lifecycle::State;

pub use pty::{PtyExecOptions, PtyReader, PtyWriter, SandboxPty, SandboxPtySession};

/// How long a command may run that is started by [`AsyncSandbox::exec`] (contract D1).
pub const DEFAULT_EXEC_TIMEOUT: Duration = Duration::from_secs(180);

/// One sandbox, from start to stop (contract 2.5).
///
/// Making one starts nothing. All methods take `&self`, so that one sandbox can be shared between tasks; commands run
/// side by side, and [`stop`](Self::stop) does not wait for them.
///
/// Dropping a started sandbox hands it to the library's clean-up thread, which removes it soon after; what is left when
/// the process ends first is left to a sweep. One that was [connected](Self::connect) to is left alone. [`stop`](Self::stop) is the way that reports errors, and
/// [`scope`](Self::scope) the one that cannot be forgotten.
///
/// ```no_run
/// use gym_sandbox::{AsyncSandbox, SandboxSpec, provider::config_from_yaml};
/// # async fn example() -> gym_sandbox::Result<()> {
/// let sandbox = AsyncSandbox::from_config(&config_from_yaml("docker: {}")?)?
///     .with_spec(SandboxSpec::new("debian:bookworm").with_workdir("/work"));
/// sandbox.start().await?;
/// let result = sandbox.exec("echo hello").await?;
/// assert_eq!(result.stdout().as_deref(), Some("hello\n"));
/// sandbox.stop().await?;
/// # Ok(())
/// # }
/// ```
pub struct AsyncSandbox {
    provider: Arc<dyn SandboxProvider>,
    ownership: Ownership,
    spec: Option<SandboxSpec>,
    state: Mutex<State>,
    /// Held through `start` and `stop`, so that one never sees the other half-way.
    lifecycle: tokio::sync::Mutex<()>,
    /// An owned provider has been closed, or the clean-up thread will do it, and it was not used since.
    released: AtomicBool,
    reaper: Reaper,
    /// Somebody else made the sandbox: it is let go of, and removed only when that is asked for.
    is_connected: bool,
    pty: pty::State,
}

/// Who closes the provider (contract L11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ownership {
    Owned,
    Shared,
}

impl AsyncSandbox {
    /// Makes a sandbox of a provider that others use, too: stopping the sandbox does not close it.
    pub fn new(provider: Arc<dyn SandboxProvider>) -> Self {
        Self::build(provider, Ownership::Shared)
    }

    /// Makes a sandbox with a provider of its own, which is closed with it.
    pub fn owning(provider: Arc<dyn SandboxProvider>) -> Self {
        Self::build(provider, Ownership::Owned)
    }

    /// Makes a sandbox with a provider of its own, made at once from a configuration block (contract L1).
    ///
    /// # Errors
    /// As [`create_provider`].
    pub fn from_config(config: &Value) -> Result<Self> {
        Ok(Self::owning(create_provider(config)?))
    }

    fn build(provider: Arc<dyn SandboxProvider>, ownership: Ownership) -> Self {
        Self::over(Arc::new(Traced::new(provider)), ownership)
    }

    /// One of the same provider that is not started, and does not close it.
    fn sibling(&self) -> Self {
        Self::over(Arc::clone(&self.provider), Ownership::Shared)
    }

    fn over(provider: Arc<dyn SandboxProvider>, ownership: Ownership) -> Self {
        Self {
            provider,
            ownership,
            spec: None,
            state: Mutex::new(State::New),
            lifecycle: tokio::sync::Mutex::new(()),
            released: AtomicBool::new(false),
            reaper: Reaper::new(),
            is_connected: false,
            pty: pty::State::default(),
        }
    }

    /// Sets what [`start`](Self::start) makes.
    pub fn with_spec(mut self, spec: SandboxSpec) -> Self {
        self.spec = Some(spec);
        self
    }

    /// Runs a command with the defaults: the spec's working directory, 180 s, no input.
    ///
    /// A string is a line for the sandbox's shell, a list is run as it is.
    ///
    /// # Errors
    /// [`ErrorKind::NotStarted`] or [`ErrorKind::Stopped`]; [`ErrorKind::InvalidArgument`] for a command that no
    /// program can be given. Everything else is in the result (contract D2).
    ///
    /// # Cancel safety
    /// Dropping the future kills the command's process tree in the background.
    pub async fn exec(&self, command: impl Into<Command> + Send) -> Result<ExecResult> {
        self.exec_with(ExecOptions::new(command).with_timeout(DEFAULT_EXEC_TIMEOUT))
            .await
    }

    /// Runs a command. The working directory is the spec's unless the options name one (contract L14).
    ///
    /// # Errors
    /// As [`exec`](Self::exec).
    ///
    /// # Cancel safety
    /// As [`exec`](Self::exec).
    pub async fn exec_with(&self, options: ExecOptions) -> Result<ExecResult> {
        let started = self.started(Operation::Exec)?;
        options.check(Operation::Exec)?;
        self.provider
            .exec(&started.handle, started.with_workdir(options))
            .await
    }

    /// Starts a command whose streams the caller handles.
    ///
    /// # Errors
    /// As [`exec`](Self::exec), and [`ErrorKind::Unsupported`] where the provider can't.
    ///
    /// # Cancel safety
    /// Dropping the future kills what was started, in the background.
    pub async fn spawn(&self, options: ExecOptions) -> Result<Box<dyn ExecSession>> {
        let spawn = self
            .provider
            .as_spawn()
            .ok_or_else(|| self.unsupported(Operation::Spawn, Capability::Spawn))?;
        let started = self.started(Operation::Spawn)?;
        options.check(Operation::Spawn)?;
        spawn.spawn(&started.handle, started.with_workdir(options)).await
    }

    /// Says what the sandbox is doing. Before start it is unknown, after stop it is stopped, and the provider is asked
    /// only in between (contract L13).
    ///
    /// # Errors
    /// None but those of a provider that does not know its own handle.
    pub async fn status(&self) -> Result<SandboxStatus> {
        let handle = match &*self.state() {
            State::New | State::Starting | State::Disconnected => return Ok(SandboxStatus::Unknown),
            State::Stopped => return Ok(SandboxStatus::Stopped),
            State::Started(started) | State::Stopping(started) => started.handle.clone(),
        };
        self.provider.status(&handle).await
    }

    /// Gives everything known of the sandbox.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where the provider can't, [`ErrorKind::NotStarted`], [`ErrorKind::Stopped`],
    /// [`ErrorKind::NotFound`] when the sandbox is gone.
    pub async fn inspect(&self) -> Result<SandboxDetail> {
        let inspect = self
            .provider
            .as_inspect()
            .ok_or_else(|| self.unsupported(Operation::Inspect, Capability::Inspect))?;
        let started = self.started(Operation::Inspect)?;
        inspect.inspect(&started.handle).await
    }

    /// Says where a declared port answers. The port, the provider and the state are checked in this order
    /// (contract E1-E4).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for port 0 and for a port that the spec does not declare;
    /// [`ErrorKind::Unsupported`], [`ErrorKind::NotStarted`], [`ErrorKind::Stopped`], [`ErrorKind::NotFound`] when it
    /// has no binding.
    pub async fn endpoint(&self, port: u16) -> Result<SandboxEndpoint> {
        let endpoint = self.check_endpoint(port)?;
        let started = self.started(Operation::Endpoint)?;
        endpoint.endpoint(&started.handle, port).await
    }

    /// Says whether the provider has a capability, before anything is started.
    pub fn supports(&self, capability: Capability) -> bool {
        self.capabilities().contains(&capability)
    }

    /// The capabilities of the provider.
    pub fn capabilities(&self) -> CapabilitySet {
        capabilities(&*self.provider)
    }

    /// The sandbox's id, while it is started.
    pub fn sandbox_id(&self) -> Option<SandboxId> {
        match &*self.state() {
            State::Started(started) | State::Stopping(started) => Some(started.handle.sandbox_id().clone()),
            State::New | State::Starting | State::Stopped | State::Disconnected => None,
        }
    }

    /// The handle of the sandbox, while it is started.
    pub fn handle(&self) -> Option<SandboxHandle> {
        match &*self.state() {
            State::Started(started) | State::Stopping(started) => Some(started.handle.clone()),
            State::New | State::Starting | State::Stopped | State::Disconnected => None,
        }
    }

    fn check_endpoint(&self, port: u16) -> Result<&dyn EndpointProvider> {
        let declared = match &*self.state() {
            State::Started(started) | State::Stopping(started) => started.handle.ports().clone(),
            _ => self
                .spec
                .as_ref()
                .map(|spec| spec.ports().clone())
                .unwrap_or_default(),
        };
        if port == 0 {
            return Err(Error::invalid(Operation::Endpoint, "port 0 is not in 1..=65535"));
        }
        if !declared.contains(port) {
            return Err(Error::invalid(
                Operation::Endpoint,
                format!(
                    "port {port} is not declared; declared are {:?}",
                    declared.as_slice()
                ),
            )
            .with_hint("declare it with `SandboxSpec::with_ports`"));
        }
        self.provider
            .as_endpoint()
            .ok_or_else(|| self.unsupported(Operation::Endpoint, Capability::Endpoint))
    }

    fn unsupported(&self, operation: Operation, capability: Capability) -> Error {
        Error::unsupported(operation, self.provider.name(), capability.as_str())
    }

    fn started(&self, operation: Operation) -> Result<Arc<lifecycle::Started>> {
        match &*self.state() {
            State::Started(started) => Ok(Arc::clone(started)),
            State::New | State::Starting => Err(Error::new(
                ErrorKind::NotStarted,
                operation,
                "the sandbox has not been started",
            )
            .with_hint("call `start` first")),
            State::Disconnected => Err(Error::new(
                ErrorKind::NotStarted,
                operation,
                "the sandbox has been disconnected from",
            )
            .with_hint("connect to it again")),
            State::Stopping(started) => Err(stopped(operation).with_sandbox(started.handle.sandbox_id())),
            State::Stopped => Err(stopped(operation)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is replaced as a whole, so a panic elsewhere can't have left half of one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stopped(operation: Operation) -> Error {
    Error::new(ErrorKind::Stopped, operation, "the sandbox has been stopped")
        .with_hint("a stopped sandbox is not started again; make a new one")
}

impl fmt::Debug for AsyncSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncSandbox")
            .field("provider", &self.provider.name())
            .field("ownership", &self.ownership)
            .field("state", &*self.state())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
