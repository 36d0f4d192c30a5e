//! Running a command to its result: the slot, the clock, what each end means.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Operation, Result, SandboxReason};
use crate::provider::Reaper;
use crate::spec::{ExecOptions, ExecPath, ExecResult, ExecTimeout, Stdin};

use super::LocalProvider;
use super::create::Sandbox;
use super::drive::{self, End, Outputs};
use super::kill::{KillReport, Target, kill_tree};
use super::process::{Running, blocking, start};

/// How long a program may be open for writing. A child that another call starts while a file is uploaded has that file, too,
/// until it has become its own program: then it can't be run for a moment.
const BUSY: Duration = Duration::from_secs(5);
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// The limit of commands at once: one for each number, over the whole process (contract O8).
pub(super) fn lane(concurrency: usize) -> Arc<Semaphore> {
    static LANES: Mutex<BTreeMap<usize, Arc<Semaphore>>> = Mutex::new(BTreeMap::new());
    let mut lanes = LANES.lock().unwrap_or_else(PoisonError::into_inner);
    let made = || Arc::new(Semaphore::new(concurrency.min(Semaphore::MAX_PERMITS)));
    Arc::clone(lanes.entry(concurrency).or_insert_with(made))
}

/// Kills what a dropped call leaves running, in the background.
pub(super) struct Guard {
    target: Target,
    reaper: Reaper,
    /// One for all guards of the command.
    armed: Arc<AtomicBool>,
}

impl Guard {
    pub(super) fn new(target: Target, reaper: Reaper) -> Self {
        Self {
            target,
            reaper,
            armed: Arc::new(AtomicBool::new(true)),
        }
    }

    /// Another guard of the same command: the first that is dropped while it runs has it killed.
    pub(super) fn twin(&self) -> Self {
        Self {
            target: self.target.clone(),
            reaper: self.reaper.clone(),
            armed: Arc::clone(&self.armed),
        }
    }

    /// Nothing is left to kill.
    pub(super) fn disarm(&self) {
        self.armed.store(false, Ordering::SeqCst);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.armed.swap(false, Ordering::SeqCst) {
            let target = self.target.clone();
            self.reaper.submit("kill a local command", async move {
                let killed = blocking(Operation::Exec, move || Ok(kill_tree(&target))).await;
                if killed.is_ok_and(|report| report.survivors > 0) {
                    tracing::warn!("processes of a dropped local command live on");
                }
            });
        }
    }
}

/// Kills a command's processes and says what came of it.
pub(super) async fn kill(target: Target) -> KillReport {
    blocking(Operation::Exec, move || Ok(kill_tree(&target)))
        .await
        .unwrap_or_default()
}

pub(super) fn removed() -> ExecResult {
    ExecResult::sandbox_failure(
        SandboxReason::Removed,
        "the sandbox has been removed",
        ExecPath::Host,
    )
}

impl LocalProvider {
    pub(super) fn check(sandbox: &Sandbox, options: &ExecOptions, operation: Operation) -> Result<()> {
        options.check(operation)?;
        if options.user.is_some() {
            return Err(Error::invalid(
                operation,
                "the local provider runs every command as the user of this program",
            )
            .with_hint("leave `user` out, or use a provider that isolates")
            .with_sandbox(&sandbox.id));
        }
        Ok(())
    }

    pub(super) async fn run_command(
        &self,
        sandbox: &Arc<Sandbox>,
        options: ExecOptions,
    ) -> Result<ExecResult> {
        Self::check(sandbox, &options, Operation::Exec)?;
        let outputs = Outputs::new(options.output_cap.bytes());
        match self.begin(sandbox, options, &outputs).await? {
            Begun::Running(command) => command.finish(outputs).await,
            Begun::Ended(result) => Ok(*result),
        }
    }

    /// Waits for a slot and starts the command.
    pub(super) async fn begin(
        &self,
        sandbox: &Arc<Sandbox>,
        options: ExecOptions,
        outputs: &Outputs,
    ) -> Result<Begun> {
        let slot = tokio::select! {
            slot = Arc::clone(&self.shared.lane).acquire_owned() => slot,
            () = sandbox.closed.cancelled() => return Ok(Begun::Ended(Box::new(removed()))),
        };
        let slot = slot.map_err(|error| {
            Error::new(
                ErrorKind::Internal,
                Operation::Exec,
                "the limit of commands is gone",
            )
            .with_source(error)
        })?;
        if sandbox.is_gone() {
            return Ok(Begun::Ended(Box::new(removed())));
        }
        let begun = Instant::now();
        let timeout = match options.timeout {
            ExecTimeout::Default => Some(self.config().default_timeout),
            ExecTimeout::Never => None,
            ExecTimeout::After(timeout) => Some(timeout),
        };
        let running = loop {
            let sinks = (outputs.stdout.clone(), outputs.stderr.clone());
            match start(sandbox, &self.config().shell, &options, sinks) {
                Ok(running) => break running,
                Err(failure) if failure.is_busy && begun.elapsed() < BUSY => {
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
                Err(failure) => return Ok(Begun::Ended(failure.result)),
            }
        };
        let guard = Guard::new(running.target.clone(), self.reaper().clone());
        Ok(Begun::Running(Box::new(Local {
            sandbox: Arc::clone(sandbox),
            running,
            guard,
            stdin: options.stdin,
            begun,
            timeout,
            _slot: slot,
        })))
    }
}

/// A command that was asked for.
pub(super) enum Begun {
    Running(Box<Local>),
    /// It could not be started.
    Ended(Box<ExecResult>),
}

/// A command that runs. Dropping it kills the command in the background.
pub(super) struct Local {
    sandbox: Arc<Sandbox>,
    guard: Guard,
    running: Running,
    stdin: Stdin,
    begun: Instant,
    timeout: Option<Duration>,
    _slot: tokio::sync::OwnedSemaphorePermit,
}

impl Local {
    pub(super) fn target(&self) -> &Target {
        &self.running.target
    }

    /// A guard for whoever else can drop the command.
    pub(super) fn guard(&self) -> Guard {
        self.guard.twin()
    }

    /// Follows the command to its result.
    pub(super) async fn finish(mut self: Box<Self>, outputs: Outputs) -> Result<ExecResult> {
        let running = &mut self.running;
        let deadline = self.timeout.and_then(|timeout| self.begun.checked_add(timeout));
        let end = drive::drive(
            running,
            std::mem::take(&mut self.stdin),
            &outputs.hurry,
            deadline,
            &self.sandbox.closed,
        )
        .await;
        let mut report = None;
        if !matches!(end, End::Exited(..)) {
            let killed = kill(running.target.clone()).await;
            drive::after_kill(running, &outputs.hurry).await;
            report = Some(killed);
        }
        self.guard.disarm();
        let mut result = match end {
            End::Exited(status, open) => {
                let mut result = ExecResult::new(drive::code(status), ExecPath::Host);
                result.background_output_open = open;
                if open {
                    drive::read_on(&self.sandbox, running);
                }
                result
            }
            End::TimedOut => {
                let seconds = self.timeout.unwrap_or_default().as_secs_f64();
                ExecResult::timed_out(
                    format!("local command timed out after {seconds}s"),
                    ExecPath::Host,
                )
            }
            End::Closed => removed(),
            End::InputFailed(error) => {
                return Err(Error::new(
                    ErrorKind::Io,
                    Operation::Exec,
                    "the input of the command could not be read",
                )
                .with_source(error)
                .with_sandbox(&self.sandbox.id));
            }
            End::Failed(error) => {
                return Err(Error::new(
                    ErrorKind::Internal,
                    Operation::Exec,
                    "the process of the command could not be waited for",
                )
                .with_source(error)
                .with_sandbox(&self.sandbox.id));
            }
        };
        if let Some(report) = report {
            result.killed = Some(report.killed);
            result.survivors = Some(report.survivors);
        }
        let (stdout, stderr) = outputs.finish();
        result.duration = self.begun.elapsed();
        Ok(result.with_output(stdout, stderr))
    }
}
