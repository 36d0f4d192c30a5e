//! Checks that a merged tree has only the keys and types of the Compose Specification.
//!
//! The keys are in the tables of shapes.rs and service.rs; this file only walks. What is wrong is reported and taken
//! out of the tree, so that later stages neither stumble over it nor complain again.

use super::diagnostic::Sink;
use super::node::{Map, Node, Value};
use super::path::{Segment, YamlPath};

mod build;
mod deploy;
mod mount;
mod patterns;
mod service;
mod shapes;
mod suggest;
mod unique;

pub(crate) use shapes::PROJECT;
use suggest::nearest;
use unique::Seen;

/// What a node may be.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A scalar of one of these types.
    Scalar(Types),
    /// A scalar of one of these types, and a condition on it.
    Checked(Types, Check),
    /// A list.
    List { items: &'static Shape, unique: bool },
    /// A mapping with known keys.
    Object(&'static Object),
    /// A mapping whose keys the author chooses.
    Named {
        keys: KeyRule,
        values: &'static Shape,
        closed: bool,
    },
    /// One of several shapes, told apart by type.
    OneOf(&'static [Shape]),
}

/// A mapping with known keys.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) keys: &'static [(&'static str, Shape)],
    pub(crate) required: &'static [&'static str],
    /// Whether `x-` keys may be added.
    pub(crate) extensions: bool,
    /// Whether any key may be added.
    pub(crate) open: bool,
}

/// A set of YAML types, as bits.
pub(crate) type Types = u8;
pub(crate) const STRING: Types = 1;
pub(crate) const NUMBER: Types = 2;
pub(crate) const INTEGER: Types = 4;
pub(crate) const BOOLEAN: Types = 8;
pub(crate) const NULL: Types = 16;
const LIST: Types = 32;
const MAPPING: Types = 64;

const TYPE_NAMES: &[(Types, &str)] = &[
    (LIST, "array"),
    (BOOLEAN, "boolean"),
    (INTEGER, "integer"),
    (MAPPING, "mapping"),
    (NULL, "null"),
    (NUMBER, "number"),
    (STRING, "string"),
];

/// A condition on a scalar of the right type.
#[derive(Debug)]
pub(crate) enum Check {
    /// One of these strings.
    Enum(&'static [&'static str]),
    /// A string with this property.
    Text(fn(&str) -> bool, &'static str),
    /// A number within these bounds; strings are not looked at.
    Range(i64, i64),
}

/// Which names an author may give.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyRule {
    /// Letters, digits, dot, dash and underscore.
    Name,
    /// Lower-case letters.
    LowerCase,
    /// Anything that is not empty.
    NotEmpty,
}

impl KeyRule {
    fn fits(self, key: &str) -> bool {
        !key.is_empty()
            && match self {
                Self::Name => key
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')),
                Self::LowerCase => key.chars().all(|c| c.is_ascii_lowercase()),
                Self::NotEmpty => key.chars().any(|c| c != '\n'),
            }
    }
}

/// Validates a whole project tree and takes out what is wrong.
pub(crate) fn validate(root: &mut Node, sink: &mut Sink) {
    let mut walk = Walk {
        sink,
        path: YamlPath::new(),
        wrong: Vec::new(),
    };
    walk.shape(&PROJECT, root);
    let mut wrong = walk.wrong;
    // List positions shift when an element goes: remove from the back.
    wrong.reverse();
    for path in &wrong {
        root.remove(path);
    }
}

struct Walk<'a> {
    sink: &'a mut Sink,
    path: YamlPath,
    wrong: Vec<Vec<Segment>>,
}

impl Walk<'_> {
    fn shape(&mut self, shape: &'static Shape, node: &Node) {
        if matches!(node.value, Value::Time(_)) {
            self.refuse(node, "invalid jsonType time.Time: an unquoted date", "quote it");
            return;
        }
        if types_of(node) & accepted(shape) == 0 {
            self.refuse(
                node,
                &format!("must be {}", type_names(accepted(shape))),
                hint_for(node, shape),
            );
            return;
        }
        match shape {
            Shape::Scalar(_) => {}
            Shape::Checked(_, check) => self.check(check, node),
            Shape::List { items, unique } => self.list(items, *unique, node),
            Shape::Object(object) => {
                if let Some(map) = node.as_map() {
                    self.object(object, map, node);
                }
            }
            Shape::Named { keys, values, closed } => {
                if let Some(map) = node.as_map() {
                    self.named(*keys, values, *closed, map);
                }
            }
            Shape::OneOf(shapes) => {
                let types = types_of(node);
                if let Some(fitting) = shapes.iter().find(|shape| accepted(shape) & types != 0) {
                    self.shape(fitting, node);
                }
            }
        }
    }

    fn object(&mut self, object: &'static Object, map: &Map, node: &Node) {
        for (key, child) in map {
            self.path.push_key(key);
            if let Some((_, shape)) = object.keys.iter().find(|(name, _)| name == key) {
                self.shape(shape, child);
            } else if !(object.open || object.extensions && key.starts_with("x-")) {
                let message = format!("additional properties '{key}' not allowed");
                // A likely name is looked for only where it will be said: a hostile file has many wrong keys.
                let meant = if self.sink.is_full() {
                    None
                } else {
                    nearest(key, object)
                };
                let hint = meant.map_or_else(String::new, |name| format!("did you mean `{name}`?"));
                self.refuse(child, &message, &hint);
            }
            self.path.pop();
        }
        for name in object.required {
            if !map.contains_key(*name) && !self.sink.is_poisoned(&self.path) {
                self.refuse(node, &format!("missing property '{name}'"), "");
            }
        }
    }

    fn named(&mut self, keys: KeyRule, values: &'static Shape, closed: bool, map: &Map) {
        for (key, child) in map {
            self.path.push_key(key);
            if keys.fits(key) {
                self.shape(values, child);
            } else if closed {
                let message = format!("additional properties '{key}' not allowed");
                self.refuse(
                    child,
                    &message,
                    "a name has letters, digits, `.`, `_` and `-` only",
                );
            }
            self.path.pop();
        }
    }

    fn list(&mut self, items: &'static Shape, unique: bool, node: &Node) {
        let nodes = node.as_seq().unwrap_or_default();
        let mut seen = Seen::default();
        for (index, child) in nodes.iter().enumerate() {
            self.path.push_index(index);
            self.shape(items, child);
            if unique && !seen.add(child) {
                self.refuse(child, "items must be unique: the same item is listed before", "");
            }
            self.path.pop();
        }
    }

    fn check(&mut self, check: &Check, node: &Node) {
        let number = match node.value {
            Value::Int(value) => Some(i128::from(value)),
            Value::Uint(value) => Some(i128::from(value)),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "only the comparison with small bounds matters"
            )]
            Value::Float(value) => Some(value as i128),
            _ => None,
        };
        match check {
            Check::Enum(values) => {
                if let Some(text) = node.as_str()
                    && !values.contains(&text)
                {
                    let values: Vec<_> = values.iter().map(|value| format!("'{value}'")).collect();
                    self.refuse(node, &format!("value must be one of {}", values.join(", ")), "");
                }
            }
            Check::Text(fits, description) => {
                if let Some(text) = node.as_str()
                    && !fits(text)
                {
                    self.refuse(
                        node,
                        &format!("'{text}' does not match pattern {description}"),
                        "",
                    );
                }
            }
            Check::Range(least, most) => {
                if number.is_some_and(|number| number < i128::from(*least)) {
                    self.refuse(node, &format!("must be greater than or equal to {least}"), "");
                } else if number.is_some_and(|number| number > i128::from(*most)) {
                    self.refuse(node, &format!("must be less than or equal to {most}"), "");
                }
            }
        }
    }

    fn refuse(&mut self, node: &Node, message: &str, hint: &str) {
        if hint.is_empty() {
            self.sink.error(node.key_at, &self.path, message);
        } else {
            self.sink.error_with_hint(node.key_at, &self.path, message, hint);
        }
        // What lies inside goes with it: list positions would be wrong once the outer node is gone.
        while self
            .wrong
            .last()
            .is_some_and(|last| last.starts_with(self.path.segments()))
        {
            self.wrong.pop();
        }
        self.wrong.push(self.path.segments().to_vec());
    }
}

fn types_of(node: &Node) -> Types {
    match &node.value {
        Value::Null => NULL,
        Value::Bool(_) => BOOLEAN,
        Value::Int(_) | Value::Uint(_) => NUMBER | INTEGER,
        Value::Float(value) if value.fract() == 0.0 => NUMBER | INTEGER,
        Value::Float(_) | Value::Float32(_) => NUMBER,
        Value::Str(_) | Value::Time(_) => STRING,
        Value::Seq(_) => LIST,
        Value::Map(_) => MAPPING,
    }
}

fn accepted(shape: &Shape) -> Types {
    match shape {
        Shape::Scalar(types) | Shape::Checked(types, _) => *types,
        Shape::List { .. } => LIST,
        Shape::Object(_) | Shape::Named { .. } => MAPPING,
        Shape::OneOf(shapes) => shapes.iter().map(accepted).fold(0, |all, types| all | types),
    }
}

/// Names the types, with an article.
fn type_names(types: Types) -> String {
    let names: Vec<_> = TYPE_NAMES
        .iter()
        .filter(|(bit, _)| types & bit != 0)
        .map(|(_, name)| *name)
        .collect();
    let article = match names.first() {
        Some(name) if name.starts_with(['a', 'i']) => "an",
        _ => "a",
    };
    match names.split_last() {
        Some((last, [])) => format!("{article} {last}"),
        Some((last, rest)) => format!("{article} {} or {last}", rest.join(", ")),
        None => "a value".to_owned(),
    }
}

fn hint_for(node: &Node, shape: &Shape) -> &'static str {
    let wants_text = accepted(shape) & STRING != 0;
    match node.value {
        Value::Null => "it has no value",
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Float(_) if wants_text => "quote it",
        _ => "",
    }
}

/// Lists every key path of the tables, for the documentation test: `services.*.build.context`.
#[cfg(test)]
pub(crate) fn all_key_paths() -> Vec<String> {
    fn visit(shape: &Shape, path: &str, found: &mut Vec<String>) {
        let join = |key: &str| {
            if path.is_empty() {
                key.to_owned()
            } else {
                format!("{path}.{key}")
            }
        };
        match shape {
            Shape::Object(object) => {
                for (key, shape) in object.keys {
                    let path = join(key);
                    found.push(path.clone());
                    visit(shape, &path, found);
                }
            }
            Shape::Named { values, .. } => visit(values, &join("*"), found),
            Shape::List { items, .. } => visit(items, &join("[]"), found),
            Shape::OneOf(shapes) => shapes.iter().for_each(|shape| visit(shape, path, found)),
            Shape::Scalar(_) | Shape::Checked(..) => {}
        }
    }
    let mut found = Vec::new();
    visit(&PROJECT, "", &mut found);
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests;
