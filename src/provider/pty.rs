//! Terminal sessions: the two capabilities, and a session as every backend gives it (contract 2.14).

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::Result;
use crate::spec::{ExecPath, PtyAttachOptions, PtyMode, SandboxPtySpec};

use super::{SandboxHandle, SandboxProvider};

/// Programs in a terminal, or behind pipes, that the caller talks to.
#[async_trait]
pub trait PtyProvider: SandboxProvider {
    /// Starts a program in a session of its own. The size of the spec is what the program sees first (contract Z15).
    ///
    /// A program that can't be started is a session that ends with 126 or 127; what it gives to read says why.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for what [`SandboxPtySpec::check`] refuses;
    /// [`ErrorKind::Sandbox`](crate::ErrorKind::Sandbox) when the sandbox is in no state to run it;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a shell line in an image without a shell. Nothing is
    /// left running (contract Z11).
    ///
    /// # Cancel safety
    /// Dropping the future ends what was started, in the background.
    async fn create_pty(&self, handle: &SandboxHandle, spec: &SandboxPtySpec) -> Result<Arc<dyn PtySession>>;
}

/// Joining a session that lives in the sandbox, also from another process than the one that made it (contract D25).
#[async_trait]
pub trait PtyAttachProvider: PtyProvider {
    /// Joins a session by its id (contract Z8).
    ///
    /// # Errors
    /// [`ErrorKind::Pty`](crate::ErrorKind::Pty) for an unknown session, and for one that is held when the options take
    /// nothing over; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where sessions do not outlive their
    /// connection in this sandbox.
    ///
    /// # Cancel safety
    /// Dropping the future may have taken the session from whoever held it; it lives on.
    async fn attach_pty(
        &self,
        handle: &SandboxHandle,
        session_id: &str,
        options: PtyAttachOptions,
    ) -> Result<Arc<dyn PtySession>>;
}

/// A program in a terminal or behind pipes (contract 2.14). All methods may be called side by side.
///
/// Dropping the last reference to a session that was created here ends its program and everything that this has
/// started, in the background, as [`close`](Self::close) does. Dropping one that was joined only leaves it, and so does
/// dropping one after [`detach`](Self::detach).
///
/// Output must be read: the program waits while nobody does. In pipe mode this holds for both streams.
#[async_trait]
pub trait PtySession: fmt::Debug + Send + Sync {
    /// Names the session, for [`PtyAttachProvider::attach_pty`].
    fn session_id(&self) -> &str;

    /// How its program is connected (contract Z9).
    fn mode(&self) -> PtyMode;

    /// How it is reached.
    fn exec_path(&self) -> ExecPath;

    /// It was closed or left here, or taken over, or is lost; or its program has ended.
    fn is_closed(&self) -> bool;

    /// The number of the first byte that this session gave or will give to read, counted from the program's start.
    /// Greater than the `since` that was asked for when the bytes between are not kept any more (contract Z8).
    fn replay_offset(&self) -> u64;

    /// Gives the next output; nothing means that the program has exited and all was read, and stays so (contract Z1).
    /// In pipe mode this is standard output.
    ///
    /// # Errors
    /// [`ErrorKind::Pty`](crate::ErrorKind::Pty) when the session was closed, taken over or lost before that.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    async fn read(&self) -> Result<Bytes>;

    /// The same for standard error in pipe mode. In a terminal it gives nothing once the program has exited (contract
    /// Z2).
    ///
    /// # Errors
    /// As [`read`](Self::read).
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    async fn read_stderr(&self) -> Result<Bytes>;

    /// Writes to the program's terminal or standard input. Returns when all was taken from the caller; a program that
    /// does not read makes it wait, and nothing else.
    ///
    /// # Errors
    /// [`ErrorKind::Pty`](crate::ErrorKind::Pty) after the end (contract Z6).
    ///
    /// # Cancel safety
    /// Dropping the future may have written a part.
    async fn write(&self, bytes: &[u8]) -> Result<()>;

    /// Ends the standard input in pipe mode. Calling it again does nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a terminal, where the key ^D (byte 4) does that;
    /// [`ErrorKind::Pty`](crate::ErrorKind::Pty) after the end.
    ///
    /// # Cancel safety
    /// Call it again.
    async fn close_input(&self) -> Result<()>;

    /// Sets the size of the screen; the program gets SIGWINCH where it changes.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for what
    /// [`check_terminal_size`](crate::check_terminal_size) refuses;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) in pipe mode;
    /// [`ErrorKind::Pty`](crate::ErrorKind::Pty) after the end (contract Z6).
    ///
    /// # Cancel safety
    /// The size may be the old or the new one.
    async fn resize(&self, rows: u16, cols: u16) -> Result<()>;

    /// Sends a signal by name (`INT` or `SIGINT`) to the process group of the session's program (contract Z7).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an unknown name;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the image holds nothing to send it with;
    /// [`ErrorKind::Pty`](crate::ErrorKind::Pty) after the end.
    ///
    /// # Cancel safety
    /// It may have been sent.
    async fn send_signal(&self, name: &str) -> Result<()>;

    /// Waits for the exit code: the program's own, or 128+n when signal n killed it (contract Z4, Z10). Any number of
    /// tasks may wait.
    ///
    /// # Errors
    /// [`ErrorKind::Pty`](crate::ErrorKind::Pty) when the session was closed, taken over or lost before the exit.
    ///
    /// # Cancel safety
    /// Others wait on.
    async fn wait_exit(&self) -> Result<i32>;

    /// Ends a session that was created here: kills the program and everything that it has started. One that was joined is
    /// only left. Wakes whoever waits; calling it again, or for a sandbox that is gone, succeeds (contract Z5).
    ///
    /// # Errors
    /// None for a session that has ended. [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the image holds
    /// nothing to kill with and the program lives on; [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) or
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) where it is not known whether it has ended: it is killed in
    /// the background.
    ///
    /// # Cancel safety
    /// The program is killed all the same, in the background.
    async fn close(&self) -> Result<()>;

    /// Leaves the session to live on in the sandbox, so that [`PtyAttachProvider::attach_pty`] can join it later. What it
    /// prints meanwhile is kept, the last 1 MiB of each stream.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where it can't outlive its connection.
    ///
    /// # Cancel safety
    /// Call it again.
    async fn detach(&self) -> Result<()>;
}
