//! What of the process's surroundings decides where an engine is looked for. A value, so that tests need not touch
//! the environment of the process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The variables that are read, and no others.
const VARIABLES: [&str; 6] = [
    "DOCKER_HOST",
    "DOCKER_TLS_VERIFY",
    "DOCKER_CERT_PATH",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "XDG_RUNTIME_DIR",
];

/// Environment variables, home folder and user id.
#[derive(Debug, Clone, Default)]
pub(in crate::docker) struct Environment {
    variables: BTreeMap<&'static str, String>,
    home: Option<PathBuf>,
    user_id: Option<u32>,
}

impl Environment {
    /// Those of this process.
    pub(in crate::docker) fn of_this_process() -> Self {
        let variables = VARIABLES
            .into_iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?.to_string_lossy().into_owned())))
            .collect();
        Self {
            variables,
            home: std::env::home_dir(),
            user_id: user_id(),
        }
    }

    /// A variable that is set to something. As for the docker command, an empty one counts as not set.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    pub(super) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    pub(super) fn user_id(&self) -> Option<u32> {
        self.user_id
    }

    /// The folder of the docker command's configuration.
    pub(in crate::docker) fn docker_config(&self) -> Option<PathBuf> {
        self.variable("DOCKER_CONFIG")
            .map(PathBuf::from)
            .or_else(|| Some(self.home()?.join(".docker")))
    }
}

/// The id of the user that this process runs as: the owner of its entry in /proc. The standard library does not have
/// it, and the crate forbids the unsafe code of a direct call.
fn user_id() -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self")
        .ok()
        .map(|metadata| metadata.uid())
}

#[cfg(test)]
impl Environment {
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        assert!(VARIABLES.contains(&name), "{name} is not read");
        self.variables.insert(name, value.into());
        self
    }

    pub(super) fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    pub(super) fn with_user_id(mut self, user_id: u32) -> Self {
        self.user_id = Some(user_id);
        self
    }
}
