//! The configuration of the Docker provider and its checks (contract C19, F7).

mod admission;
mod checks;
mod durations;
mod lease;
mod shared;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::error::{Error, Operation, Result};
use crate::provider::{Policy, check_provider_options};
use crate::spec::{Mapping, PullPolicy, Value};

pub use admission::AdmissionConfig;
pub(in crate::docker) use lease::LONGEST_RENEWAL;
pub use lease::{LeaseConfig, SweepWhen};
pub use shared::SharedStorageConfig;

use super::agent::ExecPathPolicy;
use super::image::{PULL_KEYS, PullConfig};

use durations::optional_seconds;
pub(super) use durations::seconds;

/// How the Docker provider makes sandboxes and runs commands. Durations are seconds in configuration files, with the
/// suffix `_s`; null means "no limit" there. An unknown key is refused by name (contract D10).
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct DockerConfig {
    /// The engine's address (`unix://`, `tcp://`, `ssh://`). None by default: it is looked for, see
    /// [`DockerProvider::connect`](super::DockerProvider::connect).
    pub host: Option<String>,
    /// How sandboxes are created.
    pub create: CreateConfig,
    /// How commands are run.
    pub exec: ExecConfig,
    /// When a sandbox counts as ready.
    pub probe: ProbeConfig,
    /// How many calls may be in flight.
    pub lanes: LaneConfig,
    /// How much memory the sandboxes may have together.
    pub admission: AdmissionConfig,
    /// What sandboxes may ask for. Closed by default.
    pub policy: Policy,
    /// How images are pulled.
    pub pull: PullConfig,
    /// How long this process counts as alive for others, and how patient it is with them.
    pub lease: LeaseConfig,
    /// Storage of which sandboxes get folders. None by default.
    pub shared_storage: SharedStorageConfig,
    /// Labels put on every sandbox, below those of the spec's metadata.
    pub default_metadata: BTreeMap<String, String>,
}

/// How sandboxes are created. See contract section 2.9 for each key.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CreateConfig {
    /// The shell of the keepalive process. Default `/bin/sh`.
    pub keepalive_shell: String,
    /// The line that the keepalive shell runs. Default: a loop of sleeps that ends at once on TERM.
    pub keepalive_cmd: String,
    /// Bounds pulling, creating and starting together. Default 600 s; None for no bound.
    #[serde(rename = "start_timeout_s", deserialize_with = "optional_seconds")]
    pub start_timeout: Option<Duration>,
    /// Runs an init process that reaps zombies. Default true.
    pub use_init: bool,
    /// Applies the spec's cpu and memory limits. Default true.
    pub apply_resource_limits: bool,
    /// The host address on which ports are published. Default 127.0.0.1.
    pub publish_host: String,
    /// The network: None for the engine's default bridge, `none`, or the name of one. With `none` most sandboxes start in
    /// about half the time.
    pub network: Option<String>,
    /// Mounts the root file system read-only. Default false.
    pub read_only: bool,
    /// Capabilities to drop. Empty by default.
    pub cap_drop: Vec<String>,
    /// Security options as `docker run --security-opt` takes them. Empty by default.
    pub security_opt: Vec<String>,
    /// The largest number of processes. None by default.
    pub pids_limit: Option<i64>,
    /// A set of the options above, see [`Preset`]. What is set beside it wins. Default `compat`.
    pub preset: Preset,
    /// When images are pulled; a spec's `pull_policy` wins. Default `missing`.
    pub pull_policy: PullPolicy,
    /// Flags of `docker run` that every sandbox has (contract D9), a text or a list; `docs/options.md` has the table. Empty by
    /// default.
    #[serde(deserialize_with = "one_or_many")]
    pub extra_run_args: Vec<String>,
    /// What a warning of the engine about a create does. Default `limits`.
    pub on_warning: OnWarning,
}

/// What becomes of a create that the engine warns about (contract D27).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnWarning {
    /// It fails when a limit was dropped; other warnings are logged.
    #[default]
    Limits,
    /// It fails.
    Fail,
    /// The warning is logged.
    Warn,
}

/// A fixed set of create options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Preset {
    /// What `docker run` does by default.
    #[default]
    Compat,
    /// All capabilities dropped, `no-new-privileges`, at most 512 processes, at most 2 GiB of memory unless the spec
    /// says another size, logs capped at two files of 10 MiB.
    Hardened,
}

/// How commands are run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ExecConfig {
    /// How long a command may run that asks for the default. Default 180 s; None for no limit.
    #[serde(rename = "default_timeout_s", deserialize_with = "optional_seconds")]
    pub default_timeout: Option<Duration>,
    /// How many commands may run at once over the engine. Default 32.
    pub concurrency: usize,
    /// The shell that runs shell lines. None by default: `bash` where the image has it, else `sh` (contract X9).
    pub exec_shell: Option<String>,
    /// What a timeout kills. Default `kill_tree`.
    pub on_timeout: OnTimeout,
    /// Whether commands are run by the resident agent or by the engine's exec; a spec's `exec_path` wins. Default
    /// `auto`.
    pub exec_path: ExecPathPolicy,
    /// Flags of `docker exec` for all commands, a text or a list: `--env`, `--user`, `--workdir`, and `--privileged` where the
    /// policy allows it. What a command says itself wins. Empty by default.
    #[serde(deserialize_with = "one_or_many")]
    pub extra_exec_args: Vec<String>,
}

/// What is killed when a command runs out of time (contract D3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnTimeout {
    /// The command's process tree. An image without a shell has nothing to do that with; there the processes live on,
    /// and the result says that it is not known.
    #[default]
    KillTree,
    /// The whole sandbox: it is stopped, and no command runs in it any more.
    KillSandbox,
}

/// When a sandbox counts as ready (contract P1-P7).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ProbeConfig {
    /// A line for `sh` that must succeed. None by default: a running main process is ready.
    pub command: Option<String>,
    /// Text that its output must hold. None by default.
    pub expected_stdout: Option<String>,
    /// How long one attempt may take. Default 30 s.
    #[serde(rename = "timeout_s", deserialize_with = "seconds")]
    pub timeout: Duration,
    /// How long attempts are repeated. None by default: the first failure is final.
    #[serde(rename = "deadline_s", deserialize_with = "optional_seconds")]
    pub deadline: Option<Duration>,
    /// How many attempts in a row must succeed. Default 1.
    pub stable_count: u32,
    /// The pause between attempts. Default 1 s.
    #[serde(rename = "stable_delay_s", deserialize_with = "seconds")]
    pub stable_delay: Duration,
}

/// How many calls of each class may be in flight; the limit of commands is [`ExecConfig::concurrency`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LaneConfig {
    /// Creates and starts. None by default: twice the engine's processors to begin with, from 4 to 64; while creates wait,
    /// one more or one less is tried now and then and kept where it pays, from one to four for each processor.
    pub create: Option<usize>,
    /// Archives in and out. Default 16.
    pub transfer: usize,
    /// Pulls. Default 4.
    pub pull: usize,
}

impl Default for CreateConfig {
    fn default() -> Self {
        Self {
            keepalive_shell: "/bin/sh".to_owned(),
            // `sleep & wait` lets the shell react to TERM at once; a shell blocked in `sleep` would not.
            keepalive_cmd: "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done".to_owned(),
            start_timeout: Some(Duration::from_secs(600)),
            use_init: true,
            apply_resource_limits: true,
            publish_host: "127.0.0.1".to_owned(),
            network: None,
            read_only: false,
            cap_drop: Vec::new(),
            security_opt: Vec::new(),
            pids_limit: None,
            preset: Preset::Compat,
            pull_policy: PullPolicy::Missing,
            extra_run_args: Vec::new(),
            on_warning: OnWarning::Limits,
        }
    }
}

impl Default for ExecConfig {
    fn default() -> Self {
        Self {
            default_timeout: Some(Duration::from_secs(180)),
            concurrency: 32,
            exec_shell: None,
            on_timeout: OnTimeout::KillTree,
            exec_path: ExecPathPolicy::default(),
            extra_exec_args: Vec::new(),
        }
    }
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self {
            command: None,
            expected_stdout: None,
            timeout: Duration::from_secs(30),
            deadline: None,
            stable_count: 1,
            stable_delay: Duration::from_secs(1),
        }
    }
}

impl Default for LaneConfig {
    fn default() -> Self {
        Self {
            create: None,
            transfer: 16,
            pull: 4,
        }
    }
}

const SECTIONS: [(&str, &[&str]); 8] = [
    (
        "create",
        &[
            "keepalive_shell",
            "keepalive_cmd",
            "start_timeout_s",
            "use_init",
            "apply_resource_limits",
            "publish_host",
            "network",
            "read_only",
            "cap_drop",
            "security_opt",
            "pids_limit",
            "preset",
            "pull_policy",
            "extra_run_args",
            "on_warning",
        ],
    ),
    (
        "exec",
        &[
            "default_timeout_s",
            "concurrency",
            "exec_shell",
            "on_timeout",
            "exec_path",
            "extra_exec_args",
        ],
    ),
    (
        "probe",
        &[
            "command",
            "expected_stdout",
            "timeout_s",
            "deadline_s",
            "stable_count",
            "stable_delay_s",
        ],
    ),
    ("lanes", &["create", "transfer", "pull"]),
    ("pull", &PULL_KEYS),
    ("lease", &LeaseConfig::KEYS),
    ("shared_storage", &SharedStorageConfig::KEYS),
    (
        "admission",
        &["memory_fraction", "unlimited_counts_mib", "max_wait_s"],
    ),
];

impl DockerConfig {
    /// A named block, `docker`, with the settings written out as YAML: the defaults, and a probe (contract F7).
    pub const SHIPPED_BLOCK: &str = include_str!("block.yaml");

    /// Reads the settings of a configuration block.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) naming an unknown key, a value of a wrong
    /// type, or one that [`check`](Self::check) refuses.
    pub fn from_settings(settings: &Mapping) -> Result<Self> {
        let mut allowed: Vec<&str> = SECTIONS.iter().map(|(section, _)| *section).collect();
        allowed.extend(["host", "policy", "default_metadata"]);
        check_provider_options(Operation::Configure, "docker settings", settings, &allowed)?;
        let mut settings = settings.clone();
        for (section, keys) in SECTIONS {
            match settings.get(section) {
                // A section that is null is a section at its defaults.
                Some(Value::Null) => {
                    settings.remove(section);
                }
                None => {}
                Some(Value::Object(values)) => {
                    check_provider_options(
                        Operation::Configure,
                        &format!("docker settings in `{section}`"),
                        values,
                        keys,
                    )?;
                }
                Some(_) => {
                    return Err(Error::invalid(
                        Operation::Configure,
                        format!("the docker setting `{section}` must be a map"),
                    ));
                }
            }
        }
        let config: Self = serde_json::from_value(Value::Object(settings)).map_err(|error| {
            Error::invalid(
                Operation::Configure,
                format!("a docker setting has a wrong type: {error}"),
            )
        })?;
        config.check()?;
        Ok(config)
    }
}

/// A text, which is one argument, or a list of them.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(argument) => vec![argument],
        OneOrMany::Many(arguments) => arguments,
    })
}
