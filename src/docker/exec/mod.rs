//! Commands through the engine's exec: create, start, read to the end, inspect (contract 2.8, D1-D6).

mod classify;
mod drive;
mod guard;
mod kill;
mod kill_batch;
mod kill_script;
pub(super) mod output;
mod session;
mod start;
mod state;

use std::ops::ControlFlow;
use std::time::Duration;

use bollard::models::ExecConfig;
use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Operation, Result, SandboxReason};
use crate::provider::{ExecSession, Following};
use crate::spec::{Command, ExecOptions, ExecPath, ExecResult, ExecTimeout, SandboxId, StartProblem, Stdin};

use super::agent::{self, Started as ByAgent};
use super::config::OnTimeout;
use super::lanes::Lane;
use super::{DockerProvider, DockerRaw};

use drive::End;
use kill::KillReport;
use output::Outputs;
use session::DockerExec;
use start::Running;

pub(super) use crate::provider::signal_name;
pub(super) use classify::start_problem;
pub(super) use drive::{ExitLook, exit_of, look_for_exit, never_ran};
pub(super) use guard::{KillGuard, KillTarget};
pub(super) use kill::signal_group;
pub(super) use kill_batch::Kills;
pub(super) use start::{ExecCall, Input, Output, Refusal, start};
pub(super) use state::{Suspicion, end_before_start, ending, is_paused, not_usable, sandbox_died};

/// The variable that marks the processes of one command; the only difference between the environment of a command and
/// that of the sandbox.
pub(super) const MARKER: &str = "GYM_SANDBOX_EXEC";

/// How long the result of a timeout may wait for the kill; hundreds of processes that fight for two processors take
/// seconds, and a busy engine takes ten for each exec, of which a kill may need two.
const KILL: Duration = Duration::from_secs(30);

impl DockerProvider {
    /// Runs a command to its end.
    pub(super) async fn run_command(
        &self,
        id: &SandboxId,
        raw: &DockerRaw,
        options: ExecOptions,
    ) -> Result<ExecResult> {
        let options = self.with_exec_defaults(options);
        options.check(Operation::Exec)?;
        let options = match self.run_by_agent(id, raw, options).await? {
            ControlFlow::Break(result) => return Ok(result),
            ControlFlow::Continue(options) => options,
        };
        let _slot = self.lanes().slot(Lane::Exec).await?;
        self.run_by_engine(id, raw, options).await
    }

    /// The same without a slot of the exec lane, for the library's own short commands.
    pub(super) async fn run_unslotted(
        &self,
        id: &SandboxId,
        raw: &DockerRaw,
        options: ExecOptions,
    ) -> Result<ExecResult> {
        options.check(Operation::Exec)?;
        match self.run_by_agent(id, raw, options).await? {
            ControlFlow::Break(result) => Ok(result),
            ControlFlow::Continue(options) => self.run_by_engine(id, raw, options).await,
        }
    }

    async fn run_by_engine(
        &self,
        id: &SandboxId,
        raw: &DockerRaw,
        options: ExecOptions,
    ) -> Result<ExecResult> {
        let Some(argv) = argv(&options.command, raw.shell.as_deref()) else {
            return Ok(no_shell());
        };
        let timeout = self.exec_timeout(options.timeout);
        // Contract X11: the clock starts when the slot is there.
        let began = Instant::now();
        let mut guard = KillGuard::new(self, raw, options.user.as_ref());
        let config = start::exec_config(&options, argv, guard.marker());
        let limits = Limits { began, timeout };
        let result = match self.start_bounded(raw, config, &mut guard, &limits).await {
            Started::Running(running) => {
                let outputs = Outputs::capturing(options.output_cap.bytes());
                self.finish_command(guard, running, options.stdin, &outputs, limits)
                    .await
            }
            Started::Ended(result) => Ok(result),
        };
        result.map_err(|error| error.with_sandbox(id))
    }

    /// Starts a command and leaves it to a task of its own.
    async fn spawn_command(
        &self,
        id: &SandboxId,
        raw: &DockerRaw,
        options: ExecOptions,
    ) -> Result<Box<dyn ExecSession>> {
        let options = self.with_exec_defaults(options);
        options.check(Operation::Spawn)?;
        match Box::pin(self.start_by_agent(raw, &options)).await {
            ByAgent::Sent(sent) => return Ok(self.session_by_agent(id, &raw.container_id, *sent, options)),
            ByAgent::Ended(result) => return Ok(agent::ended_session(id, *result)),
            ByAgent::Engine => {}
        }
        let mut guard = KillGuard::new(self, raw, options.user.as_ref());
        let outputs = Outputs::of_session(options.output_cap.bytes());
        let ended = |target: &KillTarget, outputs: Outputs, result: ExecResult| {
            DockerExec::ended(self, id, target, outputs, result)
        };
        let Some(argv) = argv(&options.command, raw.shell.as_deref()) else {
            return Ok(ended(guard.target(), outputs, no_shell()));
        };
        let timeout = self.exec_timeout(options.timeout);
        // A spawned command may live as long as its sandbox: it holds a slot only while it is started (contract X11).
        let slot = self.lanes().slot(Lane::Exec).await?;
        let limits = Limits {
            began: Instant::now(),
            timeout,
        };
        let config = start::exec_config(&options, argv, guard.marker());
        let started = self.start_bounded(raw, config, &mut guard, &limits).await;
        drop(slot);
        let running = match started {
            Started::Ended(result) => return Ok(ended(guard.target(), outputs, result)),
            Started::Running(running) => running,
        };
        let (target, twin) = (guard.target().clone(), guard.twin());
        let (provider, of_task) = (self.clone(), outputs.clone());
        let work = async move {
            let finishing = provider.finish_command(guard, running, options.stdin, &of_task, limits);
            finishing.await
        };
        Ok(Box::new(DockerExec {
            provider: self.clone(),
            sandbox_id: id.clone(),
            target,
            outputs,
            following: Following::start(id, work),
            _guard: Some(twin),
            killed: None,
        }))
    }

    pub(super) fn exec_timeout(&self, timeout: ExecTimeout) -> Option<Duration> {
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
        limits: &Limits,
    ) -> Started {
        let starting = start(self, &raw.container_id, config, guard);
        let started = match limits.deadline() {
            Some(deadline) => match tokio::time::timeout_at(deadline, starting).await {
                Ok(started) => started,
                // The start may still go through in the engine: the guard kills what comes of it.
                Err(_) => return Started::Ended(limits.timed_out()),
            },
            None => starting.await,
        };
        match started {
            Ok(running) => Started::Running(running),
            Err(refusal) => {
                if !refusal.may_have_started() {
                    guard.disarm();
                }
                let mut result = self.refused(&raw.container_id, refusal).await;
                result.duration = limits.began.elapsed();
                Started::Ended(result)
            }
        }
    }

    /// Reads a started command to its end and makes its result.
    async fn finish_command(
        &self,
        mut guard: KillGuard,
        mut running: Running,
        stdin: Stdin,
        outputs: &Outputs,
        limits: Limits,
    ) -> Result<ExecResult> {
        let end = drive::drive(&mut running, stdin, outputs, limits.deadline()).await;
        let mut result = match end {
            End::InputFailed(error) => {
                return Err(Error::new(
                    ErrorKind::Io,
                    Operation::Exec,
                    "the reader of the standard input failed",
                )
                .with_source(error));
            }
            End::Exited {
                code,
                pid,
                background_output_open,
            } => {
                guard.disarm();
                let (stdout, stderr) = outputs.finish();
                if pid == 0 && classify::is_start_failure(code) {
                    // The engine writes why to the standard output of a command that never was (engine-facts S6).
                    let text = outputs.engine_text().unwrap_or_else(|| stdout.text());
                    self.not_started(&running.exec.container_id, &text).await
                } else {
                    let mut result = self.exited(&running.exec, code).await;
                    result.background_output_open = background_output_open;
                    result.with_output(stdout, stderr)
                }
            }
            End::TimedOut => {
                let killing = Box::pin(self.kill_after_timeout(&mut guard));
                let draining = drive::drain_while_killed(&mut running, outputs, killing);
                let mut report = Box::pin(draining).await;
                if let Some(report) = &mut report {
                    // The report comes out of the sandbox; that the command runs is the engine's word.
                    if report.survivors == 0 && kill::still_runs(self, guard.target()).await {
                        report.survivors = 1;
                    }
                    if report.survivors == 0 {
                        guard.disarm();
                    }
                }
                let (stdout, stderr) = outputs.finish();
                let mut result = limits.timed_out().with_output(stdout, stderr);
                result.killed = report.map(|report| report.killed);
                result.survivors = report.map(|report| report.survivors);
                if report.is_none()
                    && let Some(message) = &mut result.message
                {
                    message.push_str(
                        "; what became of its processes is not known: they could not be killed from inside",
                    );
                }
                result
            }
            End::Lost(failure) => {
                let (stdout, stderr) = outputs.finish();
                let result = self
                    .refused(&running.exec.container_id, Refusal::Engine(failure))
                    .await;
                result.with_output(stdout, stderr)
            }
        };
        result.duration = limits.began.elapsed();
        Ok(result)
    }

    async fn kill_after_timeout(&self, guard: &mut KillGuard) -> Option<KillReport> {
        if self.config().exec.on_timeout == OnTimeout::KillSandbox {
            let killed = self.kill_container(&guard.target().container_id).await;
            if killed.is_ok() {
                guard.disarm();
            }
            return None;
        }
        // What takes longer, because the engine hangs, is left to the guard: the caller asked for an answer in time.
        tokio::time::timeout(KILL, kill::kill_tree(self, guard.target()))
            .await
            .ok()
            .flatten()
    }

    /// The result of a command that ended with this code. A code that may mean that the whole sandbox died is looked
    /// into (contract D6).
    async fn exited(&self, exec: &ExecCall, code: i64) -> ExecResult {
        let code = i32::try_from(code).unwrap_or(i32::MAX);
        if code == 137 {
            if let Some((reason, message)) =
                state::sandbox_died(self, &exec.container_id, exec.started_at).await
            {
                return ExecResult::sandbox_failure(reason, message, ExecPath::Engine);
            }
            let mut result = ExecResult::new(code, ExecPath::Engine);
            result.hint = state::oom_hint(self, &exec.container_id, exec.started_at).await;
            return result;
        }
        ExecResult::new(code, ExecPath::Engine)
    }

    /// The result of a command that the engine could not start, with the reason it gives. In a sandbox that dies that is
    /// nothing the command is to blame for.
    async fn not_started(&self, container_id: &str, text: &str) -> ExecResult {
        if let Some(reason) = classify::state_in(text) {
            let (reason, message) = state::at_start(self, container_id, reason, text.trim_end()).await;
            return ExecResult::sandbox_failure(reason, message, ExecPath::Engine);
        }
        let problem = classify::start_problem(text);
        match state::end_before_start(self, container_id, problem).await {
            Some((reason, message)) => ExecResult::sandbox_failure(reason, message, ExecPath::Engine),
            None => ExecResult::start_failure(problem, text.trim_end(), ExecPath::Engine),
        }
    }

    /// The result of a command that could not be started, or whose engine was lost under it.
    async fn refused(&self, container_id: &str, refusal: Refusal) -> ExecResult {
        match refusal {
            Refusal::Start(problem, text) => ExecResult::start_failure(problem, text, ExecPath::Engine),
            Refusal::Engine(failure) => {
                let (reason, message) = state::sandbox_problem(self, container_id, &failure).await;
                ExecResult::sandbox_failure(reason, message, ExecPath::Engine)
            }
        }
    }
}

enum Started {
    Running(Running),
    Ended(ExecResult),
}

/// When a command began and how long it may take.
#[derive(Debug, Clone, Copy)]
struct Limits {
    began: Instant,
    timeout: Option<Duration>,
}

impl Limits {
    fn deadline(&self) -> Option<Instant> {
        // A timeout beyond what a clock can say is none.
        self.timeout.and_then(|timeout| self.began.checked_add(timeout))
    }

    fn timed_out(&self) -> ExecResult {
        let message = format!(
            "the command did not end in {:?}",
            self.timeout.unwrap_or_default()
        );
        let mut result = ExecResult::timed_out(message, ExecPath::Engine);
        result.duration = self.began.elapsed();
        result
    }
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

/// Kills all processes of a command, and says how many live on; None where nothing could be run to kill them.
pub(super) async fn kill_tree(provider: &DockerProvider, target: &KillTarget) -> Option<u32> {
    kill::kill_tree(provider, target)
        .await
        .map(|report| report.survivors)
}

/// What an exec error says when the engine is gone.
const UNREACHABLE: SandboxReason = SandboxReason::DaemonUnreachable;

#[cfg(test)]
mod frames_tests;
