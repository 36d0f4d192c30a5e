//! The rules of networks and volumes.

use crate::spec::container::{NetworkSpec, VolumeSpec};

use super::Policy;
use super::rules::{Found, bind, device, listing, publish};

pub(super) fn network(policy: &Policy, spec: &NetworkSpec, found: &mut Found) {
    if let Some(driver) = spec.driver.as_deref()
        && !["", "default", "bridge", "overlay"].contains(&driver)
    {
        let why = "its containers would be in the host's network";
        found.unless_listed(
            &policy.allow_network_drivers,
            driver,
            "network driver",
            why,
            "allow_network_drivers",
        );
    }
    if let Some(driver) = spec.ipam_driver.as_deref()
        && !["", "default"].contains(&driver)
    {
        let why = "it asks somebody else for addresses";
        found.unless_listed(
            &policy.allow_network_drivers,
            driver,
            "address driver",
            why,
            "allow_network_drivers",
        );
    }
    for (key, value) in &spec.driver_options {
        let opens = key.starts_with("com.docker.network.bridge.host_binding_ipv")
            || (key.starts_with("com.docker.network.bridge.gateway_mode_ipv")
                && !["nat", "isolated"].contains(&value.as_str()));
        let address: Option<std::net::IpAddr> = value.parse().ok();
        match address {
            Some(address) if opens => publish(policy, address, found),
            None if opens => found.add(
                format!("network option `{key}={}`", value.escape_debug()),
                "others than this machine could reach its containers",
                listing("allow_network_drivers", key),
            ),
            _ if key == "com.docker.network.bridge.name" || key == "parent" => {
                let why = "it names an interface of the host";
                found.unless_listed(
                    &policy.allow_network_drivers,
                    key,
                    "network option",
                    why,
                    "allow_network_drivers",
                );
            }
            _ => {}
        }
    }
}

pub(super) fn volume(policy: &Policy, spec: &VolumeSpec, found: &mut Found) {
    let driver = spec.driver.as_deref().unwrap_or("local");
    if !["", "local"].contains(&driver) {
        let why = "it decides by itself what is mounted";
        found.unless_listed(
            &policy.allow_volume_drivers,
            driver,
            "volume driver",
            why,
            "allow_volume_drivers",
        );
        return;
    }
    let option = |name: &str| spec.driver_options.get(name).map(String::as_str);
    let kind = option("type").unwrap_or_default();
    let options: Vec<&str> = option("o")
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .collect();
    let is_bind = kind == "bind" || options.iter().any(|word| ["bind", "rbind"].contains(word));
    let source = option("device").unwrap_or_default();
    if is_bind || kind == "none" {
        bind(policy, source, options.contains(&"ro"), found);
    } else if source.starts_with('/') && kind != "tmpfs" {
        device(policy, source, found);
    } else if !["", "tmpfs"].contains(&kind) {
        let why = "the engine would mount a file system of its own choice of address";
        let word = format!("local:{kind}");
        found.unless_listed(
            &policy.allow_volume_drivers,
            &word,
            "volume of kind",
            why,
            "allow_volume_drivers",
        );
    }
}
