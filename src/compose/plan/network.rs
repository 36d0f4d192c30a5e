//! How a container is in networks: names, ports, hosts.

use std::net::IpAddr;

use super::service::Subject;
use super::{ContainerNames, HostPorts, Notes, Planner, service_path, text};
use crate::compose::model::{Hosts, Port, Service, ServiceNetwork};
use crate::compose::path::YamlPath;
use crate::provider::{ALIAS, is_alias, shown_name};
use crate::spec::Ports;
use crate::spec::container::{ContainerSpec, EndpointSpec, NetworkAttachment, Protocol, PublishedPort};

pub(super) fn apply(
    planner: &Planner<'_>,
    subject: &Subject<'_>,
    spec: &mut ContainerSpec,
    notes: &mut Notes,
) {
    let service = subject.service;
    spec.network = attachment(planner, subject, notes);
    spec.ports = published(planner, subject, notes);
    spec.expose.clone_from(&service.expose);
    if matches!(
        spec.network,
        NetworkAttachment::Default | NetworkAttachment::Networks(_)
    ) {
        expose_unpublished(planner, subject, spec);
    }
    spec.extra_hosts = hosts(&service.extra_hosts);
    spec.dns.clone_from(&service.dns);
    spec.dns_search.clone_from(&service.dns_search);
    spec.dns_options.clone_from(&service.dns_opt);
    spec.mac_address = text(&service.mac_address);
    joined(subject, spec, notes);
}

fn attachment(planner: &Planner<'_>, subject: &Subject<'_>, notes: &mut Notes) -> NetworkAttachment {
    let service = subject.service;
    let mode = service.network_mode.as_str();
    if let Some(other) = mode.strip_prefix("service:") {
        let container = planner.first_container(subject, "network_mode", other, notes);
        return NetworkAttachment::Container(container);
    }
    if let Some(other) = mode.strip_prefix("container:") {
        return NetworkAttachment::Container(other.to_owned());
    }
    match mode {
        "" => NetworkAttachment::Networks(endpoints(planner, subject, notes)),
        "none" => NetworkAttachment::None,
        "host" => NetworkAttachment::Host,
        "bridge" | "default" => NetworkAttachment::Default,
        other => {
            let hint = "declare it under `networks` at the top, with `external: true`";
            notes.error(
                service_path(subject.name, "network_mode"),
                format!("`{other}` is none of none, bridge, host, service:NAME, container:NAME"),
                Some(hint),
            );
            NetworkAttachment::None
        }
    }
}

fn endpoints(planner: &Planner<'_>, subject: &Subject<'_>, notes: &mut Notes) -> Vec<EndpointSpec> {
    let service = subject.service;
    if !is_alias(subject.name) {
        let message = format!("is no name by which others could find it: {ALIAS}");
        notes.warning(YamlPath::of_keys(["services", subject.name]), message);
    }
    let mut endpoints: Vec<EndpointSpec> = Vec::new();
    for key in service.networks_by_priority() {
        let Some(network) = planner.project.networks.get(key) else {
            continue;
        };
        let settings = service.networks.get(key).and_then(Option::as_ref);
        let bridge = planner.bridge_of(network);
        let mut endpoint = EndpointSpec::new(bridge.unwrap_or(&network.name));
        endpoint.aliases = aliases(planner, subject.name, subject.service, settings);
        endpoint.links = links(planner, subject);
        if bridge.is_some() {
            planner.scope_names(key, &mut endpoint);
        }
        if let Some(settings) = settings {
            for (path, message) in bad_aliases(subject.name, key, settings) {
                notes.error(path, message, Some(ALIAS));
            }
            let has_ipv6 = network.external || network.enable_ipv6 == Some(true);
            if !has_ipv6 && !settings.ipv6_address.is_empty() {
                let path = service_path(subject.name, "networks")
                    .key(key)
                    .key("ipv6_address");
                let hint =
                    "give the network `enable_ipv6: true` and an IPv6 subnet, or leave the address out";
                notes.error(path, format!("network `{key}` has no IPv6"), Some(hint));
            }
            endpoint.ipv4_address = text(&settings.ipv4_address);
            endpoint.ipv6_address = text(&settings.ipv6_address);
            endpoint.link_local_ips.clone_from(&settings.link_local_ips);
            endpoint.mac_address = text(&settings.mac_address);
            endpoint.driver_options.clone_from(&settings.driver_opts);
            endpoint.gateway_priority = (settings.gw_priority != 0).then_some(settings.gw_priority);
            endpoint.interface_name = text(&settings.interface_name);
        }
        match endpoints
            .iter_mut()
            .find(|known| known.network == endpoint.network)
        {
            Some(known) => super::bridge::join(known, endpoint),
            None => endpoints.push(endpoint),
        }
    }
    endpoints
}

/// Aliases that nobody could look up, and what is to be said of them.
pub(super) fn bad_aliases(
    service: &str,
    network: &str,
    settings: &ServiceNetwork,
) -> impl Iterator<Item = (YamlPath, String)> {
    let path = service_path(service, "networks").key(network).key("aliases");
    let aliases = settings.aliases.iter().enumerate();
    aliases
        .filter(|(_, alias)| !is_alias(alias))
        .map(move |(index, alias)| {
            let message = format!("`{}` is no alias", shown_name(alias));
            (path.index(index), message)
        })
}

/// The service's name and its own aliases; the container's name goes before them, see [`name_in_networks`]. Names of
/// services and containers may be such that nobody can look them up: those are none.
pub(super) fn aliases(
    planner: &Planner<'_>,
    name: &str,
    service: &Service,
    settings: Option<&ServiceNetwork>,
) -> Vec<String> {
    let own = settings
        .map(|settings| settings.aliases.as_slice())
        .unwrap_or_default();
    let container =
        text(&service.container_name).filter(|_| planner.options.container_names == ContainerNames::Alias);
    let mut aliases: Vec<String> = Vec::new();
    for alias in std::iter::once(&name.to_owned()).chain(own).chain(&container) {
        if is_alias(alias) && !aliases.contains(alias) {
            aliases.push(alias.clone());
        }
    }
    aliases
}

/// Adds the container's name to its aliases, as docker compose does.
pub(super) fn name_in_networks(spec: &mut ContainerSpec, name: &str) {
    if let NetworkAttachment::Networks(endpoints) = &mut spec.network
        && is_alias(name)
    {
        for endpoint in endpoints {
            endpoint.aliases.retain(|alias| alias != name);
            endpoint.aliases.insert(0, name.to_owned());
        }
    }
}

fn links(planner: &Planner<'_>, subject: &Subject<'_>) -> Vec<String> {
    let mut links = Vec::new();
    for link in &subject.service.links {
        let (other, alias) = link.split_once(':').unwrap_or((link, link));
        let Some(service) = planner.project.services.get(other) else {
            continue;
        };
        for number in 1..=u32::try_from(service.replicas()).unwrap_or(0) {
            let container = planner.name_of(other, number);
            links.push(format!("{container}:{alias}"));
            links.push(format!("{container}:{other}-{number}"));
            links.push(format!("{container}:{}", planner.container_name(other, number)));
        }
    }
    links
}

impl Planner<'_> {
    /// The name that a container of another service gets.
    pub(super) fn name_of(&self, service: &str, number: u32) -> String {
        let literal = self
            .project
            .services
            .get(service)
            .and_then(|service| text(&service.container_name))
            .filter(|_| self.options.container_names == ContainerNames::Literal);
        literal.unwrap_or_else(|| self.container_name(service, number))
    }

    /// The first container of the service whose namespace or mounts are shared.
    pub(super) fn first_container(
        &self,
        subject: &Subject<'_>,
        key: &str,
        other: &str,
        notes: &mut Notes,
    ) -> String {
        let found = self.project.services.get(other);
        let problem = match found {
            None => "is no active service",
            Some(service) if service.replicas() == 0 => "has no containers",
            Some(_) => "",
        };
        if !problem.is_empty() {
            let message = format!("service \"{other}\" {problem}");
            notes.error(service_path(subject.name, key), message, None);
        }
        self.name_of(other, 1)
    }
}

fn published(planner: &Planner<'_>, subject: &Subject<'_>, notes: &mut Notes) -> Vec<PublishedPort> {
    let mut ports = Vec::new();
    for (index, port) in subject.service.ports.iter().enumerate() {
        let path = service_path(subject.name, "ports").index(index);
        let Ok(target) = u16::try_from(port.target) else {
            notes.error(path, format!("port {} is not in 1..=65535", port.target), None);
            continue;
        };
        let Some(protocol) = protocol(port) else {
            let message = format!("`{}` is none of tcp, udp, sctp", port.protocol);
            notes.error(path, message, None);
            continue;
        };
        let mut published = PublishedPort {
            protocol,
            ..PublishedPort::ephemeral(target)
        };
        match planner.options.host_ports {
            HostPorts::Unpublished => continue,
            HostPorts::Ephemeral => {}
            HostPorts::AsWritten => {
                published.published = text(&port.published);
                if let Some(address) = text(&port.host_ip) {
                    match address.trim_matches(['[', ']']).parse::<IpAddr>() {
                        Ok(address) => published.host_ip = Some(address),
                        Err(_) => notes.error(path, format!("`{address}` is not an address"), None),
                    }
                }
            }
        }
        // Several host ports of one target are one free port.
        if !ports.contains(&published) {
            ports.push(published);
        }
    }
    ports
}

/// Ports that are not published can still be reached within the project's networks.
fn expose_unpublished(planner: &Planner<'_>, subject: &Subject<'_>, spec: &mut ContainerSpec) {
    if planner.options.host_ports != HostPorts::Unpublished {
        return;
    }
    for port in &subject.service.ports {
        let protocol = protocol(port).unwrap_or_default();
        let exposed = format!("{}/{}", port.target, protocol.as_str());
        if !spec.expose.contains(&exposed) {
            spec.expose.push(exposed);
        }
    }
}

fn protocol(port: &Port) -> Option<Protocol> {
    match port.protocol.to_lowercase().as_str() {
        "" | "tcp" => Some(Protocol::Tcp),
        "udp" => Some(Protocol::Udp),
        "sctp" => Some(Protocol::Sctp),
        _ => None,
    }
}

/// The TCP ports of a service that its sandbox has endpoints for.
pub(super) fn endpoint_ports(planner: &Planner<'_>, subject: &Subject<'_>) -> Ports {
    let is_published = planner.options.host_ports != HostPorts::Unpublished;
    let mut ports: Vec<u16> = subject
        .service
        .ports
        .iter()
        .filter(|port| is_published && protocol(port) == Some(Protocol::Tcp))
        .filter_map(|port| u16::try_from(port.target).ok())
        .filter(|&port| port > 0)
        .collect();
    ports.sort_unstable();
    ports.dedup();
    Ports::new(ports).unwrap_or_default()
}

/// `name` and one address a line; IPv6 without brackets, which the engine wants.
pub(super) fn hosts(hosts: &Hosts) -> Vec<(String, String)> {
    hosts
        .iter()
        .flat_map(|(host, addresses)| {
            addresses.iter().map(move |address| {
                let bare = address
                    .strip_prefix('[')
                    .and_then(|rest| rest.strip_suffix(']'))
                    .unwrap_or(address);
                (host.to_owned(), bare.to_owned())
            })
        })
        .collect()
}

/// What a container in somebody else's network, or in none, cannot have. The engine says so only at create, when other
/// things are made already.
fn joined(subject: &Subject<'_>, spec: &ContainerSpec, notes: &mut Notes) {
    let service = subject.service;
    let mode = &service.network_mode;
    if matches!(spec.network, NetworkAttachment::Container(_)) {
        let taken = [
            ("ports", !service.ports.is_empty()),
            ("expose", !service.expose.is_empty()),
            ("hostname", !service.hostname.is_empty()),
            ("extra_hosts", !service.extra_hosts.is_empty()),
            ("dns", !service.dns.is_empty()),
            ("links", !service.links.is_empty()),
            ("mac_address", !service.mac_address.is_empty()),
        ];
        for (key, _) in taken.into_iter().filter(|(_, is_set)| *is_set) {
            let message = format!("cannot stand beside `network_mode: {mode}`: the network is the other's");
            let hint = "move it to the service whose network this is";
            notes.error(service_path(subject.name, key), message, Some(hint));
        }
    }
    if matches!(spec.network, NetworkAttachment::None | NetworkAttachment::Host) && !service.ports.is_empty()
    {
        let message = format!("`network_mode: {mode}` publishes no ports");
        notes.warning(service_path(subject.name, "ports"), message);
    }
}
