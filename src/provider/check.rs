//! Checks that every provider makes the same way: an option that is not known is refused, never ignored.

use crate::error::{Error, Operation, Result};
use crate::spec::Mapping;

/// Refuses keys of `provider_options` or of a configuration section that are not allowed (contract D10).
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) that names every unknown key and the allowed ones.
pub fn check_provider_options(
    operation: Operation,
    what: &str,
    options: &Mapping,
    allowed: &[&str],
) -> Result<()> {
    let mut unknown: Vec<String> = options
        .keys()
        .filter(|key| !allowed.contains(&key.as_str()))
        .map(|key| format!("`{}`", key.escape_debug()))
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    unknown.sort_unstable();
    let mut allowed: Vec<&str> = allowed.to_vec();
    allowed.sort_unstable();
    Err(
        Error::invalid(operation, format!("unknown {what}: {}", unknown.join(", ")))
            .with_hint(format!("allowed are {}", allowed.join(", "))),
    )
}
