//! Paths into a YAML tree, and the patterns the rule tables are written in.
//!
//! Knows nothing about Compose: a path is a list of segments, never a dotted string that a key with a dot could break.

use std::fmt;

/// One step from a YAML node to a child.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// The value of this key of a mapping.
    Key(String),
    /// The element at this position of a list, from 0.
    Index(usize),
}

/// Where a node is in a Compose file, from the top.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct YamlPath(Vec<Segment>);

impl YamlPath {
    /// Makes the path of the top node.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a path of mapping keys.
    pub fn of_keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self(keys.into_iter().map(|key| Segment::Key(key.to_owned())).collect())
    }

    /// Returns the segments, top first.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Returns this path with a mapping key added.
    pub fn key(&self, key: &str) -> Self {
        let mut path = self.clone();
        path.push_key(key);
        path
    }

    /// Returns this path with a list position added.
    pub fn index(&self, index: usize) -> Self {
        let mut path = self.clone();
        path.push_index(index);
        path
    }

    /// Tells whether this path is `prefix` or lies below it.
    pub fn starts_with(&self, prefix: &Self) -> bool {
        self.0.starts_with(&prefix.0)
    }

    pub(crate) fn push_key(&mut self, key: &str) {
        self.0.push(Segment::Key(key.to_owned()));
    }

    pub(crate) fn push_index(&mut self, index: usize) {
        self.0.push(Segment::Index(index));
    }

    pub(crate) fn pop(&mut self) {
        self.0.pop();
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the key at `depth`, when that segment is a key.
    pub(crate) fn key_at(&self, depth: usize) -> Option<&str> {
        match self.0.get(depth) {
            Some(Segment::Key(key)) => Some(key),
            _ => None,
        }
    }

    /// Tells whether this path has exactly the shape of `pattern`.
    pub(crate) fn matches(&self, pattern: Pattern) -> bool {
        self.0.len() == pattern.len()
            && self.0.iter().zip(pattern).all(|(segment, part)| match segment {
                Segment::Key(key) => *part == "*" || part == key,
                Segment::Index(_) => *part == "*" || *part == "[]",
            })
    }
}

/// A path pattern: `*` stands for any segment, `[]` for any list position.
pub(crate) type Pattern = &'static [&'static str];

/// Finds the rule for a path in a table of (pattern, rule).
pub(crate) fn lookup<T>(table: &'static [(Pattern, T)], path: &YamlPath) -> Option<&'static T> {
    table
        .iter()
        .find(|(pattern, _)| path.matches(pattern))
        .map(|(_, rule)| rule)
}

impl fmt::Display for YamlPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            if position > 0 {
                formatter.write_str(".")?;
            }
            match segment {
                Segment::Key(key) => formatter.write_str(key)?,
                Segment::Index(index) => write!(formatter, "{index}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_paths() {
        let path = YamlPath::of_keys(["services", "a.b", "ports"]).index(0);
        assert!(path.matches(&["services", "*", "ports", "[]"]));
        assert!(path.matches(&["services", "*", "ports", "*"]));
        assert!(!path.matches(&["services", "*", "ports"]));
        assert!(!path.matches(&["services", "a", "b", "ports", "[]"]));
        assert!(!path.matches(&["services", "*", "[]", "*"]));
        assert_eq!(path.to_string(), "services.a.b.ports.0");
    }
}
