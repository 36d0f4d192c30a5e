//! A command that a task of its own follows to its end, as its session sees it: one result, however often it is asked
//! for. Knows no way of running commands.

use std::fmt;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::{ExecResult, SandboxId};

/// How long the readers of a killed command's streams have to take what it printed.
pub(crate) const READERS: Duration = Duration::from_secs(2);

/// The result of a command, now or later.
pub(crate) struct Following {
    sandbox_id: SandboxId,
    outcome: Outcome,
    /// The task ends with the session; what it then leaves running is for a guard to kill.
    task: Option<AbortHandle>,
}

/// What came of the command, as far as it is known.
enum Outcome {
    Running(oneshot::Receiver<Result<ExecResult>>),
    Ended(Box<ExecResult>),
    /// The error was handed out already.
    Failed,
}

impl Following {
    /// A command that was not run.
    pub(crate) fn ended(sandbox_id: &SandboxId, result: ExecResult) -> Self {
        Self {
            sandbox_id: sandbox_id.clone(),
            outcome: Outcome::Ended(Box::new(result)),
            task: None,
        }
    }

    /// Leaves a command that runs to a task of its own.
    pub(crate) fn start(
        sandbox_id: &SandboxId,
        work: impl Future<Output = Result<ExecResult>> + Send + 'static,
    ) -> Self {
        let (sender, receiver) = oneshot::channel();
        let task = tokio::spawn(async move {
            let result = work.await;
            // A session that is gone wants no result.
            let _gone = sender.send(result).is_err();
        });
        Self {
            sandbox_id: sandbox_id.clone(),
            outcome: Outcome::Running(receiver),
            task: Some(task.abort_handle()),
        }
    }

    /// Waits for the result. Dropping the future loses nothing.
    pub(crate) async fn result(&mut self) -> Result<ExecResult> {
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
                Err(self.lost("the task that follows the command has ended"))
            }
        }
    }

    /// Takes note of a result that is there, without waiting.
    pub(crate) fn has_ended(&mut self) -> bool {
        if let Outcome::Running(receiver) = &mut self.outcome {
            match receiver.try_recv() {
                Ok(Ok(result)) => self.outcome = Outcome::Ended(Box::new(result)),
                Ok(Err(_)) | Err(oneshot::error::TryRecvError::Closed) => self.outcome = Outcome::Failed,
                Err(oneshot::error::TryRecvError::Empty) => return false,
            }
        }
        true
    }

    /// Waits for the result of a command that was killed. Its readers have some time; then the caller may hold the reader
    /// of a stream and wait for the end here, and the rest of the output is dropped.
    pub(crate) async fn after_kill(
        &mut self,
        readers: Duration,
        hurry: &CancellationToken,
        patience: Duration,
    ) -> Result<ExecResult> {
        if let Ok(result) = tokio::time::timeout(readers, self.result()).await {
            return result;
        }
        hurry.cancel();
        match tokio::time::timeout(patience, self.result()).await {
            Ok(result) => result,
            Err(_) => Err(Error::new(
                ErrorKind::Timeout,
                Operation::Spawn,
                format!("a killed command did not end in {patience:?}"),
            )
            .with_sandbox(&self.sandbox_id)),
        }
    }

    /// The error for a signal to a command that has ended.
    pub(crate) fn nothing_to_signal(&self) -> Error {
        Error::new(
            ErrorKind::NotFound,
            Operation::Spawn,
            "the command has ended, there is nothing to signal",
        )
        .with_sandbox(&self.sandbox_id)
    }

    fn lost(&self, why: &'static str) -> Error {
        Error::new(ErrorKind::Internal, Operation::Spawn, why).with_sandbox(&self.sandbox_id)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl fmt::Debug for Following {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Following")
            .field("sandbox_id", &self.sandbox_id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::ExecPath;

    fn id() -> SandboxId {
        SandboxId::new("gym-sandbox-x").unwrap()
    }

    #[tokio::test]
    async fn a_result_is_given_as_often_as_it_is_asked_for_and_an_error_once() {
        let mut following = Following::start(&id(), async { Ok(ExecResult::new(3, ExecPath::Host)) });
        assert_eq!(following.result().await.unwrap().return_code, 3);
        assert!(following.has_ended());
        assert_eq!(following.result().await.unwrap().return_code, 3);
        let failing = async { Err(Error::new(ErrorKind::Io, Operation::Exec, "no input")) };
        let mut following = Following::start(&id(), failing);
        assert_eq!(following.result().await.unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(following.result().await.unwrap_err().kind(), ErrorKind::Internal);
    }

    #[tokio::test]
    async fn a_killed_command_that_does_not_end_is_an_error_in_time_and_readers_are_hurried_before() {
        let hurry = CancellationToken::new();
        let mut following = Following::start(&id(), std::future::pending());
        assert!(!following.has_ended());
        let error = following
            .after_kill(Duration::ZERO, &hurry, Duration::from_millis(20))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        let hurry = CancellationToken::new();
        let until_hurried = hurry.clone();
        let mut following = Following::start(&id(), async move {
            until_hurried.cancelled().await;
            Ok(ExecResult::new(137, ExecPath::Host))
        });
        let result = following
            .after_kill(Duration::ZERO, &hurry, Duration::from_secs(60))
            .await;
        assert_eq!(result.unwrap().return_code, 137);
    }
}
