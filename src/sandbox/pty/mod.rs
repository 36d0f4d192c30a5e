//! Terminal sessions of one sandbox: making and joining them, and commands through them (contract 2.13).

mod exec;
mod line;
mod options;
mod session;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::error::{Error, Operation, Result};
use crate::provider::{Capability, PtySession};
use crate::spec::{ExecResult, PtyAttachOptions, SandboxPtySpec};

use super::AsyncSandbox;

pub use options::PtyExecOptions;
pub use session::{PtyReader, PtyWriter, SandboxPtySession};

/// What a sandbox knows of its terminal sessions.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Sessions that may serve commands without a session of their own, oldest first (contract Y3). They belong to their
    /// callers.
    shells: Mutex<Vec<Weak<dyn PtySession>>>,
    /// Held by each command that goes through a session (contract Y10).
    turn: tokio::sync::Mutex<()>,
}

impl State {
    fn shells(&self) -> MutexGuard<'_, Vec<Weak<dyn PtySession>>> {
        // Every change of it is one call of the vector.
        self.shells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, session: &Arc<dyn PtySession>) {
        let mut shells = self.shells();
        shells.retain(|known| known.upgrade().is_some_and(|known| !known.is_closed()));
        shells.push(Arc::downgrade(session));
    }

    fn forget(&self, session: &Arc<dyn PtySession>) {
        self.shells()
            .retain(|known| !known.upgrade().is_some_and(|known| Arc::ptr_eq(&known, session)));
    }

    /// After a pause no session serves commands by itself (contract L18).
    pub(super) fn forget_all(&self) {
        self.shells().clear();
    }

    /// The oldest that lives.
    fn default_shell(&self) -> Option<Arc<dyn PtySession>> {
        self.shells()
            .iter()
            .filter_map(Weak::upgrade)
            .find(|session| !session.is_closed())
    }
}

/// The terminal sessions of a sandbox: [`AsyncSandbox::pty`].
///
/// ```no_run
/// use gym_sandbox::{AsyncSandbox, SandboxPtySpec};
/// # async fn example(sandbox: AsyncSandbox) -> gym_sandbox::Result<()> {
/// let shell = sandbox.pty().create(SandboxPtySpec::default()).await?;
/// shell.write(b"exit 3\n").await?;
/// while !shell.read().await?.is_empty() {}
/// assert_eq!(shell.wait_exit().await?, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SandboxPty<'a> {
    sandbox: &'a AsyncSandbox,
}

impl AsyncSandbox {
    /// Terminal sessions of this sandbox.
    pub fn pty(&self) -> SandboxPty<'_> {
        SandboxPty { sandbox: self }
    }
}

impl SandboxPty<'_> {
    /// Starts a program in a terminal, or behind pipes. The working directory is the spec's of the sandbox unless one is
    /// named (contract Y2). A session without a command runs the sandbox's shell, and serves [`exec`](Self::exec) while
    /// the caller keeps it (contract Y3).
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the provider can't, before anything else (contract
    /// Y1); [`ErrorKind::NotStarted`](crate::ErrorKind::NotStarted), [`ErrorKind::Stopped`](crate::ErrorKind::Stopped);
    /// else as [`PtyProvider::create_pty`](crate::provider::PtyProvider::create_pty).
    ///
    /// # Cancel safety
    /// Dropping the future ends what was started, in the background.
    pub async fn create(&self, spec: impl Into<SandboxPtySpec> + Send) -> Result<SandboxPtySession> {
        let spec = spec.into();
        let is_shell = spec.command.is_none();
        let session = self.create_private(spec).await?;
        if is_shell {
            self.state().remember(session.shared());
        }
        Ok(session)
    }

    async fn create_private(&self, mut spec: SandboxPtySpec) -> Result<SandboxPtySession> {
        let sandbox = self.sandbox;
        let provider = sandbox
            .provider
            .as_pty()
            .ok_or_else(|| sandbox.unsupported(Operation::Pty, Capability::Pty))?;
        let started = sandbox.started(Operation::Pty)?;
        spec.check(Operation::Pty)?;
        spec.cwd = spec.cwd.or_else(|| started.workdir().map(str::to_owned));
        let session = provider.create_pty(&started.handle, &spec).await?;
        Ok(SandboxPtySession::new(session))
    }

    /// Joins a session by its id, also one that another process has made (contract D25, Z8). It never serves
    /// [`exec`](Self::exec) by itself (contract Y4).
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where sessions do not outlive their connection, before
    /// anything else; [`ErrorKind::NotStarted`](crate::ErrorKind::NotStarted),
    /// [`ErrorKind::Stopped`](crate::ErrorKind::Stopped); else as
    /// [`PtyAttachProvider::attach_pty`](crate::provider::PtyAttachProvider::attach_pty).
    ///
    /// # Cancel safety
    /// Dropping the future may have taken the session from whoever held it; it lives on.
    pub async fn attach(&self, session_id: &str, options: PtyAttachOptions) -> Result<SandboxPtySession> {
        let sandbox = self.sandbox;
        let provider = sandbox
            .provider
            .as_pty_attach()
            .ok_or_else(|| sandbox.unsupported(Operation::Pty, Capability::PtyAttach))?;
        let started = sandbox.started(Operation::Pty)?;
        let session = provider.attach_pty(&started.handle, session_id, options).await?;
        Ok(SandboxPtySession::new(session))
    }

    /// Starts a program that goes on without this process, and gives the id to [`collect`](Self::collect) or
    /// [`attach`](Self::attach) it by (contract D25).
    ///
    /// # Errors
    /// As [`create`](Self::create); [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where sessions do not
    /// outlive their connection, with nothing left running.
    ///
    /// # Cancel safety
    /// Dropping the future ends what was started, in the background.
    pub async fn start_detached(&self, spec: impl Into<SandboxPtySpec> + Send) -> Result<String> {
        if self.sandbox.provider.as_pty_attach().is_none() {
            return Err(self.sandbox.unsupported(Operation::Pty, Capability::PtyAttach));
        }
        let session = self.create_private(spec.into()).await?;
        session.detach().await?;
        Ok(session.session_id().to_owned())
    }

    /// Waits for the end of a program of [`start_detached`](Self::start_detached), in this or another process, and gives
    /// all that it has printed. The session can be collected again while the sandbox keeps it.
    ///
    /// # Errors
    /// As [`attach`](Self::attach); [`ErrorKind::Pty`](crate::ErrorKind::Pty) when it has printed more than is kept
    /// (1 MiB of each stream) before it was collected (contract Y14); [`ErrorKind::Timeout`](crate::ErrorKind::Timeout)
    /// when it still runs after that time, which it then goes on to do.
    ///
    /// # Cancel safety
    /// The program goes on.
    pub async fn collect(&self, session_id: &str, timeout: Duration) -> Result<ExecResult> {
        let options = PtyAttachOptions::default().with_since(0);
        let session = self.attach(session_id, options).await?;
        if session.replay_offset() > 0 {
            return Err(Error::new(
                crate::ErrorKind::Pty,
                Operation::Pty,
                format!(
                    "the first {} bytes of the session's output are not kept any more",
                    session.replay_offset()
                ),
            )
            .with_hint("attach to it to read what is kept, and redirect long output to a file"));
        }
        let collected = tokio::time::timeout(timeout, exec::drain(&session)).await;
        session.close().await?;
        match collected {
            Ok(result) => result,
            Err(_) => Err(Error::new(
                crate::ErrorKind::Timeout,
                Operation::Pty,
                format!("the program did not end in {timeout:?}"),
            )),
        }
    }

    fn state(&self) -> &State {
        &self.sandbox.pty
    }
}
