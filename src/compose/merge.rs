//! Merges one tree over another: several files, and a service over the one it extends.
//!
//! Mappings merge by key, lists append, scalars are replaced, null keeps what is there; the exceptions are the table.

use super::diagnostic::Sink;
use super::node::{Map, Node, Position, Value};
use super::path::{Pattern, YamlPath, lookup};

/// Merges `over` into `base`, both whole files.
pub(crate) fn merge_files(base: &mut Node, over: Node, sink: &mut Sink) {
    Merge {
        sink,
        path: YamlPath::new(),
    }
    .node(base, over);
}

/// Merges a service over the one it extends.
pub(crate) fn merge_service(base: &mut Node, over: Node, name: &str, sink: &mut Sink) {
    Merge {
        sink,
        path: YamlPath::of_keys(["services", name]),
    }
    .node(base, over);
}

/// How a key merges when not by type.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// The later value wins, also null.
    Replace,
    /// Both become lists of `KEY=value` or of strings, and are appended.
    Sequence,
    /// As `Sequence`, without what is there already.
    NewOnly,
    /// Both become mappings of names; `defaults` gives dependencies their condition.
    Names { dependencies: bool },
    /// A string is the context.
    Build,
    /// Merged when the driver is the same or one side names none.
    Logging,
    /// By subnet.
    IpamPools,
}

static RULES: &[(Pattern, Rule)] = &[
    (&["networks", "*", "ipam", "config"], Rule::IpamPools),
    (&["networks", "*", "labels"], Rule::Sequence),
    (&["volumes", "*", "labels"], Rule::Sequence),
    (&["services", "*", "annotations"], Rule::Sequence),
    (&["services", "*", "build"], Rule::Build),
    (&["services", "*", "build", "args"], Rule::Sequence),
    (&["services", "*", "build", "additional_contexts"], Rule::Sequence),
    (&["services", "*", "build", "extra_hosts"], Rule::NewOnly),
    (&["services", "*", "build", "labels"], Rule::Sequence),
    (&["services", "*", "command"], Rule::Replace),
    (
        &["services", "*", "depends_on"],
        Rule::Names { dependencies: true },
    ),
    (&["services", "*", "deploy", "labels"], Rule::Sequence),
    (&["services", "*", "dns"], Rule::Sequence),
    (&["services", "*", "dns_opt"], Rule::Sequence),
    (&["services", "*", "dns_search"], Rule::Sequence),
    (&["services", "*", "entrypoint"], Rule::Replace),
    (&["services", "*", "env_file"], Rule::Sequence),
    (&["services", "*", "label_file"], Rule::Sequence),
    (&["services", "*", "environment"], Rule::Sequence),
    (&["services", "*", "extra_hosts"], Rule::NewOnly),
    (&["services", "*", "healthcheck", "test"], Rule::Replace),
    (&["services", "*", "labels"], Rule::Sequence),
    (&["services", "*", "logging"], Rule::Logging),
    (&["services", "*", "models"], Rule::Names { dependencies: false }),
    (
        &["services", "*", "networks"],
        Rule::Names { dependencies: false },
    ),
    (&["services", "*", "sysctls"], Rule::Sequence),
    (&["services", "*", "tmpfs"], Rule::Sequence),
    (&["services", "*", "ulimits", "*"], Rule::Replace),
];

struct Merge<'a> {
    sink: &'a mut Sink,
    path: YamlPath,
}

impl Merge<'_> {
    fn node(&mut self, base: &mut Node, over: Node) {
        if let Some(rule) = lookup(RULES, &self.path) {
            self.special(*rule, base, over);
            return;
        }
        if over.is_null() {
            return;
        }
        let over_at = over.key_at;
        match (&mut base.value, over.value) {
            (Value::Map(base), Value::Map(over)) => self.mappings(base, *over),
            (Value::Seq(base), Value::Seq(over)) => base.extend(over),
            (Value::Map(_) | Value::Seq(_), _) => self.cannot(over_at),
            (_, value) => {
                *base = Node {
                    value,
                    at: over.at,
                    key_at: over.key_at,
                }
            }
        }
    }

    fn mappings(&mut self, base: &mut Map, over: Map) {
        for (key, node) in over {
            match base.get_mut(&key) {
                None => {
                    base.insert(key, node);
                }
                Some(known) => {
                    self.path.push_key(&key);
                    self.node(known, node);
                    self.path.pop();
                }
            }
        }
    }

    fn cannot(&mut self, at: Position) {
        let message = format!("cannot override {}: the values are of different kinds", self.path);
        self.sink.error(at, &self.path, message);
    }

    fn special(&mut self, rule: Rule, base: &mut Node, over: Node) {
        match rule {
            Rule::Replace => *base = over,
            Rule::Sequence => {
                let mut items = to_sequence(base);
                items.extend(to_sequence(&over));
                base.value = Value::Seq(items);
            }
            Rule::NewOnly => {
                let mut items = to_sequence(base);
                let new: Vec<_> = to_sequence(&over)
                    .into_iter()
                    .filter(|item| !items.iter().any(|known| known.same_value(item)))
                    .collect();
                items.extend(new);
                base.value = Value::Seq(items);
            }
            Rule::Names { dependencies } => {
                let over = to_names(over, dependencies);
                *base = to_names(std::mem::take(base), dependencies);
                self.both_mappings(base, over);
            }
            Rule::Build => {
                let over = to_build(over);
                *base = to_build(std::mem::take(base));
                self.both_mappings(base, over);
            }
            Rule::Logging => {
                let (Some(left), Some(right)) = (base.as_map(), over.as_map()) else {
                    self.plain(base, over);
                    return;
                };
                let same = match (left.get("driver"), right.get("driver")) {
                    (Some(left), Some(right)) => left.same_value(right),
                    _ => true,
                };
                if same {
                    self.both_mappings(base, over);
                } else {
                    *base = over;
                }
            }
            Rule::IpamPools => self.ipam_pools(base, over),
        }
    }

    /// Merges by type where a special rule meets a value it is not for.
    fn plain(&mut self, base: &mut Node, over: Node) {
        if base.is_null() {
            *base = over;
        } else if !over.is_null() {
            self.cannot(over.key_at);
        }
    }

    fn both_mappings(&mut self, base: &mut Node, over: Node) {
        let over_at = over.key_at;
        match (&mut base.value, over.value) {
            (Value::Map(base), Value::Map(over)) => self.mappings(base, *over),
            (_, Value::Null) => {}
            (base @ Value::Null, over) => *base = over,
            _ => self.cannot(over_at),
        }
    }

    /// Pools of the same subnet merge. The reference's loop is followed step by step, since its order and what it
    /// loses when both files have several pools are part of its answer.
    fn ipam_pools(&mut self, base: &mut Node, over: Node) {
        let over_at = over.key_at;
        let (Value::Seq(originals), Value::Seq(overrides)) = (&mut base.value, over.value) else {
            self.cannot(over_at);
            return;
        };
        let subnet = |node: &Node| node.get("subnet").map(Node::to_text);
        // What is kept, as places in the two lists: a pool that is kept can still change.
        let mut kept: Vec<Pool> = Vec::new();
        for index in 0..originals.len() {
            for (other, over) in overrides.iter().enumerate() {
                let find = |originals: &[Node], wanted: &Option<String>| {
                    kept.iter().position(|pool| match pool {
                        Pool::Original(index) => subnet(&originals[*index]) == *wanted,
                        Pool::Override(index) => subnet(&overrides[*index]) == *wanted,
                    })
                };
                if subnet(over) != subnet(&originals[index]) && find(originals, &subnet(over)).is_none() {
                    kept.push(Pool::Override(other));
                    continue;
                }
                self.both_mappings(&mut originals[index], over.clone());
                match find(originals, &subnet(&originals[index])) {
                    Some(position) => kept[position] = Pool::Original(index),
                    None => kept.push(Pool::Original(index)),
                }
            }
        }
        let pools = kept.into_iter().map(|pool| match pool {
            Pool::Original(index) => originals[index].clone(),
            Pool::Override(index) => overrides[index].clone(),
        });
        *originals = pools.collect();
    }
}

/// A pool of one of the two files.
#[derive(Clone, Copy)]
enum Pool {
    Original(usize),
    Override(usize),
}

/// Turns `{A: 1, B: }` into `[A=1, B]`, sorted as the reference does; a string becomes a list of itself.
fn to_sequence(node: &Node) -> Vec<Node> {
    match &node.value {
        Value::Seq(items) => items.clone(),
        Value::Str(_) => vec![node.clone()],
        Value::Map(map) => {
            let mut items = Vec::with_capacity(map.len());
            for (key, value) in map.iter() {
                let texts = match &value.value {
                    Value::Null => vec![key.clone()],
                    Value::Seq(values) => values
                        .iter()
                        .map(|value| format!("{key}={}", value.to_text()))
                        .collect(),
                    _ => vec![format!("{key}={}", value.to_text())],
                };
                items.extend(texts.into_iter().map(|text| Node {
                    value: Value::Str(text),
                    at: value.at,
                    key_at: value.key_at,
                }));
            }
            items.sort_by(|left, right| left.as_str().cmp(&right.as_str()));
            items
        }
        _ => Vec::new(),
    }
}

/// Turns `[a, b]` into `{a: , b: }`, or for dependencies into conditions.
fn to_names(node: Node, dependencies: bool) -> Node {
    let Value::Seq(items) = &node.value else {
        return node;
    };
    let mut map = Map::new();
    for item in items {
        let Some(name) = item.as_str() else {
            return node;
        };
        let value = if dependencies {
            started(item.at)
        } else {
            Node::new(Value::Null, item.at)
        };
        map.insert(name.to_owned(), value);
    }
    Node {
        value: Value::Map(Box::new(map)),
        at: node.at,
        key_at: node.key_at,
    }
}

/// What the short form of a dependency means.
pub(crate) fn started(at: Position) -> Node {
    let condition = Value::Str("service_started".to_owned());
    Node::with_entries([("condition", condition), ("required", Value::Bool(true))], at)
}

fn to_build(node: Node) -> Node {
    match node.value {
        Value::Str(context) => Node {
            key_at: node.key_at,
            ..Node::with_entries([("context", Value::Str(context))], node.at)
        },
        _ => node,
    }
}

#[cfg(test)]
mod tests;
