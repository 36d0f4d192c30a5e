//! Provider options in JSON, brought to the texts that the flags of the same meaning take.

use crate::spec::Value;

use super::table::Shape;

/// What an option says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Texts(Vec<String>),
    Switch(bool),
    Fields(Vec<Vec<(String, String)>>),
}

/// Reads a value; the error says what it should have been.
pub(super) fn said(value: &Value, shape: Shape) -> Result<Said, String> {
    match (shape, value) {
        (Shape::Switch, Value::Bool(on)) => Ok(Said::Switch(*on)),
        (Shape::Switch, _) => Err("it must be true or false".to_owned()),
        (Shape::One | Shape::OneOrMany, value) if !value.is_array() => {
            scalar(value).map(|text| Said::Texts(vec![text]))
        }
        (Shape::Many | Shape::OneOrMany | Shape::Pairs(_), Value::Array(list)) => {
            texts(list).map(Said::Texts)
        }
        (Shape::Pairs(between), Value::Object(map)) => map
            .iter()
            .map(|(name, value)| match value {
                // A text may be only a name: a folder of memory without options.
                Value::Null if between == ':' => Ok(name.clone()),
                Value::Object(limits) => both(limits).map(|limits| format!("{name}{between}{limits}")),
                value => scalar(value).map(|value| format!("{name}{between}{value}")),
            })
            .collect::<Result<_, _>>()
            .map(Said::Texts),
        (Shape::Pairs(_), _) => Err("it must be a map or a list of texts".to_owned()),
        (Shape::Maps, Value::Array(list)) => list
            .iter()
            .map(|entry| match entry {
                Value::Object(map) => map
                    .iter()
                    .map(|(name, value)| Ok((name.replace('_', "-"), scalar(value)?)))
                    .collect(),
                _ => Err("each must be a map".to_owned()),
            })
            .collect::<Result<_, _>>()
            .map(Said::Fields),
        (Shape::Maps, _) => Err("it must be a list of maps".to_owned()),
        (Shape::OneOrMany, _) => Err("it must be a text or a list of texts".to_owned()),
        (Shape::Many, _) => Err("it must be a list of texts".to_owned()),
        (Shape::One, _) => Err("it must be a text or a number".to_owned()),
    }
}

/// `{soft: .., hard: ..}` of a ulimit.
fn both(limits: &crate::spec::Mapping) -> Result<String, String> {
    match (limits.get("soft"), limits.get("hard"), limits.len()) {
        (Some(soft), Some(hard), 2) => Ok(format!("{}:{}", scalar(soft)?, scalar(hard)?)),
        _ => Err("a map in it must have `soft` and `hard`".to_owned()),
    }
}

fn scalar(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(on) => Ok(on.to_string()),
        _ => Err("it must be a text or a number".to_owned()),
    }
}

fn texts(list: &[Value]) -> Result<Vec<String>, String> {
    list.iter()
        .map(|entry| match entry {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            _ => Err("each must be a text".to_owned()),
        })
        .collect()
}
