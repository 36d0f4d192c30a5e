//! Long forms of single values: ports, dependencies, environment files, names, pairs, keys.

use crate::compose::merge::started;
use crate::compose::node::{Map, Node, Value};
use crate::compose::short;

pub(super) fn port_node(port: short::Port, item: &Node) -> Node {
    let mut entries = vec![("mode", Value::Str("ingress".to_owned()))];
    if !port.host_ip.is_empty() {
        entries.push(("host_ip", Value::Str(port.host_ip)));
    }
    // Port 0 is none: the long form is then without a target, which is refused where ports are compared.
    if port.target != 0 {
        entries.push(("target", Value::Int(i64::from(port.target))));
    }
    if !port.published.is_empty() {
        entries.push(("published", Value::Str(port.published)));
    }
    entries.push(("protocol", Value::Str(port.protocol)));
    Node::with_entries(entries, item.at)
}

pub(super) fn env_file(node: Node) -> Node {
    let at = node.at;
    match node.value {
        Value::Str(path) => {
            Node::with_entries([("path", Value::Str(path)), ("required", Value::Bool(true))], at)
        }
        Value::Map(mut map) => {
            map.entry("required".to_owned())
                .or_insert_with(|| Node::new(Value::Bool(true), at));
            Node {
                value: Value::Map(map),
                at,
                key_at: node.key_at,
            }
        }
        value => Node {
            value,
            at,
            key_at: node.key_at,
        },
    }
}

pub(super) fn depends_on(node: &mut Node) -> Result<(), String> {
    if let Some(map) = node.as_map_mut() {
        for (_, dependency) in map.iter_mut() {
            let at = dependency.at;
            let Some(dependency) = dependency.as_map_mut() else {
                return Err("a dependency must be a mapping with a condition".to_owned());
            };
            for (key, value) in started(at).as_map().into_iter().flatten() {
                dependency.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        return Ok(());
    }
    let Some(items) = node.as_seq() else {
        return Err("depends_on must be a list or a mapping".to_owned());
    };
    let map: Map = items
        .iter()
        .filter_map(|item| item.as_str().map(|name| (name.to_owned(), started(item.at))))
        .collect();
    node.value = Value::Map(Box::new(map));
    Ok(())
}

pub(super) fn names(node: &mut Node) {
    if let Some(items) = node.as_seq() {
        let map: Map = items
            .iter()
            .filter_map(|item| {
                item.as_str()
                    .map(|name| (name.to_owned(), Node::new(Value::Null, item.at)))
            })
            .collect();
        node.value = Value::Map(Box::new(map));
    }
}

pub(super) fn key_values(node: &mut Node) -> Result<(), String> {
    let Some(items) = node.as_seq() else {
        return Ok(());
    };
    let mut map = Map::new();
    for item in items {
        let Some((key, value)) = item.as_str().and_then(|text| text.split_once('=')) else {
            return Err(format!("invalid value {}, expected key=value", item.to_text()));
        };
        map.insert(key.to_owned(), Node::string(value, item.at));
    }
    node.value = Value::Map(Box::new(map));
    Ok(())
}

pub(super) fn ssh(node: &mut Node) -> Result<(), String> {
    let Some(items) = node.as_seq() else {
        return Ok(());
    };
    let mut map = Map::new();
    for item in items {
        let text = item.as_str().unwrap_or_default();
        match text.split_once('=') {
            Some((id, path)) => map.insert(id.to_owned(), Node::string(path, item.at)),
            None if text == "default" => map.insert(text.to_owned(), Node::new(Value::Null, item.at)),
            None => return Err(format!("invalid ssh key \"{text}\"")),
        };
    }
    node.value = Value::Map(Box::new(map));
    Ok(())
}

/// Checks a limit: text becomes a number only where the table of casts has the key, which for builds it has not.
pub(super) fn ulimit(node: &Node) -> Result<(), String> {
    let is_whole = |node: &Node| matches!(node.value, Value::Int(_));
    let fits = match node.as_map() {
        Some(map) => ["soft", "hard"]
            .iter()
            .all(|key| map.get(*key).is_none_or(is_whole)),
        None => is_whole(node),
    };
    if fits {
        Ok(())
    } else {
        Err("a limit is a whole number without quotes, or `soft` and `hard` of these".to_owned())
    }
}
