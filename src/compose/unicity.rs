//! Removes what a list says twice: the later entry takes the place of the earlier one.
//!
//! Which lists, and what makes two entries the same, is the table.

use indexmap::IndexMap;

use super::diagnostic::Sink;
use super::node::{Node, Value};
use super::path::{Pattern, YamlPath, lookup};
use super::short;
use super::trap::{self, Trap};

/// Enforces unicity in the whole tree.
pub(crate) fn enforce(root: &mut Node, traps: trap::Policy, sink: &mut Sink) {
    visit(root, &mut YamlPath::new(), traps, sink);
}

/// What tells two entries of a list apart.
#[derive(Clone, Copy, Debug)]
enum Index {
    /// The text before `=`.
    Key,
    /// Where a mount ends up.
    Target,
    /// Where a device ends up.
    Device,
    /// Where a secret or config ends up, and the folder a bare name goes to.
    FileMount(&'static str),
    /// A port as text.
    Expose,
    /// Address, published port, target and protocol.
    Port,
    /// The path of a file.
    EnvFile,
}

static RULES: &[(Pattern, Index)] = &[
    (&["networks", "*", "labels"], Index::Key),
    (&["networks", "*", "ipam", "options"], Index::Key),
    (&["services", "*", "annotations"], Index::Key),
    (&["services", "*", "build", "args"], Index::Key),
    (&["services", "*", "build", "additional_contexts"], Index::Key),
    (&["services", "*", "build", "tags"], Index::Key),
    (&["services", "*", "build", "labels"], Index::Key),
    (&["services", "*", "cap_add"], Index::Key),
    (&["services", "*", "cap_drop"], Index::Key),
    (&["services", "*", "devices"], Index::Device),
    (&["services", "*", "configs"], Index::FileMount("")),
    (&["services", "*", "deploy", "labels"], Index::Key),
    (&["services", "*", "dns"], Index::Key),
    (&["services", "*", "dns_opt"], Index::Key),
    (&["services", "*", "dns_search"], Index::Key),
    (&["services", "*", "environment"], Index::Key),
    (&["services", "*", "env_file"], Index::EnvFile),
    (&["services", "*", "expose"], Index::Expose),
    (&["services", "*", "labels"], Index::Key),
    (&["services", "*", "links"], Index::Key),
    (&["services", "*", "networks", "*", "aliases"], Index::Key),
    (&["services", "*", "networks", "*", "link_local_ips"], Index::Key),
    (&["services", "*", "ports"], Index::Port),
    (&["services", "*", "profiles"], Index::Key),
    (&["services", "*", "secrets"], Index::FileMount("/run/secrets")),
    (&["services", "*", "sysctls"], Index::Key),
    (&["services", "*", "tmpfs"], Index::Key),
    (&["services", "*", "volumes"], Index::Target),
];

fn visit(node: &mut Node, path: &mut YamlPath, traps: trap::Policy, sink: &mut Sink) {
    match &mut node.value {
        Value::Map(map) => {
            for (key, child) in map.iter_mut() {
                path.push_key(key);
                visit(child, path, traps, sink);
                path.pop();
            }
        }
        Value::Seq(items) => {
            let Some(index) = lookup(RULES, path) else {
                return;
            };
            let mut unique: IndexMap<String, Node> = IndexMap::with_capacity(items.len());
            for (position, item) in std::mem::take(items).into_iter().enumerate() {
                match key_of(*index, &item, path) {
                    Ok(mut key) => {
                        // The reference takes `published: 80` and `published: "80"` for two.
                        if unique
                            .get(&key)
                            .is_some_and(|known| publishes_otherwise(known, &item))
                        {
                            let text = item.get("target").map(Node::to_text).unwrap_or_default();
                            trap::report(
                                traps,
                                Trap::DoublePort,
                                item.at,
                                &path.index(position),
                                &text,
                                sink,
                            );
                            if traps.strictness == trap::Strictness::Compatible {
                                key.push_str("/number");
                            }
                        }
                        unique.insert(key, item);
                    }
                    Err(message) => sink.error(item.at, &path.index(position), message),
                }
            }
            *items = unique.into_values().collect();
        }
        _ => {}
    }
}

fn key_of(index: Index, item: &Node, path: &YamlPath) -> Result<String, String> {
    let unexpected = || format!("unexpected {} in {path}", item.kind());
    match (index, &item.value) {
        (Index::Key, Value::Str(text)) => Ok(text.split('=').next().unwrap_or_default().to_owned()),
        (Index::Target, Value::Str(text)) => short::parse_mount(text).map(|mount| mount.target),
        (Index::Target, Value::Map(map)) => match map.get("target").and_then(Node::as_str) {
            Some(target) => Ok(target.to_owned()),
            None => Err("the mount has no target".to_owned()),
        },
        (Index::Device, Value::Str(text)) => {
            let mut parts = text.split(':');
            let source = parts.next().unwrap_or_default();
            Ok(parts.next().unwrap_or(source).to_owned())
        }
        (Index::Device, Value::Map(map)) => match map.get("target").and_then(Node::as_str) {
            Some(target) => Ok(target.to_owned()),
            None => Err("the device has no target".to_owned()),
        },
        (Index::FileMount(folder), Value::Str(name)) => Ok(format!("{folder}/{name}")),
        (Index::FileMount(folder), Value::Map(map)) => Ok(match map.get("target") {
            Some(target) => target.to_text(),
            None => format!(
                "{folder}/{}",
                map.get("source").map(Node::to_text).unwrap_or_default()
            ),
        }),
        (Index::Expose | Index::Port, Value::Str(_) | Value::Int(_)) => Ok(item.to_text()),
        (Index::Port, Value::Map(map)) => {
            let text =
                |key: &str, default: &str| map.get(key).map_or_else(|| default.to_owned(), Node::to_text);
            if !map.contains_key("target") {
                return Err("the port has no target".to_owned());
            }
            Ok(format!(
                "{}:{}:{}/{}",
                text("host_ip", "0.0.0.0"),
                text("published", ""),
                text("target", ""),
                text("protocol", "tcp")
            ))
        }
        (Index::EnvFile, Value::Str(path)) => Ok(path.clone()),
        (Index::EnvFile, Value::Map(map)) => match map.get("path") {
            Some(path) => Ok(path.to_text()),
            None => Err("the environment file has no path".to_owned()),
        },
        (Index::Port | Index::Target | Index::Device | Index::EnvFile, _) => Ok(String::new()),
        (Index::Key | Index::FileMount(_) | Index::Expose, _) => Err(unexpected()),
    }
}

/// Tells whether two ports publish the same, one as a number and one as text.
fn publishes_otherwise(known: &Node, item: &Node) -> bool {
    let is_text = |node: &Node| {
        node.get("published")
            .map(|published| published.as_str().is_some())
    };
    matches!((is_text(known), is_text(item)), (Some(known), Some(item)) if known != item)
}
