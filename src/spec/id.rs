//! The name of a sandbox, checked once at the edge.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Operation, Result};

/// No id is longer.
const MAX_BYTES: usize = 128;

/// The id of a sandbox: 1 to 128 ASCII letters, digits, `_`, `.` or `-`, the first a letter or digit.
///
/// Docker sandboxes are called `gym-sandbox-<32 hex digits>` (contract D17); a container's own name or id is accepted too.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxId(String);

impl SandboxId {
    /// Checks and wraps an id.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when it is empty, over 128 bytes or holds
    /// another character.
    pub fn new(id: impl Into<String>) -> Result<Self> {
        let id = id.into();
        let valid = id.len() <= MAX_BYTES
            && id
                .bytes()
                .next()
                .is_some_and(|first| first.is_ascii_alphanumeric())
            && id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'));
        if valid {
            Ok(Self(id))
        } else {
            Err(Error::invalid(
                Operation::Configure,
                format!("`{}` is not a sandbox id", shown(&id)),
            )
            .with_hint(
                "an id is 1 to 128 letters, digits, `_`, `.` or `-` and starts with a letter or digit",
            ))
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text from outside, of which an error shows no more than an id could have.
fn shown(id: &str) -> String {
    let mut characters = id.chars();
    let mut shown: String = characters
        .by_ref()
        .take(MAX_BYTES)
        .flat_map(char::escape_debug)
        .collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

impl fmt::Display for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SandboxId {
    type Error = Error;

    fn try_from(id: String) -> Result<Self> {
        Self::new(id)
    }
}

impl From<SandboxId> for String {
    fn from(id: SandboxId) -> Self {
        id.0
    }
}
