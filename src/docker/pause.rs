//! Freezing a container and letting it run again (contract D8, L18, L19). What has to be done is decided by inspect: the
//! statuses of the calls lie (engine-facts S15).

use std::time::Duration;

use async_trait::async_trait;

use crate::error::{Error, ErrorKind, Operation, Result, SandboxReason};
use crate::provider::{PauseProvider, SandboxHandle};
use crate::spec::SandboxStatus;

use super::failure::{EngineFailure, QUICK, call};
use super::status::status_of;
use super::{DockerProvider, DockerRaw, PROVIDER};

/// How long a resumed sandbox may take to run commands where nobody says how long.
const READY: Duration = Duration::from_secs(60);

/// How often what was decided by one inspect is decided again, when the state changed in between.
const LOOKS: usize = 3;

/// One of the two changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Pause,
    Unpause,
}

/// What there is to do for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Todo {
    Nothing,
    Call,
    /// Neither running nor paused.
    Refuse,
}

fn todo(change: Change, status: SandboxStatus) -> Todo {
    match (change, status) {
        (Change::Pause, SandboxStatus::Paused) | (Change::Unpause, SandboxStatus::Running) => Todo::Nothing,
        (Change::Pause, SandboxStatus::Running) | (Change::Unpause, SandboxStatus::Paused) => Todo::Call,
        _ => Todo::Refuse,
    }
}

impl Change {
    fn operation(self) -> Operation {
        match self {
            Self::Pause => Operation::Pause,
            Self::Unpause => Operation::Resume,
        }
    }
}

#[async_trait]
impl PauseProvider for DockerProvider {
    async fn pause(&self, handle: &SandboxHandle) -> Result<()> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Pause)?;
        self.change(handle, raw, Change::Pause).await
    }

    async fn resume(&self, handle: &SandboxHandle, ready_timeout: Option<Duration>) -> Result<SandboxHandle> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Resume)?;
        self.change(handle, raw, Change::Unpause).await?;
        let timeout = ready_timeout
            .into_iter()
            .chain(self.config().probe.deadline)
            .min()
            .unwrap_or(READY);
        let ready = self.wait_usable(&raw.container_id, &raw.agent);
        let shell = match tokio::time::timeout(timeout, ready).await {
            Ok(Ok(shell)) => shell,
            Ok(Err(error)) => return Err(self.why_not_usable(handle, raw, error).await),
            Err(_) => {
                return Err(Error::new(
                    ErrorKind::Timeout,
                    Operation::Resume,
                    format!("the resumed sandbox was not ready in {timeout:?}"),
                )
                .with_sandbox(handle.sandbox_id())
                .with_hint("its state is not known: ask for its status before using it"));
            }
        };
        // A lost sandbox also looks like one whose shell can't be found out.
        match self.changeable_status(&raw.container_id, Operation::Resume).await {
            Ok(SandboxStatus::Running) => {}
            Ok(SandboxStatus::Paused) => return Err(paused_again().with_sandbox(handle.sandbox_id())),
            Ok(status) => {
                return Err(not_running(Operation::Resume, status).with_sandbox(handle.sandbox_id()));
            }
            Err(error) => return Err(error.with_sandbox(handle.sandbox_id())),
        }
        Ok(handle.clone().with_raw(DockerRaw { shell, ..raw.clone() }))
    }
}

impl DockerProvider {
    /// Brings a container into the state asked for, whatever others do to it meanwhile.
    async fn change(&self, handle: &SandboxHandle, raw: &DockerRaw, change: Change) -> Result<()> {
        let named = |error: Error| error.with_sandbox(handle.sandbox_id());
        let operation = change.operation();
        let mut last = None;
        for _ in 0..LOOKS {
            let status = self
                .changeable_status(&raw.container_id, operation)
                .await
                .map_err(named)?;
            match todo(change, status) {
                Todo::Nothing => return Ok(()),
                Todo::Refuse => return Err(named(not_running(operation, status))),
                Todo::Call => {}
            }
            let begun = match change {
                Change::Pause => Some(self.all_begun(&raw.container_id).await.map_err(named)?),
                Change::Unpause => None,
            };
            let changed = self.call_change(&raw.container_id, change).await;
            drop(begun);
            match changed {
                Ok(()) => return Ok(()),
                // Somebody else may have been quicker: the next look says.
                Err(failure @ EngineFailure::Refused { .. }) => last = Some(failure),
                Err(failure) => return Err(named(change_failed(operation, failure))),
            }
        }
        let failure = last.unwrap_or(EngineFailure::Unreadable {
            text: "the state changes all the time".to_owned(),
        });
        Err(named(change_failed(operation, failure)))
    }

    async fn call_change(&self, container_id: &str, change: Change) -> Result<(), EngineFailure> {
        let engine = self.engine().await.map_err(|error| EngineFailure::Transport {
            text: error.to_string(),
        })?;
        match change {
            Change::Pause => call(QUICK, engine.client.pause_container(container_id)).await,
            Change::Unpause => call(QUICK, engine.client.unpause_container(container_id)).await,
        }
    }

    async fn changeable_status(&self, container_id: &str, operation: Operation) -> Result<SandboxStatus> {
        let inspected = self.look_at(container_id, operation).await?;
        Ok(status_of(inspected.state.as_ref()))
    }

    /// A sandbox that ended while it was waited for says more by its state than by the command that failed in it.
    async fn why_not_usable(&self, handle: &SandboxHandle, raw: &DockerRaw, error: Error) -> Error {
        let error = match self.changeable_status(&raw.container_id, Operation::Resume).await {
            // What a probe says of a new sandbox is said of one that stays here.
            Ok(SandboxStatus::Running | SandboxStatus::Unknown) if error.kind() == ErrorKind::NotReady => {
                Error::new(
                    ErrorKind::Timeout,
                    Operation::Resume,
                    "the resumed sandbox did not become ready",
                )
                .with_source(error)
            }
            Ok(SandboxStatus::Running | SandboxStatus::Unknown) => error,
            Ok(SandboxStatus::Paused) => paused_again(),
            Ok(status) => not_running(Operation::Resume, status),
            Err(gone) => gone,
        };
        error.with_sandbox(handle.sandbox_id())
    }
}

fn paused_again() -> Error {
    Error::new(
        ErrorKind::Sandbox(SandboxReason::Paused),
        Operation::Resume,
        "the sandbox was paused again before it was ready",
    )
}

fn not_running(operation: Operation, status: SandboxStatus) -> Error {
    Error::new(
        ErrorKind::Sandbox(SandboxReason::NotRunning),
        operation,
        format!("the sandbox is {status}"),
    )
    .with_hint("only a running sandbox can be paused, and only a paused one resumed")
}

fn change_failed(operation: Operation, failure: EngineFailure) -> Error {
    failure.into_error(
        operation,
        "the engine did not change the sandbox's state",
        ErrorKind::Conflict,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d08_what_is_done_depends_on_the_state_alone() {
        for (status, pause, unpause) in [
            (SandboxStatus::Running, Todo::Call, Todo::Nothing),
            (SandboxStatus::Paused, Todo::Nothing, Todo::Call),
            (SandboxStatus::Stopped, Todo::Refuse, Todo::Refuse),
            (SandboxStatus::Starting, Todo::Refuse, Todo::Refuse),
            (SandboxStatus::Error, Todo::Refuse, Todo::Refuse),
            (SandboxStatus::Unknown, Todo::Refuse, Todo::Refuse),
        ] {
            assert_eq!(todo(Change::Pause, status), pause, "{status}");
            assert_eq!(todo(Change::Unpause, status), unpause, "{status}");
        }
    }
}
