//! A running command of the agent whose streams the caller handles (contract D31).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gym_sandbox_agent::protocol::{ClientMessage, SignalTarget};
use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::ExecSession;
use crate::spec::{ExecResult, SandboxId};

use super::super::exec::output::Outputs;
use super::drive::KILL_WAIT;
use super::link::Link;

/// How long the result of a killed command may take.
const AFTER_KILL: Duration = Duration::from_secs(25);

/// A command that a task of its own reads to its end.
pub(super) struct AgentExec {
    sandbox_id: SandboxId,
    /// None when nothing was sent.
    channel: Option<(Arc<Link>, u32)>,
    outputs: Outputs,
    outcome: Outcome,
    /// The task ends with the session; what it then leaves running is killed by its guard.
    task: Option<AbortHandle>,
}

enum Outcome {
    Running(oneshot::Receiver<Result<ExecResult>>),
    Ended(Box<ExecResult>),
    /// The error was handed out already.
    Failed,
}

/// The session of a command that was not run.
pub(in crate::docker) fn ended_session(sandbox_id: &SandboxId, result: ExecResult) -> Box<dyn ExecSession> {
    let outputs = Outputs::capturing(0);
    // Its streams are at their end.
    let _nothing = outputs.finish();
    Box::new(AgentExec {
        sandbox_id: sandbox_id.clone(),
        channel: None,
        outputs,
        outcome: Outcome::Ended(Box::new(result)),
        task: None,
    })
}

impl AgentExec {
    pub(super) fn running(
        sandbox_id: SandboxId,
        link: Arc<Link>,
        channel: u32,
        outputs: Outputs,
        receiver: oneshot::Receiver<Result<ExecResult>>,
        task: AbortHandle,
    ) -> Self {
        Self {
            sandbox_id,
            channel: Some((link, channel)),
            outputs,
            outcome: Outcome::Running(receiver),
            task: Some(task),
        }
    }

    async fn result(&mut self) -> Result<ExecResult> {
        let received = match &mut self.outcome {
            Outcome::Ended(result) => return Ok((**result).clone()),
            Outcome::Failed => return Err(self.lost("the command failed before")),
            Outcome::Running(receiver) => receiver.await,
        };
        match received {
            Ok(Ok(result)) => {
                self.outcome = Outcome::Ended(Box::new(result.clone()));
                Ok(result)
            }
            Ok(Err(error)) => {
                self.outcome = Outcome::Failed;
                Err(error.with_sandbox(&self.sandbox_id))
            }
            Err(_) => {
                self.outcome = Outcome::Failed;
                Err(self.lost("the task that reads the command has ended"))
            }
        }
    }

    fn push(&self, message: &ClientMessage) {
        if let Some((link, channel)) = &self.channel {
            link.push(message, *channel);
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
}

#[async_trait]
impl ExecSession for AgentExec {
    fn take_stdout(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        self.outputs.stdout.take()
    }

    fn take_stderr(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        self.outputs.stderr.take()
    }

    async fn signal(&mut self, name: &str) -> Result<()> {
        let signal = signal_number(name)?;
        if self.has_ended() {
            return Err(Error::new(
                ErrorKind::NotFound,
                Operation::Spawn,
                "the command has ended, there is nothing to signal",
            )
            .with_sandbox(&self.sandbox_id));
        }
        self.push(&ClientMessage::Signal(signal, SignalTarget::Tree));
        Ok(())
    }

    async fn wait(&mut self) -> Result<ExecResult> {
        self.result().await
    }

    async fn kill(&mut self) -> Result<ExecResult> {
        if !self.has_ended() {
            let wait_ms = u32::try_from(KILL_WAIT.as_millis()).unwrap_or(u32::MAX);
            self.push(&ClientMessage::Kill(wait_ms));
            // A reader who does not read does not hold up the result of a kill.
            self.outputs.hurry.cancel();
        }
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

impl Drop for AgentExec {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl fmt::Debug for AgentExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentExec")
            .field("sandbox_id", &self.sandbox_id)
            .finish_non_exhaustive()
    }
}

/// The signals of the engine path, by their number in Linux.
const SIGNALS: [(&str, u8); 19] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("WINCH", 28),
];

fn signal_number(name: &str) -> Result<u8> {
    let upper = name.to_ascii_uppercase();
    let short = upper.strip_prefix("SIG").unwrap_or(&upper);
    SIGNALS
        .iter()
        .find(|(known, _)| *known == short)
        .map(|(_, number)| *number)
        .ok_or_else(|| {
            let names = SIGNALS.map(|(name, _)| name);
            Error::invalid(
                Operation::Spawn,
                format!("`{}` is not a signal", name.escape_debug()),
            )
            .with_hint(format!("signals are {}", names.join(", ")))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_go_by_name_with_or_without_their_prefix() {
        assert_eq!(signal_number("TERM").unwrap(), 15);
        assert_eq!(signal_number("sigusr1").unwrap(), 10);
        assert_eq!(
            signal_number("15").unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
    }
}
