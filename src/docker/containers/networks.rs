//! Networks of a project.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bollard::models::{Ipam, IpamConfig, Network, NetworkCreateRequest};
use bollard::query_parameters::ListNetworksOptionsBuilder;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::container::{NetworkSpec, SharedObject};

use super::super::DockerProvider;
use super::super::connect::{ApiVersion, Engine};
use super::super::failure::{EngineFailure, QUICK, REMOVE, call};
use super::super::lease::{let_go, network_hold};
use super::super::owner::Keep;
use super::label_filter;
use super::labels::{Kind, forget, keep_of, note_name, stamped};

impl DockerProvider {
    /// Makes a network. The call is seen through to its end in a task of its own, and what it made is removed when
    /// nobody waits for it any more.
    pub(super) async fn make_network(&self, spec: &NetworkSpec) -> Result<String> {
        let engine = self.engine().await?;
        let mut body = request(spec, engine)?;
        body.labels = Some(stamped(
            &spec.labels,
            &self.config().default_metadata,
            Kind::Network,
            engine,
            &self.config().lease,
        ));
        let keeper = Arc::clone(self.keeper().await?);
        let is_held = keep_of(&spec.labels) == Keep::No;
        let held = network_hold(&spec.name);
        // Before it is made: whoever sees it sees a living owner, too.
        if is_held {
            keeper.hold(&held);
        }
        let client = engine.client.clone();
        let (answer, answered) = tokio::sync::oneshot::channel();
        let provider = self.clone();
        tokio::spawn(async move {
            let made = call(REMOVE, client.create_network(body)).await;
            match &made {
                Ok(made) if is_held => {
                    keeper.made(&held);
                    note_name(&made.id, &held);
                }
                Ok(_) => {}
                Err(_) => let_go(&held),
            }
            if let Err(Ok(orphan)) = answer.send(made) {
                let reaper = provider.reaper().clone();
                reaper.submit("remove a cancelled network", async move {
                    if let Err(error) = provider.remove_network_if_present(&orphan.id).await {
                        tracing::warn!(%error, "a cancelled network is left to a sweep");
                    }
                });
            }
        });
        let made = answered.await.unwrap_or_else(|_| {
            Err(EngineFailure::Transport {
                text: "the call was cut off".to_owned(),
            })
        });
        let made = made.map_err(|failure| {
            failure.into_error(
                Operation::Create,
                format!("network `{}` could not be made", spec.name),
                ErrorKind::CreateFailed,
            )
        })?;
        Ok(made.id)
    }

    pub(super) async fn networks_named(&self, name: &str) -> Result<Vec<SharedObject>> {
        let filter = HashMap::from([("name".to_owned(), vec![name.to_owned()])]);
        let mut found = self.networks_by(&filter).await?;
        // The engine's filter takes parts of names, too.
        found.retain(|network| network.name == name);
        Ok(found)
    }

    pub(super) async fn networks_with(&self, labels: &BTreeMap<String, String>) -> Result<Vec<SharedObject>> {
        self.networks_by(&label_filter(labels)).await
    }

    async fn networks_by(&self, filter: &HashMap<String, Vec<String>>) -> Result<Vec<SharedObject>> {
        let options = ListNetworksOptionsBuilder::new().filters(filter).build();
        let client = &self.engine().await?.client;
        let listed = call(QUICK, client.list_networks(Some(options))).await;
        let listed = listed.map_err(|failure| {
            failure.into_error(
                Operation::List,
                "the engine did not list its networks",
                ErrorKind::Internal,
            )
        })?;
        Ok(listed.into_iter().filter_map(object_of).collect())
    }

    pub(super) async fn remove_network_if_present(&self, id: &str) -> Result<()> {
        let client = &self.engine().await?.client;
        match call(REMOVE, client.remove_network(id)).await {
            Err(failure) if !failure.is_status(404) => Err(failure.into_error(
                Operation::Close,
                format!("network `{id}` could not be removed"),
                ErrorKind::Conflict,
            )),
            _ => {
                forget(id);
                Ok(())
            }
        }
    }
}

fn object_of(network: Network) -> Option<SharedObject> {
    let mut object = SharedObject::new(network.id?, network.name?);
    object.labels = network.labels.unwrap_or_default().into_iter().collect();
    Some(object)
}

fn request(spec: &NetworkSpec, engine: &Engine) -> Result<NetworkCreateRequest> {
    if spec.name.is_empty() {
        return Err(Error::invalid(Operation::Create, "a network needs a name"));
    }
    if spec.enable_ipv4.is_some() {
        engine
            .api_version
            .require(ApiVersion::new(1, 48), Operation::Create, "`enable_ipv4`")?;
    }
    let text = |value: &Option<String>| value.clone();
    let pools = spec.pools.iter().map(|pool| IpamConfig {
        subnet: text(&pool.subnet),
        ip_range: text(&pool.ip_range),
        gateway: text(&pool.gateway),
        auxiliary_addresses: non_empty(&pool.auxiliary_addresses),
    });
    let pools: Vec<IpamConfig> = pools.collect();
    let has_ipam = !pools.is_empty() || spec.ipam_driver.is_some() || !spec.ipam_options.is_empty();
    Ok(NetworkCreateRequest {
        name: spec.name.clone(),
        driver: spec.driver.clone(),
        internal: spec.internal.then_some(true),
        attachable: spec.attachable.then_some(true),
        enable_ipv4: spec.enable_ipv4,
        enable_ipv6: spec.enable_ipv6,
        options: non_empty(&spec.driver_options),
        ipam: has_ipam.then(|| Ipam {
            driver: spec.ipam_driver.clone(),
            config: (!pools.is_empty()).then_some(pools),
            options: non_empty(&spec.ipam_options),
        }),
        ..NetworkCreateRequest::default()
    })
}

fn non_empty(map: &BTreeMap<String, String>) -> Option<HashMap<String, String>> {
    (!map.is_empty()).then(|| map.clone().into_iter().collect())
}
