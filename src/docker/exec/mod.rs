//! Commands through the engine's exec: create, start, read to the end, inspect (contract 2.8, D1-D6).

mod classify;
mod drive;
mod guard;
mod kill;
mod start;

use std::time::Duration;

use bollard::models::ExecConfig;
use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Operation, Result, SandboxReason};
use crate::spec::{Capture, Command, ExecOptions, ExecPath, ExecResult, ExecTimeout, SandboxId, StartProblem};

use super::lanes::Lane;
use super::{DockerProvider, DockerRaw};

use drive::{End, Outputs};
use guard::KillGuard;
use start::{Refusal, Running};

/// The variable that marks the processes of one command; the only difference between the environment of a command and
/// that of the sandbox.
pub(super) const MARKER: &str = "GYM_SANDBOX_EXEC";

impl DockerProvider {
    pub(super) async fn run_command(
        &self,
        id: &SandboxId,
        raw: &DockerRaw,
        options: ExecOptions,
    ) -> Result<ExecResult> {
        options.check(Operation::Exec)?;
        let Some(argv) = argv(&options.command, raw.shell.as_deref()) else {
            return Ok(no_shell());
        };
        let timeout = self.exec_timeout(options.timeout);
        let _slot = self.lanes().slot(Lane::Exec).await?;
        // Contract X11: the clock starts when the slot is there.
        let began = Instant::now();
        let deadline = timeout.map(|timeout| began + timeout);
        let mut guard = KillGuard::new(self, raw, options.user.as_ref());
        let config = start::exec_config(&options, argv, guard.marker());
        let mut result = match self.start_bounded(raw, config, &mut guard, deadline).await {
            Started::Running(mut running) => {
                let mut outputs = Outputs::capturing(options.output_cap.bytes());
                let end = drive::drive(&mut running, options.stdin, &mut outputs, deadline).await;
                self.conclude(id, &mut guard, running, outputs, end, timeout).await?
            }
            Started::Refused(refusal) => {
                guard.disarm();
                self.refused(&raw.container_id, refusal).await
            }
            Started::TimedOut => {
                // The start may still go through in the engine: the guard kills what comes of it.
                timed_out(timeout)
            }
        };
        result.duration = began.elapsed();
        Ok(result)
    }

    fn exec_timeout(&self, timeout: ExecTimeout) -> Option<Duration> {
        match timeout {
            ExecTimeout::Default => self.config().exec.default_timeout,
            ExecTimeout::Never => None,
            ExecTimeout::After(timeout) => Some(timeout),
        }
    }

    async fn start_bounded(
        &self,
        raw: &DockerRaw,
        config: ExecConfig,
        guard: &mut KillGuard,
        deadline: Option<Instant>,
    ) -> Started {
        let starting = start::start(self, &raw.container_id, config, guard);
        let started = match deadline {
            Some(deadline) => match tokio::time::timeout_at(deadline, starting).await {
                Ok(started) => started,
                Err(_) => return Started::TimedOut,
            },
            None => starting.await,
        };
        match started {
            Ok(running) => Started::Running(running),
            Err(refusal) => Started::Refused(refusal),
        }
    }

    /// Turns the end of a command into its result.
    async fn conclude(
        &self,
        id: &SandboxId,
        guard: &mut KillGuard,
        mut running: Running,
        mut outputs: Outputs,
        end: End,
        timeout: Option<Duration>,
    ) -> Result<ExecResult> {
        let exec = running.exec.clone();
        let result = match end {
            End::InputFailed(error) => {
                return Err(Error::new(ErrorKind::Io, Operation::Exec, "the reader of the standard input failed")
                    .with_sandbox(id)
                    .with_source(error));
            }
            End::Exited { code, pid, background_output_open } => {
                guard.disarm();
                let (stdout, stderr) = outputs.finish();
                if pid == 0 && classify::is_start_failure(code) {
                    // The engine writes why to the standard output of a command that never was (engine-facts S6).
                    let text = stdout.text();
                    let problem = classify::start_problem(&text);
                    return Ok(ExecResult::start_failure(problem, text.trim_end(), ExecPath::Engine));
                }
                let mut result = self.exited(&exec.container_id, code, exec.started_at).await;
                result.background_output_open = background_output_open;
                result.with_output(stdout, stderr)
            }
            End::TimedOut => {
                let report = kill::kill_tree(self, guard.target()).await;
                drive::drain_after_kill(&mut running, &mut outputs).await;
                if report.is_some_and(|report| report.survivors == 0) {
                    guard.disarm();
                }
                let (stdout, stderr) = outputs.finish();
                let mut result = timed_out(timeout).with_output(stdout, stderr);
                result.killed = report.map(|report| report.killed);
                result.survivors = report.map(|report| report.survivors);
                result
            }
            End::Lost(failure) => {
                let (stdout, stderr) = outputs.finish();
                let result = self.refused(&exec.container_id, Refusal::Engine(failure)).await;
                result.with_output(stdout, stderr)
            }
        };
        Ok(result)
    }

    /// The result of a command that ended with this code. A code that may mean that the whole sandbox died is looked
    /// into (contract D6).
    async fn exited(&self, container_id: &str, code: i64, started_at: i64) -> ExecResult {
        let code = i32::try_from(code).unwrap_or(i32::MAX);
        if code == 137 {
            if let Some((reason, message)) = classify::sandbox_died(self, container_id, started_at).await {
                return ExecResult::sandbox_failure(reason, message, ExecPath::Engine);
            }
            let mut result = ExecResult::new(code, ExecPath::Engine);
            result.hint = classify::oom_hint(self, container_id, started_at).await;
            return result;
        }
        ExecResult::new(code, ExecPath::Engine)
    }

    /// The result of a command that could not be started, or whose engine was lost under it.
    async fn refused(&self, container_id: &str, refusal: Refusal) -> ExecResult {
        match refusal {
            Refusal::Start(problem, text) => ExecResult::start_failure(problem, text, ExecPath::Engine),
            Refusal::Engine(failure) => {
                let (reason, message) = classify::sandbox_problem(self, container_id, &failure).await;
                ExecResult::sandbox_failure(reason, message, ExecPath::Engine)
            }
        }
    }
}

enum Started {
    Running(Running),
    Refused(Refusal),
    TimedOut,
}

/// The argument list of a command; None for a shell line in a sandbox without a shell.
fn argv(command: &Command, shell: Option<&str>) -> Option<Vec<String>> {
    match command {
        Command::Argv(argv) => Some(argv.clone()),
        Command::Shell(line) => shell.map(|shell| vec![shell.to_owned(), "-c".to_owned(), line.clone()]),
    }
}

fn no_shell() -> ExecResult {
    ExecResult::start_failure(
        StartProblem::NotFound,
        "the image has no shell to run a shell line with; give the command as a list",
        ExecPath::Engine,
    )
}

fn timed_out(timeout: Option<Duration>) -> ExecResult {
    let message = format!("the command did not end in {:?}", timeout.unwrap_or_default());
    ExecResult::timed_out(message, ExecPath::Engine)
}

impl Outputs {
    fn capturing(cap_bytes: usize) -> Self {
        Self::new(Capture::new(cap_bytes), Capture::new(cap_bytes))
    }
}

/// What an exec error says when the engine is gone.
const UNREACHABLE: SandboxReason = SandboxReason::DaemonUnreachable;
