//! From raw YAML nodes to trees: anchors, merge keys, scalars, `!reset` and `!override`.
//!
//! Knows nothing of the parser; depth and alias copies are bounded here.

use std::collections::HashMap;

use super::{Budget, MOST_DEPTH, NodeId, RawKind, RawNode, Tag};
use crate::compose::diagnostic::Sink;
use crate::compose::node::{Map, Node, Position, Value};
use crate::compose::path::{Segment, YamlPath};
use crate::compose::scalar::{self, ScalarTag};

/// Copies aliases, applies merge keys, resolves scalars, and notes resets.
pub(super) struct Builder<'a> {
    nodes: &'a [RawNode],
    budget: &'a mut Budget,
    sink: &'a mut Sink,
    path: YamlPath,
    pub(super) resets: Vec<YamlPath>,
    depth: usize,
    alias_depth: usize,
    /// Set when a bound is hit, so that it is said once.
    stopped: bool,
}

impl<'a> Builder<'a> {
    pub(super) fn new(nodes: &'a [RawNode], budget: &'a mut Budget, sink: &'a mut Sink) -> Self {
        Self {
            nodes,
            budget,
            sink,
            path: YamlPath::new(),
            resets: Vec::new(),
            depth: 0,
            alias_depth: 0,
            stopped: false,
        }
    }

    /// Builds a node; none for `!reset`. `in_override`: inside `!override`, where go-yaml looks for no more tags.
    pub(super) fn build(&mut self, id: NodeId, in_override: bool) -> Option<Node> {
        let nodes = self.nodes;
        let raw = &nodes[id as usize];
        if self.stopped || !self.within_bounds(raw.at) {
            return Some(Node::new(Value::Null, raw.at));
        }
        if let RawKind::Alias(target) = raw.kind {
            self.alias_depth += 1;
            self.depth += 1;
            let node = self.build(target, in_override);
            self.depth -= 1;
            self.alias_depth -= 1;
            return node;
        }
        let mut in_override = in_override;
        if !in_override && matches!(raw.tag, Tag::Reset | Tag::Override) {
            if !self
                .path
                .segments()
                .iter()
                .any(|segment| matches!(segment, Segment::Index(_)))
            {
                self.resets.push(self.path.clone());
            }
            if raw.tag == Tag::Reset {
                return None;
            }
            in_override = true;
        }
        self.depth += 1;
        let value = match &raw.kind {
            RawKind::Scalar { text, plain } => self.scalar(text, *plain, raw),
            RawKind::List(items) => self.list(items, in_override),
            RawKind::Mapping(entries) => {
                let mut map = Map::with_capacity(entries.len());
                self.mapping(entries, in_override, &mut map);
                Value::Map(Box::new(map))
            }
            RawKind::Alias(_) => Value::Null,
        };
        self.depth -= 1;
        let prefixed = match &raw.kind {
            RawKind::Scalar { text, .. } => {
                text.len() > 1 && text.trim_start_matches(['-', '+']).starts_with('0')
            }
            _ => false,
        };
        Some(Node::new(value, Position { prefixed, ..raw.at }))
    }

    fn within_bounds(&mut self, at: Position) -> bool {
        let message = if self.depth > MOST_DEPTH {
            format!("values are nested deeper than {MOST_DEPTH} levels, or an anchor contains itself")
        } else if self.alias_depth == 0 {
            return true;
        } else if self.budget.alias_nodes == 0 {
            "aliases add too many values: excessive aliasing".to_owned()
        } else {
            self.budget.alias_nodes -= 1;
            return true;
        };
        self.stopped = true;
        self.sink.error(at, &self.path, message);
        false
    }

    fn scalar(&mut self, text: &str, plain: bool, raw: &RawNode) -> Value {
        let tag = match &raw.tag {
            Tag::None => ScalarTag::None,
            Tag::Core(name) => ScalarTag::Core(name),
            Tag::Reset | Tag::Override | Tag::Other => ScalarTag::Other,
        };
        match scalar::resolve(text, plain, tag) {
            Ok(value) => value,
            Err(message) => {
                self.sink.error(raw.at, &self.path, message);
                Value::Null
            }
        }
    }

    fn list(&mut self, items: &[NodeId], in_override: bool) -> Value {
        let mut nodes = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            self.path.push_index(index);
            nodes.extend(self.build(*item, in_override));
            self.path.pop();
        }
        Value::Seq(nodes)
    }

    /// Adds the entries of a mapping to `map`; keys that are there already win, which is what merge keys need.
    fn mapping(&mut self, entries: &[(NodeId, NodeId)], in_override: bool, map: &mut Map) {
        let mut seen: HashMap<&str, u32> = HashMap::with_capacity(entries.len());
        let mut merges = Vec::new();
        let nodes = self.nodes;
        for (key_id, value_id) in entries {
            let key = &nodes[self.target(*key_id) as usize];
            let RawKind::Scalar { text, plain } = &key.kind else {
                self.sink
                    .error(key.at, &self.path, "a list or mapping cannot be a key");
                continue;
            };
            if let Some(line) = seen.insert(text, key.at.line) {
                let path = self.path.key(text);
                self.sink.error(
                    key.at,
                    &path,
                    format!("mapping key \"{text}\" already defined at line {line}"),
                );
                continue;
            }
            let is_merge = match &key.tag {
                Tag::None => *plain,
                Tag::Core(name) => name == "merge",
                _ => false,
            };
            if text == "<<" && is_merge {
                merges.push(*value_id);
                continue;
            }
            let resolved = self.scalar(text, *plain, key);
            if !matches!(resolved, Value::Str(_)) {
                let place = if self.path.len() == 0 {
                    "at top level".to_owned()
                } else {
                    format!("in {}", self.path)
                };
                let message = format!("non-string key {place}: {text}");
                self.sink
                    .error_with_hint(key.at, &self.path.key(text), message, "quote the key");
                continue;
            }
            self.path.push_key(text);
            let value = self.build(*value_id, in_override);
            self.path.pop();
            if let Some(mut value) = value
                && !map.contains_key(text)
            {
                value.key_at = key.at;
                map.insert(text.clone(), value);
            }
        }
        for value_id in merges {
            self.merge(value_id, in_override, map);
        }
    }

    /// Applies `<<`: a mapping, an alias of one, or a list of those, the earlier before the later.
    fn merge(&mut self, id: NodeId, in_override: bool, map: &mut Map) {
        let target = self.target(id);
        let nodes = self.nodes;
        let raw = &nodes[target as usize];
        if raw.tag == Tag::Reset {
            return;
        }
        if self.stopped || !self.within_bounds(raw.at) {
            return;
        }
        self.depth += 1;
        self.alias_depth += usize::from(target != id);
        match &raw.kind {
            RawKind::Mapping(entries) => self.mapping(entries, in_override, map),
            RawKind::List(items) => {
                for item in items {
                    let is_mapping = matches!(nodes[self.target(*item) as usize].kind, RawKind::Mapping(_));
                    if is_mapping {
                        self.merge(*item, in_override, map);
                    } else {
                        self.wrong_merge(nodes[*item as usize].at);
                    }
                }
            }
            RawKind::Scalar { .. } | RawKind::Alias(_) => self.wrong_merge(raw.at),
        }
        self.alias_depth -= usize::from(target != id);
        self.depth -= 1;
    }

    fn wrong_merge(&mut self, at: Position) {
        self.sink.error(
            at,
            &self.path.key("<<"),
            "map merge requires map or sequence of maps as the value",
        );
    }

    /// Follows aliases to the node they stand for.
    fn target(&self, id: NodeId) -> NodeId {
        let mut id = id;
        // An alias can only name an earlier anchor, so this ends; the bound is for a parser that would break that.
        for _ in 0..MOST_DEPTH {
            match self.nodes[id as usize].kind {
                RawKind::Alias(target) => id = target,
                _ => break,
            }
        }
        id
    }
}
