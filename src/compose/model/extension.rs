//! Values of `x-` keys, which may be anything.

use serde::{Serialize, Serializer};
use serde_json::Value as Json;

use super::codec::{Context, Decode, Encode, Style};
use crate::compose::gofmt;
use crate::compose::node::{Node, Value};

/// A value of an `x-` key.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum ExtensionValue {
    /// No value.
    #[default]
    Null,
    /// A flag.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer above `i64::MAX`.
    Uint(u64),
    /// A float.
    Float(f64),
    /// Text.
    String(String),
    /// A list.
    List(Vec<ExtensionValue>),
    /// A mapping, in the order of the file.
    Map(Vec<(String, ExtensionValue)>),
}

impl Decode for ExtensionValue {
    fn decode(node: &Node, _context: &mut Context<'_>) -> Self {
        Self::of(node)
    }
}

impl ExtensionValue {
    fn of(node: &Node) -> Self {
        match &node.value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Uint(value) => Self::Uint(*value),
            Value::Float(value) => Self::Float(*value),
            Value::Float32(value) => Self::Float(f64::from(*value)),
            Value::Str(text) => Self::String(text.clone()),
            Value::Time(text) => Self::String(gofmt::rfc3339(text)),
            Value::Seq(items) => Self::List(items.iter().map(Self::of).collect()),
            Value::Map(map) => Self::Map(
                map.iter()
                    .map(|(key, node)| (key.clone(), Self::of(node)))
                    .collect(),
            ),
        }
    }
}

impl Encode for ExtensionValue {
    fn encode(&self, style: Style) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Int(value) => Json::from(*value),
            Self::Uint(value) => Json::from(*value),
            Self::Float(value) => encode_float(*value),
            Self::String(text) => Json::String(text.clone()),
            // The reference drops empty values before it prints, and its JSON shows what is left of an empty list.
            Self::List(items) if items.is_empty() && matches!(style, Style::Json) => Json::Null,
            Self::List(items) => items.encode(style),
            Self::Map(entries) => {
                let mut entries: Vec<_> = entries
                    .iter()
                    .map(|(key, value)| (key.clone(), value.encode(style)))
                    .collect();
                entries.sort_by(|left, right| left.0.cmp(&right.0));
                Json::Object(entries.into_iter().collect())
            }
        }
    }
}

/// Writes a float as Go's JSON does: a whole one without a dot. What JSON cannot hold becomes null.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the fraction is zero and the size is checked"
)]
pub(crate) fn encode_float(value: f64) -> Json {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return Json::from(value as i64);
    }
    Json::from(value)
}

impl Serialize for ExtensionValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.encode(Style::Yaml).serialize(serializer)
    }
}
