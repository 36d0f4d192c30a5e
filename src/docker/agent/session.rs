//! A running command of the agent whose streams the caller handles (contract D31).

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use gym_sandbox_agent::protocol::{ClientMessage, SignalTarget};
use tokio::io::AsyncRead;

use crate::error::{Operation, Result};
use crate::provider::{ExecSession, Following, READERS, signal_name};
use crate::spec::{ExecResult, SandboxId};

use super::super::exec::output::Outputs;
use super::drive::KILL_WAIT;
use super::guard::CommandGuard;

/// How long the result of a killed command may take.
const AFTER_KILL: Duration = Duration::from_secs(25);

/// A command that a task of its own reads to its end.
pub(super) struct AgentExec {
    outputs: Outputs,
    following: Following,
    /// That of the task again, which is dropped some time after the session: `aclose` waits for what this one has killed.
    /// None when nothing was sent.
    guard: Option<CommandGuard>,
}

/// The session of a command that was not run.
pub(in crate::docker) fn ended_session(sandbox_id: &SandboxId, result: ExecResult) -> Box<dyn ExecSession> {
    let outputs = Outputs::capturing(0);
    // Its streams are at their end.
    let _nothing = outputs.finish();
    Box::new(AgentExec {
        outputs,
        following: Following::ended(sandbox_id, result),
        guard: None,
    })
}

impl AgentExec {
    pub(super) fn running(outputs: Outputs, following: Following, guard: CommandGuard) -> Self {
        Self {
            outputs,
            following,
            guard: Some(guard),
        }
    }

    fn push(&self, message: &ClientMessage) {
        if let Some(guard) = &self.guard {
            guard.push(message);
        }
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
        let signal = signal_number(name, Operation::Spawn)?;
        if self.following.has_ended() {
            return Err(self.following.nothing_to_signal());
        }
        self.push(&ClientMessage::Signal(signal, SignalTarget::Tree));
        Ok(())
    }

    async fn wait(&mut self) -> Result<ExecResult> {
        self.following.result().await
    }

    async fn kill(&mut self) -> Result<ExecResult> {
        let mut readers = READERS;
        if !self.following.has_ended() {
            let wait_ms = u32::try_from(KILL_WAIT.as_millis()).unwrap_or(u32::MAX);
            self.push(&ClientMessage::Kill(wait_ms));
            // A reader who does not read does not hold up the result of a kill.
            readers = Duration::ZERO;
        }
        let hurry = &self.outputs.hurry;
        self.following.after_kill(readers, hurry, AFTER_KILL).await
    }
}

impl fmt::Debug for AgentExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentExec")
            .field("following", &self.following)
            .finish_non_exhaustive()
    }
}

/// Signals by their number in Linux on x86-64, ARM and RISC-V.
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

/// The number of a signal, by its name with or without `SIG`.
pub(super) fn signal_number(name: &str, operation: Operation) -> Result<u8> {
    let name = signal_name(name, operation)?;
    let number = SIGNALS.iter().find(|(known, _)| *known == name);
    Ok(number
        .map(|(_, number)| *number)
        .expect("every signal that has a name has a number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn every_signal_that_has_a_name_has_a_number() {
        for (name, number) in SIGNALS {
            assert_eq!(signal_number(name, Operation::Spawn).unwrap(), number);
        }
        assert_eq!(signal_number("sigusr1", Operation::Pty).unwrap(), 10);
        let refused = signal_number("15", Operation::Pty).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        // The table of names has no other: see `provider/signal.rs`.
        let hint = refused.hint().unwrap().to_owned();
        assert_eq!(hint.matches(", ").count() + 1, SIGNALS.len(), "{hint}");
    }
}
