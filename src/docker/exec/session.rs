//! A running command whose streams the caller handles (contract D31).

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::AsyncRead;

use crate::error::{Error, Operation, Result};
use crate::provider::{ExecSession, Following, READERS, SandboxHandle, SpawnProvider, signal_name};
use crate::spec::{ExecOptions, ExecPath, ExecReason, ExecResult, SandboxId, StartProblem};

use super::super::{DockerProvider, DockerRaw, PROVIDER};
use super::guard::{KillGuard, KillTarget};
use super::kill::{self, KillReport};
use super::output::Outputs;

/// How long the result of a killed command may take.
const AFTER_KILL: Duration = Duration::from_secs(15);

/// The exit code of a command that was ended by signal 9.
const KILLED: i32 = 137;

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
    pub(super) following: Following,
    /// That of the task again, which is dropped some time after the session: `aclose` waits for what this one has killed.
    pub(super) _guard: Option<KillGuard>,
    pub(super) killed: Option<KillReport>,
}

impl DockerExec {
    /// A command that was not started: its streams are at their end, for readers who take them.
    pub(super) fn ended(
        provider: &DockerProvider,
        sandbox_id: &SandboxId,
        target: &KillTarget,
        outputs: Outputs,
        result: ExecResult,
    ) -> Box<dyn ExecSession> {
        let _nothing = outputs.finish();
        Box::new(Self {
            provider: provider.clone(),
            sandbox_id: sandbox_id.clone(),
            target: target.clone(),
            outputs,
            following: Following::ended(sandbox_id, result),
            _guard: None,
            killed: None,
        })
    }

    /// Adds what a kill has done to the result of the command.
    fn reported(&self, mut result: ExecResult) -> ExecResult {
        if let Some(report) = self.killed {
            if report.killed > 0 && was_hit_while_starting(&result) {
                let duration = result.duration;
                result = ExecResult::new(KILLED, ExecPath::Engine);
                result.duration = duration;
            }
            result.killed = Some(report.killed);
            result.survivors = Some(report.survivors);
        }
        result
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
        if self.following.has_ended() {
            return Err(self.following.nothing_to_signal());
        }
        match kill::signal_tree(&self.provider, &self.target, signal).await {
            Some(report) if report.killed > 0 => Ok(()),
            Some(_) => Err(self.following.nothing_to_signal()),
            None => Err(self.no_shell("signals")),
        }
    }

    async fn wait(&mut self) -> Result<ExecResult> {
        let result = self.following.result().await?;
        Ok(self.reported(result))
    }

    async fn kill(&mut self) -> Result<ExecResult> {
        if !self.following.has_ended() {
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
        let hurry = &self.outputs.hurry;
        let result = self.following.after_kill(READERS, hurry, AFTER_KILL).await?;
        Ok(self.reported(result))
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
