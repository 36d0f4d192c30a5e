//! Networks of a project.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bollard::Docker;
use bollard::models::{Ipam, IpamConfig, Network, NetworkCreateRequest, NetworkCreateResponse};
use bollard::query_parameters::ListNetworksOptionsBuilder;
use tokio::sync::{Mutex, MutexGuard, OwnedSemaphorePermit, oneshot};
use tokio::task::JoinHandle;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::container::{NetworkSpec, SharedObject};

use super::super::DockerProvider;
use super::super::connect::{ApiVersion, Engine};
use super::super::create::token_label;
use super::super::failure::{EngineFailure, QUICK, REMOVE, call};
use super::super::lanes::Lane;
use super::super::lease::{give_up, network_hold};
use super::super::owner::Keep;
use super::super::subnets::{self, Choice};
use super::labels::{Kind, forget, keep_of, note_name, stamped};
use super::lost::{Lost, is_lost};
use super::network_check::check;
use super::{in_use, label_filter};

/// From this API on an engine refuses a second network of a name.
const ONE_OF_A_NAME: ApiVersion = ApiVersion::new(1, 44);

impl DockerProvider {
    /// Makes a network. The call is seen through to its end in a task of its own, and what it made is removed when
    /// nobody waits for it any more; closing the provider waits for that.
    pub(super) async fn make_network(&self, spec: &NetworkSpec) -> Result<String> {
        let engine = self.engine().await?;
        let mut body = request(spec, engine)?;
        let mut labels = stamped(
            &spec.labels,
            &self.config().default_metadata,
            Kind::Network,
            engine,
            &self.config().lease,
        );
        // There may be others of that name: this tells what the call has made.
        let token = uuid::Uuid::new_v4().simple().to_string();
        labels.insert(token_label(), token.clone());
        body.labels = Some(labels);
        let keeper = Arc::clone(self.keeper().await?);
        let is_held = keep_of(&spec.labels) == Keep::No;
        let held = network_hold(&spec.name);
        // Before it is made: whoever sees it sees a living owner, too.
        if is_held {
            keeper.hold(&held);
        }
        let engine = engine.clone();
        let choice = Choice::of(spec, &engine);
        let (wanted, unwanted) = oneshot::channel::<()>();
        let provider = self.clone();
        let task = tokio::spawn(async move {
            let made = tokio::select! {
                biased;
                // Nothing has been made while it waits for its turn.
                _ = unwanted => Err(EngineFailure::cut_off()),
                turn = provider.turn(&engine) => match turn {
                    Ok(turn) => {
                        let made = make(&turn, &engine, choice, body).await;
                        if made.as_ref().is_err_and(is_lost) {
                            provider.remove_lost(Lost::Network, token);
                        }
                        made
                    }
                    Err(failure) => Err(failure),
                },
            };
            match &made {
                Ok(made) if is_held => {
                    keeper.made(&held);
                    note_name(&made.id, &held);
                }
                Err(_) if is_held => give_up(&held),
                Ok(_) | Err(_) => {}
            }
            made
        });
        let mut making = Making {
            provider: self,
            task: Some(task),
            _wanted: wanted,
        };
        let made = match making.task.as_mut() {
            Some(task) => task.await.unwrap_or_else(|_| Err(EngineFailure::cut_off())),
            None => Err(EngineFailure::cut_off()),
        };
        // It is the caller's now, or nothing.
        making.task = None;
        made.map(|made| made.id)
            .map_err(|failure| not_made(spec, failure))
    }

    async fn turn(&self, engine: &Engine) -> Result<Turn, EngineFailure> {
        /// Of the creates of this process only one is between its two looks.
        static ALONE: Mutex<()> = Mutex::const_new(());
        let takes_a_second = engine.api_version < ONE_OF_A_NAME;
        let alone = if takes_a_second {
            Some(ALONE.lock().await)
        } else {
            None
        };
        let slot = self.lanes().slot(Lane::Network).await;
        Ok(Turn {
            alone,
            _slot: slot.map_err(|error| EngineFailure::Transport {
                text: error.to_string(),
            })?,
        })
    }

    pub(super) async fn networks_named(&self, name: &str) -> Result<Vec<SharedObject>> {
        let client = &self.engine().await?.client;
        named(client, name).await.map_err(not_listed)
    }

    pub(super) async fn networks_with(&self, labels: &BTreeMap<String, String>) -> Result<Vec<SharedObject>> {
        self.networks_by(&label_filter(labels)).await
    }

    async fn networks_by(&self, filter: &HashMap<String, Vec<String>>) -> Result<Vec<SharedObject>> {
        let client = &self.engine().await?.client;
        listed(client, filter).await.map_err(not_listed)
    }

    pub(super) async fn remove_network_if_present(&self, id: &str) -> Result<()> {
        let client = &self.engine().await?.client;
        let slot = self.lanes().slot(Lane::Network).await?;
        let removed = call(REMOVE, client.remove_network(id)).await;
        drop(slot);
        match removed {
            Err(failure) if !failure.is_status(404) => {
                let text = format!("network `{id}` could not be removed");
                Err(in_use(failure.into_error(
                    Operation::Close,
                    text,
                    ErrorKind::Conflict,
                )))
            }
            _ => {
                forget(id);
                Ok(())
            }
        }
    }
}

/// What a network's create comes to. Dropped before its end it has what comes of it removed.
struct Making<'a> {
    provider: &'a DockerProvider,
    task: Option<JoinHandle<Result<NetworkCreateResponse, EngineFailure>>>,
    /// Its drop tells the task that it need not begin any more.
    _wanted: oneshot::Sender<()>,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let Some(task) = self.task.take() else { return };
        let provider = self.provider.clone();
        let reaper = self.provider.reaper().clone();
        reaper.submit("remove a cancelled network", async move {
            let Ok(Ok(orphan)) = task.await else { return };
            if let Err(error) = provider.remove_network_if_present(&orphan.id).await {
                tracing::warn!(%error, "a cancelled network is left to a sweep");
            }
        });
    }
}

/// A create's turn.
struct Turn {
    /// Held where the engine would make a second network of a name.
    alone: Option<MutexGuard<'static, ()>>,
    _slot: OwnedSemaphorePermit,
}

/// Makes a network, and sees to it that there is only one of its name.
async fn make(
    turn: &Turn,
    engine: &Engine,
    choice: Option<Choice>,
    body: NetworkCreateRequest,
) -> Result<NetworkCreateResponse, EngineFailure> {
    if turn.alone.is_some() {
        make_the_only_one(engine, choice, body).await
    } else {
        subnets::create(engine, choice, body).await
    }
}

/// Makes a network where the engine would make a second one of its name: then nothing could be started in either, not
/// even by its id (bugs B33).
async fn make_the_only_one(
    engine: &Engine,
    choice: Option<Choice>,
    body: NetworkCreateRequest,
) -> Result<NetworkCreateResponse, EngineFailure> {
    let client = &engine.client;
    let name = body.name.clone();
    // As newer engines say it.
    let taken = || EngineFailure::Refused {
        status: 409,
        text: format!("network with name {name} already exists"),
    };
    if !named(client, &name).await?.is_empty() {
        return Err(taken());
    }
    let made = subnets::create(engine, choice, body).await?;
    // Another process may have looked at the same moment. Whoever sees two gives way: there is never more than one.
    let look = named(client, &name).await;
    if look.as_ref().is_ok_and(|found| found.len() == 1) {
        return Ok(made);
    }
    if let Err(failure) = call(REMOVE, client.remove_network(&made.id)).await {
        tracing::warn!(network = made.id, %failure, "a network that gave way is left to a sweep");
    }
    look.and_then(|_| Err(taken()))
}

async fn named(client: &Docker, name: &str) -> Result<Vec<SharedObject>, EngineFailure> {
    let filter = HashMap::from([("name".to_owned(), vec![name.to_owned()])]);
    let mut found = listed(client, &filter).await?;
    // The engine's filter takes parts of names, too.
    found.retain(|network| network.name == name);
    Ok(found)
}

async fn listed(
    client: &Docker,
    filter: &HashMap<String, Vec<String>>,
) -> Result<Vec<SharedObject>, EngineFailure> {
    let options = ListNetworksOptionsBuilder::new().filters(filter).build();
    let listed = call(QUICK, client.list_networks(Some(options))).await?;
    Ok(listed.into_iter().filter_map(object_of).collect())
}

fn not_made(spec: &NetworkSpec, failure: EngineFailure) -> Error {
    let has_its_subnet = subnets::is_taken(&failure);
    let kind = if failure.is_status(409) || has_its_subnet {
        ErrorKind::Conflict
    } else {
        ErrorKind::CreateFailed
    };
    let error = failure.into_error(
        Operation::Create,
        format!("network `{}` could not be made", spec.name),
        kind,
    );
    if !has_its_subnet {
        return error;
    }
    // The engine does not say which one.
    let subnets = spec.pools.iter().filter_map(|pool| pool.subnet.as_deref());
    let subnets: Vec<String> = subnets.map(|subnet| format!("`{subnet}`")).collect();
    let taken = match subnets.as_slice() {
        [] => "its subnet".to_owned(),
        [subnet] => format!("its subnet {subnet}, or one that overlaps it"),
        several => format!(
            "one of its subnets {}, or one that overlaps it",
            several.join(" and ")
        ),
    };
    error.with_hint(format!(
        "another network has {taken}; leave the subnet out, so that copies of a project get one each"
    ))
}

fn not_listed(failure: EngineFailure) -> Error {
    failure.into_error(
        Operation::List,
        "the engine did not list its networks",
        ErrorKind::Internal,
    )
}

fn object_of(network: Network) -> Option<SharedObject> {
    let mut object = SharedObject::new(network.id?, network.name?);
    object.labels = network.labels.unwrap_or_default().into_iter().collect();
    Some(object)
}

fn request(spec: &NetworkSpec, engine: &Engine) -> Result<NetworkCreateRequest> {
    check(spec, engine)?;
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
