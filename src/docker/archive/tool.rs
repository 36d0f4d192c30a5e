//! Small shell programs that move files inside a container, where the engine's archive calls can't: they run as execs
//! of the engine, with the caller's stream as their input or output. What they print is not believed.

use std::pin::Pin;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::ExecConfig;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result, SandboxReason};

use super::super::failure::{EngineFailure, QUICK, call};
use super::super::starting::starting;
use super::super::status::removed;
use super::super::{DockerProvider, DockerRaw};
use super::facts::ContainerFacts;
use super::path_error;
use super::stat::problem_in;

const COMMON: &str = include_str!("scripts/common.sh");

/// How long a program may take that moves no stream.
const SHORT: Duration = Duration::from_secs(60);

/// How much of an error text is kept.
const ERROR_BYTES: usize = 8 * 1024;

/// How long an ended program may seem to run.
const SETTLE: Duration = Duration::from_secs(10);

/// The same of one whose connection was reset.
const CUT_OFF: Duration = Duration::from_secs(2);

/// The programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Receive,
    Unpack,
    Send,
    Finish,
    Discard,
    Stat,
    List,
    Remove,
    MakeDirectory,
}

impl Script {
    fn text(self) -> &'static str {
        match self {
            Self::Receive => include_str!("scripts/receive.sh"),
            Self::Unpack => include_str!("scripts/unpack.sh"),
            Self::Send => include_str!("scripts/send.sh"),
            Self::Finish => include_str!("scripts/finish.sh"),
            Self::Discard => include_str!("scripts/discard.sh"),
            Self::Stat => include_str!("scripts/stat.sh"),
            Self::List => include_str!("scripts/list.sh"),
            Self::Remove => include_str!("scripts/remove.sh"),
            Self::MakeDirectory => include_str!("scripts/mkdir.sh"),
        }
    }

    fn has_input(self) -> bool {
        matches!(self, Self::Receive | Self::Unpack | Self::Finish)
    }
}

/// A running program.
pub(super) struct Tool {
    client: bollard::Docker,
    exec_id: String,
    pub(super) output: Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>,
    pub(super) input: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    stderr: Vec<u8>,
    /// What ended its output, where that was no end of the output.
    cut_off: Option<EngineFailure>,
    output_ended: bool,
}

/// How a program ended.
#[derive(Debug)]
pub(super) struct Ended {
    code: i64,
    started: bool,
    stderr: Vec<u8>,
}

impl DockerProvider {
    /// Starts a program in a container. Dropping it ends its input and output, which ends it soon after.
    pub(super) async fn tool(
        &self,
        raw: &DockerRaw,
        facts: &ContainerFacts,
        operation: Operation,
        script: Script,
        arguments: &[&str],
    ) -> Result<Tool> {
        let Some(shell) = &raw.shell else {
            return Err(no_tools(operation, "the image has no shell to reach it with"));
        };
        let client = self.engine().await?.client.clone();
        let mut argv = vec![
            shell.clone(),
            "-c".to_owned(),
            format!("{COMMON}{}", script.text()),
        ];
        argv.push("gym-sandbox-files".to_owned());
        argv.extend(arguments.iter().map(|&argument| argument.to_owned()));
        let config = ExecConfig {
            attach_stdin: Some(script.has_input()),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(argv),
            user: facts.mover.map(str::to_owned),
            working_dir: Some("/".to_owned()),
            ..ExecConfig::default()
        };
        let _starting = starting(&raw.container_id).await;
        let created = call(QUICK, client.create_exec(&raw.container_id, config)).await;
        let exec_id = created.map_err(|failure| state_error(operation, failure))?.id;
        let options = StartExecOptions {
            detach: false,
            tty: false,
            output_capacity: Some(64 * 1024),
        };
        let started = call(2 * QUICK, client.start_exec(&exec_id, Some(options))).await;
        match started.map_err(|failure| state_error(operation, failure))? {
            StartExecResults::Attached { output, input } => Ok(Tool {
                client,
                exec_id,
                output,
                input: script.has_input().then_some(input),
                stderr: Vec::new(),
                cut_off: None,
                output_ended: false,
            }),
            StartExecResults::Detached => Err(Error::new(
                ErrorKind::Internal,
                operation,
                "an attached exec was started detached",
            )),
        }
    }

    /// Runs a program without a stream, and gives what it printed up to a limit.
    pub(super) async fn run_tool(
        &self,
        raw: &DockerRaw,
        facts: &ContainerFacts,
        operation: Operation,
        script: Script,
        arguments: &[&str],
        limit: usize,
    ) -> Result<(Ended, Vec<u8>)> {
        let run = async {
            let mut tool = self.tool(raw, facts, operation, script, arguments).await?;
            let mut printed = Vec::new();
            while let Some(bytes) = tool.next(operation).await? {
                if printed.len() + bytes.len() > limit {
                    return Err(path_error(
                        operation,
                        PathProblem::TooLarge,
                        format!("the sandbox printed more than {limit} bytes about it"),
                    ));
                }
                printed.extend_from_slice(&bytes);
            }
            Ok((tool.end(operation).await?, printed))
        };
        tokio::time::timeout(SHORT, run).await.unwrap_or_else(|_| {
            Err(Error::new(
                ErrorKind::Timeout,
                operation,
                format!("the sandbox did not answer in {SHORT:?}"),
            ))
        })
    }
}

impl Tool {
    /// The next piece of its standard output; None at its end.
    pub(super) async fn next(&mut self, operation: Operation) -> Result<Option<Bytes>> {
        loop {
            match self.output.next().await {
                Some(Ok(LogOutput::StdOut { message } | LogOutput::Console { message })) => {
                    return Ok(Some(message));
                }
                Some(Ok(LogOutput::StdErr { message })) => self.keep(&message),
                Some(Ok(LogOutput::StdIn { .. })) => {}
                Some(Err(error)) => return Err(state_error(operation, error.into())),
                None => {
                    self.output_ended = true;
                    return Ok(None);
                }
            }
        }
    }

    /// Writes to its input, and says whether it may want more. One that does not read any more has something to say at its
    /// end: it is listened to meanwhile, as an engine takes input for long after nobody reads it.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> bool {
        let Some(mut input) = self.input.take() else {
            return false;
        };
        let wants_more = {
            let writing = input.write_all(bytes);
            tokio::pin!(writing);
            loop {
                tokio::select! {
                    written = &mut writing => break written.is_ok(),
                    () = self.listen(), if !self.output_ended => if self.output_ended {
                        break false;
                    },
                }
            }
        };
        self.input = Some(input);
        wants_more
    }

    /// Takes a piece of what a program without output says.
    async fn listen(&mut self) {
        match self.output.next().await {
            Some(Ok(LogOutput::StdErr { message })) => self.keep(&message),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                self.output_ended = true;
                self.cut_off = Some(error.into());
            }
            None => self.output_ended = true,
        }
    }

    fn keep(&mut self, stderr: &[u8]) {
        let room = ERROR_BYTES.saturating_sub(self.stderr.len());
        self.stderr.extend_from_slice(&stderr[..stderr.len().min(room)]);
    }

    /// Ends its input.
    pub(super) async fn end_input(&mut self) {
        if let Some(mut input) = self.input.take() {
            // A program that has ended already has no input to end.
            let _ended = input.shutdown().await.is_err();
        }
    }

    /// Waits for its end, when its output has been read.
    pub(super) async fn end(mut self, operation: Operation) -> Result<Ended> {
        self.end_input().await;
        while !self.output_ended {
            self.listen().await;
        }
        let settle = if self.cut_off.is_some() { CUT_OFF } else { SETTLE };
        let deadline = Instant::now() + settle;
        let mut pause = Duration::from_millis(1);
        loop {
            let inspected = call(QUICK, self.client.inspect_exec(&self.exec_id)).await;
            let inspected = inspected.map_err(|failure| state_error(operation, failure))?;
            if let (Some(false), Some(code)) = (inspected.running, inspected.exit_code) {
                // An engine resets the connection of a program that has ended and left input unread. Only one that has failed
                // can have ended so.
                if let (0, Some(failure)) = (code, self.cut_off) {
                    return Err(state_error(operation, failure));
                }
                let started = inspected.pid.unwrap_or_default() != 0;
                return Ok(Ended {
                    code,
                    started,
                    stderr: self.stderr,
                });
            }
            if Instant::now() >= deadline {
                if let Some(failure) = self.cut_off {
                    return Err(state_error(operation, failure));
                }
                return Err(Error::new(
                    ErrorKind::Timeout,
                    operation,
                    "a program in the sandbox did not end",
                ));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }
}

impl Ended {
    /// The programs' own exit codes; everything else is in the text of the tool that failed.
    pub(super) fn check(&self, operation: Operation, path: &str) -> Result<()> {
        let path = path.escape_debug();
        let (problem, message) = match self.code {
            0 => return Ok(()),
            91 => (
                PathProblem::NotFound,
                format!("`{path}` does not exist in the sandbox"),
            ),
            92 => (
                PathProblem::IsADirectory,
                format!("`{path}` is a directory in the sandbox"),
            ),
            93 => (
                PathProblem::NotADirectory,
                format!("`{path}`, or a part of it, is not a directory in the sandbox"),
            ),
            94 => (
                PathProblem::Changed,
                format!("`{path}` did not get all of its content"),
            ),
            96 => (
                PathProblem::NotServable,
                format!("`{path}` is a device, socket or pipe in the sandbox"),
            ),
            126 | 127 if !self.started => {
                return Err(no_tools(operation, "the image has no shell that runs"));
            }
            code => {
                let text = String::from_utf8_lossy(&self.stderr).trim_end().to_owned();
                let kind = problem_in(&text).unwrap_or(ErrorKind::Path(PathProblem::NotServable));
                let error = Error::new(
                    kind,
                    operation,
                    format!("`{path}` can't be served by the sandbox's programs"),
                );
                return Err(error.with_source(std::io::Error::other(format!("exit code {code}: {text}"))));
            }
        };
        Err(path_error(operation, problem, message))
    }
}

/// What is said where only a program inside could serve a path.
pub(super) fn no_tools(operation: Operation, why: &str) -> Error {
    path_error(
        operation,
        PathProblem::NotServable,
        format!("the engine does not see into that path, and {why}"),
    )
    .with_hint("use a path on the root file system or on a volume")
}

/// The error for an exec that could not be made, or was lost.
fn state_error(operation: Operation, failure: EngineFailure) -> Error {
    let text = failure.text().unwrap_or_default().to_lowercase();
    let reason = if text.contains("no such container") || text.contains("no such exec") {
        return removed(operation).with_source(failure);
    } else if text.contains("paused") {
        SandboxReason::Paused
    } else if failure.is_status(409) {
        SandboxReason::NotRunning
    } else {
        return failure.into_error(
            operation,
            "a program could not be run in the sandbox",
            ErrorKind::Internal,
        );
    };
    failure
        .into_error(
            operation,
            "only a program inside the sandbox could do this",
            ErrorKind::Sandbox(reason),
        )
        .with_hint("the sandbox must be running for it")
}
