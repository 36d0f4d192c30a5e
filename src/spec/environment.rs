//! Rules for environment variables, the same for sandboxes and commands.

use std::collections::BTreeMap;

use crate::error::{Error, Operation, Result};

use super::command::MAX_ARGUMENT_BYTES;

/// Checks names and sizes of environment variables before anything is sent (contract D28, D5).
///
/// Errors name the variable, never its value.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when a name is empty or holds `=` or NUL, a value
/// holds NUL, or `NAME=value` is over [`MAX_ARGUMENT_BYTES`].
pub fn check_environment(operation: Operation, env: &BTreeMap<String, String>) -> Result<()> {
    for (name, value) in env {
        let problem = if name.is_empty() {
            "an environment variable has an empty name".to_owned()
        } else if name.contains('=') || name.contains('\0') {
            format!(
                "the environment variable name `{}` holds `=` or NUL",
                name.escape_debug()
            )
        } else if value.contains('\0') {
            format!(
                "the value of environment variable `{}` holds NUL",
                name.escape_debug()
            )
        } else if name.len() + 1 + value.len() > MAX_ARGUMENT_BYTES {
            format!(
                "environment variable `{}` is over {MAX_ARGUMENT_BYTES} bytes, more than Linux can pass to a program",
                name.escape_debug()
            )
        } else {
            continue;
        };
        return Err(Error::invalid(operation, problem));
    }
    Ok(())
}
