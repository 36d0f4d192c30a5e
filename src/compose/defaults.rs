//! Fills in what a long form leaves out, and checks what the key tables cannot say.
//!
//! Runs once over a merged, canonical tree, for the project and for each included one.

use super::diagnostic::Sink;
use super::node::{Map, Node, Value};
use super::path::{Pattern, YamlPath, lookup};
use super::short;

/// Sets default values.
pub(crate) fn set_defaults(root: &mut Node) {
    visit(root, &mut YamlPath::new(), DEFAULTS, &mut |rule, map, at, _| {
        let mut set = |key: &str, value: Value| {
            map.entry(key.to_owned()).or_insert_with(|| Node::new(value, at));
        };
        match rule {
            Default::BuildContext => set("context", Value::Str(".".to_owned())),
            Default::Port => {
                set("protocol", Value::Str("tcp".to_owned()));
                set("mode", Value::Str("ingress".to_owned()));
            }
            Default::SecretTarget => {
                let source = map.get("source").map(Node::to_text).unwrap_or_default();
                map.entry("target".to_owned())
                    .or_insert_with(|| Node::new(Value::Str(format!("/run/secrets/{source}")), at));
            }
            Default::DeviceCount => {
                if !map.contains_key("count") && !map.contains_key("device_ids") {
                    map.insert("count".to_owned(), Node::new(Value::Str("all".to_owned()), at));
                }
            }
        }
    });
}

#[derive(Clone, Copy, Debug)]
enum Default {
    BuildContext,
    SecretTarget,
    Port,
    DeviceCount,
}

static DEFAULTS: &[(Pattern, Default)] = &[
    (&["services", "*", "build"], Default::BuildContext),
    (&["services", "*", "secrets", "*"], Default::SecretTarget),
    (&["services", "*", "ports", "*"], Default::Port),
    (
        &[
            "services",
            "*",
            "deploy",
            "resources",
            "reservations",
            "devices",
            "*",
        ],
        Default::DeviceCount,
    ),
    (&["services", "*", "gpus", "*"], Default::DeviceCount),
];

/// Checks conflicts inside one value.
pub(crate) fn check(root: &mut Node, sink: &mut Sink) {
    visit(root, &mut YamlPath::new(), CHECKS, &mut |rule, map, at, path| {
        if let Err(message) = check_one(rule, map) {
            sink.error(at, path, message);
        }
    });
}

#[derive(Clone, Copy, Debug)]
enum Check {
    External,
    /// At most one of these keys, and one unless external or driven.
    OneOf(&'static [&'static str]),
    HostAddress,
    WatchPath,
    CountOrIds,
}

static CHECKS: &[(Pattern, Check)] = &[
    (&["volumes", "*"], Check::External),
    (
        &["configs", "*"],
        Check::OneOf(&["file", "environment", "content"]),
    ),
    (&["secrets", "*"], Check::OneOf(&["file", "environment"])),
    (&["services", "*", "ports", "*"], Check::HostAddress),
    (&["services", "*", "develop", "watch", "*"], Check::WatchPath),
    (
        &[
            "services",
            "*",
            "deploy",
            "resources",
            "reservations",
            "devices",
            "*",
        ],
        Check::CountOrIds,
    ),
    (&["services", "*", "gpus", "*"], Check::CountOrIds),
];

fn check_one(rule: Check, map: &Map) -> Result<(), String> {
    match rule {
        Check::External => {
            let external = matches!(
                map.get("external").map(|node| &node.value),
                Some(Value::Bool(true))
            );
            let other = map
                .keys()
                .find(|key| !matches!(key.as_str(), "name" | "external") && !key.starts_with("x-"));
            match other {
                Some(key) if external => Err(format!(
                    "conflicting parameters \"external\" and \"{key}\" specified"
                )),
                _ => Ok(()),
            }
        }
        Check::OneOf(keys) => {
            let count = keys.iter().filter(|key| map.contains_key(**key)).count();
            let elsewhere = map.contains_key("driver") || map.contains_key("external");
            match count {
                0 if !elsewhere => Err(format!("one of {} must be set", keys.join("|"))),
                0 | 1 => Ok(()),
                _ => Err(format!("{} attributes are mutually exclusive", keys.join("|"))),
            }
        }
        Check::HostAddress => match map.get("host_ip").and_then(Node::as_str) {
            Some(address) if !short::is_ip_address(address) => Err(format!("invalid ip address: {address}")),
            _ => Ok(()),
        },
        Check::WatchPath => match map.get("path").and_then(Node::as_str) {
            Some("") => Err("path: value can't be blank".to_owned()),
            _ => Ok(()),
        },
        Check::CountOrIds if map.contains_key("count") && map.contains_key("device_ids") => {
            Err("\"count\" and \"device_ids\" attributes are exclusive".to_owned())
        }
        Check::CountOrIds => Ok(()),
    }
}

/// Calls `apply` for every mapping whose path is in the table.
fn visit<Rule: Copy>(
    node: &mut Node,
    path: &mut YamlPath,
    table: &'static [(Pattern, Rule)],
    apply: &mut dyn FnMut(Rule, &mut Map, super::node::Position, &YamlPath),
) {
    let rule = lookup(table, path).copied();
    let at = node.key_at;
    match &mut node.value {
        Value::Map(map) => {
            if let Some(rule) = rule {
                apply(rule, map, at, path);
            }
            for (key, child) in map.iter_mut() {
                path.push_key(key);
                visit(child, path, table, apply);
                path.pop();
            }
        }
        Value::Seq(items) => {
            for (index, child) in items.iter_mut().enumerate() {
                path.push_index(index);
                visit(child, path, table, apply);
                path.pop();
            }
        }
        _ => {}
    }
}
