//! A running local command whose streams the caller handles (contract D31).

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use rustix::process::Signal;
use tokio::io::AsyncRead;

use crate::error::{Operation, Result};
use crate::provider::{ExecSession, Following, READERS, SandboxHandle, SpawnProvider, signal_name};
use crate::spec::{ExecOptions, ExecResult};

use super::drive::Outputs;
use super::exec::{Begun, Guard, kill};
use super::kill::{KillReport, Target, signal_tree};
use super::process::blocking;
use super::{LocalProvider, sandbox_of};

/// How long the result of a killed command may take.
const AFTER_KILL: Duration = Duration::from_secs(15);

#[async_trait]
impl SpawnProvider for LocalProvider {
    async fn spawn(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<Box<dyn ExecSession>> {
        let sandbox = sandbox_of(handle, Operation::Spawn)?;
        Self::check(sandbox, &options, Operation::Spawn)?;
        let outputs = Outputs::new(options.output_cap.bytes());
        let begun = self.begin(sandbox, options, &outputs).await?;
        let (following, running) = match begun {
            Begun::Ended(result) => {
                outputs.finish();
                (Following::ended(&sandbox.id, *result), None)
            }
            Begun::Running(command) => {
                let running = (command.target().clone(), command.guard());
                let of_task = outputs.clone();
                let following = Following::start(&sandbox.id, async move {
                    let result = command.finish(of_task.clone()).await;
                    of_task.finish();
                    result
                });
                (following, Some(running))
            }
        };
        let (target, guard) = running.unzip();
        Ok(Box::new(LocalExec {
            outputs,
            following,
            target,
            _guard: guard,
            killed: None,
        }))
    }
}

/// A command that a task of its own follows to its end.
struct LocalExec {
    outputs: Outputs,
    following: Following,
    /// None for a command that never ran.
    target: Option<Target>,
    /// That of the task again, which is dropped some time after the session: `aclose` waits for what this one has killed.
    _guard: Option<Guard>,
    killed: Option<KillReport>,
}

impl LocalExec {
    /// What runs.
    fn living(&mut self) -> Option<Target> {
        self.target.clone().filter(|_| !self.following.has_ended())
    }

    /// Adds what a kill has done to the result of the command.
    fn reported(&self, mut result: ExecResult) -> ExecResult {
        if let Some(report) = self.killed {
            result.killed = Some(report.killed);
            result.survivors = Some(report.survivors);
        }
        result
    }
}

#[async_trait]
impl ExecSession for LocalExec {
    fn take_stdout(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        self.outputs.stdout.take()
    }

    fn take_stderr(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        self.outputs.stderr.take()
    }

    async fn signal(&mut self, name: &str) -> Result<()> {
        let signal = signal_of(signal_name(name, Operation::Spawn)?);
        let sent = match self.living() {
            Some(target) => blocking(Operation::Spawn, move || Ok(signal_tree(&target, signal))).await?,
            None => 0,
        };
        if sent > 0 {
            return Ok(());
        }
        Err(self.following.nothing_to_signal())
    }

    async fn wait(&mut self) -> Result<ExecResult> {
        let result = self.following.result().await?;
        Ok(self.reported(result))
    }

    async fn kill(&mut self) -> Result<ExecResult> {
        if let Some(target) = self.living() {
            self.killed = Some(kill(target).await);
        }
        let hurry = &self.outputs.hurry;
        let result = self.following.after_kill(READERS, hurry, AFTER_KILL).await?;
        Ok(self.reported(result))
    }
}

impl fmt::Debug for LocalExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalExec")
            .field("following", &self.following)
            .finish_non_exhaustive()
    }
}

pub(super) fn signal_of(name: &str) -> Signal {
    match name {
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "QUIT" => Signal::QUIT,
        "ILL" => Signal::ILL,
        "TRAP" => Signal::TRAP,
        "ABRT" => Signal::ABORT,
        "BUS" => Signal::BUS,
        "FPE" => Signal::FPE,
        "USR1" => Signal::USR1,
        "SEGV" => Signal::SEGV,
        "USR2" => Signal::USR2,
        "PIPE" => Signal::PIPE,
        "ALRM" => Signal::ALARM,
        "TERM" => Signal::TERM,
        "CONT" => Signal::CONT,
        "STOP" => Signal::STOP,
        "TSTP" => Signal::TSTP,
        "WINCH" => Signal::WINCH,
        // The table of names has no other.
        _ => Signal::KILL,
    }
}
