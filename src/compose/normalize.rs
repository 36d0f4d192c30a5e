//! Makes what is implied explicit: the default network, dependencies, names, values from the environment.
//!
//! Runs once, over the whole merged and canonical project.

use std::collections::BTreeMap;

use super::node::{Map, Node, Value};
use super::pathtext;

/// Resolves `environment: [NAME]`, and secrets and configs of an environment variable.
pub(crate) fn resolve_environment(root: &mut Node, environment: &BTreeMap<String, String>) {
    for service in section(root, "services") {
        let Some(items) = service
            .as_map_mut()
            .and_then(|map| map.get_mut("environment"))
            .and_then(Node::as_seq_mut)
        else {
            continue;
        };
        for item in items {
            if let Some(name) = item.as_str()
                && let Some(value) = environment.get(name)
            {
                item.value = Value::Str(format!("{name}={value}"));
            }
        }
    }
    for kind in ["secrets", "configs"] {
        for node in section(root, kind) {
            let found = node
                .get("environment")
                .and_then(Node::as_str)
                .and_then(|name| environment.get(name));
            if let Some(value) = found.cloned()
                && let Some(map) = node.as_map_mut()
            {
                map.insert(
                    RESOLVED_VALUE.to_owned(),
                    Node::string(value, super::node::Position::default()),
                );
            }
        }
    }
}

/// Where the value of a secret or config that comes from the environment is kept; never printed.
pub(crate) const RESOLVED_VALUE: &str = "x-#value";

fn section<'a>(root: &'a mut Node, name: &str) -> impl Iterator<Item = &'a mut Node> {
    root.as_map_mut()
        .and_then(|map| map.get_mut(name))
        .and_then(Node::as_map_mut)
        .into_iter()
        .flat_map(Map::values_mut)
}

/// Normalizes the project called `name`.
pub(crate) fn normalize(root: &mut Node, name: &str, environment: &BTreeMap<String, String>) {
    let at = root.at;
    if let Some(map) = root.as_map_mut() {
        map.insert("name".to_owned(), Node::string(name, at));
    }
    default_network(root);
    for service in section(root, "services") {
        if let Some(service) = service.as_map_mut() {
            normalize_service(service, environment);
        }
    }
    for kind in ["networks", "volumes", "configs", "secrets"] {
        let Some(resources) = root
            .as_map_mut()
            .and_then(|map| map.get_mut(kind))
            .and_then(Node::as_map_mut)
        else {
            continue;
        };
        for (key, resource) in resources.iter_mut() {
            name_resource(resource, key, name);
        }
    }
}

fn default_network(root: &mut Node) {
    let mut used = false;
    for service in section(root, "services") {
        let at = service.at;
        let Some(map) = service.as_map_mut() else {
            continue;
        };
        if map.contains_key("provider") || map.contains_key("network_mode") {
            continue;
        }
        let networks = map.get("networks").and_then(Node::as_map);
        match networks {
            Some(networks) if !networks.is_empty() => used |= networks.contains_key("default"),
            _ => {
                let default = Map::from_iter([("default".to_owned(), Node::default())]);
                map.insert("networks".to_owned(), Node::map(default, at));
                used = true;
            }
        }
    }
    if !used {
        return;
    }
    let Some(map) = root.as_map_mut() else { return };
    let networks = map
        .entry("networks".to_owned())
        .or_insert_with(|| Node::map(Map::new(), at_nowhere()));
    if networks.is_null() {
        networks.value = Value::Map(Box::default());
    }
    if let Some(networks) = networks.as_map_mut() {
        networks.entry("default".to_owned()).or_default();
    }
}

fn at_nowhere() -> super::node::Position {
    super::node::Position::default()
}

fn normalize_service(service: &mut Map, environment: &BTreeMap<String, String>) {
    if service.get("pull_policy").and_then(Node::as_str) == Some("if_not_present") {
        service["pull_policy"].value = Value::Str("missing".to_owned());
    }
    if let Some(build) = service.get_mut("build") {
        let at = build.at;
        if let Some(build) = build.as_map_mut() {
            let missing = |map: &Map, key: &str| map.get(key).is_none_or(Node::is_null);
            if missing(build, "context") {
                build.insert("context".to_owned(), Node::string(".", at));
            }
            if missing(build, "dockerfile") && missing(build, "dockerfile_inline") {
                build.insert("dockerfile".to_owned(), Node::string("Dockerfile", at));
            }
            if let Some(args) = build.get_mut("args") {
                resolve_values(args, environment, Unset::Drop);
            }
        }
    }
    if let Some(values) = service.get_mut("environment") {
        resolve_values(values, environment, Unset::Keep);
    }
    if let Some(volumes) = service.get_mut("volumes").and_then(Node::as_seq_mut) {
        for volume in volumes {
            if let Some(target) = volume.as_map_mut().and_then(|map| map.get_mut("target"))
                && let Value::Str(text) = &mut target.value
            {
                *text = pathtext::clean(text);
            }
        }
    }
    imply_dependencies(service);
}

/// What becomes of a name without a value in the environment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unset {
    Keep,
    Drop,
}

fn resolve_values(node: &mut Node, environment: &BTreeMap<String, String>, unset: Unset) {
    match &mut node.value {
        Value::Seq(items) => items.retain_mut(|item| {
            let Some(name) = item.as_str() else {
                return false;
            };
            if name.contains('=') {
                return true;
            }
            let Some(value) = environment.get(name) else {
                return unset == Unset::Keep;
            };
            item.value = Value::Str(format!("{name}={value}"));
            true
        }),
        Value::Map(map) => map.retain(|name, value| {
            if !value.is_null() {
                return true;
            }
            let Some(found) = environment.get(name) else {
                return unset == Unset::Keep;
            };
            value.value = Value::Str(found.clone());
            true
        }),
        _ => {}
    }
}

/// The keys that can name another service's namespace.
const NAMESPACES: &[&str] = &["network_mode", "ipc", "pid", "uts", "cgroup"];

fn imply_dependencies(service: &mut Map) {
    let mut implied: Vec<(String, bool, super::node::Position)> = Vec::new();
    for link in service.get("links").and_then(Node::as_seq).unwrap_or_default() {
        let Some(text) = link.as_str() else { continue };
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        // A link with two colons names no service, and the reference then takes it whole.
        let name = if parts.count() == 1 { name } else { text };
        implied.push((name.to_owned(), true, link.at));
    }
    for key in NAMESPACES {
        if let Some(node) = service.get(*key)
            && let Some(name) = node.as_str().and_then(|text| text.strip_prefix("service:"))
        {
            implied.push((name.to_owned(), true, node.at));
        }
    }
    for node in service
        .get("volumes_from")
        .and_then(Node::as_seq)
        .unwrap_or_default()
    {
        let Some(text) = node.as_str().filter(|text| !text.starts_with("container:")) else {
            continue;
        };
        implied.push((
            text.split(':').next().unwrap_or_default().to_owned(),
            false,
            node.at,
        ));
    }
    if implied.is_empty() {
        return;
    }
    let dependencies = service
        .entry("depends_on".to_owned())
        .or_insert_with(|| Node::map(Map::new(), at_nowhere()));
    let Some(dependencies) = dependencies.as_map_mut() else {
        return;
    };
    for (name, restart, at) in implied {
        dependencies.entry(name).or_insert_with(|| {
            let condition = Value::Str("service_started".to_owned());
            let entries = [
                ("condition", condition),
                ("restart", Value::Bool(restart)),
                ("required", Value::Bool(true)),
            ];
            Node::with_entries(entries, at)
        });
    }
}

fn name_resource(resource: &mut Node, key: &str, project: &str) {
    if resource.is_null() {
        resource.value = Value::Map(Box::default());
    }
    let at = resource.at;
    let Some(map) = resource.as_map_mut() else {
        return;
    };
    if map.get("name").is_none_or(Node::is_null) {
        let external = map.get("external").is_some_and(is_true);
        let name = if external {
            key.to_owned()
        } else {
            format!("{project}_{key}")
        };
        map.insert("name".to_owned(), Node::string(name, at));
    }
}

/// Reads a flag the way Go's `ParseBool` does.
fn is_true(node: &Node) -> bool {
    matches!(
        node.to_text().as_str(),
        "1" | "t" | "T" | "TRUE" | "true" | "True"
    )
}
