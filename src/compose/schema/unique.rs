//! Which items of a list are the same.

use std::collections::HashSet;

use crate::compose::node::{Node, Value};
use crate::compose::units::parse_float;

/// The items of a list that have been seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    prints: HashSet<String>,
    /// Texts that read as numbers: to the reference a number repeats its text that came before, but not the other way round.
    numbers: HashSet<u64>,
}

impl Seen {
    /// Returns false for an item that is there already.
    pub(super) fn add(&mut self, node: &Node) -> bool {
        let repeats_text = match &node.value {
            Value::Str(text) => {
                self.numbers.extend(parse_float(text).map(f64::to_bits));
                false
            }
            Value::Int(_) | Value::Uint(_) | Value::Float(_) => {
                parse_float(&node.to_text()).is_some_and(|number| self.numbers.contains(&number.to_bits()))
            }
            _ => false,
        };
        self.prints.insert(fingerprint(node)) && !repeats_text
    }
}

/// Prints a node so that equal nodes print equally.
fn fingerprint(node: &Node) -> String {
    match &node.value {
        Value::Str(text) => format!("{text:?}"),
        Value::Seq(items) => format!(
            "[{}]",
            items.iter().map(fingerprint).collect::<Vec<_>>().join(",")
        ),
        Value::Map(map) => {
            let mut entries: Vec<_> = map
                .iter()
                .map(|(key, node)| format!("{key:?}:{}", fingerprint(node)))
                .collect();
            entries.sort();
            format!("{{{}}}", entries.join(","))
        }
        _ => node.to_text(),
    }
}
