//! From a command to a running process with pipes, or to why it could not be started.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{Pending, Sink};
use crate::spec::{Command, ExecOptions, ExecPath, ExecResult, StartProblem, Stdin};

use super::create::Sandbox;
use super::kill::{MARKER, Target};

/// A command that runs.
pub(super) struct Running {
    pub(super) child: Child,
    pub(super) input: Option<ChildStdin>,
    pub(super) stdout: Pipe<ChildStdout>,
    pub(super) stderr: Pipe<ChildStderr>,
    pub(super) target: Target,
}

/// One output of a command on its way to its sink.
pub(super) struct Pipe<R> {
    /// None after its end.
    pub(super) reader: Option<R>,
    pub(super) sink: Sink,
    pub(super) pending: Option<Pending>,
}

impl<R> Pipe<R> {
    fn new(reader: Option<R>, sink: Sink) -> Self {
        Self {
            reader,
            sink,
            pending: None,
        }
    }
}

/// The directory that a command runs in (contract O5), or why it can't.
pub(super) fn directory(sandbox: &Sandbox, cwd: Option<&str>) -> Result<PathBuf, String> {
    let directory = match cwd {
        Some(cwd) => sandbox.workspace.join(cwd),
        None => sandbox.workspace.clone(),
    };
    match std::fs::metadata(&directory) {
        Ok(found) if found.is_dir() => Ok(directory),
        Ok(_) => Err(format!(
            "the working directory `{}` is not a directory",
            directory.display()
        )),
        Err(error) => Err(format!(
            "the working directory `{}` can't be used: {error}",
            directory.display()
        )),
    }
}

/// Why a command was not started.
pub(super) struct NotStarted {
    pub(super) result: Box<ExecResult>,
    /// Somebody has the program open for writing.
    pub(super) is_busy: bool,
}

/// Starts a command. What keeps it from starting is a result (contract D5).
pub(super) fn start(
    sandbox: &Sandbox,
    shell: &str,
    options: &ExecOptions,
    sinks: (Sink, Sink),
) -> Result<Running, NotStarted> {
    let failure = |problem, message: String| NotStarted {
        result: Box::new(ExecResult::start_failure(problem, message, ExecPath::Host)),
        is_busy: false,
    };
    let directory =
        directory(sandbox, options.cwd.as_deref()).map_err(|text| failure(StartProblem::Cwd, text))?;
    let argv: &[String] = match &options.command {
        Command::Shell(line) => &[shell.to_owned(), "-c".to_owned(), line.clone()],
        Command::Argv(argv) => argv,
    };
    let marker = sandbox.next_marker();
    let mut command = tokio::process::Command::new(&argv[0]);
    command
        .args(&argv[1..])
        .current_dir(&directory)
        .envs(&sandbox.env)
        .envs(&options.env)
        .env(MARKER, &marker)
        // A group of its own is what reaches children that the shell has left behind.
        .process_group(0)
        .stdin(match options.stdin {
            Stdin::Empty => Stdio::null(),
            Stdin::Bytes(_) | Stdin::Reader(_) => Stdio::piped(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        let text = format!("`{}` can't be started: {error}", argv[0].escape_debug());
        NotStarted {
            is_busy: error.kind() == io::ErrorKind::ExecutableFileBusy,
            ..failure(start_problem(&error, Path::new(&argv[0])), text)
        }
    })?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let target = Target::of_command(&child, &marker, (stdout.as_ref(), stderr.as_ref()));
    Ok(Running {
        input: child.stdin.take(),
        stdout: Pipe::new(stdout, sinks.0),
        stderr: Pipe::new(stderr, sinks.1),
        child,
        target,
    })
}

pub(super) fn start_problem(error: &io::Error, program: &Path) -> StartProblem {
    match error.kind() {
        // A script whose interpreter is missing is there itself.
        io::ErrorKind::NotFound if program.is_absolute() && program.exists() => StartProblem::BadFormat,
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => StartProblem::NotFound,
        io::ErrorKind::PermissionDenied | io::ErrorKind::IsADirectory => StartProblem::NotExecutable,
        io::ErrorKind::ArgumentListTooLong => StartProblem::TooLong,
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            StartProblem::BadFormat
        }
        _ => StartProblem::Other,
    }
}

/// Does something that blocks on a thread that may.
pub(super) async fn blocking<T: Send + 'static>(
    operation: Operation,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Error::new(
            ErrorKind::Internal,
            operation,
            "work on a thread of its own did not end",
        )
        .with_source(error))
    })
}
