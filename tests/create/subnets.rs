//! Subnets of networks that name none: as many as are wanted, none twice, and an error that says so when there are no more.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::{join_all, try_join_all};
use gym_sandbox::container::{IpPool, NetworkSpec, SubnetRange, Subnets};
use gym_sandbox::provider::ContainersProvider;
use gym_sandbox::{ErrorKind, Resource};

use crate::common::{DockerTest, client, config, docker, docker_with};
use crate::proxy::{Cut, Proxy};

const OVERLAPS: &str = "Pool overlaps with other one on this address space";
const NETWORKS: ErrorKind = ErrorKind::ResourceExhausted(Resource::Networks);

fn spec() -> NetworkSpec {
    NetworkSpec::new(format!("subnets-{}", uuid::Uuid::new_v4().simple()))
}

/// A range that nobody else uses, of so many bits: one of this process's own, and each time the next.
fn range(prefix: u8) -> SubnetRange {
    static NEXT: LazyLock<AtomicUsize> = LazyLock::new(|| {
        let bytes = *uuid::Uuid::new_v4().as_bytes();
        AtomicUsize::new(256 * usize::from(bytes[0]) + usize::from(bytes[1]))
    });
    let number = NEXT.fetch_add(1, Ordering::Relaxed) % (50 * 256);
    format!("10.{}.{}.0/{prefix}", 200 + number / 256, number % 256)
        .parse()
        .unwrap()
}

async fn subnet_of(network: &str) -> String {
    let inspected = client()
        .await
        .unwrap()
        .inspect_network(network, None)
        .await
        .unwrap();
    let config = inspected.ipam.unwrap().config.unwrap();
    config[0].subnet.clone().unwrap()
}

async fn remove(test: &DockerTest, networks: &[String]) {
    try_join_all(
        networks
            .iter()
            .map(|network| test.provider.remove_network(network)),
    )
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn b28_more_networks_at_once_than_the_engines_pools_hold_come_and_go() {
    let Some(test) = docker().await else { return };
    let specs: Vec<NetworkSpec> = (0..40).map(|_| spec()).collect();
    let made = join_all(specs.iter().map(|spec| test.provider.create_network(spec))).await;
    let (networks, failures): (Vec<_>, Vec<_>) = made.into_iter().partition(Result::is_ok);
    let networks: Vec<String> = networks.into_iter().map(Result::unwrap).collect();
    let subnets = join_all(networks.iter().map(|network| subnet_of(network))).await;
    remove(&test, &networks).await;
    assert!(failures.is_empty(), "{failures:?}");
    let different: BTreeSet<&String> = subnets.iter().collect();
    assert_eq!(different.len(), 40, "{subnets:?}");
    let told = test.provider.diagnose().await.unwrap().address_pools_basis;
    let by_us = |subnet: &&String| subnet.starts_with("198.1") && subnet.ends_with("/27");
    if told.contains("reports no pools") {
        assert_eq!(subnets.iter().filter(by_us).count(), 40, "{subnets:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b28_a_range_that_is_used_up_is_told_with_its_name_and_works_again_with_room() {
    let Some(test) = docker().await else { return };
    let range = range(26);
    let mut spec = spec();
    spec.subnets = Subnets::Range(range);
    let numbered = |number: u32| {
        let mut spec = spec.clone();
        spec.name = format!("{}-{number}", spec.name);
        spec
    };
    let specs = [numbered(1), numbered(2)];
    let networks = try_join_all(specs.iter().map(|spec| test.provider.create_network(spec)))
        .await
        .unwrap();
    let error = test.provider.create_network(&numbered(3)).await.unwrap_err();
    assert_eq!(error.kind(), NETWORKS, "{}", error.report());
    assert!(
        error.report().to_string().contains(&range.to_string()),
        "{}",
        error.report()
    );
    assert!(error.hint().unwrap().contains("range"), "{error:?}");
    remove(&test, &networks[..1]).await;
    let again = test.provider.create_network(&numbered(3)).await.unwrap();
    remove(&test, &[networks[1].clone(), again]).await;
    // More containers than any subnet of it holds.
    spec.containers = 100;
    let error = test.provider.create_network(&spec).await.unwrap_err();
    assert_eq!(error.kind(), NETWORKS, "{}", error.report());
    assert!(error.report().to_string().contains("/25"), "{}", error.report());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_with_an_ipv6_subnet_has_a_small_ipv4_one_beside_it() {
    let Some(test) = docker().await else { return };
    let range = range(24);
    let mut spec = spec();
    spec.subnets = Subnets::Range(range);
    spec.enable_ipv6 = Some(true);
    let bytes = *uuid::Uuid::new_v4().as_bytes();
    let given = format!(
        "fd{:02x}:{:x}:{:x}::/64",
        bytes[0],
        bytes[1],
        u16::from(bytes[2]) + 1
    );
    spec.pools = vec![IpPool {
        subnet: Some(given.clone()),
        ..IpPool::default()
    }];
    let id = test.provider.create_network(&spec).await.unwrap();
    let inspected = client().await.unwrap().inspect_network(&id, None).await.unwrap();
    remove(&test, &[id]).await;
    assert_eq!(inspected.enable_ipv6, Some(true));
    let config = inspected.ipam.unwrap().config.unwrap();
    let subnets: Vec<String> = config.into_iter().filter_map(|config| config.subnet).collect();
    let base = range.base().octets();
    let is_of_range = |subnet: &String| subnet.starts_with(&format!("{}.{}.{}.", base[0], base[1], base[2]));
    assert_eq!(subnets.len(), 2, "{subnets:?}");
    assert!(subnets.iter().any(is_of_range), "{subnets:?}");
    assert!(subnets.contains(&given), "{subnets:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn b28_a_taken_ipv6_subnet_is_named_and_not_told_as_a_range_that_is_used_up() {
    let Some(proxy) = Proxy::start().await else { return };
    let mut config = config();
    config.host = Some(proxy.address());
    let Some(test) = docker_with(config).await else {
        return;
    };
    let bytes = *uuid::Uuid::new_v4().as_bytes();
    let given = format!(
        "fd{:02x}:{:x}:{:x}::/64",
        bytes[0],
        bytes[1],
        u16::from(bytes[2]) + 1
    );
    let mut spec = spec();
    spec.enable_ipv6 = Some(true);
    spec.pools = vec![IpPool {
        subnet: Some(given.clone()),
        ..IpPool::default()
    }];
    let range = range(24);
    spec.subnets = Subnets::Range(range);
    let network = test.provider.create_network(&spec).await.unwrap();
    let before = proxy.requests("/networks/create");
    let mut other = spec.clone();
    other.name.push_str("-other");
    let mut errors = Vec::new();
    // Of the engine's own pools, too.
    for subnets in [Subnets::Range(range), Subnets::Planned, Subnets::Engine] {
        other.subnets = subnets;
        errors.push(test.provider.create_network(&other).await);
    }
    remove(&test, &[network]).await;
    for error in errors {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{}", error.report());
        assert!(error.hint().unwrap().contains(&given), "{}", error.report());
    }
    // Another IPv4 subnet is tried, as it could be that one, and not for ever.
    assert!(proxy.requests("/networks/create") <= before + 3 + 4 + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn b28_a_subnet_that_somebody_else_took_at_this_moment_is_answered_with_another() {
    let Some(proxy) = Proxy::start().await else { return };
    let mut config = config();
    config.host = Some(proxy.address());
    let Some(test) = docker_with(config).await else {
        return;
    };
    let mut spec = spec();
    spec.subnets = Subnets::Range(range(24));
    for _ in 0..2 {
        proxy.cut("/networks/create", Cut::Answer(403, OVERLAPS));
    }
    let network = test.provider.create_network(&spec).await.unwrap();
    assert_eq!(proxy.requests("/networks/create"), 3);
    remove(&test, &[network]).await;
    // For ever is too long.
    for _ in 0..40 {
        proxy.cut("/networks/create", Cut::Answer(403, OVERLAPS));
    }
    let error = test.provider.create_network(&spec).await.unwrap_err();
    assert_eq!(error.kind(), NETWORKS, "{}", error.report());
    assert!(proxy.requests("/networks/create") <= 3 + 16);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subnet_that_was_written_down_is_taken_as_it_is_or_refused() {
    let Some(test) = docker().await else { return };
    let subnet = range(28).to_string();
    let mut spec = spec();
    spec.pools = vec![IpPool {
        subnet: Some(subnet.clone()),
        ..IpPool::default()
    }];
    let network = test.provider.create_network(&spec).await.unwrap();
    let got = subnet_of(&network).await;
    let mut other = spec.clone();
    other.name.push_str("-other");
    let refused = test.provider.create_network(&other).await;
    remove(&test, &[network]).await;
    assert_eq!(got, subnet);
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{}", error.report());
    assert!(error.hint().unwrap().contains("copies"), "{error:?}");
}
