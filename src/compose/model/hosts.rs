//! Host names and their addresses: `extra_hosts`.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::codec::{Context, Decode, Encode, Style};
use crate::compose::node::{Node, Value};

/// Host names and their addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(BTreeMap<String, Vec<String>>);

impl Hosts {
    /// Iterates over the hosts, sorted, and their addresses as written.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.0
            .iter()
            .map(|(host, addresses)| (host.as_str(), addresses.as_slice()))
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Decode for Hosts {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        Self(decode_hosts(node, context))
    }
}

impl Encode for Hosts {
    fn encode(&self, _style: Style) -> Json {
        let lines = self
            .iter()
            .flat_map(|(host, addresses)| addresses.iter().map(move |address| format!("{host}={address}")));
        let mut lines: Vec<String> = lines.collect();
        lines.sort();
        Json::Array(lines.into_iter().map(Json::String).collect())
    }

    fn omit(&self, _style: Style) -> bool {
        self.is_empty()
    }
}

/// Reads `host=address`, `host:address` and their mapping form.
fn decode_hosts(node: &Node, context: &mut Context<'_>) -> BTreeMap<String, Vec<String>> {
    let mut hosts = BTreeMap::new();
    match &node.value {
        Value::Map(_) => context.entries(node, |host, child, context| {
            let addresses = match &child.value {
                Value::Seq(items) => items.iter().map(Node::to_text).collect(),
                Value::Null => vec![String::new()],
                _ => vec![child.to_text()],
            };
            add_host(&mut hosts, host, addresses, child, context);
        }),
        Value::Seq(items) => {
            for (index, item) in items.iter().enumerate() {
                context.path.push_index(index);
                let text = item.to_text();
                match text.split_once('=').or_else(|| text.split_once(':')) {
                    Some((host, addresses)) => {
                        let addresses = addresses.split(',').map(str::to_owned).collect();
                        add_host(&mut hosts, host, addresses, item, context);
                    }
                    None => {
                        context.error(item, format!("invalid additional host, missing IP: {text}"));
                    }
                }
                context.path.pop();
            }
        }
        Value::Null => {}
        _ => context.wrong(node, "a list or a mapping"),
    }
    hosts
}

fn add_host(
    hosts: &mut BTreeMap<String, Vec<String>>,
    host: &str,
    addresses: Vec<String>,
    node: &Node,
    context: &mut Context<'_>,
) {
    if host.is_empty() || host.contains([':', '=']) {
        context.error(node, format!("bad host name '{host}'"));
        return;
    }
    let bare = addresses.into_iter().map(|address| {
        let inner = address
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .filter(|inner| !inner.is_empty());
        inner.map(str::to_owned).unwrap_or(address)
    });
    hosts.entry(host.to_owned()).or_default().extend(bare);
}
