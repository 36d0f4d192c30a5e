//! Subnets of networks that are not given one: small ones of a range, so that hundreds of networks fit. The engine's own
//! pools hold about 30.

mod block;
mod choose;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bollard::Docker;
use bollard::models::{Ipam, IpamConfig, Network, NetworkCreateRequest, NetworkCreateResponse};
use bollard::query_parameters::ListNetworksOptions;

use crate::spec::container::{IpPool, NetworkSpec, SubnetRange, Subnets};

use super::connect::Engine;
use super::failure::{EngineFailure, QUICK, REMOVE, call};

pub(super) use block::Block;

/// How often another subnet is tried when somebody else has just taken it.
const TRIES: u32 = 16;

/// The same where the network has another subnet that may be taken.
const TRIES_BESIDE: u32 = 3;

/// The subnets that a network may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    range: SubnetRange,
    prefix: u32,
    /// Whether the engine's own pools are taken when the range has none free.
    falls_back: bool,
}

impl Choice {
    /// What is to be chosen for a network; none where that is the engine's.
    pub(super) fn of(spec: &NetworkSpec, engine: &Engine) -> Option<Self> {
        let has_driver = |driver: &Option<String>, usual: &str| {
            driver
                .as_deref()
                .is_none_or(|driver| driver.is_empty() || driver == usual)
        };
        let is_plain = spec.pools.iter().all(is_ipv6)
            && spec.ipam_options.is_empty()
            && spec.enable_ipv4 != Some(false)
            && has_driver(&spec.driver, "bridge")
            && has_driver(&spec.ipam_driver, "default");
        let (range, falls_back) = match spec.subnets {
            Subnets::Planned if !engine.has_own_pools => (SubnetRange::DEFAULT, true),
            Subnets::Range(range) => (range, false),
            Subnets::Planned | Subnets::Engine => return None,
        };
        is_plain.then(|| Self {
            range,
            prefix: choose::prefix_for(spec.containers),
            falls_back,
        })
    }

    /// A subnet that is free as far as that is known.
    fn take(self, taken: &[Block]) -> Option<Block> {
        choose::free(self.range, self.prefix, next(), taken)
    }

    fn exhausted(self) -> EngineFailure {
        EngineFailure::NoSubnet {
            range: self.range.to_string(),
            prefix: self.prefix,
        }
    }
}

/// Whether a pool is one of IPv6 addresses: a network can have one of each.
pub(super) fn is_ipv6(pool: &IpPool) -> bool {
    pool.subnet.as_deref().is_some_and(|subnet| subnet.contains(':'))
}

/// Where to look next. Copies that start together look at different places, and processes begin anywhere.
fn next() -> u64 {
    static NEXT: OnceLock<AtomicU64> = OnceLock::new();
    let start = || AtomicU64::new(u64::from(uuid::Uuid::new_v4().as_fields().0));
    NEXT.get_or_init(start).fetch_add(1, Ordering::Relaxed)
}

/// Makes a network, in a subnet of the choice where there is one. The engine knows best what is taken: its refusal is
/// answered with another subnet.
pub(super) async fn create(
    engine: &Engine,
    choice: Option<Choice>,
    mut body: NetworkCreateRequest,
) -> Result<NetworkCreateResponse, EngineFailure> {
    let client = &engine.client;
    let Some(choice) = choice else {
        return call(REMOVE, client.create_network(body)).await;
    };
    let mut taken = if engine.is_local {
        routes().await
    } else {
        Vec::new()
    };
    let given = body.ipam.take();
    let others = given.iter().flat_map(|ipam| ipam.config.iter().flatten());
    let others: Vec<IpamConfig> = others.cloned().collect();
    // It may be another subnet than the chosen one that is taken.
    let tries = if others.is_empty() { TRIES } else { TRIES_BESIDE };
    let mut refusal = None;
    for round in 0..tries {
        let Some(subnet) = choice.take(&taken) else {
            break;
        };
        let mut config = vec![IpamConfig {
            subnet: Some(choose::text(subnet)),
            ..IpamConfig::default()
        }];
        config.extend(others.iter().cloned());
        body.ipam = Some(Ipam {
            config: Some(config),
            ..Ipam::default()
        });
        match call(REMOVE, client.create_network(body.clone())).await {
            Err(failure) if is_taken(&failure) => {
                tracing::debug!(round, subnet = choose::text(subnet), "the subnet is taken");
                taken.push(subnet);
                taken.extend(in_use(client).await?);
                refusal = Some(failure);
            }
            answer => return answer,
        }
    }
    if !choice.falls_back {
        let of_others = refusal.filter(|_| !others.is_empty());
        return Err(of_others.unwrap_or_else(|| choice.exhausted()));
    }
    body.ipam = given;
    call(REMOVE, client.create_network(body)).await
}

/// Whether the engine refused a subnet that overlaps another one's.
pub(super) fn is_taken(failure: &EngineFailure) -> bool {
    failure.text().is_some_and(|text| {
        let text = text.to_lowercase();
        // Docker's words, and podman's. The first are also those for pools that are used up.
        (text.contains("overlap") && !text.contains("non-overlapping"))
            || text.contains("is already used on the host")
    })
}

/// What networks of this machine are reached by routes. Empty where that can't be seen.
async fn routes() -> Vec<Block> {
    let table = tokio::fs::read_to_string("/proc/net/route").await;
    table.map_or_else(|_| Vec::new(), |table| block::routed(&table))
}

async fn in_use(client: &Docker) -> Result<Vec<Block>, EngineFailure> {
    let networks = call(QUICK, client.list_networks(None::<ListNetworksOptions>)).await?;
    Ok(subnets_of(&networks)
        .filter_map(|subnet| Some(Block::parse(&subnet)?.0))
        .collect())
}

/// The subnets of networks, as the engine writes them.
pub(super) fn subnets_of(networks: &[Network]) -> impl Iterator<Item = String> {
    networks
        .iter()
        .filter_map(|network| network.ipam.as_ref()?.config.as_ref())
        .flatten()
        .filter_map(|config| config.subnet.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_subnet_is_told_from_pools_that_are_used_up() {
        let refused = |text: &str| EngineFailure::Refused {
            status: 403,
            text: text.to_owned(),
        };
        for text in [
            "Pool overlaps with other one on this address space",
            "invalid pool request: Pool overlaps with other one on this address space",
            "cannot create network 01 (br-01): conflicts with network 02 (br-02): networks have overlapping IPv4",
            "subnet 10.89.0.0/24 is already used on the host or by another config",
        ] {
            assert!(is_taken(&refused(text)), "{text}");
        }
        for text in [
            "could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network",
            "network with name n already exists",
        ] {
            assert!(!is_taken(&refused(text)), "{text}");
        }
        assert!(!is_taken(&EngineFailure::Deadline(QUICK)));
    }
}
