//! How typed values are read from a tree and written as data.
//!
//! Reading follows the reference's decoder: strings become numbers and flags where a key needs them.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::compose::diagnostic::Sink;
use crate::compose::interpolate::{parse_boolean, parse_integer};
use crate::compose::node::{Node, Value};
use crate::compose::path::YamlPath;
use crate::compose::trap;
use crate::compose::units::parse_float;

/// Which of docker compose's two output forms is written; they differ in what they leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `x-` keys inside of services and resources are left out, empty nested mappings are kept.
    Json,
    /// The other way round.
    Yaml,
}

/// What reading needs to know and where it puts mistakes.
pub(crate) struct Context<'a> {
    pub(crate) sink: &'a mut Sink,
    pub(crate) path: YamlPath,
    pub(crate) traps: trap::Policy,
}

impl Context<'_> {
    /// Calls `visit` for every entry of a mapping; the path follows.
    pub(crate) fn entries(&mut self, node: &Node, mut visit: impl FnMut(&str, &Node, &mut Self)) {
        let Some(map) = node.as_map() else {
            if !node.is_null() {
                self.wrong(node, "a mapping");
            }
            return;
        };
        for (key, child) in map {
            self.path.push_key(key);
            visit(key, child, self);
            self.path.pop();
        }
    }

    /// Says that a value has the wrong type.
    pub(crate) fn wrong(&mut self, node: &Node, wanted: &str) {
        let message = format!("must be {wanted}, not a {}", node.kind());
        self.sink.error(node.key_at, &self.path, message);
    }

    /// Says what is wrong with a value.
    pub(crate) fn error(&mut self, node: &Node, message: impl Into<String>) {
        self.sink.error(node.at, &self.path, message);
    }
}

/// A value that is read from a canonical tree. A mistake is reported, and some value returned.
pub(crate) trait Decode: Sized {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self;
}

/// A value that is written as data.
pub(crate) trait Encode {
    fn encode(&self, style: Style) -> Json;

    /// Tells whether a field with this value is left out.
    fn omit(&self, _style: Style) -> bool {
        false
    }
}

impl Decode for String {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        match &node.value {
            Value::Str(text) => text.clone(),
            Value::Int(number) => number.to_string(),
            Value::Null => Self::new(),
            _ => {
                context.wrong(node, "a string");
                Self::new()
            }
        }
    }
}

impl Encode for String {
    fn encode(&self, _style: Style) -> Json {
        Json::String(self.clone())
    }

    fn omit(&self, _style: Style) -> bool {
        self.is_empty()
    }
}

impl Decode for bool {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        let value = match &node.value {
            Value::Bool(value) => Some(*value),
            Value::Null => Some(false),
            Value::Str(text) => parse_boolean(text),
            _ => None,
        };
        value.unwrap_or_else(|| {
            context.error(node, format!("invalid boolean: {}", node.to_text()));
            false
        })
    }
}

impl Encode for bool {
    fn encode(&self, _style: Style) -> Json {
        Json::Bool(*self)
    }

    fn omit(&self, _style: Style) -> bool {
        !self
    }
}

impl Decode for i64 {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        let value = match &node.value {
            Value::Int(value) => Some(*value),
            Value::Null => Some(0),
            Value::Uint(value) => Self::try_from(*value).ok(),
            #[expect(clippy::cast_possible_truncation, reason = "the reference truncates too")]
            Value::Float(value) => Some(*value as Self),
            Value::Str(text) => parse_integer(text),
            _ => None,
        };
        value.unwrap_or_else(|| {
            context.error(node, format!("must be an integer, not {}", node.to_text()));
            0
        })
    }
}

impl Encode for i64 {
    fn encode(&self, _style: Style) -> Json {
        Json::from(*self)
    }

    fn omit(&self, _style: Style) -> bool {
        *self == 0
    }
}

macro_rules! unsigned {
    ($type:ty) => {
        impl Decode for $type {
            fn decode(node: &Node, context: &mut Context<'_>) -> Self {
                // The reference casts text to signed numbers only.
                if let Value::Str(text) = &node.value {
                    let hint = "write the number without quotes";
                    context.sink.error_with_hint(
                        node.at,
                        &context.path,
                        format!("must be a number, not \"{text}\""),
                        hint,
                    );
                    return 0;
                }
                let number = i64::decode(node, context);
                Self::try_from(number).unwrap_or_else(|_| {
                    context.error(node, format!("{number} is out of range"));
                    0
                })
            }
        }

        impl Encode for $type {
            fn encode(&self, _style: Style) -> Json {
                Json::from(*self)
            }

            fn omit(&self, _style: Style) -> bool {
                *self == 0
            }
        }
    };
}
unsigned!(u64);
unsigned!(u32);
unsigned!(u16);

impl Decode for f32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "the reference holds 32 bits"
    )]
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        let value = match &node.value {
            Value::Float32(value) => Some(*value),
            Value::Float(value) => Some(*value as Self),
            Value::Int(value) => Some(*value as Self),
            Value::Uint(value) => Some(*value as Self),
            Value::Null => Some(0.0),
            Value::Str(text) => parse_float(text).map(|value| value as Self),
            _ => None,
        };
        value.unwrap_or_else(|| {
            context.error(node, format!("must be a number, not {}", node.to_text()));
            0.0
        })
    }
}

impl Encode for f32 {
    fn encode(&self, _style: Style) -> Json {
        encode_float32(*self)
    }

    fn omit(&self, _style: Style) -> bool {
        *self == 0.0
    }
}

/// Writes a 32-bit float with its own shortest digits, and a whole one as an integer, as Go does.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the fraction is zero and the size is checked"
)]
fn encode_float32(value: f32) -> Json {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return Json::from(value as i64);
    }
    value.to_string().parse::<f64>().map_or(Json::Null, Json::from)
}

impl<T: Decode> Decode for Option<T> {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        (!node.is_null()).then(|| T::decode(node, context))
    }
}

impl<T: Encode> Encode for Option<T> {
    fn encode(&self, style: Style) -> Json {
        self.as_ref().map_or(Json::Null, |value| value.encode(style))
    }

    fn omit(&self, _style: Style) -> bool {
        self.is_none()
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        match &node.value {
            Value::Null => Self::new(),
            Value::Seq(items) => {
                let mut values = Self::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    context.path.push_index(index);
                    values.push(T::decode(item, context));
                    context.path.pop();
                }
                values
            }
            // A single value where a list may be given: `tmpfs: /run`.
            Value::Str(_) => vec![T::decode(node, context)],
            _ => {
                context.wrong(node, "a list");
                Self::new()
            }
        }
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn encode(&self, style: Style) -> Json {
        Json::Array(self.iter().map(|value| value.encode(style)).collect())
    }

    fn omit(&self, _style: Style) -> bool {
        self.is_empty()
    }
}

impl<T: Decode + FromText> Decode for BTreeMap<String, T> {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        let mut values = Self::new();
        if let Value::Seq(items) = &node.value {
            for (index, item) in items.iter().enumerate() {
                context.path.push_index(index);
                let text = item.to_text();
                let (key, value) = match text.split_once('=') {
                    Some((key, value)) => (key, Some(value)),
                    None => (text.as_str(), None),
                };
                match T::from_text(value) {
                    Some(_) if T::CHECKS_BLANKS && key.ends_with(char::is_whitespace) => {
                        context.error(
                            item,
                            format!("environment variable {key} is declared with a trailing space"),
                        );
                    }
                    Some(value) => {
                        values.insert(key.to_owned(), value);
                    }
                    None => context.wrong(node, "a mapping"),
                }
                context.path.pop();
            }
            return values;
        }
        context.entries(node, |key, child, context| {
            values.insert(key.to_owned(), T::decode_value(child, context));
        });
        values
    }
}

impl<T: Encode> Encode for BTreeMap<String, T> {
    fn encode(&self, style: Style) -> Json {
        Json::Object(
            self.iter()
                .map(|(key, value)| (key.clone(), value.encode(style)))
                .collect(),
        )
    }

    fn omit(&self, _style: Style) -> bool {
        self.is_empty()
    }
}

/// How the values of a mapping are read, from a mapping or from a list of `KEY=value`.
pub(crate) trait FromText: Decode {
    /// Whether a blank at the end of a name is a mistake.
    const CHECKS_BLANKS: bool = false;

    /// Reads the text after `=`; none when this mapping has no list form.
    fn from_text(_text: Option<&str>) -> Option<Self> {
        None
    }

    fn decode_value(node: &Node, context: &mut Context<'_>) -> Self {
        Self::decode(node, context)
    }
}

impl FromText for String {
    fn from_text(text: Option<&str>) -> Option<Self> {
        Some(text.unwrap_or_default().to_owned())
    }

    fn decode_value(node: &Node, _context: &mut Context<'_>) -> Self {
        if node.is_null() {
            Self::new()
        } else {
            node.to_text()
        }
    }
}

impl FromText for Option<String> {
    const CHECKS_BLANKS: bool = true;

    fn from_text(text: Option<&str>) -> Option<Self> {
        Some(text.map(str::to_owned))
    }

    fn decode_value(node: &Node, _context: &mut Context<'_>) -> Self {
        (!node.is_null()).then(|| node.to_text())
    }
}

impl FromText for Vec<String> {
    fn decode_value(node: &Node, context: &mut Context<'_>) -> Self {
        match node.value {
            Value::Seq(_) | Value::Null => Self::decode(node, context),
            _ => vec![node.to_text()],
        }
    }
}
