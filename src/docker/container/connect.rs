//! Connecting a container that is made to the networks that did not go with its create.

use bollard::models::NetworkConnectRequest;

use crate::error::{ErrorKind, Operation, Result};

use super::super::DockerProvider;
use super::super::failure::call;
use super::NetworkJoin;

/// The engine is slow here only under many calls at once.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(120);

impl DockerProvider {
    /// Connects a created container to a network. Succeeds again when it is connected already.
    ///
    /// # Errors
    /// [`ErrorKind::CreateFailed`] or what the engine's answer says, naming the network.
    pub(in crate::docker) async fn join_network(&self, container: &str, join: &NetworkJoin) -> Result<()> {
        let client = &self.engine().await?.client;
        let request = NetworkConnectRequest {
            container: container.to_owned(),
            endpoint_config: Some(join.endpoint.clone()),
        };
        call(CONNECT, client.connect_network(&join.network, request))
            .await
            .map_err(|failure| {
                failure.into_error(
                    Operation::Create,
                    format!(
                        "the container was not connected to the network `{}`",
                        join.network
                    ),
                    ErrorKind::CreateFailed,
                )
            })
    }
}
