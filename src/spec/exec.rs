//! How a command is run: where, as whom, for how long, with what input.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncRead;

use crate::error::{Error, Operation, Result};

use super::{Command, check_environment};

/// How much of each output stream is kept by default: 16 MiB (contract D32).
pub const DEFAULT_OUTPUT_CAP_BYTES: usize = 16 * 1024 * 1024;

/// A command and how it is run (contract D31).
///
/// ```
/// use std::time::Duration;
/// use gym_sandbox::ExecOptions;
/// let options = ExecOptions::new(["wc", "-c"]).with_stdin("hello").with_timeout(Duration::from_secs(5));
/// # drop(options);
/// ```
pub struct ExecOptions {
    /// What to run.
    pub command: Command,
    /// The working directory. None by default: the sandbox's.
    pub cwd: Option<String>,
    /// Variables added to the sandbox's environment for this command; they win over it (contract X6).
    pub env: BTreeMap<String, String>,
    /// Who runs it. None by default: the sandbox's user.
    pub user: Option<User>,
    /// How long it may run. The clock starts when the command gets its slot (contract X11).
    pub timeout: ExecTimeout,
    /// Its standard input. Empty by default.
    pub stdin: Stdin,
    /// How much of each output stream is kept.
    pub output_cap: OutputCap,
}

impl ExecOptions {
    /// Runs a command with the defaults: the sandbox's directory, environment and user, the provider's timeout, no
    /// input, 16 MiB of each stream kept.
    pub fn new(command: impl Into<Command>) -> Self {
        Self {
            command: command.into(),
            cwd: None,
            env: BTreeMap::new(),
            user: None,
            timeout: ExecTimeout::Default,
            stdin: Stdin::Empty,
            output_cap: OutputCap::default(),
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

    /// Sets how long it may run.
    pub fn with_timeout(mut self, timeout: impl Into<ExecTimeout>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// Sets its standard input.
    pub fn with_stdin(mut self, stdin: impl Into<Stdin>) -> Self {
        self.stdin = stdin.into();
        self
    }

    /// Sets its standard input to what a reader gives, until its end.
    pub fn with_stdin_reader(mut self, reader: impl AsyncRead + Send + Unpin + 'static) -> Self {
        self.stdin = Stdin::Reader(Box::new(reader));
        self
    }

    /// Sets how much of each output stream is kept.
    pub fn with_output_cap(mut self, cap: OutputCap) -> Self {
        self.output_cap = cap;
        self
    }

    /// Checks everything that can be checked before anything is sent (contract D5, D28).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a command or variable that no program can
    /// be given, a zero timeout, a zero cap, or a NUL in the directory or the user.
    pub fn check(&self, operation: Operation) -> Result<()> {
        self.command.check(operation)?;
        check_environment(operation, &self.env)?;
        if self.timeout == ExecTimeout::After(Duration::ZERO) {
            return Err(Error::invalid(operation, "the timeout is zero")
                .with_hint("give a duration, or `ExecTimeout::Never` for none"));
        }
        if self.output_cap == OutputCap::Bytes(0) {
            return Err(Error::invalid(operation, "the output cap is zero bytes"));
        }
        check_place(operation, self.cwd.as_deref(), self.user.as_ref())
    }
}

/// Checks where and as whom something is run.
pub(super) fn check_place(operation: Operation, cwd: Option<&str>, user: Option<&User>) -> Result<()> {
    if cwd.is_some_and(|cwd| cwd.is_empty() || cwd.contains('\0')) {
        return Err(Error::invalid(
            operation,
            "the working directory is empty or holds NUL",
        ));
    }
    if user.is_some_and(|user| user.as_str().is_empty() || user.as_str().contains('\0')) {
        return Err(Error::invalid(operation, "the user is empty or holds NUL"));
    }
    Ok(())
}

impl fmt::Debug for ExecOptions {
    /// Shows no values: arguments, variables and input may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecOptions")
            .field("command", &self.command)
            .field("cwd", &self.cwd)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("user", &self.user)
            .field("timeout", &self.timeout)
            .field("stdin", &self.stdin)
            .field("output_cap", &self.output_cap)
            .finish()
    }
}

impl<C: Into<Command>> From<C> for ExecOptions {
    fn from(command: C) -> Self {
        Self::new(command)
    }
}

/// How long a command may run (contract D1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecTimeout {
    /// The provider's own default, 180 s unless configured.
    #[default]
    Default,
    /// No limit.
    Never,
    /// This long.
    After(Duration),
}

impl From<Duration> for ExecTimeout {
    fn from(timeout: Duration) -> Self {
        Self::After(timeout)
    }
}

/// How much of each output stream is kept (contract D32). The rest is read, counted and dropped; a command is never
/// stopped for printing much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputCap {
    /// The first and the last half of this many bytes.
    Bytes(usize),
}

impl OutputCap {
    /// The cap in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl Default for OutputCap {
    fn default() -> Self {
        Self::Bytes(DEFAULT_OUTPUT_CAP_BYTES)
    }
}

/// The standard input of a command. At its end the command sees end of file.
#[derive(Default)]
#[non_exhaustive]
pub enum Stdin {
    /// Nothing: the command sees end of file at once.
    #[default]
    Empty,
    /// These bytes.
    Bytes(Bytes),
    /// What a reader gives, until its end. An error of the reader ends the input; the call then fails with it.
    Reader(Box<dyn AsyncRead + Send + Unpin>),
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::Reader(_) => f.write_str("Reader"),
        }
    }
}

impl From<Bytes> for Stdin {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<u8>> for Stdin {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<&str> for Stdin {
    fn from(text: &str) -> Self {
        Self::Bytes(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for Stdin {
    fn from(text: String) -> Self {
        Self::Bytes(text.into())
    }
}

/// A user of the sandbox: a name, a number, or either with a group as `user:group` (contract X8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User(String);

impl User {
    /// What the engine is told: `root` becomes `0`.
    pub fn as_str(&self) -> &str {
        if self.0 == "root" { "0" } else { &self.0 }
    }
}

impl From<&str> for User {
    fn from(name: &str) -> Self {
        Self(name.to_owned())
    }
}

impl From<String> for User {
    fn from(name: String) -> Self {
        Self(name)
    }
}

impl From<u32> for User {
    fn from(uid: u32) -> Self {
        Self(uid.to_string())
    }
}
