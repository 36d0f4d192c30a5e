//! What inspect says of a container, in one form: none, empty and the engine's default are one thing.

use std::collections::BTreeMap;

use bollard::models::{ContainerInspectResponse, EndpointSettings};
use serde_json::{Value, json};

use crate::common::TEST_LABEL;

pub(super) type Parts = BTreeMap<String, Value>;

/// Fields of the host's side that say the same in other words, are by chance, or come below in another form.
const LEFT_OUT: [&str; 6] = [
    // With the mounts below, as they came to be.
    "Binds",
    "Mounts",
    // The ports are by chance.
    "PortBindings",
    // Of the client's terminal.
    "ConsoleSize",
    "ContainerIDFile",
    // No restart, in two spellings.
    "RestartPolicy",
];

pub(super) fn parts(inspected: ContainerInspectResponse) -> Parts {
    let config = inspected.config.unwrap();
    let host = inspected.host_config.unwrap();
    let bound = |key: &str| {
        host.port_bindings
            .as_ref()
            .is_some_and(|all| all.contains_key(key))
    };
    let bindings = [bound("8080/tcp"), bound("53/udp")];
    let Value::Object(host) = serde_json::to_value(&host).unwrap() else {
        panic!("not an object");
    };
    let mut parts: Parts = host
        .into_iter()
        .filter(|(key, _)| !LEFT_OUT.contains(&key.as_str()))
        .collect();
    // Two words for the same.
    if parts.get("NetworkMode") == Some(&json!("default")) {
        parts.insert("NetworkMode".to_owned(), json!("bridge"));
    }
    if let Some(Value::Array(ulimits)) = parts.get_mut("Ulimits") {
        ulimits.sort_by_key(Value::to_string);
    }
    let mut mounts: Vec<Value> = inspected
        .mounts
        .unwrap_or_default()
        .into_iter()
        .map(|mount| json!([mount.destination, mount.typ, mount.rw, mount.propagation]))
        .collect();
    mounts.sort_by_key(Value::to_string);
    let mut labels = config.labels.unwrap_or_default();
    labels.retain(|key, _| !key.starts_with("gym-sandbox") && key != TEST_LABEL);
    let mut exposed = config.exposed_ports.unwrap_or_default();
    exposed.sort();
    let mut env = config.env.unwrap_or_default();
    env.retain(|variable| variable.starts_with("A="));
    let networks = inspected.network_settings.and_then(|settings| settings.networks);
    let endpoint: Vec<Value> = networks
        .unwrap_or_default()
        .into_values()
        .map(|endpoint| asked_of(&endpoint))
        .collect();
    for (name, value) in [
        ("mounts", json!(mounts)),
        ("labels", json!(labels)),
        ("exposed ports", json!(exposed)),
        ("bindings", json!(bindings)),
        ("env", json!(env)),
        ("user", json!(config.user)),
        ("workdir", json!(config.working_dir)),
        // Without a name of its own it is the beginning of the container's id.
        ("hostname", json!(config.hostname.filter(|name| name.len() != 12))),
        ("domainname", json!(config.domainname)),
        ("stop signal", json!(config.stop_signal)),
        ("stop timeout", json!(config.stop_timeout)),
        ("health", json!(config.healthcheck)),
        ("endpoint", json!(endpoint)),
    ] {
        parts.insert(name.to_owned(), value);
    }
    parts
        .into_iter()
        .filter_map(|(name, value)| Some((name, without_defaults(value)?)))
        .collect()
}

/// What was asked for of an endpoint; the rest is by chance.
fn asked_of(endpoint: &EndpointSettings) -> Value {
    let alias = endpoint.aliases.iter().flatten().find(|alias| *alias == "other");
    let mac = endpoint
        .mac_address
        .as_ref()
        .filter(|mac| mac.starts_with("02:42:fe"));
    json!({"addresses": endpoint.ipam_config, "alias": alias, "mac": mac})
}

/// None for what says nothing.
fn without_defaults(value: Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::Number(number) if number.as_f64() == Some(0.0) => None,
        Value::String(text) if text.is_empty() => None,
        Value::Array(values) => {
            let values: Vec<Value> = values.into_iter().filter_map(without_defaults).collect();
            (!values.is_empty()).then_some(Value::Array(values))
        }
        Value::Object(fields) => {
            let fields: serde_json::Map<String, Value> = fields
                .into_iter()
                .filter_map(|(name, value)| Some((name, without_defaults(value)?)))
                .collect();
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
        other => Some(other),
    }
}
