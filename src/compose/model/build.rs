//! How a service's image is built.

use serde_json::Value as Json;

use super::codec::{Context, Decode, Encode, Style};
use super::{ByteSize, FileMount, Hosts, Named, OptionalValues, Ulimit, mapping};
use crate::compose::node::Node;

mapping! {
    /// `services.*.build`.
    pub struct Build {
        /// The folder or URL the build sees.
        "context" => context: String,
        /// The build file, relative to the context.
        "dockerfile" => dockerfile: String,
        /// The build file itself.
        "dockerfile_inline" => dockerfile_inline: String,
        /// Privileges the build asks for.
        "entitlements" => entitlements: Vec<String>,
        /// Build arguments.
        "args" => args: OptionalValues,
        /// Provenance attestation.
        "provenance" => provenance: String,
        /// Bill-of-materials attestation.
        "sbom" => sbom: String,
        /// SSH keys the build may use.
        "ssh" => ssh: SshKeys,
        /// Labels of the image.
        "labels" => labels: Named<String>,
        /// Images to take cached layers from.
        "cache_from" => cache_from: Vec<String>,
        /// Where to put cached layers.
        "cache_to" => cache_to: Vec<String>,
        /// Whether to build without cached layers.
        "no_cache" => no_cache: bool,
        /// More folders, by name.
        "additional_contexts" => additional_contexts: Named<String>,
        /// Whether to pull the base image always.
        "pull" => pull: bool,
        /// Host names the build knows.
        "extra_hosts" => extra_hosts: Hosts,
        /// Isolation technology.
        "isolation" => isolation: String,
        /// The network of build containers.
        "network" => network: String,
        /// The stage to build.
        "target" => target: String,
        /// Secrets the build may read.
        "secrets" => secrets: Vec<FileMount>,
        /// Size of `/dev/shm`.
        "shm_size" => shm_size: ByteSize,
        /// More names of the image.
        "tags" => tags: Vec<String>,
        /// Resource limits of build containers.
        "ulimits" => ulimits: Named<Ulimit>,
        /// The platforms to build for.
        "platforms" => platforms: Vec<String>,
        /// Whether build containers are privileged.
        "privileged" => privileged: bool,
    }
}

/// The SSH keys of a build, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SshKeys(Vec<SshKey>);

impl SshKeys {
    /// Returns the keys.
    pub fn keys(&self) -> &[SshKey] {
        &self.0
    }
}

/// An SSH key a build may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct SshKey {
    /// Its name; `default` is the agent of the caller.
    pub id: String,
    /// The key file or socket; empty for the caller's agent.
    pub path: String,
}

impl Decode for SshKeys {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        let mut keys = Vec::new();
        context.entries(node, |id, path, _| {
            let path = if path.is_null() {
                String::new()
            } else {
                path.to_text()
            };
            keys.push(SshKey {
                id: id.to_owned(),
                path,
            });
        });
        keys.sort();
        Self(keys)
    }
}

impl Encode for SshKeys {
    fn encode(&self, _style: Style) -> Json {
        // The reference writes `id: path` here, which it cannot read again, and in JSON cannot even write.
        let line = |key: &SshKey| {
            if key.path.is_empty() {
                key.id.clone()
            } else {
                format!("{}={}", key.id, key.path)
            }
        };
        Json::Array(self.0.iter().map(line).map(Json::String).collect())
    }

    fn omit(&self, _style: Style) -> bool {
        self.0.is_empty()
    }
}
