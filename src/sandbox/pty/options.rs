//! What a command through a terminal session is told.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::spec::{Command, ExecTimeout, PtyMode, SandboxPtySpec, User};

use super::super::DEFAULT_EXEC_TIMEOUT;
use super::SandboxPtySession;

/// A command and which session runs it (contract Y5-Y13).
#[derive(Clone)]
#[non_exhaustive]
pub struct PtyExecOptions {
    /// What to run.
    pub command: Command,
    /// The session that it is typed into. None by default: see [`SandboxPty::exec`](super::SandboxPty::exec).
    pub session: Option<SandboxPtySession>,
    /// The working directory, for a session of its own.
    pub cwd: Option<String>,
    /// Variables, for a session of its own.
    pub env: BTreeMap<String, String>,
    /// Who runs it, for a session of its own.
    pub user: Option<User>,
    /// How long it may take, with the wait for its turn. 180 s by default, as for [`ExecTimeout::Default`].
    pub timeout: ExecTimeout,
    /// Rows of the screen of a session of its own.
    pub rows: u16,
    /// Columns of it.
    pub cols: u16,
    /// How a session of its own is connected.
    pub mode: PtyMode,
    /// The command may take long: it gets a terminal of its own, or the session that is given, and what was printed is
    /// one stream in standard output (contract Y13). On the agent's path a connection that breaks meanwhile is made
    /// again; on the engine's the connection is held, and the result's hint says so.
    pub detach: bool,
}

impl PtyExecOptions {
    /// Runs a command with the defaults.
    pub fn new(command: impl Into<Command>) -> Self {
        Self {
            command: command.into(),
            session: None,
            cwd: None,
            env: BTreeMap::new(),
            user: None,
            timeout: ExecTimeout::Default,
            rows: 24,
            cols: 80,
            mode: PtyMode::Pty,
            detach: false,
        }
    }

    /// Types it into this session.
    pub fn with_session(mut self, session: &SandboxPtySession) -> Self {
        self.session = Some(session.clone());
        self
    }

    /// Sets the working directory.
    pub fn with_cwd(mut self, cwd: impl Into<String>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Adds an environment variable.
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets who runs it.
    pub fn with_user(mut self, user: impl Into<User>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets how long it may take.
    pub fn with_timeout(mut self, timeout: impl Into<ExecTimeout>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// Sets the size of the screen.
    pub fn with_size(mut self, rows: u16, cols: u16) -> Self {
        self.rows = rows;
        self.cols = cols;
        self
    }

    /// Sets how it is connected.
    pub fn with_mode(mut self, mode: PtyMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets that the command may take long.
    pub fn with_detach(mut self) -> Self {
        self.detach = true;
        self
    }

    /// Nothing but the command was asked for, so that any shell can run it (contract Y6).
    pub(super) fn is_unshaped(&self) -> bool {
        self.cwd.is_none()
            && self.env.is_empty()
            && self.user.is_none()
            && self.mode == PtyMode::Pty
            && (self.rows, self.cols) == (24, 80)
    }

    pub(super) fn spec(&self) -> SandboxPtySpec {
        let mut spec = SandboxPtySpec::new(self.command.clone()).with_size(self.rows, self.cols);
        spec.cwd.clone_from(&self.cwd);
        spec.env.clone_from(&self.env);
        spec.user.clone_from(&self.user);
        spec.mode = if self.detach { PtyMode::Pty } else { self.mode };
        spec
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        match self.timeout {
            ExecTimeout::Default => Some(DEFAULT_EXEC_TIMEOUT),
            ExecTimeout::Never => None,
            ExecTimeout::After(timeout) => Some(timeout),
        }
    }
}

impl fmt::Debug for PtyExecOptions {
    /// Shows no values: arguments and variables may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PtyExecOptions")
            .field("command", &self.command)
            .field("session", &self.session)
            .field("cwd", &self.cwd)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("user", &self.user)
            .field("timeout", &self.timeout)
            .field("detach", &self.detach)
            .finish_non_exhaustive()
    }
}

impl<C: Into<Command>> From<C> for PtyExecOptions {
    fn from(command: C) -> Self {
        Self::new(command)
    }
}
