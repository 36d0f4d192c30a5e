//! How images are pulled: the settings.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::error::{Error, Operation, Result};
use crate::spec::RegistryCredentials;

use super::super::config::seconds;

/// The keys of the settings.
pub(in crate::docker) const PULL_KEYS: [&str; 6] = [
    "credentials",
    "docker_config",
    "helper_timeout_s",
    "rate_limit_attempts",
    "rate_limit_pause_s",
    "stall_timeout_s",
];

/// How images are pulled (contract D12).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PullConfig {
    /// Credentials by registry, as in `registry.example:5000`; Docker Hub is `docker.io`. They win over those of the
    /// docker command. Empty by default.
    pub credentials: BTreeMap<String, RegistryCredentials>,
    /// The folder of the docker command's `config.json`, for its `auths`, `credsStore` and `credHelpers`. None by
    /// default: `DOCKER_CONFIG`, else `~/.docker`.
    pub docker_config: Option<PathBuf>,
    /// How long a credential helper may take. Default 10 s.
    #[serde(rename = "helper_timeout_s", deserialize_with = "seconds")]
    pub helper_timeout: Duration,
    /// How often a pull is tried that the registry's rate limit keeps from going on. Default 5.
    pub rate_limit_attempts: u32,
    /// The pause before the second of these; each further one is twice as long, up to a minute. Default 2 s.
    #[serde(rename = "rate_limit_pause_s", deserialize_with = "seconds")]
    pub rate_limit_pause: Duration,
    /// How long nothing may move during a pull: a registry that stalls says nothing, and neither does the engine.
    /// Default 300 s.
    #[serde(rename = "stall_timeout_s", deserialize_with = "seconds")]
    pub stall_timeout: Duration,
}

impl Default for PullConfig {
    fn default() -> Self {
        Self {
            credentials: BTreeMap::new(),
            docker_config: None,
            helper_timeout: Duration::from_secs(10),
            rate_limit_attempts: 5,
            rate_limit_pause: Duration::from_secs(2),
            stall_timeout: Duration::from_secs(300),
        }
    }
}

impl PullConfig {
    pub(in crate::docker) fn check(&self) -> Result<()> {
        let checks = [
            (
                self.rate_limit_attempts >= 1,
                "pull.rate_limit_attempts must be at least 1",
            ),
            (
                !self.helper_timeout.is_zero(),
                "pull.helper_timeout_s must be over 0",
            ),
            (
                !self.stall_timeout.is_zero(),
                "pull.stall_timeout_s must be over 0",
            ),
        ];
        match checks.iter().find(|(holds, _)| !holds) {
            Some((_, problem)) => Err(Error::invalid(Operation::Configure, *problem)),
            None => Ok(()),
        }
    }
}
