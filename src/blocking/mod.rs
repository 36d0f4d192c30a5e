//! The synchronous facade over one sandbox: the asynchronous one on a thread of its own.
//! Every method waits for the same one there; nothing is done here that is not waiting.

mod files;
mod lifecycle;
mod pause;
mod runner;
mod scope;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{Capability, CapabilitySet, SandboxHandle, SandboxProvider};
use crate::sandbox::AsyncSandbox;
use crate::spec::{
    Command, ExecOptions, ExecResult, SandboxDetail, SandboxEndpoint, SandboxId, SandboxSpec, SandboxStatus,
    Value,
};

use runner::LoopRunner;

/// How long one call may take: an hour. Then it is dropped and fails with [`ErrorKind::Timeout`] (contract V2).
pub const SYNC_OPERATION_TIMEOUT: Duration = Duration::from_secs(3600);

/// How long stopping and dropping wait for the thread of the sandbox to end (contract V5).
pub const SYNC_LOOP_CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// One sandbox, from start to stop, for programs without an async runtime (contract 2.15).
///
/// It has the methods of [`AsyncSandbox`], in the same order, and runs them on a thread of its own. What can't be waited
/// for in one call is there only asynchronously: spawned commands and streams.
///
/// Called inside an async runtime, where waiting would hold other tasks up, every call that would wait fails with
/// [`ErrorKind::BlockingInAsync`] instead; it never panics. Threads that may block there, as in `spawn_blocking`, are not
/// told from others: [`allow_in_runtime`](Self::allow_in_runtime) lifts the check for them.
///
/// Dropping a started sandbox stops it, for at most 5 s; what is not done then is done by the library's clean-up thread.
/// [`stop`](Self::stop) is the way that reports errors.
///
/// ```
/// use gym_sandbox::{Sandbox, SandboxSpec, provider::config_from_yaml};
/// # fn main() -> gym_sandbox::Result<()> {
/// let sandbox = Sandbox::from_config(&config_from_yaml("local: {shell: /bin/sh}")?)?.with_spec(SandboxSpec::default());
/// sandbox.start()?;
/// let result = sandbox.exec("echo hello")?;
/// assert_eq!(result.stdout().as_deref(), Some("hello\n"));
/// sandbox.stop()?;
/// # Ok(())
/// # }
/// ```
pub struct Sandbox {
    /// None only while it is dropped.
    inner: Option<Arc<AsyncSandbox>>,
    spec: Option<SandboxSpec>,
    runner: LoopRunner,
}

impl Sandbox {
    /// Makes a sandbox of a provider that others use, too: stopping the sandbox does not close it.
    ///
    /// # Errors
    /// [`ErrorKind::ResourceExhausted`] when the thread can't be started.
    pub fn new(provider: Arc<dyn SandboxProvider>) -> Result<Self> {
        Self::build(|| Ok(AsyncSandbox::new(provider)))
    }

    /// Makes a sandbox with a provider of its own, which is closed with it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn owning(provider: Arc<dyn SandboxProvider>) -> Result<Self> {
        Self::build(|| Ok(AsyncSandbox::owning(provider)))
    }

    /// Makes a sandbox with a provider of its own, made at once from a configuration block (contract L1).
    ///
    /// # Errors
    /// As [`new`](Self::new) and [`create_provider`](crate::provider::create_provider); the thread has ended then
    /// (contract V7).
    pub fn from_config(config: &Value) -> Result<Self> {
        Self::build(|| AsyncSandbox::from_config(config))
    }

    fn build(make: impl FnOnce() -> Result<AsyncSandbox>) -> Result<Self> {
        let runner = LoopRunner::start(SYNC_OPERATION_TIMEOUT, SYNC_LOOP_CLOSE_TIMEOUT)?;
        // A provider that starts tasks when it is made starts them on this thread.
        match runner.entered(make) {
            Ok(inner) => Ok(Self {
                inner: Some(Arc::new(inner)),
                spec: None,
                runner,
            }),
            Err(error) => {
                runner.close();
                Err(error)
            }
        }
    }

    /// Sets what [`start`](Self::start) makes.
    pub fn with_spec(mut self, spec: SandboxSpec) -> Self {
        self.spec = Some(spec);
        self
    }

    /// Allows calls where a runtime is there: on threads that may block, as in `tokio::task::spawn_blocking`
    /// (contract D29). In an async task a call then blocks the worker thread that it runs on.
    pub fn allow_in_runtime(mut self) -> Self {
        self.runner.allow_in_runtime();
        self
    }

    /// Sets how long one call may take; [`SYNC_OPERATION_TIMEOUT`] by default.
    pub fn with_operation_timeout(mut self, timeout: Duration) -> Self {
        self.runner.set_wait_timeout(timeout);
        self
    }

    /// Runs a command with the defaults: the spec's working directory, 180 s, no input.
    ///
    /// # Errors
    /// As [`AsyncSandbox::exec`], and those of every call here: [`ErrorKind::BlockingInAsync`], [`ErrorKind::Timeout`],
    /// [`ErrorKind::Stopped`].
    pub fn exec(&self, command: impl Into<Command>) -> Result<ExecResult> {
        let command = command.into();
        self.run(Operation::Exec, move |sandbox| async move {
            sandbox.exec(command).await
        })
    }

    /// Runs a command. The working directory is the spec's unless the options name one (contract L14).
    ///
    /// # Errors
    /// As [`exec`](Self::exec).
    pub fn exec_with(&self, options: ExecOptions) -> Result<ExecResult> {
        self.run(Operation::Exec, move |sandbox| async move {
            sandbox.exec_with(options).await
        })
    }

    /// Says what the sandbox is doing; after stop it is stopped (contract L13, V3).
    ///
    /// # Errors
    /// [`ErrorKind::BlockingInAsync`], [`ErrorKind::Timeout`].
    pub fn status(&self) -> Result<SandboxStatus> {
        self.runner.check(Operation::Status)?;
        if self.runner.is_closed() {
            return Ok(SandboxStatus::Stopped);
        }
        self.run(
            Operation::Status,
            move |sandbox| async move { sandbox.status().await },
        )
    }

    /// Gives everything known of the sandbox.
    ///
    /// # Errors
    /// As [`AsyncSandbox::inspect`] and [`exec`](Self::exec).
    pub fn inspect(&self) -> Result<SandboxDetail> {
        self.run(Operation::Inspect, move |sandbox| async move {
            sandbox.inspect().await
        })
    }

    /// Says where a declared port answers.
    ///
    /// # Errors
    /// As [`AsyncSandbox::endpoint`] and [`exec`](Self::exec).
    pub fn endpoint(&self, port: u16) -> Result<SandboxEndpoint> {
        self.run(Operation::Endpoint, move |sandbox| async move {
            sandbox.endpoint(port).await
        })
    }

    /// Says whether the provider has a capability, before anything is started.
    pub fn supports(&self, capability: Capability) -> bool {
        self.capabilities().contains(&capability)
    }

    /// The capabilities of the provider.
    pub fn capabilities(&self) -> CapabilitySet {
        self.inner
            .as_ref()
            .map(|inner| inner.capabilities())
            .unwrap_or_default()
    }

    /// The sandbox's id, while it is started.
    pub fn sandbox_id(&self) -> Option<SandboxId> {
        self.inner.as_ref()?.sandbox_id()
    }

    /// The handle of the sandbox, while it is started.
    pub fn handle(&self) -> Option<SandboxHandle> {
        self.inner.as_ref()?.handle()
    }

    /// Runs a call on the thread of the sandbox and waits for it.
    fn run<T, F, W>(&self, operation: Operation, call: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(Arc<AsyncSandbox>) -> W,
        W: Future<Output = Result<T>> + Send + 'static,
    {
        let Some(inner) = &self.inner else {
            return Err(Error::new(ErrorKind::Stopped, operation, "the sandbox is gone"));
        };
        self.runner.run(operation, call(Arc::clone(inner)))
    }
}

impl Drop for Sandbox {
    /// Stops best-effort (contract V6).
    fn drop(&mut self) {
        if !self.runner.is_closed() && self.handle().is_some() {
            self.stop_briefly();
        }
        // What is not stopped by now is handed to the clean-up thread by this.
        self.inner = None;
        self.runner.close();
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
