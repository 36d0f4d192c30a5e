//! Credentials for a registry: the caller's, the configuration's, else those of the docker command.

use bollard::auth::DockerCredentials;

use crate::spec::RegistryCredentials;

use super::super::DockerProvider;
use super::super::connect::Environment;
use super::config::PullConfig;
use super::docker_config::{DockerConfigFile, Source, server_of};
use super::file::read_small;
use super::helper;

/// A docker configuration is never larger.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// What is known of the credentials for one registry.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) credentials: Option<RegistryCredentials>,
    /// What kept the docker command's credentials from being read. The pull is tried without: the image may be public.
    pub(super) problem: Option<String>,
}

impl DockerProvider {
    /// Looks for the credentials of a registry.
    pub(super) async fn credentials_for(
        &self,
        registry: &str,
        explicit: Option<&RegistryCredentials>,
    ) -> Found {
        let config = &self.config().pull;
        let given = explicit.or_else(|| of_config(config, registry));
        if let Some(given) = given {
            return Found {
                credentials: Some(given.clone()),
                problem: None,
            };
        }
        match self.docker_credentials(registry).await {
            Ok(credentials) => Found {
                credentials,
                problem: None,
            },
            Err(problem) => {
                tracing::warn!(registry, problem, "pulling without credentials");
                Found {
                    credentials: None,
                    problem: Some(problem),
                }
            }
        }
    }

    async fn docker_credentials(&self, registry: &str) -> Result<Option<RegistryCredentials>, String> {
        let config = &self.config().pull;
        let folder = config
            .docker_config
            .clone()
            .or_else(|| Environment::of_this_process().docker_config());
        let Some(folder) = folder else { return Ok(None) };
        let path = folder.join("config.json");
        let shown = path.display().to_string();
        let reading = tokio::task::spawn_blocking(move || read_small(&path, MAX_FILE_BYTES));
        let file = match tokio::time::timeout(config.helper_timeout, reading).await {
            Ok(Ok(Ok(None))) => return Ok(None),
            Ok(Ok(Ok(Some(text)))) => {
                let text = String::from_utf8_lossy(&text);
                DockerConfigFile::parse(&text).map_err(|problem| format!("`{shown}`: {problem}"))?
            }
            Ok(Ok(Err(error))) => return Err(format!("`{shown}` can't be read: {error}")),
            Ok(Err(_)) | Err(_) => return Err(format!("`{shown}` could not be read in time")),
        };
        match file.source(registry) {
            Source::Nowhere => Ok(None),
            Source::File(credentials) => Ok(Some(credentials)),
            Source::Helper { name, .. } if name.contains('/') => Err(format!(
                "`{shown}` names the credential helper `{name}`, which is not a name"
            )),
            Source::Helper { name, server } => {
                let program = format!("docker-credential-{name}");
                helper::ask(&program, &server, config.helper_timeout)
                    .await
                    .map_err(|problem| format!("the credential helper `{program}` failed: {problem}"))
            }
        }
    }
}

fn of_config<'a>(config: &'a PullConfig, registry: &str) -> Option<&'a RegistryCredentials> {
    config.credentials.get(registry).or_else(|| {
        config
            .credentials
            .iter()
            .find(|(key, _)| server_of(key) == server_of(registry))
            .map(|(_, credentials)| credentials)
    })
}

/// As the client sends them.
pub(super) fn for_client(registry: &str, credentials: &RegistryCredentials) -> DockerCredentials {
    DockerCredentials {
        username: credentials.username().map(str::to_owned),
        password: credentials.expose_password().map(str::to_owned),
        identitytoken: credentials.expose_identity_token().map(str::to_owned),
        serveraddress: Some(server_of(registry).to_owned()),
        ..DockerCredentials::default()
    }
}
