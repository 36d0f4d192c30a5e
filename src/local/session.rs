//! A running local command whose streams the caller handles (contract D31).

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use rustix::process::Signal;
use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{ExecSession, SandboxHandle, SpawnProvider, signal_name};
use crate::spec::{ExecOptions, ExecResult, SandboxId};

use super::drive::Outputs;
use super::exec::{Begun, kill};
use super::kill::{KillReport, Target, signal_tree};
use super::process::blocking;
use super::{LocalProvider, sandbox_of};

/// How long the readers of a killed command's streams have to take what it printed.
const READERS: Duration = Duration::from_secs(2);

/// How long the result of a killed command may take.
const AFTER_KILL: Duration = Duration::from_secs(15);

#[async_trait]
impl SpawnProvider for LocalProvider {
    async fn spawn(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<Box<dyn ExecSession>> {
        let sandbox = sandbox_of(handle, Operation::Spawn)?;
        Self::check(sandbox, &options, Operation::Spawn)?;
        let outputs = Outputs::new(options.output_cap.bytes());
        let mut session = LocalExec {
            sandbox_id: sandbox.id.clone(),
            outputs: outputs.clone(),
            target: None,
            outcome: Outcome::Failed,
            task: None,
            killed: None,
        };
        match self.begin(sandbox, options, &outputs).await? {
            Begun::Ended(result) => {
                outputs.finish();
                session.outcome = Outcome::Ended(result);
            }
            Begun::Running(command) => {
                let (sender, receiver) = oneshot::channel();
                session.target = Some(command.target().clone());
                session.outcome = Outcome::Running(receiver);
                let task = tokio::spawn(async move {
                    let result = command.finish(outputs.clone()).await;
                    outputs.finish();
                    // Nobody waits where the session is gone.
                    let _unwanted = sender.send(result);
                });
                session.task = Some(task.abort_handle());
            }
        }
        Ok(Box::new(session))
    }
}

/// A command that a task of its own follows to its end.
struct LocalExec {
    sandbox_id: SandboxId,
    outputs: Outputs,
    /// None for a command that never ran.
    target: Option<Target>,
    outcome: Outcome,
    task: Option<AbortHandle>,
    killed: Option<KillReport>,
}

/// What came of the command, as far as it is known.
enum Outcome {
    Running(oneshot::Receiver<Result<ExecResult>>),
    Ended(Box<ExecResult>),
    /// The error was handed out already.
    Failed,
}

impl LocalExec {
    async fn result(&mut self) -> Result<ExecResult> {
        if let Outcome::Running(receiver) = &mut self.outcome {
            match receiver.await {
                Ok(Ok(result)) => self.outcome = Outcome::Ended(Box::new(result)),
                Ok(Err(error)) => {
                    self.outcome = Outcome::Failed;
                    return Err(error);
                }
                Err(_) => self.outcome = Outcome::Failed,
            }
        }
        let Outcome::Ended(result) = &mut self.outcome else {
            return Err(Error::new(
                ErrorKind::Internal,
                Operation::Spawn,
                "the command failed before, or the task that follows it has ended",
            )
            .with_sandbox(&self.sandbox_id));
        };
        if let Some(report) = self.killed {
            result.killed = Some(report.killed);
            result.survivors = Some(report.survivors);
        }
        Ok((**result).clone())
    }

    /// Takes note of a result that is there, without waiting. Gives what runs.
    fn living(&mut self) -> Option<Target> {
        if let Outcome::Running(receiver) = &mut self.outcome {
            match receiver.try_recv() {
                Ok(Ok(result)) => self.outcome = Outcome::Ended(Box::new(result)),
                Ok(Err(_)) | Err(oneshot::error::TryRecvError::Closed) => self.outcome = Outcome::Failed,
                Err(oneshot::error::TryRecvError::Empty) => return self.target.clone(),
            }
        }
        None
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
        Err(Error::new(
            ErrorKind::NotFound,
            Operation::Spawn,
            "the command has ended, there is nothing to signal",
        )
        .with_sandbox(&self.sandbox_id))
    }

    async fn wait(&mut self) -> Result<ExecResult> {
        self.result().await
    }

    async fn kill(&mut self) -> Result<ExecResult> {
        if let Some(target) = self.living() {
            self.killed = Some(kill(target).await);
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

impl Drop for LocalExec {
    fn drop(&mut self) {
        // The task owns the guard that kills what it leaves.
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl fmt::Debug for LocalExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalExec")
            .field("sandbox_id", &self.sandbox_id)
            .finish_non_exhaustive()
    }
}

fn signal_of(name: &str) -> Signal {
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
