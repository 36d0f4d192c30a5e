//! What a sandbox should be.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{Error, Operation, Result};

use super::{Mapping, Ports, SandboxResources, Value, ordered};

/// What a sandbox should be, for any provider (contract 1.1, R1-R13).
///
/// A spec is plain data: it checks ports and resources and nothing else; what a provider cannot honour is refused by
/// the provider, by name, before anything is created. Field names in JSON are the reference's (contract D36), durations
/// are seconds (`ttl_s`, `ready_timeout_s`).
///
/// ```
/// use gym_sandbox::SandboxSpec;
/// # fn main() -> gym_sandbox::Result<()> {
/// let spec = SandboxSpec::new("debian:bookworm")
///     .with_workdir("/work")
///     .with_env("LANG", "C.UTF-8")
///     .with_file("/work/task.txt", "count to ten\n")
///     .with_ports([8080])?;
/// assert_eq!(spec.ports().as_slice(), [8080]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxSpec {
    image: Option<String>,
    #[serde(with = "seconds")]
    ttl_s: Option<Duration>,
    #[serde(with = "seconds")]
    ready_timeout_s: Option<Duration>,
    workdir: Option<String>,
    env: BTreeMap<String, String>,
    #[serde(with = "ordered")]
    files: Vec<(String, String)>,
    metadata: BTreeMap<String, String>,
    resources: SandboxResources,
    #[serde(deserialize_with = "null_is_empty")]
    entrypoint: Vec<String>,
    provider_options: Mapping,
    ports: Ports,
    #[serde(with = "seconds", skip_serializing_if = "Option::is_none")]
    idle_timeout_s: Option<Duration>,
}

impl SandboxSpec {
    /// Describes a sandbox made from an image, everything else at its default. A leading `docker://` is cut off by the
    /// Docker provider (contract C2).
    pub fn new(image: impl Into<String>) -> Self {
        Self {
            image: Some(image.into()),
            ..Self::default()
        }
    }

    /// Reads a spec from a JSON object with the reference's field names.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an unknown field or a value of a wrong
    /// type; the text names it.
    pub fn from_value(value: Value) -> Result<Self> {
        serde_json::from_value(value)
            .map_err(|error| Error::invalid(Operation::Configure, format!("not a sandbox spec: {error}")))
    }

    /// Sets the time from start after which the sandbox ends itself. None by default: it lives until it is closed.
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl_s = Some(ttl);
        self
    }

    /// Sets the time without any command, file or terminal traffic after which the sandbox ends itself (contract D16).
    /// None by default.
    pub fn with_idle_timeout(mut self, idle_timeout: Duration) -> Self {
        self.idle_timeout_s = Some(idle_timeout);
        self
    }

    /// Bounds the time until the sandbox is ready. None by default: the provider's own bounds hold.
    pub fn with_ready_timeout(mut self, timeout: Duration) -> Self {
        self.ready_timeout_s = Some(timeout);
        self
    }

    /// Sets the directory where commands run unless they name another. None by default: the image's.
    pub fn with_workdir(mut self, workdir: impl Into<String>) -> Self {
        self.workdir = Some(workdir.into());
        self
    }

    /// Adds an environment variable.
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Adds a text file that is written right after the sandbox is created, in the order of these calls.
    pub fn with_file(mut self, path: impl Into<String>, text: impl Into<String>) -> Self {
        let path = path.into();
        self.files.retain(|(existing, _)| *existing != path);
        self.files.push((path, text.into()));
        self
    }

    /// Puts another image in the place of the one that it has.
    pub(crate) fn with_image(mut self, image: impl Into<String>) -> Self {
        self.image = Some(image.into());
        self
    }

    /// Leaves the files out: who is made from a snapshot has them.
    pub(crate) fn without_files(mut self) -> Self {
        self.files.clear();
        self
    }

    /// Adds a label.
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Adds labels where the spec has none of that key: metadata of the spec wins (contract F6).
    pub fn with_default_metadata(mut self, defaults: &BTreeMap<String, String>) -> Self {
        for (key, value) in defaults {
            self.metadata.entry(key.clone()).or_insert_with(|| value.clone());
        }
        self
    }

    /// Sets the limits.
    pub fn with_resources(mut self, resources: SandboxResources) -> Self {
        self.resources = resources;
        self
    }

    /// Sets the main process. Empty by default: the provider keeps the sandbox alive with one of its own.
    pub fn with_entrypoint<S: Into<String>>(mut self, entrypoint: impl IntoIterator<Item = S>) -> Self {
        self.entrypoint = entrypoint.into_iter().map(Into::into).collect();
        self
    }

    /// Sets an option that only some providers know. A provider refuses, by name, one that it does not know.
    pub fn with_provider_option(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.provider_options.insert(key.into(), value.into());
        self
    }

    /// Adds options that a capability gave, as in
    /// [`shared_volume_options`](crate::provider::SharedStorageProvider::shared_volume_options). A list is put behind what the
    /// option holds already; anything else takes its place.
    pub fn with_added_provider_options(mut self, options: Mapping) -> Self {
        for (key, value) in options {
            let value = match (self.provider_options.remove(&key), value) {
                (Some(Value::Array(mut list)), Value::Array(more)) => {
                    list.extend(more);
                    Value::Array(list)
                }
                (Some(Value::Null) | None, value) => value,
                // A single text is a list of one where lists are taken.
                (Some(one), Value::Array(mut more)) => {
                    more.insert(0, one);
                    Value::Array(more)
                }
                (Some(_), value) => value,
            };
            self.provider_options.insert(key, value);
        }
        self
    }

    /// Sets the TCP ports that the sandbox offers.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for port 0 and for a port given twice.
    pub fn with_ports(mut self, ports: impl IntoIterator<Item = u16>) -> Result<Self> {
        self.ports = Ports::new(ports)?;
        Ok(self)
    }

    /// Replaces the image by the first rewrite that matches (see [`rewrite_image`]).
    pub fn with_image_rewrites(mut self, rewrites: &[ImageRewrite]) -> Self {
        self.image = rewrite_image(self.image.as_deref(), rewrites);
        self
    }

    /// The image.
    pub fn image(&self) -> Option<&str> {
        self.image.as_deref()
    }

    /// The time from start after which the sandbox ends itself.
    pub fn ttl(&self) -> Option<Duration> {
        self.ttl_s
    }

    /// The time without traffic after which the sandbox ends itself.
    pub fn idle_timeout(&self) -> Option<Duration> {
        self.idle_timeout_s
    }

    /// The bound of the time until the sandbox is ready.
    pub fn ready_timeout(&self) -> Option<Duration> {
        self.ready_timeout_s
    }

    /// The directory where commands run.
    pub fn workdir(&self) -> Option<&str> {
        self.workdir.as_deref()
    }

    /// The environment.
    pub fn env(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// Files to write after create, in order: path and text.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Labels.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Limits.
    pub fn resources(&self) -> &SandboxResources {
        &self.resources
    }

    /// The main process; empty means the provider's own.
    pub fn entrypoint(&self) -> &[String] {
        &self.entrypoint
    }

    /// Options that only some providers know.
    pub fn provider_options(&self) -> &Mapping {
        &self.provider_options
    }

    /// The TCP ports that the sandbox offers.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }
}

impl fmt::Debug for SandboxSpec {
    /// Shows names but no values of the environment, files and provider options: they may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxSpec")
            .field("image", &self.image)
            .field("ttl", &self.ttl_s)
            .field("idle_timeout", &self.idle_timeout_s)
            .field("ready_timeout", &self.ready_timeout_s)
            .field("workdir", &self.workdir)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field(
                "files",
                &self.files.iter().map(|(path, _)| path).collect::<Vec<_>>(),
            )
            .field("metadata", &self.metadata.keys().collect::<Vec<_>>())
            .field("resources", &self.resources)
            .field("entrypoint", &self.entrypoint.first())
            .field(
                "provider_options",
                &self.provider_options.keys().collect::<Vec<_>>(),
            )
            .field("ports", &self.ports.as_slice())
            .finish()
    }
}

/// One rule of [`rewrite_image`]: a prefix and what replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageRewrite {
    /// The prefix to match, as plain text.
    pub from: String,
    /// What replaces it.
    pub to: String,
}

/// Replaces the prefix of an image reference by the first rule that matches, and stops there (contract I1-I4).
///
/// The prefix is plain text, not a path component. No rule matches: the image is unchanged.
///
/// ```
/// use gym_sandbox::{ImageRewrite, rewrite_image};
/// let rules = [ImageRewrite { from: "docker.io/".into(), to: "mirror:5000/".into() }];
/// assert_eq!(rewrite_image(Some("docker.io/a"), &rules).as_deref(), Some("mirror:5000/a"));
/// assert_eq!(rewrite_image(None, &rules), None);
/// ```
pub fn rewrite_image(image: Option<&str>, rewrites: &[ImageRewrite]) -> Option<String> {
    let image = image?;
    let rewritten = rewrites.iter().find_map(|rule| {
        image
            .strip_prefix(rule.from.as_str())
            .map(|rest| format!("{}{rest}", rule.to))
    });
    Some(rewritten.unwrap_or_else(|| image.to_owned()))
}

/// The reference writes an entrypoint that is not set as null.
fn null_is_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

mod seconds {
    //! Optional durations as seconds, whole or fractional.

    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::ref_option, reason = "serde's `with` gives the field by reference")]
    pub(super) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(|duration| duration.as_secs_f64()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Option::<f64>::deserialize(deserializer)?
            .map(|seconds| {
                Duration::try_from_secs_f64(seconds)
                    .map_err(|_| serde::de::Error::custom(format!("{seconds} is not a duration in seconds")))
            })
            .transpose()
    }
}
