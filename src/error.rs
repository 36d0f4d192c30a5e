//! The one error type of the crate: what kind, doing what, on which sandbox, why, and what to do next.
//! Knows no provider: backends keep their own errors private and hand them over as a source.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

use crate::spec::SandboxId;

pub use operation::Operation;
use report::Report;

/// A `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed (contract D37).
///
/// `Display` is one line: what was tried, on what, and what went wrong. The cause below it is in
/// [`source`](StdError::source) and never repeated in the line; [`Error::report`] prints the whole chain once,
/// with the hint. Values of environment variables, standard input and credentials are never part of an error.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    operation: Operation,
    message: Cow<'static, str>,
    sandbox_id: Option<SandboxId>,
    hint: Option<Cow<'static, str>>,
    retryable: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
    cleanup: Vec<Error>,
}

/// What a caller can act on. Match on this, never on the text of an error (contract D37).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument, option or configuration value is wrong. Nothing was created.
    InvalidArgument,
    /// The provider, or the engine behind it, cannot do this.
    Unsupported,
    /// The sandbox has not been started.
    NotStarted,
    /// The sandbox is started already.
    AlreadyStarted,
    /// The sandbox has been stopped; a stopped one is not started again.
    Stopped,
    /// The sandbox was made here: only one that was connected to can be let go of.
    NotConnected,
    /// The sandbox could not be created. What was made for it has been removed.
    CreateFailed,
    /// The sandbox was created but did not become ready, and has been removed. A kind of create failure:
    /// see [`ErrorKind::is_create_failure`].
    NotReady,
    /// The image could not be had, or cannot be used.
    Image(ImageProblem),
    /// The name or the object is in use.
    Conflict,
    /// The object does not exist.
    NotFound,
    /// The sandbox is there but in no state to do this.
    Sandbox(SandboxReason),
    /// A path inside the sandbox, or on this machine, cannot be used this way.
    Path(PathProblem),
    /// The call did not end within its deadline.
    Timeout,
    /// A command that a Compose file wants run before a stop failed, or did not end in its time. Nothing is left of what
    /// was to be stopped.
    Hook,
    /// A terminal session failed.
    Pty,
    /// The engine cannot be reached, or broke the connection.
    Unavailable,
    /// The engine or this machine has no more of something.
    ResourceExhausted(Resource),
    /// The handle belongs to another provider.
    ForeignHandle,
    /// The synchronous facade was called inside an async runtime.
    BlockingInAsync,
    /// Reading or writing on this machine failed.
    Io,
    /// A bug of this crate, or an answer of the engine that it does not understand.
    Internal,
}

impl ErrorKind {
    /// Says whether this kind means that a sandbox could not be made: [`CreateFailed`](Self::CreateFailed),
    /// [`NotReady`](Self::NotReady) or [`Image`](Self::Image).
    pub fn is_create_failure(self) -> bool {
        matches!(self, Self::CreateFailed | Self::NotReady | Self::Image(_))
    }
}

/// What is wrong with an image (contract D12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImageProblem {
    /// The reference is not an image reference.
    InvalidReference,
    /// The registry wants credentials, or refused those given.
    Auth,
    /// Neither the engine nor the registry has it, or pulling was forbidden.
    NotFound,
    /// The registry limits the rate of pulls.
    RateLimited,
    /// It exists for another platform.
    Platform,
    /// The registry could not be reached.
    Offline,
    /// A step of its build failed.
    Build,
    /// Any other answer, kept in the text.
    Other,
}

/// What there is no more of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resource {
    /// The engine's address pools hold no free network, or a network no free address.
    Networks,
    /// A host port is taken.
    Ports,
    /// Disk space.
    Disk,
    /// Memory.
    Memory,
    /// Processes or threads.
    Processes,
    /// Open files of this process.
    FileDescriptors,
}

/// Why a sandbox can't run a command (contract D6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SandboxReason {
    /// The main process has ended, or was never started.
    NotRunning,
    /// The sandbox is paused.
    Paused,
    /// The sandbox does not exist any more.
    Removed,
    /// The main process was killed because memory ran out.
    OomKilled,
    /// The engine did not answer.
    DaemonUnreachable,
    /// The resident agent is gone; what became of the command is not known.
    AgentLost,
}

/// What is wrong with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathProblem {
    /// It does not exist.
    NotFound,
    /// It is a directory where a file is needed.
    IsADirectory,
    /// It, or a part of it, is a file where a directory is needed.
    NotADirectory,
    /// It lies on something that is mounted read-only.
    ReadOnly,
    /// Access is denied.
    Permission,
    /// It exists already, as something that is not replaced.
    Exists,
    /// Nothing can be written there or read from there by any way the provider has.
    NotServable,
    /// An archive entry would leave its target, or is of a kind that is refused.
    UnsafeArchive,
    /// It is over a limit.
    TooLarge,
    /// It changed while it was read.
    Changed,
}

impl Error {
    /// Makes an error. Providers outside this crate make theirs with it, too.
    ///
    /// The message says what went wrong and on what, in lower case without a final dot; the cause, if there is one,
    /// goes into [`with_source`](Self::with_source) and not into the message.
    pub fn new(kind: ErrorKind, operation: Operation, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            kind,
            operation,
            message: message.into(),
            sandbox_id: None,
            hint: None,
            retryable: matches!(kind, ErrorKind::Unavailable),
            source: None,
            cleanup: Vec::new(),
        }))
    }

    /// Makes an [`ErrorKind::InvalidArgument`].
    pub fn invalid(operation: Operation, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::InvalidArgument, operation, message)
    }

    /// Makes an [`ErrorKind::Unsupported`] that names the provider and what it lacks.
    pub fn unsupported(operation: Operation, provider: &str, what: &str) -> Self {
        Self::new(
            ErrorKind::Unsupported,
            operation,
            format!("provider `{provider}` does not support {what}"),
        )
    }

    /// Adds the cause.
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync + 'static>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Names the sandbox, unless one is named already.
    pub fn with_sandbox(mut self, id: &SandboxId) -> Self {
        self.0.sandbox_id.get_or_insert_with(|| id.clone());
        self
    }

    /// Adds what to do next.
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Says whether the same call may go through later.
    pub fn with_retryable(mut self, retryable: bool) -> Self {
        self.0.retryable = retryable;
        self
    }

    /// Attaches an error of the clean-up that followed this one. This one stays the primary error (contract L15).
    pub fn with_cleanup_error(mut self, error: Error) -> Self {
        self.0.cleanup.push(error);
        self
    }

    /// The kind, for a match.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What was being done.
    pub fn operation(&self) -> Operation {
        self.0.operation
    }

    /// The sandbox it happened on, where there is one.
    pub fn sandbox_id(&self) -> Option<&SandboxId> {
        self.0.sandbox_id.as_ref()
    }

    /// What to do next, where that is known.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Says whether the same call may go through later without a change.
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }

    /// Errors of the clean-up that followed this one, oldest first.
    pub fn cleanup_errors(&self) -> &[Error] {
        &self.0.cleanup
    }

    /// The whole story for a person: the line, each cause once, errors of the clean-up, the hint.
    pub fn report(&self) -> impl fmt::Display + '_ {
        Report(self)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.operation)?;
        if let Some(id) = &self.0.sandbox_id {
            write!(f, " `{id}`")?;
        }
        write!(f, ": {}", self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Error");
        debug
            .field("kind", &self.0.kind)
            .field("operation", &self.0.operation)
            .field("message", &self.0.message);
        if let Some(id) = &self.0.sandbox_id {
            debug.field("sandbox_id", id);
        }
        if let Some(hint) = &self.0.hint {
            debug.field("hint", hint);
        }
        if let Some(source) = &self.0.source {
            debug.field("source", source);
        }
        if !self.0.cleanup.is_empty() {
            debug.field("cleanup", &self.0.cleanup);
        }
        debug.finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

mod operation;
mod report;

#[cfg(test)]
mod tests;
