//! What a container is doing (contract T1, T2, D7), and what that means for a command.

use bollard::models::{ContainerInspectResponse, ContainerState, ContainerStateStatusEnum};
use bollard::query_parameters::InspectContainerOptions;

use crate::error::{Error, ErrorKind, Operation, Result, SandboxReason};
use crate::spec::SandboxStatus;

use super::DockerProvider;
use super::failure::{EngineFailure, QUICK, call};

/// What an inspect says, with its two outcomes that are no failure told apart.
#[derive(Debug)]
pub(super) enum Looked {
    /// It is there.
    There(Box<ContainerInspectResponse>),
    /// The engine does not know it.
    Gone,
}

impl DockerProvider {
    pub(super) async fn look(&self, container: &str) -> Result<Looked, EngineFailure> {
        let engine = self.engine().await.map_err(|error| EngineFailure::Transport {
            text: error.to_string(),
        })?;
        let inspected = call(
            QUICK,
            engine
                .client
                .inspect_container(container, None::<InspectContainerOptions>),
        )
        .await;
        match inspected {
            Ok(inspected) => Ok(Looked::There(Box::new(inspected))),
            Err(failure) if failure.is_status(404) => Ok(Looked::Gone),
            Err(failure) => Err(failure),
        }
    }

    /// Looks at the container of a sandbox that must be there.
    pub(super) async fn look_at(
        &self,
        container: &str,
        operation: Operation,
    ) -> Result<Box<ContainerInspectResponse>> {
        match self.look(container).await {
            Ok(Looked::There(inspected)) => Ok(inspected),
            Ok(Looked::Gone) => Err(removed(operation)),
            Err(failure) => Err(failure.into_error(
                operation,
                "the engine did not describe the sandbox",
                ErrorKind::Internal,
            )),
        }
    }

    /// Never fails for trouble with the engine (contract T2).
    pub(super) async fn container_status(&self, container: &str) -> SandboxStatus {
        match self.look(container).await {
            Ok(Looked::There(inspected)) => status_of(inspected.state.as_ref()),
            Ok(Looked::Gone) => SandboxStatus::Stopped,
            Err(failure) => {
                tracing::debug!(container, %failure, "the status is not known");
                SandboxStatus::Unknown
            }
        }
    }
}

pub(super) fn status_of(state: Option<&ContainerState>) -> SandboxStatus {
    use ContainerStateStatusEnum as Engine;
    match state.and_then(|state| state.status) {
        Some(Engine::RUNNING) => SandboxStatus::Running,
        Some(Engine::CREATED | Engine::RESTARTING) => SandboxStatus::Starting,
        Some(Engine::PAUSED) => SandboxStatus::Paused,
        Some(Engine::EXITED | Engine::REMOVING) => SandboxStatus::Stopped,
        Some(Engine::DEAD) => SandboxStatus::Error,
        _ => SandboxStatus::Unknown,
    }
}

/// The error for a sandbox that is gone.
pub(super) fn removed(operation: Operation) -> Error {
    Error::new(
        ErrorKind::Sandbox(SandboxReason::Removed),
        operation,
        "the sandbox does not exist any more",
    )
    .with_hint(hint_for(SandboxReason::Removed))
}

/// What to do about a sandbox that is in no state to be used.
pub(super) fn hint_for(reason: SandboxReason) -> &'static str {
    match reason {
        SandboxReason::Paused => "resume it, then try again",
        SandboxReason::NotRunning => {
            "its details and its log say how its main process ended; only a new sandbox can be used"
        }
        SandboxReason::Removed => "it was closed, or somebody else removed it; make a new one",
        SandboxReason::OomKilled => "make a new one with more memory",
        SandboxReason::DaemonUnreachable => {
            "check that the engine runs; `gym-sandbox doctor` says how it is reached"
        }
        SandboxReason::AgentLost => "what became of the command is not known; look before it is repeated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t1_d7_states_of_the_engine() {
        use ContainerStateStatusEnum as Engine;
        for (engine, ours) in [
            (Engine::RUNNING, SandboxStatus::Running),
            (Engine::CREATED, SandboxStatus::Starting),
            (Engine::RESTARTING, SandboxStatus::Starting),
            (Engine::PAUSED, SandboxStatus::Paused),
            (Engine::EXITED, SandboxStatus::Stopped),
            (Engine::REMOVING, SandboxStatus::Stopped),
            (Engine::DEAD, SandboxStatus::Error),
            (Engine::EMPTY, SandboxStatus::Unknown),
        ] {
            let state = ContainerState {
                status: Some(engine),
                ..ContainerState::default()
            };
            assert_eq!(status_of(Some(&state)), ours, "{engine:?}");
        }
        assert_eq!(status_of(None), SandboxStatus::Unknown);
    }
}
