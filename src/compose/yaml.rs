//! From YAML text to trees: events of the parser crate, anchors, merge keys, `!reset` and `!override`.
//!
//! The only file that knows the parser; everything it may cost (nodes, depth, alias copies) is bounded here.

use std::collections::HashMap;

use granit_parser::{Event, Marker, Options, Parser, ScalarStyle, ScanError, Tag as ParserTag};

use super::diagnostic::Sink;
use super::node::{Node, Position};
use super::path::YamlPath;

/// The deepest nesting, after aliases are copied.
const MOST_DEPTH: usize = 200;

mod build;

use build::Builder;

/// What one load may still cost; shared by all files of a project.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Values in files, before aliases are copied.
    pub(crate) nodes: usize,
    /// Values that aliases add.
    pub(crate) alias_nodes: usize,
    /// Values that `extends` copies.
    pub(crate) copied_nodes: usize,
    /// Ports that ranges stand for.
    pub(crate) ports: usize,
    /// Documents of files.
    pub(crate) documents: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            nodes: 500_000,
            alias_nodes: 100_000,
            copied_nodes: 500_000,
            ports: 200_000,
            documents: 1_000,
        }
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
    let mut reader = Reader {
        file,
        nodes: Vec::new(),
        anchors: HashMap::new(),
    };
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
                    (
                        RawKind::Scalar {
                            text: text.into_owned(),
                            plain,
                        },
                        anchor,
                        tag,
                    )
                }
                Event::Alias(anchor) => match self.anchors.get(&anchor) {
                    Some(target) => (RawKind::Alias(*target), 0, None),
                    None => return (roots, Some((at, "unknown anchor".to_owned()))),
                },
                Event::SequenceStart(_, anchor, tag) => (RawKind::List(Vec::new()), anchor, tag),
                Event::MappingStart(_, anchor, tag) => (RawKind::Mapping(Vec::new()), anchor, tag),
                Event::DocumentStart(..) => {
                    let Some(rest) = budget.documents.checked_sub(1) else {
                        return (
                            roots,
                            Some((at, "the files of the project have too many documents".to_owned())),
                        );
                    };
                    budget.documents = rest;
                    continue;
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    open.pop();
                    continue;
                }
                _ => continue,
            };
            if budget.nodes == 0 {
                return (
                    roots,
                    Some((at, "the files of the project have too many values".to_owned())),
                );
            }
            budget.nodes -= 1;
            let is_collection = matches!(kind, RawKind::List(_) | RawKind::Mapping(_));
            let id = self.add(
                RawNode {
                    kind,
                    tag: read_tag(tag.as_deref()),
                    at,
                },
                anchor,
            );
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
            prefixed: false,
        }
    }

    fn failure(&self, error: &ScanError) -> (Position, String) {
        (
            self.position(*error.marker()),
            format!("not valid YAML: {}", error.info()),
        )
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

#[cfg(test)]
mod tests;
