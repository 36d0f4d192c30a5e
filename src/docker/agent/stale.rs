//! What other builds of the agent have left on an engine: volumes that nothing mounts, and locks of fills that were
//! interrupted. What is current or in use stays.

use std::collections::HashMap;

use bollard::models::ContainerSummary;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListVolumesOptionsBuilder, RemoveVolumeOptions,
};

use crate::error::{Error, ErrorKind, Operation, Result};

use super::super::DockerProvider;
use super::super::connect::EngineTime;
use super::super::failure::{EngineFailure, QUICK, call};
use super::super::owner::LABEL;
use super::inject::stale_after;
use super::program;

impl DockerProvider {
    /// Removes the agent's volumes of other builds that nothing mounts, after the locks of interrupted fills that would
    /// hold them. Gives the names of what was removed, or with `dry_run` of what would be: there a volume that only a
    /// lock holds is not named.
    ///
    /// The engine refuses to remove a volume that a container has, so that a create that begins meanwhile is not harmed:
    /// it makes the volume again.
    pub(in crate::docker) async fn remove_stale_volumes(
        &self,
        operation: Operation,
        dry_run: bool,
    ) -> Result<Vec<String>> {
        let mut gone = Vec::new();
        for (container_id, name) in self.stale_fillers(operation).await? {
            if !dry_run {
                self.remove_container(&container_id).await?;
            }
            gone.push(name);
        }
        let client = &self.engine().await?.client;
        let filters = HashMap::from([
            ("label", vec![format!("{LABEL}.kind=shared")]),
            ("dangling", vec!["true".to_owned()]),
        ]);
        let options = ListVolumesOptionsBuilder::new().filters(&filters).build();
        let listed = call(QUICK, client.list_volumes(Some(options)))
            .await
            .map_err(|failure| failed(operation, failure, "the volumes can't be listed"))?;
        let names = listed
            .volumes
            .unwrap_or_default()
            .into_iter()
            .map(|volume| volume.name);
        for name in names.filter(|name| program::is_volume_of_another_build(name)) {
            if !dry_run {
                match call(QUICK, client.remove_volume(&name, None::<RemoveVolumeOptions>)).await {
                    Ok(()) => {}
                    // In use by now, or removed by somebody else.
                    Err(failure) if failure.is_status(409) || failure.is_status(404) => continue,
                    Err(failure) => {
                        return Err(failed(
                            operation,
                            failure,
                            "a volume of the agent can't be removed",
                        ));
                    }
                }
            }
            gone.push(name);
        }
        Ok(gone)
    }

    /// Ids and names of the locks, of any build, that are older than a fill can take.
    async fn stale_fillers(&self, operation: Operation) -> Result<Vec<(String, String)>> {
        let engine = self.engine().await?;
        let filters = HashMap::from([
            ("label", vec![format!("{LABEL}.kind=shared")]),
            ("name", vec![program::FILLER.to_owned()]),
        ]);
        let options = ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&filters)
            .build();
        let listed = call(QUICK, engine.client.list_containers(Some(options)))
            .await
            .map_err(|failure| failed(operation, failure, "the containers can't be listed"))?;
        let now = engine.engine_now();
        Ok(listed
            .into_iter()
            .filter(|container| is_stale(container, now))
            .filter_map(|container| {
                let name = container.names?.into_iter().next()?;
                let name = name.trim_start_matches('/').to_owned();
                name.starts_with(program::FILLER).then_some((container.id?, name))
            })
            .collect())
    }
}

fn is_stale(container: &ContainerSummary, now: EngineTime) -> bool {
    let created = container.created.map(EngineTime::from_epoch_seconds);
    created.is_some_and(|created| now.since(created) > stale_after())
}

fn failed(operation: Operation, failure: EngineFailure, message: &'static str) -> Error {
    failure.into_error(operation, message, ErrorKind::Internal)
}
