//! The lease as the engine has it: an empty volume. Its labels can't be changed: a lease is renewed by making the next
//! and then removing the last, so that there is no moment without one.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use bollard::models::VolumeCreateRequest;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListNetworksOptionsBuilder, ListVolumesOptionsBuilder, RemoveVolumeOptions,
};

use super::super::connect::EngineTime;
use super::super::failure::{EngineFailure, QUICK, call};
use super::super::owner::{Keep, LABEL, Stamp, kind, owner};
use super::{Keeper, Stage};

/// How often the last lease is tried to be removed when the process needs it no more.
const REMOVALS: u32 = 3;

impl Keeper {
    /// Makes the next lease, which tells of the sandboxes that were taken over.
    pub(super) async fn make_next(&self, taken: &[String]) -> Result<String, EngineFailure> {
        // Asked each time: the engine's clock may have been set, and ours stands still while this machine sleeps.
        let created = self.engine.ask_time().await?;
        let lease = created.plus(self.config.length);
        let name = lease_name(&owner().id, lease);
        let stamp = Stamp {
            kind: kind::LEASE,
            created,
            expires: None,
            lease,
            renewal: self.config.renewal,
            project: None,
            keep: Keep::No,
        };
        let mut labels = stamp.labels();
        if !taken.is_empty() {
            labels.insert(format!("{LABEL}.holds"), taken.join(","));
        }
        let request = VolumeCreateRequest {
            name: Some(name.clone()),
            labels: Some(labels),
            ..VolumeCreateRequest::default()
        };
        call(QUICK, self.engine.client.create_volume(request)).await?;
        Ok(name)
    }

    pub(super) async fn drop_lease(&self, last: Option<String>) {
        let Some(last) = last else { return };
        for _ in 0..REMOVALS {
            match self.remove(&last).await {
                Ok(()) => return,
                Err(failure) => {
                    tracing::debug!(volume = last, %failure, "the lease was not removed");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
        tracing::warn!(volume = last, "the lease of this process is left to a sweep");
    }

    pub(super) async fn remove(&self, volume: &str) -> Result<(), EngineFailure> {
        let removed = self
            .engine
            .client
            .remove_volume(volume, None::<RemoveVolumeOptions>);
        match call(QUICK, removed).await {
            // Somebody has pruned it.
            Err(failure) if failure.is_status(404) => Ok(()),
            other => other,
        }
    }

    /// Lets go of sandboxes that are gone though nobody has said so: somebody else has removed them.
    pub(in crate::docker) async fn forget_the_gone(&self) {
        let Ok(there) = self.held_there().await else {
            return;
        };
        let gone: Vec<String> = {
            let state = self.state();
            let made = state.held.iter().filter(|(_, held)| held.stage == Stage::Made);
            made.filter(|(sandbox, _)| !there.contains(*sandbox))
                .map(|(sandbox, _)| sandbox.clone())
                .collect()
        };
        for sandbox in gone {
            self.let_go(&sandbox);
        }
    }

    /// What there is of this process, by the names that it is held by, and the containers of all where it has taken some
    /// over.
    async fn held_there(&self) -> Result<HashSet<String>, EngineFailure> {
        let client = &self.engine.client;
        let (_, taken) = self.taken();
        let own = format!("{LABEL}.owner={}", owner().id);
        let of_containers = if taken.is_empty() {
            own.clone()
        } else {
            LABEL.to_owned()
        };
        let options = ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&HashMap::from([("label", vec![of_containers])]))
            .build();
        let containers = call(QUICK, client.list_containers(Some(options))).await?;
        let mut there: HashSet<String> = containers
            .into_iter()
            .flat_map(|container| container.names.unwrap_or_default())
            .map(|name| name.trim_start_matches('/').to_owned())
            .collect();
        if self.state().held.keys().any(|name| name.contains(' ')) {
            let filters = HashMap::from([("label", vec![own])]);
            let options = ListNetworksOptionsBuilder::new().filters(&filters).build();
            let networks = call(QUICK, client.list_networks(Some(options))).await?;
            let names = networks.into_iter().filter_map(|network| network.name);
            there.extend(names.map(|name| network_hold(&name)));
            let options = ListVolumesOptionsBuilder::new().filters(&filters).build();
            let volumes = call(QUICK, client.list_volumes(Some(options))).await?;
            let volumes = volumes.volumes.unwrap_or_default().into_iter();
            there.extend(volumes.map(|volume| volume_hold(&volume.name)));
        }
        Ok(there)
    }
}

/// The name that a network is held by: none that a container can have.
pub(in crate::docker) fn network_hold(network: &str) -> String {
    format!("network {network}")
}

/// The same for a volume.
pub(in crate::docker) fn volume_hold(volume: &str) -> String {
    format!("volume {volume}")
}

/// A name that shows whose lease it is and until when; `:` is not allowed in names of volumes.
fn lease_name(owner: &str, end: EngineTime) -> String {
    let end: String = end
        .to_rfc3339()
        .chars()
        .filter(|character| !matches!(character, '-' | ':'))
        .collect();
    format!("{LABEL}-lease-{owner}-{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_lease_is_one_that_volumes_may_have() {
        let end: EngineTime = "2026-11-29T22:12:35.441Z".parse().unwrap();
        let name = lease_name("0123456789ab-cd", end);
        assert_eq!(name, "gym-sandbox-lease-0123456789ab-cd-20261129T221235.441Z");
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        );
    }
}
