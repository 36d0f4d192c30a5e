//! What came of a command.

use std::time::Duration;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::error::SandboxReason;

use super::CapturedOutput;

/// What came of a command (contract D2).
///
/// A command that fails, times out, cannot be started or loses its sandbox is a result and not an error: look at
/// [`error_type`](Self::error_type) first. In JSON the field names are those of contract D2 (see `cli.md` in the docs of
/// the command); text there is lossy, the bytes are only here.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ExecResult {
    /// The exit code: the command's own, 128+n when signal n killed it, 125 for a timeout or a sandbox problem, 126 or
    /// 127 when it could not be started.
    pub return_code: i32,
    /// None for an ordinary result, whatever the exit code; else what kept the command from one.
    pub error_type: Option<ExecErrorType>,
    /// Why, for a machine. None for an ordinary result and for a timeout.
    pub reason: Option<ExecReason>,
    /// Why, for a person. None for an ordinary result.
    pub message: Option<String>,
    /// What was kept of standard output.
    pub captured_stdout: CapturedOutput,
    /// What was kept of standard error.
    pub captured_stderr: CapturedOutput,
    /// From getting a slot to the result.
    pub duration: Duration,
    /// How many processes were killed after a timeout. None where nothing was killed, or the number is not known.
    pub killed: Option<u32>,
    /// How many processes of a killed command are known to live on. None where nothing was killed, or it is not known.
    pub survivors: Option<u32>,
    /// The command ended while a child of it held its output open (contract D4).
    pub background_output_open: bool,
    /// The command wrote both streams to one terminal: all of it is standard output, and there is no standard error.
    pub merged_output: bool,
    /// How the command was run.
    pub exec_path: ExecPath,
    /// A note that may explain an ordinary result, such as a kill by the OOM killer (contract D6).
    pub hint: Option<String>,
}

impl ExecResult {
    /// An ordinary result with nothing printed.
    pub fn new(return_code: i32, exec_path: ExecPath) -> Self {
        Self {
            return_code,
            error_type: None,
            reason: None,
            message: None,
            captured_stdout: CapturedOutput::default(),
            captured_stderr: CapturedOutput::default(),
            duration: Duration::ZERO,
            killed: None,
            survivors: None,
            background_output_open: false,
            merged_output: false,
            exec_path,
            hint: None,
        }
    }

    /// A command that could not be started: 127 when the program is missing, else 126 (contract D5).
    pub fn start_failure(problem: StartProblem, message: impl Into<String>, exec_path: ExecPath) -> Self {
        Self {
            error_type: Some(ExecErrorType::Start),
            reason: Some(ExecReason::Start(problem)),
            message: Some(message.into()),
            ..Self::new(problem.return_code(), exec_path)
        }
    }

    /// A command whose sandbox was in no state to run it, or was lost under it: 125 (contract D6).
    pub fn sandbox_failure(reason: SandboxReason, message: impl Into<String>, exec_path: ExecPath) -> Self {
        Self {
            error_type: Some(ExecErrorType::Sandbox),
            reason: Some(ExecReason::Sandbox(reason)),
            message: Some(message.into()),
            ..Self::new(125, exec_path)
        }
    }

    /// A command that ran out of time: 125 (contract X3).
    pub fn timed_out(message: impl Into<String>, exec_path: ExecPath) -> Self {
        Self {
            error_type: Some(ExecErrorType::Timeout),
            message: Some(message.into()),
            ..Self::new(125, exec_path)
        }
    }

    /// Adds what was printed.
    pub fn with_output(mut self, stdout: CapturedOutput, stderr: CapturedOutput) -> Self {
        self.captured_stdout = stdout;
        self.captured_stderr = stderr;
        self
    }

    /// Says whether the command ran to its end and exited with 0.
    pub fn is_success(&self) -> bool {
        self.error_type.is_none() && self.return_code == 0
    }

    /// Standard output as text. None on a timeout and when the sandbox was lost: then see
    /// [`partial_stdout`](Self::partial_stdout). Empty when the command could not be started.
    pub fn stdout(&self) -> Option<String> {
        match self.error_type {
            None => Some(self.captured_stdout.text()),
            Some(ExecErrorType::Start) => Some(String::new()),
            Some(_) => None,
        }
    }

    /// Standard error as text; for anything but an ordinary result, why there is none. None for a command in a terminal,
    /// see [`merged_output`](Self::merged_output).
    pub fn stderr(&self) -> Option<String> {
        match self.error_type {
            None if self.merged_output => None,
            None => Some(self.captured_stderr.text()),
            Some(_) => self.message.clone(),
        }
    }

    /// What a command that ran out of time or lost its sandbox had printed until then. None for other results.
    pub fn partial_stdout(&self) -> Option<String> {
        self.is_partial().then(|| self.captured_stdout.text())
    }

    /// The same for standard error.
    pub fn partial_stderr(&self) -> Option<String> {
        self.is_partial().then(|| self.captured_stderr.text())
    }

    /// Which streams have bytes missing because they are over their cap.
    pub fn truncated(&self) -> PerStream<bool> {
        PerStream {
            stdout: self.captured_stdout.is_truncated(),
            stderr: self.captured_stderr.is_truncated(),
        }
    }

    /// How many bytes the command wrote to each stream.
    pub fn bytes(&self) -> PerStream<u64> {
        PerStream {
            stdout: self.captured_stdout.total_bytes(),
            stderr: self.captured_stderr.total_bytes(),
        }
    }

    fn is_partial(&self) -> bool {
        matches!(
            self.error_type,
            Some(ExecErrorType::Timeout | ExecErrorType::Sandbox | ExecErrorType::Pty)
        )
    }
}

impl Serialize for ExecResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("ExecResult", 15)?;
        fields.serialize_field("return_code", &self.return_code)?;
        fields.serialize_field("error_type", &self.error_type)?;
        fields.serialize_field("reason", &self.reason)?;
        fields.serialize_field("stdout", &self.stdout())?;
        fields.serialize_field("stderr", &self.stderr())?;
        fields.serialize_field("partial_stdout", &self.partial_stdout())?;
        fields.serialize_field("partial_stderr", &self.partial_stderr())?;
        fields.serialize_field("truncated", &self.truncated())?;
        fields.serialize_field("bytes", &self.bytes())?;
        fields.serialize_field("duration_s", &self.duration.as_secs_f64())?;
        fields.serialize_field("killed", &self.killed)?;
        fields.serialize_field("survivors", &self.survivors)?;
        fields.serialize_field("background_output_open", &self.background_output_open)?;
        fields.serialize_field("exec_path", &self.exec_path)?;
        fields.serialize_field("hint", &self.hint)?;
        fields.end()
    }
}

/// A value for each of the two output streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerStream<T> {
    /// That of standard output.
    pub stdout: T,
    /// That of standard error.
    pub stderr: T,
}

/// What kept a command from an ordinary result (contract D2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ExecErrorType {
    /// It ran out of time and was killed.
    Timeout,
    /// The sandbox was in no state to run it, or was lost under it.
    Sandbox,
    /// It could not be started.
    Start,
    /// Its terminal session failed.
    Pty,
}

/// Why there is no ordinary result, for a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ExecReason {
    /// The state of the sandbox.
    Sandbox(SandboxReason),
    /// What kept the command from starting.
    Start(StartProblem),
}

/// What kept a command from starting (contract D5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StartProblem {
    /// The program, or the shell for a shell line, is missing.
    NotFound,
    /// The program is a directory or lacks the right to be executed.
    NotExecutable,
    /// The working directory is missing or is none.
    Cwd,
    /// The user or group is unknown.
    User,
    /// Arguments and environment together are too long.
    TooLong,
    /// The program has a format that cannot be executed, or its interpreter is missing.
    BadFormat,
    /// Another cause, in the text.
    Other,
}

impl StartProblem {
    /// The exit code that stands for it: 127 for a missing program, else 126.
    pub fn return_code(self) -> i32 {
        if self == Self::NotFound { 127 } else { 126 }
    }
}

/// How a command was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ExecPath {
    /// By an exec of the engine.
    Engine,
    /// By the resident agent inside the sandbox.
    Agent,
    /// As a process of this machine, not isolated.
    Host,
}
