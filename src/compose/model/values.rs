//! The scalar types of the model: sizes, modes, commands, free values.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value as Json;

use super::codec::{Context, Decode, Encode, Style};
use crate::compose::node::{Node, Value};
use crate::compose::shellwords;
use crate::compose::trap::{self, Trap};
use crate::compose::units::{self, ComposeDuration};

/// A number of bytes; -1 stands for "no limit" where a key allows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(i64);

impl ByteSize {
    /// Makes a size.
    pub const fn new(bytes: i64) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub const fn bytes(self) -> i64 {
        self.0
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

impl Decode for ByteSize {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        match &node.value {
            Value::Int(bytes) => Self(*bytes),
            Value::Str(text) => match units::parse_bytes(text) {
                Ok(bytes) => Self(bytes),
                Err(message) => {
                    context.error(node, message);
                    Self(0)
                }
            },
            Value::Float(_) | Value::Float32(_) | Value::Uint(_) => {
                let traps = context.traps;
                trap::report(&traps, Trap::FloatBytes, node.at, &context.path, &node.to_text(), context.sink);
                Self(0)
            }
            Value::Null => Self(0),
            _ => {
                context.wrong(node, "a byte size");
                Self(0)
            }
        }
    }
}

impl Encode for ByteSize {
    fn encode(&self, _style: Style) -> Json {
        Json::String(self.0.to_string())
    }

    fn omit(&self, _style: Style) -> bool {
        self.0 == 0
    }
}

impl Decode for ComposeDuration {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        match Self::parse(&node.to_text()) {
            Ok(duration) => {
                if duration.as_nanos() < 0 {
                    let traps = context.traps;
                    let text = node.to_text();
                    trap::report(&traps, Trap::NegativeDuration, node.at, &context.path, &text, context.sink);
                }
                duration
            }
            Err(message) => {
                context.error(node, message);
                Self::default()
            }
        }
    }
}

impl Encode for ComposeDuration {
    fn encode(&self, _style: Style) -> Json {
        Json::String(self.to_string())
    }

    fn omit(&self, _style: Style) -> bool {
        self.as_nanos() == 0
    }
}

/// File permissions of a secret or config.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileMode(i64);

impl FileMode {
    /// Makes a mode of its bits.
    pub const fn new(bits: i64) -> Self {
        Self(bits)
    }

    /// Returns the bits, for example `0o440`.
    pub const fn bits(self) -> i64 {
        self.0
    }
}

impl fmt::Display for FileMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "0{:o}", self.0)
    }
}

impl Decode for FileMode {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        let bits = match &node.value {
            Value::Int(bits) => Some(*bits),
            Value::Str(text) => i64::from_str_radix(text, 8).ok(),
            _ => None,
        };
        Self(bits.unwrap_or_else(|| {
            context.error(node, format!("the mode {} is not octal", node.to_text()));
            0
        }))
    }
}

impl Encode for FileMode {
    fn encode(&self, _style: Style) -> Json {
        Json::String(self.to_string())
    }
}

/// A command or entrypoint: not given (the image's is used), or a list that may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CommandLine(Option<Vec<String>>);

impl CommandLine {
    /// Makes a command of words.
    pub fn new(words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(Some(words.into_iter().map(Into::into).collect()))
    }

    /// Returns the words; none when the image decides.
    pub fn words(&self) -> Option<&[String]> {
        self.0.as_deref()
    }
}

impl Decode for CommandLine {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        match &node.value {
            Value::Null => Self(None),
            Value::Str(text) => match shellwords::split(text) {
                Ok(split) => {
                    if let Some(dropped) = &split.dropped {
                        let traps = context.traps;
                        trap::report(&traps, Trap::CutCommand, node.at, &context.path, dropped.trim(), context.sink);
                    }
                    Self(Some(split.words))
                }
                Err(message) => {
                    context.error(node, message);
                    Self(None)
                }
            },
            _ => Self(Some(Decode::decode(node, context))),
        }
    }
}

impl Encode for CommandLine {
    fn encode(&self, style: Style) -> Json {
        self.0.encode(style)
    }

    fn omit(&self, style: Style) -> bool {
        style == Style::Yaml && self.0.is_none()
    }
}

/// Host names and their addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(BTreeMap<String, Vec<String>>);

impl Hosts {
    /// Iterates over the hosts, sorted, and their addresses as written.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.0.iter().map(|(host, addresses)| (host.as_str(), addresses.as_slice()))
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
        let lines = self.iter().flat_map(|(host, addresses)| {
            addresses.iter().map(move |address| format!("{host}={address}"))
        });
        let mut lines: Vec<String> = lines.collect();
        lines.sort();
        Json::Array(lines.into_iter().map(Json::String).collect())
    }

    fn omit(&self, _style: Style) -> bool {
        self.is_empty()
    }
}

/// A value whose text is kept out of logs and output.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretValue(String);

impl SecretValue {
    /// Returns the text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretValue(..)")
    }
}

impl Decode for SecretValue {
    fn decode(node: &Node, _context: &mut Context<'_>) -> Self {
        Self(node.to_text())
    }
}

impl Encode for SecretValue {
    fn encode(&self, _style: Style) -> Json {
        Json::Null
    }

    fn omit(&self, _style: Style) -> bool {
        true
    }
}

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
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        match &node.value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Uint(value) => Self::Uint(*value),
            Value::Float(value) => Self::Float(*value),
            Value::Float32(value) => Self::Float(f64::from(*value)),
            Value::Str(text) | Value::Time(text) => Self::String(text.clone()),
            Value::Seq(items) => Self::List(items.iter().map(|item| Self::decode(item, context)).collect()),
            Value::Map(map) => {
                Self::Map(map.iter().map(|(key, node)| (key.clone(), Self::decode(node, context))).collect())
            }
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
            Self::List(items) => items.encode(style),
            Self::Map(entries) => {
                let mut entries: Vec<_> = entries.iter().map(|(key, value)| (key.clone(), value.encode(style))).collect();
                entries.sort_by(|left, right| left.0.cmp(&right.0));
                Json::Object(entries.into_iter().collect())
            }
        }
    }
}

/// Writes a float as Go's JSON does: a whole one without a dot. What JSON cannot hold becomes null.
#[expect(clippy::cast_possible_truncation, reason = "the fraction is zero and the size is checked")]
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
                    None => context.error(item, format!("invalid additional host, missing IP: {text}")),
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
        let inner = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).filter(|inner| !inner.is_empty());
        inner.map(str::to_owned).unwrap_or(address)
    });
    hosts.entry(host.to_owned()).or_default().extend(bare);
}
