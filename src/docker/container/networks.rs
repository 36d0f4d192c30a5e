//! Networks, ports, name servers and hosts of a container.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bollard::models::{EndpointIpamConfig, EndpointSettings, NetworkingConfig, PortBinding, PortMap};

use crate::error::Result;
use crate::provider::{ALIAS, is_alias, shown_name};
use crate::spec::container::{ContainerSpec, EndpointSpec, NetworkAttachment, PublishedPort};

use super::super::connect::ApiVersion;
use super::{Needs, invalid, map_of, non_empty};

/// The first API that takes more than one network with the create.
const SEVERAL_NETWORKS: ApiVersion = ApiVersion::new(1, 44);

/// A network to connect a container to.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::docker) struct NetworkJoin {
    /// The network, by id or name.
    pub(in crate::docker) network: String,
    /// How.
    pub(in crate::docker) endpoint: EndpointSettings,
}

/// The networks of a container, the primary one first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Endpoints {
    /// The network mode of the host configuration.
    pub(super) mode: Option<String>,
    joins: Vec<NetworkJoin>,
}

impl Endpoints {
    /// What goes with the create, and what is connected after it.
    pub(super) fn for_engine(mut self, api: ApiVersion) -> (Option<NetworkingConfig>, Vec<NetworkJoin>) {
        if self.joins.is_empty() {
            return (None, Vec::new());
        }
        let later = if api >= SEVERAL_NETWORKS {
            Vec::new()
        } else {
            self.joins.split_off(1)
        };
        let with_create: HashMap<_, _> = self
            .joins
            .into_iter()
            .map(|join| (join.network, join.endpoint))
            .collect();
        let networking = NetworkingConfig {
            endpoints_config: Some(with_create),
        };
        (Some(networking), later)
    }
}

pub(super) fn endpoints(spec: &ContainerSpec, needs: &mut Needs) -> Result<Endpoints> {
    let mut joins = Vec::new();
    let mode = match &spec.network {
        NetworkAttachment::Default => None,
        NetworkAttachment::None => Some("none".to_owned()),
        NetworkAttachment::Host => Some("host".to_owned()),
        NetworkAttachment::Container(name) => Some(format!("container:{name}")),
        NetworkAttachment::Networks(networks) => {
            for network in networks {
                if joins
                    .iter()
                    .any(|join: &NetworkJoin| join.network == network.network)
                {
                    return Err(invalid(format!(
                        "the network `{}` is named twice",
                        network.network.escape_debug()
                    )));
                }
                joins.push(join(network, needs)?);
            }
            match joins.first() {
                Some(primary) => Some(primary.network.clone()),
                None => return Err(invalid("the list of networks is empty".to_owned())),
            }
        }
    };
    conflicts(spec)?;
    let mut endpoints = Endpoints { mode, joins };
    if let Some(address) = &spec.mac_address {
        mac_of_container(&mut endpoints, address, needs)?;
    }
    Ok(endpoints)
}

/// With another's network namespace the engine refuses these only after it has made other things (engine-facts 2.11).
fn conflicts(spec: &ContainerSpec) -> Result<()> {
    let (what, allows_names) = match &spec.network {
        NetworkAttachment::Container(_) => ("another container's network", false),
        NetworkAttachment::Host => ("the host's network", true),
        _ => return Ok(()),
    };
    let resolver = !(spec.dns.is_empty() && spec.dns_search.is_empty() && spec.dns_options.is_empty());
    let names = [
        (!spec.expose.is_empty(), "exposed ports"),
        (spec.hostname.is_some(), "a host name"),
        (!spec.extra_hosts.is_empty(), "lines of the hosts file"),
        (resolver, "name servers"),
    ];
    let asked = [
        (!spec.ports.is_empty(), "published ports"),
        (spec.mac_address.is_some(), "a MAC address"),
    ];
    let asked = asked.iter().chain(names.iter().filter(|_| !allows_names));
    match asked.copied().find(|(asked, _)| *asked) {
        Some((_, which)) => Err(invalid(format!(
            "a container in {what} can't have {which} of its own"
        ))),
        None => Ok(()),
    }
}

/// The address of a container without one for its network: the primary network's.
fn mac_of_container(endpoints: &mut Endpoints, address: &str, needs: &mut Needs) -> Result<()> {
    check_mac(address)?;
    needs.require(SEVERAL_NETWORKS, "a MAC address");
    if endpoints.joins.is_empty() {
        let mode = endpoints.mode.get_or_insert_with(|| "default".to_owned());
        endpoints.joins.push(NetworkJoin {
            network: mode.clone(),
            endpoint: EndpointSettings::default(),
        });
    }
    if let Some(primary) = endpoints.joins.first_mut() {
        primary
            .endpoint
            .mac_address
            .get_or_insert_with(|| address.to_owned());
    }
    Ok(())
}

fn check_mac(address: &str) -> Result<()> {
    let parts: Vec<&str> = address.split([':', '-']).collect();
    let is_mac = parts.len() == 6
        && parts
            .iter()
            .all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_mac {
        return Ok(());
    }
    Err(invalid(format!(
        "`{}` is not a MAC address",
        address.escape_debug()
    )))
}

fn join(network: &EndpointSpec, needs: &mut Needs) -> Result<NetworkJoin> {
    let name = &network.network;
    if name.is_empty() || ["host", "none"].contains(&name.as_str()) || name.starts_with("container:") {
        return Err(invalid(format!(
            "`{}` is not the name of a network",
            name.escape_debug()
        )));
    }
    if let Some(alias) = network.aliases.iter().find(|alias| !is_alias(alias)) {
        return Err(invalid(format!(
            "the alias `{}` in the network `{}` is no alias",
            shown_name(alias),
            name.escape_debug()
        ))
        .with_hint(ALIAS));
    }
    let address = |text: &Option<String>, good: fn(&str) -> bool| match text {
        Some(text) if !good(text) => Err(invalid(format!(
            "`{}` is no address for the network `{}`",
            text.escape_debug(),
            name.escape_debug()
        ))),
        text => Ok(text.clone()),
    };
    let ipam = EndpointIpamConfig {
        ipv4_address: address(&network.ipv4_address, |text| text.parse::<Ipv4Addr>().is_ok())?,
        ipv6_address: address(&network.ipv6_address, |text| text.parse::<Ipv6Addr>().is_ok())?,
        link_local_ips: non_empty(network.link_local_ips.clone()),
    };
    let mut driver_options = network.driver_options.clone();
    if network.mac_address.is_some() {
        needs.require(SEVERAL_NETWORKS, "a MAC address of a network");
    }
    if let Some(mac) = &network.mac_address {
        check_mac(mac)?;
    }
    if network.gateway_priority.is_some() {
        needs.require(ApiVersion::new(1, 48), "the gateway priority of a network");
    }
    if let Some(interface) = &network.interface_name {
        needs.require(ApiVersion::new(1, 48), "the interface name of a network");
        driver_options.insert("com.docker.network.endpoint.ifname".to_owned(), interface.clone());
    }
    Ok(NetworkJoin {
        network: name.clone(),
        endpoint: EndpointSettings {
            ipam_config: (ipam != EndpointIpamConfig::default()).then_some(ipam),
            links: non_empty(network.links.clone()),
            mac_address: network.mac_address.clone(),
            aliases: non_empty(network.aliases.clone()),
            driver_opts: map_of(&driver_options),
            gw_priority: network.gateway_priority,
            ..EndpointSettings::default()
        },
    })
}

/// The ports that are exposed, and their bindings. Bindings without exposed ports publish nothing, silently
/// (engine-facts S10): every published port is exposed.
pub(super) fn ports(spec: &ContainerSpec, publish_address: IpAddr) -> Result<(Vec<String>, Option<PortMap>)> {
    let mut exposed: Vec<String> = Vec::new();
    let mut bindings: PortMap = HashMap::new();
    for text in &spec.expose {
        for key in exposed_keys(text)? {
            if !exposed.contains(&key) {
                exposed.push(key);
            }
        }
    }
    for port in &spec.ports {
        let key = format!("{}/{}", port.target, port.protocol.as_str());
        if port.target == 0 {
            return Err(invalid("port 0 can't be published".to_owned()));
        }
        if !exposed.contains(&key) {
            exposed.push(key.clone());
        }
        let binding = binding(port, publish_address)?;
        let list = bindings.entry(key).or_default().get_or_insert_default();
        if !list.contains(&binding) {
            list.push(binding);
        }
    }
    Ok((exposed, (!bindings.is_empty()).then_some(bindings)))
}

fn binding(port: &PublishedPort, publish_address: IpAddr) -> Result<PortBinding> {
    let host_port = port.published.clone().unwrap_or_default();
    if !host_port.is_empty() && port_range(&host_port).is_none() {
        return Err(invalid(format!(
            "the host port `{}` is neither a port nor a range of ports",
            host_port.escape_debug()
        )));
    }
    Ok(PortBinding {
        host_ip: Some(port.host_ip.unwrap_or(publish_address).to_string()),
        // An empty port lets the engine choose one.
        host_port: Some(host_port),
    })
}

/// Reads `8080`, `53/udp` and `3000-3002/tcp`.
fn exposed_keys(text: &str) -> Result<Vec<String>> {
    let (range, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    let protocol = protocol.to_ascii_lowercase();
    match port_range(range) {
        Some((first, last)) if first > 0 && ["tcp", "udp", "sctp"].contains(&protocol.as_str()) => {
            Ok((first..=last).map(|port| format!("{port}/{protocol}")).collect())
        }
        _ => Err(invalid(format!(
            "the exposed port `{}` is none such as `8080` or `53/udp`",
            text.escape_debug()
        ))),
    }
}

fn port_range(text: &str) -> Option<(u16, u16)> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten()
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (u16, u16) = (number(first)?, number(last)?);
    (first <= last).then_some((first, last))
}

pub(super) fn extra_hosts(spec: &ContainerSpec) -> Result<Option<Vec<String>>> {
    let mut lines = Vec::new();
    for (name, address) in &spec.extra_hosts {
        let address = address.trim_start_matches('[').trim_end_matches(']');
        let is_name = !name.is_empty() && !name.contains([':', '=', '\0', '\n', ' ']);
        if !is_name || (address != "host-gateway" && address.parse::<IpAddr>().is_err()) {
            return Err(invalid(format!(
                "the host `{}` with the address `{}` is no line of a hosts file",
                name.escape_debug(),
                address.escape_debug()
            )));
        }
        // The engine's spelling; others are refused (bugs B48).
        lines.push(format!("{name}:{address}"));
    }
    Ok(non_empty(lines))
}

pub(super) fn dns_servers(spec: &ContainerSpec) -> Result<Option<Vec<String>>> {
    if let Some(bad) = spec.dns.iter().find(|server| server.parse::<IpAddr>().is_err()) {
        return Err(invalid(format!(
            "the name server `{}` is not an IP address",
            bad.escape_debug()
        )));
    }
    Ok(non_empty(spec.dns.clone()))
}
