//! What a terminal session is asked to be: what runs in it, where, as whom, and how large its screen is.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Operation, Result};

use super::exec::check_place;
use super::{Command, User, check_environment};

/// The most rows or columns that a terminal can have. Programs allocate by them, so more is refused.
pub const MAX_TERMINAL_SIDE: u16 = 4096;

/// A terminal session and how it is started (contract 1.1).
///
/// ```
/// use gym_sandbox::{PtyMode, SandboxPtySpec};
/// let shell = SandboxPtySpec::default();
/// assert_eq!((shell.rows, shell.cols, shell.mode), (24, 80, PtyMode::Pty));
/// let editor = SandboxPtySpec::new(["vi", "/etc/hosts"]).with_size(40, 120);
/// # drop(editor);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct SandboxPtySpec {
    /// What to run. None by default: the sandbox's shell.
    pub command: Option<Command>,
    /// The working directory. None by default: the sandbox's.
    pub cwd: Option<String>,
    /// Variables added to the sandbox's environment. Where neither has `TERM`, it is `xterm`.
    pub env: BTreeMap<String, String>,
    /// Who runs it. None by default: the sandbox's user.
    pub user: Option<User>,
    /// Rows of the screen, 24 by default. Not used in pipe mode.
    pub rows: u16,
    /// Columns of the screen, 80 by default. Not used in pipe mode.
    pub cols: u16,
    /// A terminal, or pipes.
    pub mode: PtyMode,
}

/// How a session's program is connected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PtyMode {
    /// By a terminal: one stream of output, keys that signal, a screen with a size.
    #[default]
    Pty,
    /// By three pipes: standard output and error are apart, and the input can be ended.
    Pipe,
}

/// How to join a session that lives in the sandbox (contract Z8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PtyAttachOptions {
    /// Whoever holds the session loses it. True by default; else a held session is refused.
    pub takeover: bool,
    /// The first byte of output that is wanted, counted from the session's start: 0 replays all that is kept. None, the
    /// default, gives only what comes from now on.
    pub since: Option<u64>,
}

impl Default for PtyAttachOptions {
    fn default() -> Self {
        Self {
            takeover: true,
            since: None,
        }
    }
}

impl PtyAttachOptions {
    /// Sets whether whoever holds the session loses it.
    pub fn with_takeover(mut self, takeover: bool) -> Self {
        self.takeover = takeover;
        self
    }

    /// Sets the first byte of output that is wanted.
    pub fn with_since(mut self, since: u64) -> Self {
        self.since = Some(since);
        self
    }
}

impl SandboxPtySpec {
    /// A terminal of 24 rows and 80 columns for a command.
    pub fn new(command: impl Into<Command>) -> Self {
        Self {
            command: Some(command.into()),
            ..Self::default()
        }
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

    /// Sets the size of the screen.
    pub fn with_size(mut self, rows: u16, cols: u16) -> Self {
        self.rows = rows;
        self.cols = cols;
        self
    }

    /// Sets how the program is connected.
    pub fn with_mode(mut self, mode: PtyMode) -> Self {
        self.mode = mode;
        self
    }

    /// Checks everything that can be checked before anything is sent (contract Z14).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a command or variable that no program can
    /// be given, a NUL in the directory or the user, and a size that [`check_terminal_size`] refuses.
    pub fn check(&self, operation: Operation) -> Result<()> {
        if let Some(command) = &self.command {
            command.check(operation)?;
        }
        check_environment(operation, &self.env)?;
        check_place(operation, self.cwd.as_deref(), self.user.as_ref())?;
        check_terminal_size(operation, self.rows, self.cols)
    }
}

impl Default for SandboxPtySpec {
    /// The sandbox's shell in a terminal of 24 rows and 80 columns.
    fn default() -> Self {
        Self {
            command: None,
            cwd: None,
            env: BTreeMap::new(),
            user: None,
            rows: 24,
            cols: 80,
            mode: PtyMode::Pty,
        }
    }
}

impl fmt::Debug for SandboxPtySpec {
    /// Shows no values: arguments and variables may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxPtySpec")
            .field("command", &self.command)
            .field("cwd", &self.cwd)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("user", &self.user)
            .field("rows", &self.rows)
            .field("cols", &self.cols)
            .field("mode", &self.mode)
            .finish()
    }
}

impl<C: Into<Command>> From<C> for SandboxPtySpec {
    fn from(command: C) -> Self {
        Self::new(command)
    }
}

/// Checks the size of a terminal (bugs B34).
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for no rows, no columns, or more than
/// [`MAX_TERMINAL_SIDE`] of either.
pub fn check_terminal_size(operation: Operation, rows: u16, cols: u16) -> Result<()> {
    let fits = |side: u16| (1..=MAX_TERMINAL_SIDE).contains(&side);
    if fits(rows) && fits(cols) {
        return Ok(());
    }
    Err(Error::invalid(
        operation,
        format!("a terminal of {rows} rows and {cols} columns can't be had"),
    )
    .with_hint(format!("both are from 1 to {MAX_TERMINAL_SIDE}; rows come first")))
}
