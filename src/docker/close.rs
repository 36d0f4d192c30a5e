//! Removing a container for good: when the call returns, the engine does not know it any more (contract Q1, Q2).

use std::time::Duration;

use bollard::query_parameters::{
    InspectContainerOptions, KillContainerOptions, RemoveContainerOptionsBuilder,
};
use tokio::time::Instant;

use crate::error::{ErrorKind, Operation, Result};

use super::DockerProvider;
use super::failure::{EngineFailure, QUICK, REMOVE, call};

impl DockerProvider {
    /// Kills and removes a container with its anonymous volumes. One that is gone, or being removed by somebody else,
    /// is a success once it is gone.
    ///
    /// Takes no slot of any lane: removal never waits behind other calls.
    pub(super) async fn remove_container(&self, container: &str) -> Result<()> {
        self.remove_if_present(container).await.map(|_| ())
    }

    /// The same, and says whether it was there.
    pub(super) async fn remove_if_present(&self, container: &str) -> Result<bool> {
        let client = &self.engine().await?.client;
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        let removed = call(REMOVE, client.remove_container(container, Some(options))).await;
        let failure = match removed {
            Ok(()) => return Ok(true),
            Err(failure) if failure.is_status(404) => return Ok(false),
            Err(failure) => failure,
        };
        let in_progress = failure.is_status(409)
            && failure
                .text()
                .is_some_and(|text| text.contains("already in progress"));
        if in_progress {
            return self.wait_gone(container).await.map(|()| true);
        }
        Err(failure.into_error(
            Operation::Close,
            format!("the engine did not remove container `{container}`"),
            ErrorKind::Conflict,
        ))
    }

    /// Kills the main process and with it everything in the container, which stays.
    pub(super) async fn kill_container(&self, container: &str) -> Result<(), EngineFailure> {
        let engine = self.engine().await.map_err(|error| EngineFailure::Transport {
            text: error.to_string(),
        })?;
        let killed = call(
            QUICK,
            engine
                .client
                .kill_container(container, None::<KillContainerOptions>),
        )
        .await;
        match killed {
            // Not running, or gone: there is nothing left to kill.
            Err(failure) if failure.is_status(409) || failure.is_status(404) => Ok(()),
            other => other,
        }
    }

    /// Waits until somebody else's removal has ended.
    async fn wait_gone(&self, container: &str) -> Result<()> {
        let client = &self.engine().await?.client;
        let deadline = Instant::now() + REMOVE;
        let mut pause = Duration::from_millis(10);
        loop {
            let inspected = call(
                QUICK,
                client.inspect_container(container, None::<InspectContainerOptions>),
            )
            .await;
            match inspected {
                Err(failure) if failure.is_status(404) => return Ok(()),
                _ if Instant::now() >= deadline => {
                    return Err(EngineFailure::Deadline(REMOVE).into_error(
                        Operation::Close,
                        format!("container `{container}` is being removed but does not go away"),
                        ErrorKind::Timeout,
                    ));
                }
                _ => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(250));
        }
    }
}
