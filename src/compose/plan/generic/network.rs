//! How services reach each other: their names, the ports that have endpoints, and relays in place of a network that is
//! shared.

use super::process::lacks;
use super::{GenericService, Refusals, RelayStep, Subject};
use crate::compose::path::YamlPath;
use crate::compose::plan::network::bad_aliases;
use crate::compose::plan::{ContainerNames, HostPorts, text};
use crate::provider::{Capability, SandboxProvider, is_alias, is_host_name};

/// The provider must let sandboxes reach each other, also for a single service (contract 4.3).
pub(super) fn provider(provider: &dyn SandboxProvider, refusals: &mut Refusals) {
    let path = YamlPath::of_keys(["networks", "default"]);
    match provider.as_network() {
        Some(network) => {
            if let Err(error) = network.validate_networking() {
                refusals.error(path, &error);
            }
        }
        None => refusals.unsupported(
            path,
            format!(
                "provider `{}` does not support {}",
                provider.name(),
                Capability::Network
            ),
            Some("start the project on a provider that has it, or that has containers, such as `docker`"),
        ),
    }
}

/// The name of the service and its aliases.
pub(super) fn names(subject: &Subject<'_>, refusals: &mut Refusals) -> Vec<String> {
    let mut names = vec![subject.name.to_owned()];
    let settings = subject.service.networks.get("default").and_then(Option::as_ref);
    let aliases = settings
        .map(|settings| settings.aliases.as_slice())
        .unwrap_or_default();
    // As in the native way: by default a container's name is a name in the project only.
    let container = text(&subject.service.container_name);
    if container.is_some() && subject.planner.options.container_names == ContainerNames::Literal {
        let message = "a sandbox gets its name from the provider";
        refusals.unsupported(subject.path("container_name"), message, None);
    }
    for (path, message) in settings
        .into_iter()
        .flat_map(|settings| bad_aliases(subject.name, "default", settings))
    {
        refusals.invalid(path, message);
    }
    for alias in aliases.iter().chain(&container).filter(|alias| is_alias(alias)) {
        if !is_host_name(alias) {
            let message = format!("`{alias}` can't be in a hosts file: it, or a part of it, ends with `-`");
            refusals.invalid(subject.path("networks").key("default").key("aliases"), message);
        } else if !names.contains(alias) {
            names.push(alias.clone());
        }
    }
    names
}

/// Names that two services have are nobody's.
pub(super) fn ambiguous(services: &[GenericService], refusals: &mut Refusals) {
    for (index, service) in services.iter().enumerate() {
        for name in &service.names[1..] {
            let other = services
                .iter()
                .enumerate()
                .find(|(place, other)| *place != index && other.names.contains(name));
            if let Some((_, other)) = other {
                let path = YamlPath::of_keys(["services", &service.name, "networks", "default", "aliases"]);
                let message = format!(
                    "`{name}` is ambiguous: service `{}` has this name, too",
                    other.name
                );
                refusals.invalid(path, message);
            }
        }
    }
}

/// The ports of the sandbox: those of `expose`, then those of `ports`.
pub(super) fn ports(subject: &Subject<'_>, refusals: &mut Refusals) -> Vec<u16> {
    let options = subject.planner.options;
    let mut ports = Vec::new();
    for (index, exposed) in subject.service.expose.iter().enumerate() {
        let number = exposed.strip_suffix("/tcp").unwrap_or(exposed);
        match number.parse::<u16>() {
            Ok(port) if port > 0 => ports.push(port),
            _ => {
                let message = format!("`{}` is no TCP port", exposed.escape_debug());
                refusals.unsupported(subject.path("expose").index(index), message, None);
            }
        }
    }
    if !subject.service.ports.is_empty() && subject.provider.as_endpoint().is_none() {
        lacks(subject, "ports", Capability::Endpoint, refusals);
    }
    for (index, port) in subject.service.ports.iter().enumerate() {
        let path = subject.path("ports").index(index);
        if !["", "tcp"].contains(&port.protocol.as_str()) {
            refusals.unsupported(path.key("protocol"), "only TCP has endpoints here", None);
        }
        if !["", "ingress"].contains(&port.mode.as_str()) {
            refusals.unsupported(path.key("mode"), "only `ingress` is supported here", None);
        }
        for (key, value) in [("published", &port.published), ("host_ip", &port.host_ip)] {
            if options.host_ports == HostPorts::AsWritten && !value.is_empty() {
                let message = format!("`{value}` cannot be had: the provider chooses where a port answers");
                let hint = "leave it out, or take `HostPorts::Ephemeral`";
                refusals.unsupported(path.key(key), message, Some(hint));
            }
        }
        match u16::try_from(port.target) {
            Ok(target) if target > 0 => ports.push(target),
            _ => refusals.invalid(path.key("target"), "is not in 1..=65535"),
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    ports.retain(|&port| seen.insert(port));
    ports
}

/// What stands in for the network of another service.
pub(super) fn relay(subject: &Subject<'_>, refusals: &mut Refusals) -> Option<RelayStep> {
    let service = subject.service;
    let path = subject.path("network_mode");
    let mode = text(&service.network_mode)?;
    let target = mode
        .strip_prefix("service:")
        .filter(|&other| other != subject.name)
        .and_then(|other| subject.order.iter().position(|name| name == other));
    let Some(target) = target else {
        let message = format!("`{mode}` is not supported here: only `service:NAME` of another service is");
        refusals.unsupported(path, message, None);
        return None;
    };
    if !service.networks.is_empty() || !service.ports.is_empty() || !service.expose.is_empty() {
        let message = "cannot stand beside `networks`, `ports` or `expose`: the network is the other's";
        refusals.unsupported(path.clone(), message, None);
    }
    match subject.provider.as_port_forwarding() {
        None => lacks(subject, "network_mode", Capability::PortForwarding, refusals),
        Some(forwarding) => {
            if let Err(error) = forwarding.validate_port_forwarding() {
                refusals.error(path.clone(), &error);
            }
        }
    }
    let other = &subject.planner.project.services[&subject.order[target]];
    let mut unheard = Refusals::default();
    let ports = ports(
        &Subject {
            name: &subject.order[target],
            service: other,
            ..*subject
        },
        &mut unheard,
    );
    if ports.is_empty() {
        let message = format!(
            "service `{}` exposes no ports that could be reached",
            subject.order[target]
        );
        refusals.invalid(path, message);
    }
    Some(RelayStep { target, ports })
}
