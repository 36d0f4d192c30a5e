//! One look at everything of ours on an engine.

use std::collections::HashMap;
use std::time::Instant;

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum, Network, Volume};
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListNetworksOptionsBuilder, ListVolumesOptionsBuilder,
};

use crate::error::{ErrorKind, Operation, Result};
use crate::spec::ObjectKind;

use super::super::DockerProvider;
use super::super::connect::EngineTime;
use super::super::failure::{QUICK, call};
use super::super::owner::{LABEL, Marks};

/// What was there, and when.
#[derive(Debug)]
pub(super) struct Look {
    /// By the engine's clock.
    pub(super) now: EngineTime,
    /// By a clock of this machine that nobody sets.
    pub(super) at: Instant,
    pub(super) objects: Vec<Object>,
}

/// One object of ours.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) kind: ObjectKind,
    /// What it is removed by: a name may be another object's by then.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) labels: HashMap<String, String>,
    pub(super) marks: Marks,
    /// Containers only.
    pub(super) image: Option<String>,
    /// Containers only.
    pub(super) state: Option<ContainerSummaryStateEnum>,
    /// When the engine made it, where the list says so.
    pub(super) made: Option<EngineTime>,
}

impl DockerProvider {
    /// Looks at all objects with our label. A single one can't be judged alone: what an owner's others say counts, too.
    pub(super) async fn look_at_all(&self, operation: Operation) -> Result<Look> {
        let engine = self.engine().await?;
        let failed = |what: &'static str| {
            move |failure: super::super::failure::EngineFailure| {
                failure.into_error(operation, what, ErrorKind::Internal)
            }
        };
        let now = engine
            .ask_time()
            .await
            .map_err(failed("the engine did not say what time it is"))?;
        let at = Instant::now();
        let filters = HashMap::from([("label", vec![LABEL.to_owned()])]);
        let containers = ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&filters)
            .build();
        let networks = ListNetworksOptionsBuilder::new().filters(&filters).build();
        let volumes = ListVolumesOptionsBuilder::new().filters(&filters).build();
        let client = &engine.client;
        // Leases last: one that is renewed between two of the lists is seen in any case.
        let containers = call(QUICK, client.list_containers(Some(containers)))
            .await
            .map_err(failed("the containers could not be listed"))?;
        let networks = call(QUICK, client.list_networks(Some(networks)))
            .await
            .map_err(failed("the networks could not be listed"))?;
        let volumes = call(QUICK, client.list_volumes(Some(volumes)))
            .await
            .map_err(failed("the volumes could not be listed"))?
            .volumes
            .unwrap_or_default();
        let objects = containers
            .into_iter()
            .filter_map(container)
            .chain(networks.into_iter().filter_map(network))
            .chain(volumes.into_iter().map(volume))
            .collect();
        Ok(Look { now, at, objects })
    }
}

fn container(found: ContainerSummary) -> Option<Object> {
    let id = found.id?;
    let name = found
        .names
        .and_then(|names| names.into_iter().next())
        .map_or_else(|| id.clone(), |name| name.trim_start_matches('/').to_owned());
    let labels = found.labels.unwrap_or_default();
    Some(Object {
        kind: ObjectKind::Container,
        id,
        name,
        marks: Marks::read(&labels),
        labels,
        image: found.image,
        state: found.state,
        made: found.created.map(EngineTime::from_epoch_seconds),
    })
}

fn network(found: Network) -> Option<Object> {
    let id = found.id?;
    let labels = found.labels.unwrap_or_default();
    Some(Object {
        kind: ObjectKind::Network,
        name: found.name.unwrap_or_else(|| id.clone()),
        id,
        marks: Marks::read(&labels),
        labels,
        image: None,
        state: None,
        made: None,
    })
}

fn volume(found: Volume) -> Object {
    Object {
        kind: ObjectKind::Volume,
        id: found.name.clone(),
        name: found.name,
        marks: Marks::read(&found.labels),
        labels: found.labels,
        image: None,
        state: None,
        made: None,
    }
}
