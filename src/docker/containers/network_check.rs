//! Networks that can't be made, told from their description alone.

use std::net::IpAddr;

use crate::error::{Error, Operation, Result};
use crate::spec::container::NetworkSpec;

use super::super::connect::{ApiVersion, Engine};
use super::super::subnets::is_ipv6;

/// From this API on an engine has IPv6 subnets to give.
const IPV6_SUBNETS: ApiVersion = ApiVersion::new(1, 46);

/// Refuses what no network can be, and what the engine is too old for.
pub(super) fn check(spec: &NetworkSpec, engine: &Engine) -> Result<()> {
    can_be(spec, engine.api_version, engine.has_own_pools)
}

fn can_be(spec: &NetworkSpec, api: ApiVersion, has_own_pools: bool) -> Result<()> {
    let invalid = |text: String| Err(Error::invalid(Operation::Create, text));
    let name = &spec.name;
    if name.is_empty() {
        return invalid("a network needs a name".to_owned());
    }
    if spec.enable_ipv4.is_some() {
        let what = format!("`enable_ipv4` of network `{name}`");
        api.require(ApiVersion::new(1, 48), Operation::Create, &what)?;
    }
    for subnet in spec.pools.iter().filter_map(|pool| pool.subnet.as_deref()) {
        if !is_subnet(subnet) {
            return invalid(format!(
                "`{}` is no subnet for network `{name}`: it has none of the forms 10.5.0.0/24 and fd00:5::/64",
                subnet.escape_debug()
            ));
        }
    }
    let has_ipv6_subnet = spec.pools.iter().any(is_ipv6);
    let wants_ipv6 = spec.enable_ipv6 == Some(true);
    if has_ipv6_subnet && !wants_ipv6 && is_bridge(spec) {
        return Err(Error::invalid(
            Operation::Create,
            format!("network `{name}` has an IPv6 subnet, but no IPv6"),
        )
        .with_hint("set `enable_ipv6: true`, or leave the subnet out"));
    }
    // One whose pools were configured may have IPv6 among them.
    if wants_ipv6 && !has_ipv6_subnet && is_bridge(spec) && !has_own_pools {
        let what = format!("IPv6 without a subnet for network `{name}`");
        return api
            .require(IPV6_SUBNETS, Operation::Create, &what)
            .map_err(|error| error.with_hint("give the network an IPv6 subnet, such as fd00:5::/64"));
    }
    Ok(())
}

fn is_bridge(spec: &NetworkSpec) -> bool {
    let is_usual = |driver: &Option<String>, usual| {
        driver
            .as_deref()
            .is_none_or(|driver| ["", usual].contains(&driver))
    };
    is_usual(&spec.driver, "bridge") && is_usual(&spec.ipam_driver, "default")
}

fn is_subnet(text: &str) -> bool {
    let Some((address, prefix)) = text.split_once('/') else {
        return false;
    };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    let is_number = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
    is_number && prefix.parse::<u8>().is_ok_and(|prefix| prefix <= most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind::{InvalidArgument, Unsupported};
    use crate::spec::container::IpPool;

    #[test]
    fn what_no_network_can_be_or_the_engine_has_not_is_refused_by_name() {
        let network = |subnets: &[&str], enable_ipv6, driver: Option<&str>| {
            let mut spec = NetworkSpec::new("net");
            spec.pools = subnets
                .iter()
                .map(|subnet| IpPool {
                    subnet: Some((*subnet).to_owned()),
                    ..IpPool::default()
                })
                .collect();
            spec.enable_ipv6 = enable_ipv6;
            spec.driver = driver.map(str::to_owned);
            spec
        };
        let (old, new) = (ApiVersion::new(1, 45), ApiVersion::new(1, 46));
        for (spec, api, has_own_pools, refused) in [
            (network(&[], None, None), old, false, None),
            (network(&["10.5.0.0/24"], Some(false), None), old, false, None),
            (
                network(&["10.5.0.0/24", "fd00:5::/64"], Some(true), None),
                old,
                false,
                None,
            ),
            (network(&["fd00:5::/64"], Some(true), None), old, false, None),
            (network(&[], Some(true), None), new, false, None),
            (network(&[], Some(true), None), old, true, None),
            (network(&[], Some(true), Some("macvlan")), old, false, None),
            (
                network(&["10.5.0.0/24"], Some(true), None),
                old,
                false,
                Some(Unsupported),
            ),
            (
                network(&[], Some(true), Some("bridge")),
                old,
                false,
                Some(Unsupported),
            ),
            (
                network(&["fd00:5::/64"], None, None),
                new,
                false,
                Some(InvalidArgument),
            ),
            (
                network(&["fd00:5::/64"], Some(false), None),
                new,
                false,
                Some(InvalidArgument),
            ),
            (
                network(&["10.5.0.0"], None, None),
                new,
                false,
                Some(InvalidArgument),
            ),
            (
                network(&["10.5.0.0/33"], None, None),
                new,
                false,
                Some(InvalidArgument),
            ),
            (
                network(&["fd00:5::/129"], Some(true), None),
                new,
                false,
                Some(InvalidArgument),
            ),
            (
                network(&["10.5.0/24"], None, None),
                new,
                false,
                Some(InvalidArgument),
            ),
            (
                network(&["10.5.0.0/+8"], None, None),
                new,
                false,
                Some(InvalidArgument),
            ),
        ] {
            let outcome = can_be(&spec, api, has_own_pools);
            assert_eq!(outcome.as_ref().err().map(Error::kind), refused, "{spec:?}");
            if let Err(error) = outcome {
                assert!(error.to_string().contains("`net`"), "{error}");
            }
        }
    }
}
