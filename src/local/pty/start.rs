//! Starting the program of a session: in a terminal of its own, or behind three pipes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;

use rustix::process::Pid;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Child;

use crate::spec::{Command, PtyMode, SandboxPtySpec, StartProblem};

use super::super::create::Sandbox;
use super::super::kill::{MARKER, Target};
use super::super::process::{directory, start_problem};

pub(super) type Reader = Box<dyn AsyncRead + Send + Unpin>;
pub(super) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// A program that runs.
pub(super) struct Program {
    pub(super) child: Child,
    pub(super) target: Target,
    pub(super) input: Writer,
    /// Standard output, or the terminal.
    pub(super) stdout: Reader,
    /// None in a terminal.
    pub(super) stderr: Option<Reader>,
    pub(super) screen: Option<OwnedFd>,
    /// The process group that the program leads.
    pub(super) group: Option<Pid>,
}

/// Starts the program, or says why it can't be.
pub(super) fn start(
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
    if spec.mode == PtyMode::Pty && std::env::var_os("TERM").is_none() {
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
        stdout: Box::new(output),
        stderr: None,
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
        stdout: Box::new(output),
        stderr: Some(Box::new(errors)),
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
