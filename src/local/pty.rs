//! Programs in terminals of this machine, or behind pipes that stay open (contract 2.14).

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use rustix::process::{Pid, kill_process_group};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::Child;
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::pty_core::{Core, Over, Taps};
use crate::provider::{PtyProvider, PtySession, SandboxHandle, signal_name};
use crate::spec::{
    Command, ExecOptions, ExecPath, PtyMode, SandboxPtySpec, StartProblem, check_terminal_size,
};

use super::create::Sandbox;
use super::exec::{Guard, kill};
use super::kill::{MARKER, Target};
use super::process::{directory, start_problem};
use super::session::signal_of;
use super::{LocalProvider, PROVIDER, drive, living};

const CHUNK_BYTES: usize = 64 * 1024;

/// After the program's end its pipes are read until they end or are silent for this long: a child may hold them.
const SILENCE: Duration = Duration::from_millis(300);

/// How long a killed program's process may take to leave the system's table.
const AFTER_KILL: Duration = Duration::from_secs(2);

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
        let (core, taps) = Core::new(&sandbox.id, &marker, spec.mode);
        let session = match start(sandbox, &self.config().shell, spec, &marker) {
            Ok(program) => {
                let guard = Guard::new(program.target.clone(), self.reaper().clone());
                let session = LocalPty {
                    input: Mutex::new(Some(program.input)),
                    screen: program.screen,
                    group: program.group,
                    ended: CancellationToken::new(),
                    core,
                };
                let follower = Follower {
                    core: Arc::clone(&session.core),
                    sandbox: Arc::clone(sandbox),
                    child: program.child,
                    target: program.target,
                    guard,
                    ended: session.ended.clone(),
                };
                tokio::spawn(follower.follow(program.outputs, taps));
                session
            }
            Err((problem, text)) => LocalPty {
                core: Core::ended(&sandbox.id, &marker, spec.mode, &text, problem.return_code()),
                input: Mutex::new(None),
                screen: None,
                group: None,
                ended: {
                    let ended = CancellationToken::new();
                    ended.cancel();
                    ended
                },
            },
        };
        let session: Arc<dyn PtySession> = Arc::new(session);
        self.sessions().add(&session);
        Ok(session)
    }
}

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// A program that runs.
struct Program {
    child: Child,
    target: Target,
    input: Writer,
    /// Standard output, or the terminal; and standard error.
    outputs: (Reader, Option<Reader>),
    screen: Option<OwnedFd>,
    group: Option<Pid>,
}

/// Starts the program, or says why it can't be.
fn start(
    sandbox: &Sandbox,
    shell: &str,
    spec: &SandboxPtySpec,
    marker: &str,
) -> Result<Program, (StartProblem, String)> {
    let directory = directory(sandbox, spec.cwd.as_deref()).map_err(|text| (StartProblem::Cwd, text))?;
    let argv = match &spec.command {
        None => vec![shell.to_owned()],
        Some(Command::Shell(line)) => vec![shell.to_owned(), "-c".to_owned(), line.clone()],
        Some(Command::Argv(argv)) => argv.clone(),
    };
    let mut command = tokio::process::Command::new(&argv[0]);
    command.args(&argv[1..]).current_dir(&directory);
    if spec.mode == PtyMode::Pty {
        command.env("TERM", "xterm");
    }
    command.envs(&sandbox.env).envs(&spec.env).env(MARKER, marker);
    let started = match spec.mode {
        PtyMode::Pty => in_terminal(command, marker, spec.rows, spec.cols),
        PtyMode::Pipe => behind_pipes(command, marker),
    };
    started.map_err(|error| {
        let text = format!("`{}` can't be started: {error}", argv[0].escape_debug());
        (start_problem(&error, Path::new(&argv[0])), text)
    })
}

fn in_terminal(command: tokio::process::Command, marker: &str, rows: u16, cols: u16) -> io::Result<Program> {
    let (terminal, program_side) = pty_process::open().map_err(io_error)?;
    terminal
        .resize(pty_process::Size::new(rows, cols))
        .map_err(io_error)?;
    let screen = terminal.as_fd().try_clone_to_owned()?;
    // The program leads a session of its own, and the terminal is that session's.
    let child = pty_process::Command::from(command)
        .spawn(program_side)
        .map_err(io_error)?;
    let target = Target::of_command(&child, marker, (None, None));
    let (output, input) = terminal.into_split();
    Ok(Program {
        group: group_of(&child),
        child,
        target,
        input: Box::new(input),
        outputs: (Box::new(output), None),
        screen: Some(screen),
    })
}

fn behind_pipes(mut command: tokio::process::Command, marker: &str) -> io::Result<Program> {
    let mut child = command
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let target = Target::of_command(&child, marker, (child.stdout.as_ref(), child.stderr.as_ref()));
    let missing = || io::Error::other("a pipe is missing");
    let input = child.stdin.take().ok_or_else(missing)?;
    let output = child.stdout.take().ok_or_else(missing)?;
    let errors = child.stderr.take().ok_or_else(missing)?;
    Ok(Program {
        group: group_of(&child),
        child,
        target,
        input: Box::new(input),
        outputs: (Box::new(output), Some(Box::new(errors))),
        screen: None,
    })
}

fn group_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()?).ok()?)
}

fn io_error(error: pty_process::Error) -> io::Error {
    match error {
        pty_process::Error::Io(error) => error,
        pty_process::Error::Rustix(error) => error.into(),
        other => io::Error::other(other.to_string()),
    }
}

/// Follows the program to its end, in a task of its own.
struct Follower {
    core: Arc<Core>,
    sandbox: Arc<Sandbox>,
    child: Child,
    target: Target,
    guard: Guard,
    /// Cancelled when nothing of the program runs any more.
    ended: CancellationToken,
}

impl Follower {
    async fn follow(mut self, outputs: (Reader, Option<Reader>), taps: Taps) {
        let (flow, heard) = mpsc::channel(1);
        let pumps = async {
            tokio::join!(
                pump(Some(outputs.0), taps.stdout, flow.clone()),
                pump(outputs.1, taps.stderr, flow),
            )
        };
        tokio::pin!(pumps);
        let mut read = false;
        let status = loop {
            tokio::select! {
                status = self.child.wait() => break status,
                _ = &mut pumps, if !read => read = true,
                _ = self.core.until_over() => return self.end().await,
                () = self.sandbox.closed.cancelled() => {
                    self.core.end(Over::Lost("the sandbox has been removed".into()));
                    return self.end().await;
                }
            }
        };
        match status {
            Ok(status) => self.core.note_exit(drive::code(status)),
            Err(error) => {
                self.core.end(Over::Lost(error.to_string().into()));
            }
        }
        // Children in the background live on: only a close kills.
        self.guard.disarm();
        self.ended.cancel();
        if !read {
            tokio::select! {
                _ = &mut pumps => {}
                () = silence(heard) => {}
                _ = self.core.until_over() => {}
            }
        }
    }

    async fn end(mut self) {
        let report = kill(self.target.clone()).await;
        // One that could not be killed is left to the runtime.
        let _status = tokio::time::timeout(AFTER_KILL, self.child.wait()).await;
        if report.survivors == 0 {
            self.guard.disarm();
        }
        self.ended.cancel();
    }
}

/// Hands output to whoever reads it. Says on `flow` that something was read and is to be taken.
async fn pump(reader: Option<Reader>, tap: Option<mpsc::Sender<Bytes>>, flow: mpsc::Sender<()>) {
    let (Some(mut reader), Some(tap)) = (reader, tap) else {
        return;
    };
    loop {
        let mut chunk = BytesMut::with_capacity(CHUNK_BYTES);
        // A terminal whose program is gone gives an error, which is its end.
        let Ok(1..) = reader.read_buf(&mut chunk).await else {
            return;
        };
        let Ok(room) = tap.reserve().await else { return };
        room.send(chunk.freeze());
        let _full = flow.try_send(()).is_err();
    }
}

/// Waits until nothing was handed over for a while.
async fn silence(mut heard: mpsc::Receiver<()>) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(5)
        && tokio::time::timeout(SILENCE, heard.recv())
            .await
            .is_ok_and(|heard| heard.is_some())
    {}
}

/// A program of this machine that the caller talks to.
struct LocalPty {
    core: Arc<Core>,
    /// None once it was ended.
    input: Mutex<Option<Writer>>,
    /// The terminal; none behind pipes.
    screen: Option<OwnedFd>,
    group: Option<Pid>,
    ended: CancellationToken,
}

impl LocalPty {
    fn unsupported(&self, what: &str) -> Error {
        Error::unsupported(Operation::Pty, PROVIDER, what).with_sandbox(&self.core.sandbox_id)
    }
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
            return Err(self
                .unsupported("ending the input of a terminal")
                .with_hint("the key ^D (byte 4) does that"));
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
            return Err(self.unsupported("the size of a program behind pipes"));
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
        self.core.end(Over::Closed);
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
        Err(self.unsupported("sessions that outlive their connection"))
    }
}

impl Drop for LocalPty {
    fn drop(&mut self) {
        // Whoever follows the program kills it.
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
