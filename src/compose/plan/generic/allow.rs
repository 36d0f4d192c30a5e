//! Which keys this way supports (contract 4.2). Everything else is refused by name (contract 4.3).

use serde_json::Value as Json;

use super::super::{Planner, service_path};
use super::Refusals;
use crate::compose::model::{
    Deploy, Encode, Ipam, Network, Resource, Resources, Service, ServiceNetwork, Style, Volume,
};
use crate::compose::path::YamlPath;
use crate::provider::is_host_name;

/// What the loader has read already is among them: files of variables and labels, profiles, short forms.
const SERVICE: [&str; 27] = [
    "build",
    "cap_add",
    "command",
    "container_name",
    "cpus",
    "depends_on",
    "deploy",
    "entrypoint",
    "env_file",
    "environment",
    "expose",
    "healthcheck",
    "image",
    "label_file",
    "labels",
    "mem_limit",
    "network_mode",
    "networks",
    "ports",
    "post_start",
    "pre_stop",
    "profiles",
    "restart",
    "shm_size",
    "user",
    "volumes",
    "working_dir",
];

/// These two are no more than what is done anyway when they have their ordinary value.
const ORDINARY: [(&str, &[&str]); 2] = [("pull_policy", &["missing", "if_not_present"]), ("scale", &["1"])];

const WHY: &str = "is not supported on a provider without containers";

pub(super) fn project(planner: &Planner<'_>, refusals: &mut Refusals) {
    let project = planner.project.without_unused();
    if project.services.is_empty() {
        refusals.invalid(YamlPath::of_keys(["services"]), "there is no active service");
    }
    for (section, names) in [
        ("secrets", project.secrets.keys().collect::<Vec<_>>()),
        ("configs", project.configs.keys().collect()),
        ("models", project.models.keys().collect()),
    ] {
        for name in names {
            refusals.unsupported(YamlPath::of_keys([section, name]), WHY, None);
        }
    }
    for (name, network) in &project.networks {
        self::network(name, network, refusals);
    }
    for (name, volume) in &project.volumes {
        self::volume(name, volume, refusals);
    }
}

fn network(name: &str, network: &Network, refusals: &mut Refusals) {
    let path = YamlPath::of_keys(["networks", name]);
    if name != "default" {
        let message = "only the network `default` is supported on a provider without containers";
        refusals.unsupported(path, message, None);
        return;
    }
    let plain = Network {
        name: network.name.clone(),
        ipam: Ipam::default(),
        ..Network::default()
    };
    rest(
        &network.encode(Style::Yaml),
        &plain.encode(Style::Yaml),
        &path,
        refusals,
    );
}

fn volume(name: &str, volume: &Volume, refusals: &mut Refusals) {
    let path = YamlPath::of_keys(["volumes", name]);
    if !is_plain_name(name) {
        refusals.invalid(path.clone(), "is no name of a folder");
    }
    let plain = Volume {
        name: volume.name.clone(),
        external: volume.external,
        ..Volume::default()
    };
    rest(
        &volume.encode(Style::Yaml),
        &plain.encode(Style::Yaml),
        &path,
        refusals,
    );
}

pub(super) fn service(planner: &Planner<'_>, name: &str, service: &Service, refusals: &mut Refusals) {
    if !is_plain_name(name) || !is_host_name(name) {
        refusals.invalid(
            YamlPath::of_keys(["services", name]),
            "a service's name begins with a letter or digit, has no more than those, `_`, `.` and `-`: between two dots at most 63, and no `-` as the last",
        );
    }
    for (key, value) in object(&service.encode(Style::Yaml)) {
        if key.starts_with("x-") || value.is_null() {
            continue;
        }
        let is_ordinary = ORDINARY.iter().any(|(ordinary, values)| {
            *ordinary == key && values.contains(&value.to_string().trim_matches('"'))
        });
        if !SERVICE.contains(&key.as_str()) && !is_ordinary {
            refusals.unsupported(service_path(name, key), WHY, None);
        }
    }
    if planner.is_built(name, service) {
        let hint = "give a prebuilt image for the service";
        refusals.unsupported(
            service_path(name, "build"),
            "images are not built here",
            Some(hint),
        );
    }
    if !["", "no"].contains(&service.restart.as_str()) {
        let message = "a program that has ended is not started again here";
        refusals.unsupported(service_path(name, "restart"), message, None);
    }
    if let Some(deploy) = &service.deploy {
        self::deploy(name, deploy, refusals);
    }
    for (network, settings) in &service.networks {
        let path = service_path(name, "networks").key(network);
        if network != "default" {
            refusals.unsupported(path, WHY, None);
            continue;
        }
        let settings = settings.clone().unwrap_or_default();
        let plain = ServiceNetwork {
            aliases: settings.aliases.clone(),
            ..ServiceNetwork::default()
        };
        rest(
            &settings.encode(Style::Yaml),
            &plain.encode(Style::Yaml),
            &path,
            refusals,
        );
    }
}

/// Limits of processors and memory, and one sandbox.
fn deploy(name: &str, deploy: &Deploy, refusals: &mut Refusals) {
    let path = service_path(name, "deploy");
    let limits = deploy.resources.limits.as_ref().map(|limits| Resource {
        cpus: limits.cpus,
        memory: limits.memory,
        ..Resource::default()
    });
    let plain = Deploy {
        replicas: deploy.replicas.filter(|&replicas| replicas == 1),
        resources: Resources {
            limits,
            ..Resources::default()
        },
        ..Deploy::default()
    };
    rest(
        &deploy.encode(Style::Yaml),
        &plain.encode(Style::Yaml),
        &path,
        refusals,
    );
}

/// Refuses every key whose value is another one than that of the part which is supported.
fn rest(given: &Json, supported: &Json, path: &YamlPath, refusals: &mut Refusals) {
    for (key, value) in object(given) {
        if key.starts_with("x-") {
            continue;
        }
        match supported.get(key) {
            Some(plain) if plain == value => {}
            Some(plain) if plain.is_object() && value.is_object() => {
                rest(value, plain, &path.key(key), refusals);
            }
            _ => refusals.unsupported(path.key(key), WHY, None),
        }
    }
}

fn object(value: &Json) -> impl Iterator<Item = (&String, &Json)> {
    value.as_object().into_iter().flatten()
}

/// What is the name of a folder.
fn is_plain_name(name: &str) -> bool {
    name.bytes()
        .next()
        .is_some_and(|first| first.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}
