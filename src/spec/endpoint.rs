//! Where a port of a sandbox can be reached.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Operation, Result};

/// An absolute URL under which a port of a sandbox answers, with the headers that a request needs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked", deny_unknown_fields)]
pub struct SandboxEndpoint {
    endpoint: String,
    headers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    endpoint: String,
    #[serde(default)]
    headers: BTreeMap<String, serde_json::Value>,
}

impl SandboxEndpoint {
    /// Wraps a URL; white space around it is cut off (contract R11).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when it is blank or has no scheme or no
    /// authority.
    pub fn new(endpoint: impl AsRef<str>) -> Result<Self> {
        let endpoint = endpoint.as_ref().trim();
        let valid = endpoint.split_once("://").is_some_and(|(scheme, rest)| {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
                && !authority.is_empty()
        });
        if !valid || endpoint.contains(char::is_whitespace) {
            return Err(Error::invalid(
                Operation::Endpoint,
                format!("`{}` is not an absolute URL", endpoint.escape_debug()),
            )
            .with_hint("an endpoint has a scheme and a host, as `http://127.0.0.1:8080` has"));
        }
        Ok(Self {
            endpoint: endpoint.to_owned(),
            headers: BTreeMap::new(),
        })
    }

    /// Adds a header.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// The URL.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The headers that a request needs; empty by default.
    pub fn headers(&self) -> &BTreeMap<String, String> {
        &self.headers
    }
}

impl fmt::Debug for SandboxEndpoint {
    /// Shows names but no values of headers: they may hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxEndpoint")
            .field("endpoint", &self.endpoint)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .finish()
    }
}

impl TryFrom<Unchecked> for SandboxEndpoint {
    type Error = Error;

    fn try_from(unchecked: Unchecked) -> Result<Self> {
        let mut endpoint = Self::new(unchecked.endpoint)?;
        // Contract R12: values are turned into text, whatever their type.
        for (name, value) in unchecked.headers {
            let text = match value {
                serde_json::Value::String(text) => text,
                other => other.to_string(),
            };
            endpoint = endpoint.with_header(name, text);
        }
        Ok(endpoint)
    }
}
