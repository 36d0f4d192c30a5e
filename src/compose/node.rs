//! The untyped tree every stage works on: YAML values with their positions.
//!
//! Knows nothing about Compose keys or about the YAML parser.

use indexmap::IndexMap;

use super::gofmt;
use super::path::{Segment, YamlPath};

/// Where a node starts: source file number, line and column from 1. Line 0 means "nowhere in a file".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) file: u16,
    pub(crate) line: u32,
    pub(crate) column: u32,
    /// Whether the scalar there is a number with a base prefix, such as `0440` or `0x1F`.
    pub(crate) prefixed: bool,
}

/// A mapping, in the order of the file.
pub(crate) type Map = IndexMap<String, Node>;

/// A value and where it was written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) value: Value,
    /// Start of the value.
    pub(crate) at: Position,
    /// Start of the key this node is the value of, or of the value itself.
    pub(crate) key_at: Position,
}

/// A YAML value as go-yaml resolves it.
#[derive(Clone, Debug, Default)]
pub(crate) enum Value {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    /// An integer above `i64::MAX`.
    Uint(u64),
    Float(f64),
    /// A 32-bit float, which only a cast makes.
    Float32(f32),
    Str(String),
    /// An unquoted date or time, which Compose accepts nowhere; the text Go prints for it.
    Time(String),
    Seq(Vec<Node>),
    Map(Box<Map>),
}

impl Node {
    pub(crate) fn new(value: Value, at: Position) -> Self {
        Self {
            value,
            at,
            key_at: at,
        }
    }

    pub(crate) fn string(text: impl Into<String>, at: Position) -> Self {
        Self::new(Value::Str(text.into()), at)
    }

    pub(crate) fn map(map: Map, at: Position) -> Self {
        Self::new(Value::Map(Box::new(map)), at)
    }

    pub(crate) fn seq(items: Vec<Node>, at: Position) -> Self {
        Self::new(Value::Seq(items), at)
    }

    /// Makes a mapping of strings and booleans written by a short form.
    pub(crate) fn with_entries(
        entries: impl IntoIterator<Item = (&'static str, Value)>,
        at: Position,
    ) -> Self {
        let map = entries
            .into_iter()
            .map(|(key, value)| (key.to_owned(), Self::new(value, at)))
            .collect();
        Self::map(map, at)
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_map(&self) -> Option<&Map> {
        match &self.value {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    pub(crate) fn as_map_mut(&mut self) -> Option<&mut Map> {
        match &mut self.value {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    pub(crate) fn as_seq(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Seq(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn as_seq_mut(&mut self) -> Option<&mut Vec<Node>> {
        match &mut self.value {
            Value::Seq(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the value of a key, when this is a mapping that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.as_map()?.get(key)
    }

    /// Returns where the node at `path` is written, or the nearest parent that is written somewhere.
    pub(crate) fn position_of(&self, path: &YamlPath) -> Position {
        let mut best = self.at;
        let mut node = self;
        for segment in path.segments() {
            let child = match segment {
                Segment::Key(key) => node.get(key),
                Segment::Index(index) => node.as_seq().and_then(|items| items.get(*index)),
            };
            let Some(child) = child else { break };
            node = child;
            if node.key_at.line > 0 {
                best = node.key_at;
            } else if node.at.line > 0 {
                best = node.at;
            }
        }
        best
    }

    /// Takes the node at a path out of the tree; list positions are kept by leaving a null.
    pub(crate) fn remove(&mut self, path: &[Segment]) {
        let Some((last, parents)) = path.split_last() else {
            self.value = Value::Map(Box::default());
            return;
        };
        let mut node = self;
        for segment in parents {
            let child = match segment {
                Segment::Key(key) => node.as_map_mut().and_then(|map| map.get_mut(key)),
                Segment::Index(index) => node.as_seq_mut().and_then(|items| items.get_mut(*index)),
            };
            let Some(child) = child else { return };
            node = child;
        }
        match last {
            Segment::Key(key) => {
                if let Some(map) = node.as_map_mut() {
                    map.shift_remove(key);
                }
            }
            Segment::Index(index) => {
                if let Some(items) = node.as_seq_mut()
                    && *index < items.len()
                {
                    items.remove(*index);
                }
            }
        }
    }

    /// Names the kind of value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Int(_) | Value::Uint(_) => "integer",
            Value::Float(_) | Value::Float32(_) => "number",
            Value::Str(_) => "string",
            Value::Time(_) => "date",
            Value::Seq(_) => "list",
            Value::Map(_) => "mapping",
        }
    }

    /// Prints a scalar the way Go's `%v` does; lists and mappings print as their kind.
    pub(crate) fn to_text(&self) -> String {
        match &self.value {
            Value::Null => "<nil>".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Uint(value) => value.to_string(),
            Value::Float(value) => gofmt::float64(*value),
            Value::Float32(value) => gofmt::float32(*value),
            Value::Str(text) | Value::Time(text) => text.clone(),
            Value::Seq(items) => {
                let items: Vec<_> = items.iter().map(Node::to_text).collect();
                format!("[{}]", items.join(" "))
            }
            Value::Map(map) => {
                let mut entries: Vec<_> = map
                    .iter()
                    .map(|(key, node)| format!("{key}:{}", node.to_text()))
                    .collect();
                entries.sort();
                format!("map[{}]", entries.join(" "))
            }
        }
    }

    /// Compares values, not positions, as Go's `reflect.DeepEqual` does.
    pub(crate) fn same_value(&self, other: &Self) -> bool {
        self.value.same(&other.value)
    }
}

impl Value {
    #[expect(
        clippy::float_cmp,
        reason = "equal means written equally; no arithmetic is involved"
    )]
    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(left), Self::Bool(right)) => left == right,
            (Self::Int(left), Self::Int(right)) => left == right,
            (Self::Uint(left), Self::Uint(right)) => left == right,
            (Self::Float(left), Self::Float(right)) => left == right,
            (Self::Float32(left), Self::Float32(right)) => left == right,
            (Self::Str(left), Self::Str(right)) | (Self::Time(left), Self::Time(right)) => left == right,
            (Self::Seq(left), Self::Seq(right)) => {
                left.len() == right.len()
                    && left.iter().zip(right).all(|(left, right)| left.same_value(right))
            }
            (Self::Map(left), Self::Map(right)) => {
                left.len() == right.len()
                    && left
                        .iter()
                        .all(|(key, node)| right.get(key).is_some_and(|other| node.same_value(other)))
            }
            _ => false,
        }
    }
}
