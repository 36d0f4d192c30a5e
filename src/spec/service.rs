//! A program that runs beside the commands of a sandbox, known by a name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Operation, Result};

use super::{Command, User, check_environment};

/// No name of a service is longer.
const MAX_NAME_BYTES: usize = 64;

/// A background service: what it is called, and what it runs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServiceSpec {
    /// Its name: 1 to 64 letters, digits, `_`, `.` or `-`, the first a letter or digit.
    pub name: String,
    /// What it runs. A text is a line for `sh`.
    pub command: Command,
    /// Where it runs. None is where the sandbox's commands run.
    pub cwd: Option<String>,
    /// Variables beside those of the sandbox.
    pub env: BTreeMap<String, String>,
    /// Who runs it. None is the sandbox's user.
    pub user: Option<User>,
}

impl ServiceSpec {
    /// Describes a service.
    pub fn new(name: impl Into<String>, command: impl Into<Command>) -> Self {
        Self {
            name: name.into(),
            command: command.into(),
            cwd: None,
            env: BTreeMap::new(),
            user: None,
        }
    }

    /// Sets where it runs.
    pub fn with_cwd(mut self, cwd: impl Into<String>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Sets a variable.
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets who runs it.
    pub fn with_user(mut self, user: impl Into<User>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Checks the name, the command and the variables.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument).
    pub fn check(&self, operation: Operation) -> Result<()> {
        check_service_name(operation, &self.name)?;
        if matches!(&self.command, Command::Argv(argv) if argv.is_empty()) {
            let text = format!("service `{}` has an empty command", self.name);
            return Err(Error::invalid(operation, text));
        }
        check_environment(operation, &self.env)
    }
}

/// Refuses what is no name of a service.
pub(crate) fn check_service_name(operation: Operation, name: &str) -> Result<()> {
    let valid = name.len() <= MAX_NAME_BYTES
        && name
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
    if valid {
        return Ok(());
    }
    Err(Error::invalid(
        operation,
        format!("`{}` is no name of a service", name.escape_debug()),
    )
    .with_hint("a name is 1 to 64 letters, digits, `_`, `.` or `-` and starts with a letter or digit"))
}

/// What a service is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "status")]
#[non_exhaustive]
pub enum ServiceStatus {
    /// It runs.
    Running,
    /// It has ended.
    Exited {
        /// Its exit code, 128 + n where signal n ended it. None where nobody saw it: it was killed with what watched it.
        code: Option<i32>,
    },
}
