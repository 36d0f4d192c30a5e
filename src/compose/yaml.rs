//! From YAML text to trees: events of the parser crate, anchors, merge keys, `!reset` and `!override`.
//!
//! The only file that knows the parser; everything it may cost (nodes, depth, alias copies) is bounded here.

use std::collections::HashMap;

use granit_parser::{Event, Marker, Options, Parser, ScalarStyle, ScanError, Tag as ParserTag};

use super::diagnostic::Sink;
use super::node::{Map, Node, Position, Value};
use super::path::{Segment, YamlPath};
use super::scalar::{self, ScalarTag};

/// The deepest nesting, after aliases are copied.
const MOST_DEPTH: usize = 200;

/// What one load may still cost; shared by all files of a project.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Values in files, before aliases are copied.
    pub(crate) nodes: usize,
    /// Values that aliases add.
    pub(crate) alias_nodes: usize,
    /// Values that `extends` copies.
    pub(crate) copied_nodes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { nodes: 500_000, alias_nodes: 100_000, copied_nodes: 500_000 }
    }
}

/// One document of a file.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) root: Node,
    /// Where `!reset` or `!override` stood: the paths to delete from what was loaded before.
    pub(crate) resets: Vec<YamlPath>,
}

/// Reads all documents of a file; mistakes go to `sink`, and a document with a mistake is still returned.
pub(crate) fn parse(text: &str, file: u16, budget: &mut Budget, sink: &mut Sink) -> Vec<Document> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { file, nodes: Vec::new(), anchors: HashMap::new() };
    let (roots, failure) = reader.read(text, budget);
    if let Some((at, message)) = failure {
        sink.error(at, &YamlPath::new(), message);
        return Vec::new();
    }
    let mut documents = Vec::new();
    for root in roots {
        let mut builder = Builder::new(&reader.nodes, budget, sink);
        let node = builder.build(root, false).unwrap_or_default();
        let resets = builder.resets;
        documents.push(Document { root: node, resets });
    }
    documents
}

type NodeId = u32;

/// A node as the parser gives it: aliases are not copied, scalars not resolved.
struct RawNode {
    kind: RawKind,
    tag: Tag,
    at: Position,
}

enum RawKind {
    Scalar { text: String, plain: bool },
    List(Vec<NodeId>),
    Mapping(Vec<(NodeId, NodeId)>),
    Alias(NodeId),
}

#[derive(PartialEq, Eq)]
enum Tag {
    None,
    Reset,
    Override,
    Core(String),
    Other,
}

/// Collects events into [`RawNode`]s.
struct Reader {
    file: u16,
    nodes: Vec<RawNode>,
    anchors: HashMap<usize, NodeId>,
}

/// A collection that is not closed yet.
struct Open {
    id: NodeId,
    /// The key that waits for its value, in a mapping.
    key: Option<NodeId>,
}

impl Reader {
    /// Returns the roots of the documents, and what stopped the reading.
    fn read(&mut self, text: &str, budget: &mut Budget) -> (Vec<NodeId>, Option<(Position, String)>) {
        let mut options = Options::default();
        options.emit_comments = false;
        options.block_scalar_eof_without_line_feed = true;
        options.flow_nesting_limit = MOST_DEPTH;
        options.block_nesting_limit = MOST_DEPTH;
        let mut roots = Vec::new();
        let mut open: Vec<Open> = Vec::new();
        for event in Parser::new_from_str_with_options(text, options) {
            let (event, span) = match event {
                Ok(event) => event,
                Err(error) => return (roots, Some(self.failure(&error))),
            };
            let at = self.position(span.start);
            let (kind, anchor, tag) = match event {
                Event::Scalar(text, style, anchor, tag) => {
                    let plain = style == ScalarStyle::Plain;
                    (RawKind::Scalar { text: text.into_owned(), plain }, anchor, tag)
                }
                Event::Alias(anchor) => match self.anchors.get(&anchor) {
                    Some(target) => (RawKind::Alias(*target), 0, None),
                    None => return (roots, Some((at, "unknown anchor".to_owned()))),
                },
                Event::SequenceStart(_, anchor, tag) => (RawKind::List(Vec::new()), anchor, tag),
                Event::MappingStart(_, anchor, tag) => (RawKind::Mapping(Vec::new()), anchor, tag),
                Event::SequenceEnd | Event::MappingEnd => {
                    open.pop();
                    continue;
                }
                _ => continue,
            };
            if budget.nodes == 0 {
                return (roots, Some((at, "the files of the project have too many values".to_owned())));
            }
            budget.nodes -= 1;
            let is_collection = matches!(kind, RawKind::List(_) | RawKind::Mapping(_));
            let id = self.add(RawNode { kind, tag: read_tag(tag.as_deref()), at }, anchor);
            self.attach(id, &mut open, &mut roots);
            if is_collection {
                open.push(Open { id, key: None });
            }
        }
        (roots, None)
    }

    fn add(&mut self, node: RawNode, anchor: usize) -> NodeId {
        let id = NodeId::try_from(self.nodes.len()).unwrap_or(NodeId::MAX);
        self.nodes.push(node);
        if anchor > 0 {
            self.anchors.insert(anchor, id);
        }
        id
    }

    fn attach(&mut self, id: NodeId, open: &mut [Open], roots: &mut Vec<NodeId>) {
        let Some(parent) = open.last_mut() else {
            roots.push(id);
            return;
        };
        match &mut self.nodes[parent.id as usize].kind {
            RawKind::List(items) => items.push(id),
            RawKind::Mapping(entries) => match parent.key.take() {
                Some(key) => entries.push((key, id)),
                None => parent.key = Some(id),
            },
            RawKind::Scalar { .. } | RawKind::Alias(_) => {}
        }
    }

    fn position(&self, mark: Marker) -> Position {
        Position {
            file: self.file,
            line: u32::try_from(mark.line()).unwrap_or(u32::MAX),
            column: u32::try_from(mark.col()).unwrap_or(u32::MAX).saturating_add(1),
        }
    }

    fn failure(&self, error: &ScanError) -> (Position, String) {
        (self.position(*error.marker()), format!("not valid YAML: {}", error.info()))
    }
}

fn read_tag(tag: Option<&ParserTag>) -> Tag {
    let Some(tag) = tag else { return Tag::None };
    if let Some(name) = tag.suffix_in_namespace("tag:yaml.org,2002:") {
        return Tag::Core(name.into_owned());
    }
    match (tag.handle(), tag.suffix()) {
        ("!", "reset") => Tag::Reset,
        ("!", "override") => Tag::Override,
        ("!", "") | ("", "!") => Tag::None,
        _ => Tag::Other,
    }
}

/// Copies aliases, applies merge keys, resolves scalars, and notes resets.
struct Builder<'a> {
    nodes: &'a [RawNode],
    budget: &'a mut Budget,
    sink: &'a mut Sink,
    path: YamlPath,
    resets: Vec<YamlPath>,
    depth: usize,
    alias_depth: usize,
    /// Set when a bound is hit, so that it is said once.
    stopped: bool,
}

impl<'a> Builder<'a> {
    fn new(nodes: &'a [RawNode], budget: &'a mut Budget, sink: &'a mut Sink) -> Self {
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
    fn build(&mut self, id: NodeId, in_override: bool) -> Option<Node> {
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
            if !self.path.segments().iter().any(|segment| matches!(segment, Segment::Index(_))) {
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
        Some(Node::new(value, raw.at))
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
                self.sink.error(key.at, &self.path, "a list or mapping cannot be a key");
                continue;
            };
            if let Some(line) = seen.insert(text, key.at.line) {
                let path = self.path.key(text);
                self.sink.error(key.at, &path, format!("mapping key \"{text}\" already defined at line {line}"));
                continue;
            }
            if text == "<<" && *plain && matches!(key.tag, Tag::None) {
                merges.push(*value_id);
                continue;
            }
            let resolved = self.scalar(text, *plain, key);
            if !matches!(resolved, Value::Str(_)) {
                let place = if self.path.len() == 0 { "at top level".to_owned() } else { format!("in {}", self.path) };
                let message = format!("non-string key {place}: {text}");
                self.sink.error_with_hint(key.at, &self.path.key(text), message, "quote the key");
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
        self.sink.error(at, &self.path.key("<<"), "map merge requires map or sequence of maps as the value");
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

#[cfg(test)]
mod tests;
