//! Programs in terminals of this machine, or behind pipes that stay open (contract 2.14).

mod follow;
mod start;

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rustix::process::{Pid, kill_process_group};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::AsyncWriteExt;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::pty_core::{Core, Over};
use crate::provider::{PtyProvider, PtySession, SandboxHandle, signal_name};
use crate::spec::{ExecOptions, ExecPath, PtyMode, SandboxPtySpec, check_terminal_size};

use super::exec::Guard;
use super::session::signal_of;
use super::{LocalProvider, PROVIDER, living};

use follow::{End, Follower};
use start::Writer;

/// How long a close waits for the program's end.
const CLOSE: Duration = Duration::from_secs(15);

#[async_trait]
impl PtyProvider for LocalProvider {
    async fn create_pty(&self, handle: &SandboxHandle, spec: &SandboxPtySpec) -> Result<Arc<dyn PtySession>> {
        let sandbox = living(handle, Operation::Pty)?;
        spec.check(Operation::Pty)
            .map_err(|error| error.with_sandbox(&sandbox.id))?;
        // One rule about users for all commands.
        let mut options = ExecOptions::new("true");
        options.user.clone_from(&spec.user);
        Self::check(sandbox, &options, Operation::Pty)?;
        let marker = sandbox.next_marker();
        let session = match start::start(sandbox, &self.config().shell, spec, &marker) {
            Ok(program) => {
                let (core, taps) = Core::new(&sandbox.id, &marker, spec.mode);
                let guard = Guard::new(program.target.clone(), self.reaper().clone());
                let ended = CancellationToken::new();
                let end = End::new(&core, &ended);
                let session = LocalPty {
                    core: Arc::clone(&core),
                    input: Mutex::new(Some(program.input)),
                    screen: program.screen,
                    group: program.group,
                    ended,
                    _guard: Some(guard.twin()),
                };
                let follower = Follower {
                    core,
                    sandbox: Arc::clone(sandbox),
                    child: program.child,
                    target: program.target,
                    guard,
                    end,
                };
                tokio::spawn(follower.follow(program.stdout, program.stderr, taps));
                session
            }
            Err((problem, text)) => LocalPty {
                core: Core::ended(&sandbox.id, &marker, spec.mode, &text, problem.return_code()),
                input: Mutex::new(None),
                screen: None,
                group: None,
                ended: CancellationToken::new(),
                _guard: None,
            },
        };
        let session: Arc<dyn PtySession> = Arc::new(session);
        self.sessions().add(&session);
        Ok(session)
    }
}

/// A program of this machine that the caller talks to.
struct LocalPty {
    core: Arc<Core>,
    /// None once it was ended.
    input: Mutex<Option<Writer>>,
    /// The terminal; none behind pipes.
    screen: Option<OwnedFd>,
    group: Option<Pid>,
    /// Cancelled when nothing follows the program any more.
    ended: CancellationToken,
    /// That of the task that follows the program again: `aclose` waits for what this one has killed. None for a program
    /// that never ran.
    _guard: Option<Guard>,
}

#[async_trait]
impl PtySession for LocalPty {
    fn session_id(&self) -> &str {
        &self.core.session_id
    }

    fn mode(&self) -> PtyMode {
        self.core.mode
    }

    fn exec_path(&self) -> ExecPath {
        ExecPath::Host
    }

    fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    fn replay_offset(&self) -> u64 {
        0
    }

    async fn read(&self) -> Result<Bytes> {
        self.core.read().await
    }

    async fn read_stderr(&self) -> Result<Bytes> {
        self.core.read_stderr().await
    }

    async fn write(&self, bytes: &[u8]) -> Result<()> {
        let write = async {
            let mut input = self.input.lock().await;
            let input = input
                .as_mut()
                .ok_or_else(|| self.core.pty_error("the input was ended".to_owned()))?;
            let written = async {
                input.write_all(bytes).await?;
                input.flush().await
            };
            written.await.map_err(|error| {
                self.core
                    .pty_error("the program takes no input".to_owned())
                    .with_source(error)
            })
        };
        self.core.while_live(write).await?
    }

    async fn close_input(&self) -> Result<()> {
        self.core.check_live()?;
        if self.core.mode == PtyMode::Pty {
            return Err(self.core.no_input_end(PROVIDER));
        }
        let end = async {
            self.input.lock().await.take();
        };
        self.core.while_live(end).await
    }

    async fn resize(&self, rows: u16, cols: u16) -> Result<()> {
        check_terminal_size(Operation::Pty, rows, cols)?;
        self.core.check_live()?;
        let Some(screen) = &self.screen else {
            return Err(self.core.no_size(PROVIDER));
        };
        let size = Winsize {
            ws_row: rows,
            ws_col: cols,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(screen, size).map_err(|error| {
            self.core
                .pty_error("the terminal did not take the size".to_owned())
                .with_source(error)
        })
    }

    async fn send_signal(&self, name: &str) -> Result<()> {
        let signal = signal_of(signal_name(name, Operation::Pty)?);
        self.core.check_live()?;
        let group = self
            .group
            .ok_or_else(|| self.core.pty_error("the program never ran".to_owned()))?;
        match kill_process_group(group, signal) {
            // It has ended in this moment.
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(self
                .core
                .pty_error("the signal could not be sent".to_owned())
                .with_source(error)),
        }
    }

    async fn wait_exit(&self) -> Result<i32> {
        self.core.wait_exit().await
    }

    async fn close(&self) -> Result<()> {
        let has_ended = self.core.exit().is_some();
        if !self.core.end(Over::Closed) || has_ended {
            return Ok(());
        }
        match tokio::time::timeout(CLOSE, self.ended.cancelled()).await {
            Ok(()) => Ok(()),
            Err(_) => Err(Error::new(
                ErrorKind::Timeout,
                Operation::Pty,
                format!("the program of the session has not ended in {CLOSE:?}"),
            )
            .with_sandbox(&self.core.sandbox_id)),
        }
    }

    async fn detach(&self) -> Result<()> {
        self.core.check_live()?;
        Err(
            Error::unsupported(Operation::Pty, PROVIDER, "sessions that outlive their connection")
                .with_sandbox(&self.core.sandbox_id),
        )
    }
}

impl Drop for LocalPty {
    fn drop(&mut self) {
        // What runs is killed by the guard; whoever follows it takes its process off the system's table.
        self.core.end(Over::Closed);
    }
}

impl fmt::Debug for LocalPty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalPty")
            .field("core", &self.core)
            .finish_non_exhaustive()
    }
}
