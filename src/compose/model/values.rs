//! The scalar types of the model: sizes, modes, commands, free values.

use std::fmt;

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
                trap::report(
                    traps,
                    Trap::FloatBytes,
                    node.at,
                    &context.path,
                    &node.to_text(),
                    context.sink,
                );
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
                    trap::report(
                        traps,
                        Trap::NegativeDuration,
                        node.at,
                        &context.path,
                        &text,
                        context.sink,
                    );
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
        // The reference puts the zero before a sign too.
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(formatter, "0{sign}{:o}", self.0.unsigned_abs())
    }
}

impl Decode for FileMode {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        let bits = match &node.value {
            Value::Int(bits) => {
                warn_decimal_mode(node, *bits, context);
                Some(*bits)
            }
            Value::Str(text) => i64::from_str_radix(text, 8).ok(),
            _ => None,
        };
        Self(bits.unwrap_or_else(|| {
            context.error(node, format!("the mode {} is not octal", node.to_text()));
            0
        }))
    }
}

/// Warns of a mode such as `440`, which is not `0440`.
pub(super) fn warn_decimal_mode(node: &Node, bits: i64, context: &mut Context<'_>) {
    if bits > 7 && !node.at.prefixed && node.at.line > 0 {
        let traps = context.traps;
        trap::report(
            traps,
            Trap::DecimalMode,
            node.at,
            &context.path,
            &bits.to_string(),
            context.sink,
        );
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
                        trap::report(
                            traps,
                            Trap::CutCommand,
                            node.at,
                            &context.path,
                            dropped.trim(),
                            context.sink,
                        );
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

/// A value whose text is kept out of logs and output.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretValue(String);

impl SecretValue {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

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
