//! Configuration blocks: a map with the name of one provider and its settings.

use std::fmt;

use crate::error::{Error, Operation, Result};
use crate::spec::{Mapping, Value};

/// A provider's name and its settings, read from a one-key map such as `{docker: {exec: {concurrency: 8}}}`
/// (contract G5).
#[derive(Clone, PartialEq)]
pub struct ConfigBlock {
    provider: String,
    settings: Mapping,
}

impl ConfigBlock {
    /// Reads a block from a value. Null settings are no settings.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when the value is not a map with exactly one
    /// non-empty key, or the settings are not a map.
    pub fn from_value(value: &Value) -> Result<Self> {
        let invalid = |message: String| {
            Err(Error::invalid(Operation::Configure, message)
                .with_hint("a provider block looks like `{docker: {...}}`"))
        };
        let Value::Object(block) = value else {
            return invalid("a provider block must be a map".to_owned());
        };
        let mut entries = block.iter();
        let (Some((provider, settings)), None) = (entries.next(), entries.next()) else {
            let keys: Vec<&str> = block.keys().map(String::as_str).collect();
            return invalid(format!(
                "a provider block must have exactly one key, the provider's name; it has {}: [{}]",
                keys.len(),
                keys.join(", ")
            ));
        };
        if provider.trim().is_empty() {
            return invalid("the provider's name in a provider block is empty".to_owned());
        }
        let settings = match settings {
            Value::Null => Mapping::new(),
            Value::Object(settings) => settings.clone(),
            _ => return invalid(format!("the settings of provider `{provider}` must be a map")),
        };
        Ok(Self {
            provider: provider.clone(),
            settings,
        })
    }

    /// Makes a block.
    pub fn new(provider: impl Into<String>, settings: Mapping) -> Self {
        Self {
            provider: provider.into(),
            settings,
        }
    }

    /// The provider's name.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The provider's settings.
    pub fn settings(&self) -> &Mapping {
        &self.settings
    }
}

impl fmt::Debug for ConfigBlock {
    /// Shows the names of the settings only: values may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigBlock")
            .field("provider", &self.provider)
            .field("settings", &self.settings.keys().collect::<Vec<_>>())
            .finish()
    }
}

/// Reads configuration from YAML text into a value, for [`ConfigBlock::from_value`] or
/// [`create_provider`](super::create_provider).
///
/// ```
/// # fn main() -> gym_sandbox::Result<()> {
/// let config = gym_sandbox::provider::config_from_yaml("docker:\n  exec: {default_timeout_s: 60}\n")?;
/// assert_eq!(config["docker"]["exec"]["default_timeout_s"], 60);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) with line and column when the text is not YAML, has
/// a key twice, or holds what JSON can't say.
pub fn config_from_yaml(text: &str) -> Result<Value> {
    // JSON's value keeps the last of two equal keys without a word; YAML's own refuses them.
    let checked: serde_yaml::Result<serde_yaml::Value> = serde_yaml::from_str(text);
    checked.and_then(|_| serde_yaml::from_str(text)).map_err(|error| {
        Error::invalid(
            Operation::Configure,
            format!("the configuration is not valid YAML: {error}"),
        )
    })
}
