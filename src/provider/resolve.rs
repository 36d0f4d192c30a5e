//! Which configuration block a reference means: the name of one among several, or a block itself.
//! Knows blocks as values; reads no files and makes no providers.

use std::collections::BTreeMap;

use crate::error::{Error, Operation, Result};
use crate::spec::{Mapping, Value};

/// The key of a block that is not a provider: labels for every sandbox, below those of the spec.
const DEFAULT_METADATA: &str = "default_metadata";

/// Gives the provider that a reference means, as a map with one key for
/// [`create_provider`](super::create_provider) (contract F1-F4).
///
/// A reference is the name of a block in `named`, or a block itself. A block has one key, the provider's name, with its
/// settings, and may have `default_metadata` beside it, which is left out here.
///
/// ```
/// # fn main() -> gym_sandbox::Result<()> {
/// use gym_sandbox::provider::{config_from_yaml, resolve_provider_config, resolve_provider_metadata};
/// let configs = config_from_yaml("fast:\n  docker: {exec: {concurrency: 64}}\n  default_metadata: {tier: fast}\n")?;
/// let named = configs.as_object();
/// let config = resolve_provider_config(&"fast".into(), named)?;
/// assert_eq!(config, serde_json::json!({"docker": {"exec": {"concurrency": 64}}}));
/// assert_eq!(resolve_provider_metadata(&"fast".into(), named)?["tier"], "fast");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an empty name, one that is not in `named`
/// (what could be meant is listed), anything but a text or a map, and a block without exactly one provider.
pub fn resolve_provider_config(reference: &Value, named: Option<&Mapping>) -> Result<Value> {
    let block = find_block(reference, named)?;
    let mut providers = provider_keys(block);
    let (Some(provider), None) = (providers.next(), providers.next()) else {
        let keys: Vec<&str> = block.keys().map(String::as_str).collect();
        return Err(Error::invalid(
            Operation::Configure,
            format!(
                "a provider block must have exactly one key beside `{DEFAULT_METADATA}`; it has [{}]",
                keys.join(", ")
            ),
        )
        .with_hint("a provider block looks like `{docker: {...}, default_metadata: {...}}`"));
    };
    let settings = block.get(provider).cloned().unwrap_or_default();
    Ok(Value::Object(Mapping::from_iter([(
        provider.to_owned(),
        settings,
    )])))
}

/// Gives the `default_metadata` of the block that a reference means: labels for every sandbox, for
/// [`SandboxSpec::with_default_metadata`](crate::SandboxSpec::with_default_metadata) (contract F5, F6).
///
/// Empty where the block has none. Numbers and booleans become text, as JSON writes them. How many providers the block
/// has does not matter here.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) as [`resolve_provider_config`] for the reference,
/// and for metadata that is no map of plain values.
pub fn resolve_provider_metadata(
    reference: &Value,
    named: Option<&Mapping>,
) -> Result<BTreeMap<String, String>> {
    let metadata = match find_block(reference, named)?.get(DEFAULT_METADATA) {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(metadata)) => metadata,
        Some(_) => {
            return Err(Error::invalid(
                Operation::Configure,
                format!("`{DEFAULT_METADATA}` of a provider block must be a map"),
            ));
        }
    };
    let texts = metadata.iter().map(|(key, value)| {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                return Err(Error::invalid(
                    Operation::Configure,
                    format!(
                        "`{DEFAULT_METADATA}.{}` must be a text, a number or a boolean",
                        key.escape_debug()
                    ),
                ));
            }
        };
        Ok((key.clone(), text))
    });
    texts.collect()
}

fn find_block<'a>(reference: &'a Value, named: Option<&'a Mapping>) -> Result<&'a Mapping> {
    let invalid = |message: String| Error::invalid(Operation::Configure, message);
    let block = match reference {
        Value::Object(block) => return Ok(block),
        Value::String(name) if name.trim().is_empty() => {
            return Err(invalid("the name of a provider block is empty".to_owned()));
        }
        Value::String(name) => named.and_then(|named| named.get(name)).ok_or_else(|| {
            invalid(format!(
                "there is no provider block called `{}`",
                name.escape_debug()
            ))
            .with_hint(format!("provider blocks are {}", candidates(named)))
        })?,
        _ => {
            return Err(invalid(
                "a provider must be the name of a provider block, or a block itself".to_owned(),
            ));
        }
    };
    block.as_object().ok_or_else(|| {
        invalid(format!(
            "the provider block {reference} must be a map, as in `{{docker: {{...}}}}`"
        ))
    })
}

/// The blocks that look as if they named a provider.
fn candidates(named: Option<&Mapping>) -> String {
    let mut listed: Vec<&str> = named
        .into_iter()
        .flatten()
        .filter(|(_, block)| {
            block
                .as_object()
                .is_some_and(|block| provider_keys(block).count() == 1)
        })
        .map(|(name, _)| name.as_str())
        .collect();
    listed.sort_unstable();
    if listed.is_empty() {
        return "(none)".to_owned();
    }
    listed.join(", ")
}

fn provider_keys(block: &Mapping) -> impl Iterator<Item = &str> {
    block
        .keys()
        .map(String::as_str)
        .filter(|key| *key != DEFAULT_METADATA)
}
