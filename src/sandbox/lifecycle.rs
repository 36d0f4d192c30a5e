//! Start and stop of the facade, and what a cancelled or dropped one leaves to the clean-up thread.

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{Reaper, SandboxHandle, SandboxProvider};
use crate::spec::{ExecOptions, SandboxSpec};

use super::{AsyncSandbox, Ownership, stopped};

/// How long `stop` waits for clean-up that a cancelled call left.
const BACKGROUND_CLEANUP: Duration = Duration::from_secs(30);

pub(super) enum State {
    New,
    Starting,
    Started(Arc<Started>),
    /// `stop` was called and the provider could not remove it yet; `stop` may be called again (contract L10).
    Stopping(Arc<Started>),
    Stopped,
    /// A sandbox of somebody else was let go of.
    Disconnected,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("New"),
            Self::Starting => f.write_str("Starting"),
            Self::Started(started) => write!(f, "Started({})", started.handle.sandbox_id()),
            Self::Stopping(started) => write!(f, "Stopping({})", started.handle.sandbox_id()),
            Self::Stopped => f.write_str("Stopped"),
            Self::Disconnected => f.write_str("Disconnected"),
        }
    }
}

/// What a started sandbox knows.
#[derive(Clone)]
pub(super) struct Started {
    pub(super) handle: SandboxHandle,
    pub(super) workdir: Option<String>,
    /// How long it may take to be ready again after a pause.
    pub(super) ready_timeout: Option<Duration>,
    /// What it was made from; none for one that another process made.
    pub(super) spec: Option<SandboxSpec>,
}

impl Started {
    pub(super) fn new(handle: SandboxHandle, workdir: Option<String>) -> Self {
        Self {
            handle,
            workdir,
            ready_timeout: None,
            spec: None,
        }
    }

    pub(super) fn workdir(&self) -> Option<&str> {
        self.workdir.as_deref()
    }

    pub(super) fn with_workdir(&self, mut options: ExecOptions) -> ExecOptions {
        options.cwd = options.cwd.or_else(|| self.workdir.clone());
        options
    }

    /// Puts a relative remote path below the working directory of the spec (contract D13).
    pub(super) fn remote_path(&self, operation: Operation, path: &str) -> Result<String> {
        remote_path(&self.handle, self.workdir.as_deref(), operation, path)
    }
}

fn remote_path(
    handle: &SandboxHandle,
    workdir: Option<&str>,
    operation: Operation,
    path: &str,
) -> Result<String> {
    if path.is_empty() || path.contains('\0') {
        return Err(
            Error::invalid(operation, "the path in the sandbox is empty or holds NUL")
                .with_sandbox(handle.sandbox_id()),
        );
    }
    if path.starts_with('/') {
        return Ok(path.to_owned());
    }
    // Without a working directory the provider knows where the sandbox works.
    Ok(match workdir {
        Some(workdir) => format!("{}/{path}", workdir.trim_end_matches('/')),
        None => path.to_owned(),
    })
}

impl AsyncSandbox {
    /// Makes the sandbox that [`with_spec`](Self::with_spec) described, waits until it is ready and writes the spec's
    /// files in their order (contract L2-L7). Returns the sandbox for chaining.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] without a spec, [`ErrorKind::AlreadyStarted`], [`ErrorKind::Stopped`]; a create
    /// failure, after which it may be called again; a failed file, after which the sandbox is removed and stopped.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing: what was made is removed once, in the background. While it was still being
    /// created the sandbox can be started again; after that it is stopped.
    pub async fn start(&self) -> Result<&Self> {
        let spec = self.spec.as_ref().ok_or_else(|| {
            Error::invalid(Operation::Start, "starting requires a SandboxSpec")
                .with_hint("set one with `with_spec`, or call `start_with`")
        })?;
        self.start_with(spec).await
    }

    /// As [`start`](Self::start), with this spec instead of the one given before.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    ///
    /// # Cancel safety
    /// As [`start`](Self::start).
    pub async fn start_with(&self, spec: &SandboxSpec) -> Result<&Self> {
        let _lifecycle = self.lifecycle.lock().await;
        {
            let mut state = self.state();
            match &*state {
                State::New => *state = State::Starting,
                State::Starting | State::Started(_) => {
                    return Err(Error::new(
                        ErrorKind::AlreadyStarted,
                        Operation::Start,
                        "the sandbox is already started",
                    ));
                }
                State::Stopping(_) | State::Stopped | State::Disconnected => {
                    return Err(stopped(Operation::Start));
                }
            }
        }
        let mut guard = StartGuard {
            sandbox: self,
            handle: None,
        };
        let handle = self.provider.create(spec).await?;
        guard.handle = Some(handle.clone());
        if let Err(error) = write_files(&*self.provider, &handle, spec).await {
            return Err(guard.abandon(&handle, error).await);
        }
        let started = Started {
            handle,
            workdir: spec.workdir().map(str::to_owned),
            ready_timeout: spec.ready_timeout(),
            spec: Some(spec.clone()),
        };
        guard.publish(started);
        Ok(self)
    }

    /// Removes the sandbox, and closes the provider where the sandbox owns it. Commands that still run end with it.
    ///
    /// Called again after success it does nothing; called on a sandbox that never started it only closes an owned
    /// provider (contract L9-L11).
    ///
    /// # Errors
    /// What kept the provider from removing it. The call can then be repeated, and removes it again.
    ///
    /// # Cancel safety
    /// Dropping the future may leave the sandbox; call it again. What is never stopped is removed after the drop.
    pub async fn stop(&self) -> Result<()> {
        let _lifecycle = self.lifecycle.lock().await;
        let started = {
            let mut state = self.state();
            match std::mem::replace(&mut *state, State::Stopped) {
                State::Disconnected => {
                    *state = State::Disconnected;
                    None
                }
                State::Stopped | State::New | State::Starting => None,
                State::Started(started) | State::Stopping(started) => {
                    *state = State::Stopping(Arc::clone(&started));
                    Some(started)
                }
            }
        };
        let closed = match &started {
            Some(started) => {
                self.released.store(false, Ordering::Relaxed);
                self.provider.close(&started.handle).await
            }
            None => Ok(()),
        };
        if closed.is_ok() && started.is_some() {
            *self.state() = State::Stopped;
        }
        let released = self.release().await;
        match (closed, released) {
            (Err(error), Err(second)) => Err(error.with_cleanup_error(second)),
            (Err(error), Ok(())) | (Ok(()), Err(error)) => Err(error),
            (Ok(()), Ok(())) => Ok(()),
        }
    }

    pub(super) async fn release(&self) -> Result<()> {
        self.reaper.wait_idle(BACKGROUND_CLEANUP).await?;
        if self.ownership == Ownership::Shared || self.released.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.provider.aclose().await?;
        self.released.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Hands a sandbox to the clean-up thread.
    pub(super) fn remove_later(&self, handle: SandboxHandle) {
        let provider = Arc::clone(&self.provider);
        let ownership = self.ownership;
        let pledge = provider.cleanup().map(Reaper::pledge);
        self.released.store(true, Ordering::Relaxed);
        self.reaper.submit("remove a dropped sandbox", async move {
            if let Err(error) = provider.close(&handle).await {
                tracing::warn!(sandbox_id = %handle.sandbox_id(), %error, "a dropped sandbox could not be removed");
            }
            // Before the wait for all clean-up of the provider, in which this would count.
            drop(pledge);
            if ownership == Ownership::Owned
                // Others of that clean-up may need the place to end.
                && let Err(error) = Reaper::aside(provider.aclose()).await
            {
                tracing::warn!(%error, "the provider of a dropped sandbox could not be closed");
            }
        });
    }
}

impl Drop for AsyncSandbox {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut *self.state(), State::Stopped);
        // A borrower that goes away leaves the sandbox to its owner, unless it has begun to remove it.
        if self.is_connected && matches!(state, State::Started(_)) {
            return;
        }
        if let State::Started(started) | State::Stopping(started) = state {
            self.remove_later(started.handle.clone());
        }
    }
}

/// Puts the state right when `start` ends in any way, also by being dropped.
struct StartGuard<'a> {
    sandbox: &'a AsyncSandbox,
    handle: Option<SandboxHandle>,
}

impl StartGuard<'_> {
    fn publish(mut self, started: Started) {
        self.handle = None;
        *self.sandbox.state() = State::Started(Arc::new(started));
    }

    /// Removes what was made after a failure. The guard stays armed, so that a drop in the middle hands it over.
    async fn abandon(mut self, handle: &SandboxHandle, mut error: Error) -> Error {
        if let Err(cleanup) = self.sandbox.provider.close(handle).await {
            error = error.with_cleanup_error(cleanup);
        } else {
            self.handle = None;
        }
        *self.sandbox.state() = State::Stopped;
        if let Err(cleanup) = self.sandbox.release().await {
            error = error.with_cleanup_error(cleanup);
        }
        error
    }
}

impl Drop for StartGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.sandbox.state();
        match self.handle.take() {
            Some(handle) => {
                *state = State::Stopped;
                drop(state);
                self.sandbox.remove_later(handle);
            }
            // The provider removes what it had begun; nothing of it is known here, so `start` may be tried again.
            None if matches!(*state, State::Starting) => *state = State::New,
            None => {}
        }
    }
}

/// Writes the files of the spec one after the other (contract L4).
async fn write_files(
    provider: &dyn SandboxProvider,
    handle: &SandboxHandle,
    spec: &SandboxSpec,
) -> Result<()> {
    for (path, text) in spec.files() {
        let local = temporary_file(text.to_owned()).await?;
        let remote = remote_path(handle, spec.workdir(), Operation::Upload, path)?;
        provider.upload_file(handle, local.path(), &remote).await?;
    }
    Ok(())
}

async fn temporary_file(text: String) -> Result<tempfile::NamedTempFile> {
    let written = tokio::task::spawn_blocking(move || {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(text.as_bytes())?;
        Ok::<_, std::io::Error>(file)
    });
    match written.await {
        Ok(Ok(file)) => Ok(file),
        Ok(Err(error)) => Err(Error::new(
            ErrorKind::Io,
            Operation::Start,
            "a temporary file could not be written",
        )
        .with_source(error)),
        Err(error) => Err(Error::new(
            ErrorKind::Internal,
            Operation::Start,
            "writing a temporary file did not end",
        )
        .with_source(error)),
    }
}
