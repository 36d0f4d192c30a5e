//! The configuration of the local provider and its checks.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::error::{Error, Operation, Result};
use crate::provider::check_provider_options;
use crate::spec::{Mapping, Value};

/// How the local provider runs commands. In configuration files the timeout is `default_timeout_s`, in seconds. An
/// unknown key is refused by name (contract D10).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LocalConfig {
    /// Where folders for sandboxes without a `workdir` are made. None by default: the folder for temporary files.
    pub workspace_root: Option<PathBuf>,
    /// The shell that runs shell lines. Default `/bin/bash`.
    pub shell: String,
    /// How long a command may run that asks for the default. Default 180 s.
    #[serde(rename = "default_timeout_s", deserialize_with = "seconds")]
    pub default_timeout: Duration,
    /// Folders below which files may be copied to and from, too, by their absolute paths. Empty by default: only below
    /// the workspace.
    pub file_roots: Vec<PathBuf>,
    /// How many commands may run at once, over all providers of this process with the same number. Default 8.
    pub concurrency: usize,
}

impl Default for LocalConfig {
    fn default() -> Self {
        Self {
            workspace_root: None,
            shell: "/bin/bash".to_owned(),
            default_timeout: Duration::from_secs(180),
            file_roots: Vec::new(),
            concurrency: 8,
        }
    }
}

const KEYS: [&str; 5] = [
    "workspace_root",
    "shell",
    "default_timeout_s",
    "file_roots",
    "concurrency",
];

impl LocalConfig {
    /// Sets where folders for sandboxes are made.
    pub fn with_workspace_root(mut self, root: impl Into<PathBuf>) -> Self {
        self.workspace_root = Some(root.into());
        self
    }

    /// Sets the shell that runs shell lines.
    pub fn with_shell(mut self, shell: impl Into<String>) -> Self {
        self.shell = shell.into();
        self
    }

    /// Sets how long a command may run that asks for the default.
    pub fn with_default_timeout(mut self, timeout: Duration) -> Self {
        self.default_timeout = timeout;
        self
    }

    /// Allows files to be copied to and from below another folder.
    pub fn with_file_root(mut self, root: impl Into<PathBuf>) -> Self {
        self.file_roots.push(root.into());
        self
    }

    /// Sets how many commands may run at once.
    pub fn with_concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Reads the settings of a configuration block.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) naming an unknown key, a value of a wrong
    /// type, or one that [`check`](Self::check) refuses.
    pub fn from_settings(settings: &Mapping) -> Result<Self> {
        check_provider_options(Operation::Configure, "local settings", settings, &KEYS)?;
        let config: Self = serde_json::from_value(Value::Object(settings.clone())).map_err(|error| {
            Error::invalid(
                Operation::Configure,
                format!("a local setting has a wrong type: {error}"),
            )
        })?;
        config.check()?;
        Ok(config)
    }

    /// Checks all values.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) naming the first setting that is wrong.
    pub fn check(&self) -> Result<()> {
        let problem = if self.shell.is_empty() {
            "shell can't be empty"
        } else if self.default_timeout.is_zero() {
            "default_timeout_s must be over 0"
        } else if self.concurrency == 0 {
            "concurrency must be at least 1"
        } else {
            return Ok(());
        };
        Err(Error::invalid(Operation::Configure, problem))
    }
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| serde::de::Error::custom(format!("{seconds} is not a number of seconds")))
}
