//! A running command whose streams the caller handles (contract D31).

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{ExecSession, SandboxHandle, SpawnProvider, signal_name};
use crate::spec::{ExecOptions, ExecPath, ExecReason, ExecResult, SandboxId, StartProblem};

use super::super::{DockerProvider, DockerRaw, PROVIDER};
use super::guard::KillTarget;
use super::kill::{self, KillReport};
use super::output::Outputs;

/// How long the result of a killed command may take.
const AFTER_KILL: Duration = Duration::from_secs(15);

/// The exit code of a command that was ended by signal 9.
const KILLED: i32 = 137;

/// How long the readers of a killed command's streams have to take what it printed.
const READERS: Duration = Duration::from_secs(2);

#[async_trait]
impl SpawnProvider for DockerProvider {
    async fn spawn(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<Box<dyn ExecSession>> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Spawn)?;
        self.spawn_command(handle.sandbox_id(), raw, options).await
    }
}

/// A command that a task of its own reads to its end.
pub(super) struct DockerExec {
    pub(super) provider: DockerProvider,
    pub(super) sandbox_id: SandboxId,
    pub(super) target: KillTarget,
    pub(super) outputs: Outputs,
    pub(super) outcome: Outcome,
    /// The task ends with the session; what it then leaves running is killed by its guard.
    pub(super) task: Option<AbortHandle>,
    pub(super) killed: Option<KillReport>,
}

/// What came of the command, as far as it is known.
pub(super) enum Outcome {
    Running(oneshot::Receiver<Result<ExecResult>>),
    Ended(Box<ExecResult>),
    /// The error was handed out already.
    Failed,
}

impl DockerExec {
    /// The command was not started: its streams are at their end, for readers who take them.
    pub(super) fn end(&mut self, result: ExecResult) {
        let _nothing = self.outputs.finish();
        self.outcome = Outcome::Ended(Box::new(result));
    }

    async fn result(&mut self) -> Result<ExecResult> {
        let result = match &mut self.outcome {
            Outcome::Ended(result) => return Ok((**result).clone()),
            Outcome::Failed => Err(self.lost("the command failed before")),
            Outcome::Running(receiver) => match receiver.await {
                Ok(result) => result,
                Err(_) => Err(self.lost("the task that reads the command has ended")),
            },
        };
        match result {
            Ok(mut result) => {
                if let Some(report) = self.killed {
                    if report.killed > 0 && was_hit_while_starting(&result) {
                        let duration = result.duration;
                        result = ExecResult::new(KILLED, ExecPath::Engine);
                        result.duration = duration;
                    }
                    result.killed = Some(report.killed);
                    result.survivors = Some(report.survivors);
                }
                self.outcome = Outcome::Ended(Box::new(result.clone()));
                Ok(result)
            }
            Err(error) => {
                self.outcome = Outcome::Failed;
                Err(error.with_sandbox(&self.sandbox_id))
            }
        }
    }

    fn lost(&self, why: &'static str) -> Error {
        Error::new(ErrorKind::Internal, Operation::Spawn, why).with_sandbox(&self.sandbox_id)
    }

    /// Takes note of a result that is there, without waiting.
    fn has_ended(&mut self) -> bool {
        if let Outcome::Running(receiver) = &mut self.outcome {
            match receiver.try_recv() {
                Ok(Ok(result)) => self.outcome = Outcome::Ended(Box::new(result)),
                Ok(Err(_)) | Err(oneshot::error::TryRecvError::Closed) => self.outcome = Outcome::Failed,
                Err(oneshot::error::TryRecvError::Empty) => return false,
            }
        }
        true
    }

    fn no_shell(&self, what: &str) -> Error {
        Error::unsupported(
            Operation::Spawn,
            PROVIDER,
            &format!("{what} in a sandbox that has no shell or does not run"),
        )
        .with_sandbox(&self.sandbox_id)
        .with_hint("the engine has no call for it, and it is done by a shell inside the sandbox; remove the sandbox instead")
    }
}

#[async_trait]
impl ExecSession for DockerExec {
    fn take_stdout(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        self.outputs.stdout.take()
    }

    fn take_stderr(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        self.outputs.stderr.take()
    }

    async fn signal(&mut self, name: &str) -> Result<()> {
        let signal = signal_name(name, Operation::Spawn)?;
        let ended = || {
            Error::new(
                ErrorKind::NotFound,
                Operation::Spawn,
                "the command has ended, there is nothing to signal",
            )
        };
        if self.has_ended() {
            return Err(ended().with_sandbox(&self.sandbox_id));
        }
        match kill::signal_tree(&self.provider, &self.target, signal).await {
            Some(report) if report.killed > 0 => Ok(()),
            Some(_) => Err(ended().with_sandbox(&self.sandbox_id)),
            None => Err(self.no_shell("signals")),
        }
    }

    async fn wait(&mut self) -> Result<ExecResult> {
        self.result().await
    }

    async fn kill(&mut self) -> Result<ExecResult> {
        if !self.has_ended() {
            let killing = kill::kill_tree(&self.provider, &self.target);
            tokio::pin!(killing);
            let report = if let Ok(report) = tokio::time::timeout(READERS, &mut killing).await {
                report
            } else {
                // An output that nobody reads holds up the engine, and with it the kill: the rest of it is dropped.
                self.outputs.hurry.cancel();
                killing.await
            };
            match report {
                Some(report) => self.killed = Some(report),
                None => return Err(self.no_shell("killing a command")),
            }
        }
        if let Ok(result) = tokio::time::timeout(READERS, self.result()).await {
            return result;
        }
        // The caller may hold the reader of a stream and wait for the end here: the rest of the output is dropped.
        self.outputs.hurry.cancel();
        match tokio::time::timeout(AFTER_KILL, self.result()).await {
            Ok(result) => result,
            Err(_) => Err(Error::new(
                ErrorKind::Timeout,
                Operation::Spawn,
                format!("a killed command did not end in {AFTER_KILL:?}"),
            )
            .with_sandbox(&self.sandbox_id)),
        }
    }
}

impl Drop for DockerExec {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl fmt::Debug for DockerExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DockerExec")
            .field("sandbox_id", &self.sandbox_id)
            .finish_non_exhaustive()
    }
}

/// Says whether a kill can have hit the runtime's own process while it was becoming the command: the engine then tells
/// of a failed start, with a text that names no cause of its own.
fn was_hit_while_starting(result: &ExecResult) -> bool {
    result.reason == Some(ExecReason::Start(StartProblem::Other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d31_only_a_start_that_failed_for_no_cause_of_its_own_was_hit_by_the_kill() {
        for (problem, expected) in [
            (StartProblem::Other, true),
            (StartProblem::NotFound, false),
            (StartProblem::User, false),
        ] {
            let failed =
                ExecResult::start_failure(problem, "read init-p: connection reset by peer", ExecPath::Engine);
            assert_eq!(was_hit_while_starting(&failed), expected, "{problem:?}");
        }
        assert!(!was_hit_while_starting(&ExecResult::new(126, ExecPath::Engine)));
    }
}
