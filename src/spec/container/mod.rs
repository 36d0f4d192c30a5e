//! What a container, a network and a volume should be, in terms that no backend owns: the requests behind typed provider
//! options, `run_args` and Compose services alike (one mapping, not three).
//!
//! All of it is plain data. `None`, an empty list or an empty map always mean "not asked for": the image's value, or the
//! engine's default.

mod health;
mod limits;
mod mount;
mod network;
mod state;
mod subnet;

pub use health::{HealthProbe, HealthTest, HealthcheckSpec};
pub use limits::{BlockIo, BlockRate, BlockWeight, DeviceRequest, DeviceSpec, LimitSpec, UlimitSpec};
pub use mount::{MountKind, MountSpec, VolumeSpec};
pub use network::{EndpointSpec, IpPool, NetworkAttachment, NetworkSpec, Protocol, PublishedPort};
pub use state::{ContainerChange, ContainerDetail, ContainerEvent, SharedObject};
pub use subnet::{SubnetRange, Subnets};

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Environment variables in order. A variable without a value takes the image's away.
///
/// `Debug` shows names only: values may be secrets.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EnvironmentSpec(Vec<(String, Option<String>)>);

impl EnvironmentSpec {
    /// Sets a variable, or with `None` takes it away. A later call for the same name wins and keeps the place.
    pub fn set(&mut self, name: impl Into<String>, value: Option<String>) {
        let name = name.into();
        match self.0.iter_mut().find(|(existing, _)| *existing == name) {
            Some(entry) => entry.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// The variables, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_deref()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for EnvironmentSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

impl FromIterator<(String, Option<String>)> for EnvironmentSpec {
    fn from_iter<I: IntoIterator<Item = (String, Option<String>)>>(variables: I) -> Self {
        let mut list = Self::default();
        for (name, value) in variables {
            list.set(name, value);
        }
        list
    }
}

/// When a container whose main process ended is started again (Engine API `RestartPolicy`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RestartPolicy {
    /// Never.
    #[default]
    No,
    /// Always.
    Always,
    /// Always, but not after it was stopped by hand.
    UnlessStopped,
    /// After an exit code other than 0, at most this many times; without end when none is given.
    OnFailure {
        /// The most starts.
        max_retries: Option<u32>,
    },
}

/// Where the output of the main process goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LogSpec {
    /// The driver. None for the engine's default.
    pub driver: Option<String>,
    /// Options of the driver.
    pub options: BTreeMap<String, String>,
}

/// A namespace that can be shared with another container or with the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NamespaceMode {
    /// The engine's default.
    #[default]
    Default,
    /// One of its own.
    Private,
    /// One of its own that others may join (IPC only).
    Shareable,
    /// None at all (IPC only).
    None,
    /// The host's. Needs a policy that allows it.
    Host,
    /// Another container's, by id or name.
    Container(String),
}

/// What a container should be. Everything is optional but the image.
///
/// Build one from [`ContainerSpec::new`] and set fields; new fields may be added in any release.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own in every engine's interface"
)]
pub struct ContainerSpec {
    /// The image.
    pub image: String,
    /// The platform of the image, as in `linux/amd64`.
    pub platform: Option<String>,
    /// The name of the container. None for one that the provider makes.
    pub name: Option<String>,
    /// Replaces the image's entrypoint. An empty list takes it away and, on the Docker engine, keeps the image's command.
    pub entrypoint: Option<Vec<String>>,
    /// Replaces the image's command.
    pub command: Option<Vec<String>>,
    /// The environment, over the image's.
    pub environment: EnvironmentSpec,
    /// The working directory.
    pub working_dir: Option<String>,
    /// The user, as in `name`, `uid`, `user:group`.
    pub user: Option<String>,
    /// More groups of the user, by name or number.
    pub group_add: Vec<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the runtime. API 1.43.
    pub annotations: BTreeMap<String, String>,
    /// Whether the main process has a terminal.
    pub tty: bool,
    /// Whether the standard input of the main process stays open.
    pub stdin_open: bool,
    /// Whether an init process runs before the main process.
    pub init: Option<bool>,
    /// The signal that stops it, as in `SIGTERM`.
    pub stop_signal: Option<String>,
    /// How long a stop waits before it kills.
    pub stop_timeout: Option<Duration>,
    /// How its health is checked. None for the image's check.
    pub healthcheck: Option<HealthcheckSpec>,
    /// When it is started again.
    pub restart: RestartPolicy,
    /// Where its output goes.
    pub logging: Option<LogSpec>,

    /// The host name.
    pub hostname: Option<String>,
    /// The domain name.
    pub domainname: Option<String>,
    /// Its networks.
    pub network: NetworkAttachment,
    /// Ports published on the host.
    pub ports: Vec<PublishedPort>,
    /// Ports that others on its networks reach, as in `8080` or `53/udp`. Documentation for engines.
    pub expose: Vec<String>,
    /// Lines of the hosts file: name and address, or `host-gateway`.
    pub extra_hosts: Vec<(String, String)>,
    /// Name servers.
    pub dns: Vec<String>,
    /// Search domains.
    pub dns_search: Vec<String>,
    /// Options of the resolver.
    pub dns_options: Vec<String>,
    /// The MAC address.
    pub mac_address: Option<String>,

    /// Mounts.
    pub mounts: Vec<MountSpec>,
    /// Containers whose mounts it gets too: name or id, with `:ro` for read-only.
    pub volumes_from: Vec<String>,
    /// Whether its root file system cannot be written to.
    pub read_only: bool,
    /// Options of the storage driver, as in `size=10G`.
    pub storage_options: BTreeMap<String, String>,

    /// Limits of processors, memory, processes, block devices.
    pub limits: LimitSpec,
    /// Resource limits of its processes.
    pub ulimits: Vec<UlimitSpec>,
    /// Kernel parameters of its namespaces.
    pub sysctls: BTreeMap<String, String>,
    /// Devices of the host. Needs a policy that allows them.
    pub devices: Vec<DeviceSpec>,
    /// Rules of the device control group, as in `c 1:3 mr`.
    pub device_rules: Vec<String>,
    /// Devices asked for from a driver, such as graphics cards.
    pub device_requests: Vec<DeviceRequest>,

    /// Capabilities added.
    pub cap_add: Vec<String>,
    /// Capabilities dropped.
    pub cap_drop: Vec<String>,
    /// Security options, as in `no-new-privileges` or `seccomp=unconfined`.
    pub security_options: Vec<String>,
    /// Whether it has all privileges. Needs a policy that allows it.
    pub privileged: bool,
    /// The IPC namespace.
    pub ipc: NamespaceMode,
    /// The PID namespace.
    pub pid: NamespaceMode,
    /// The UTS namespace.
    pub uts: NamespaceMode,
    /// The user namespace.
    pub user_namespace: NamespaceMode,
    /// The control group namespace.
    pub cgroup_namespace: NamespaceMode,
    /// The parent control group.
    pub cgroup_parent: Option<String>,
    /// The runtime, as in `crun`.
    pub runtime: Option<String>,
    /// Isolation technology, on Windows.
    pub isolation: Option<String>,
}

impl ContainerSpec {
    /// Describes a container of an image with everything else at the image's and the engine's defaults.
    pub fn new(image: impl Into<String>) -> Self {
        Self {
            image: image.into(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_set_again_keeps_its_place() {
        let mut environment = EnvironmentSpec::default();
        environment.set("A", Some("1".into()));
        environment.set("B", Some("2".into()));
        environment.set("A", None);
        let variables: Vec<_> = environment.iter().collect();
        assert_eq!(variables, [("A", None), ("B", Some("2"))]);
    }

    #[test]
    fn values_of_the_environment_are_not_shown() {
        let mut spec = ContainerSpec::new("image");
        spec.environment.set("TOKEN", Some("hunter2".into()));
        let shown = format!("{spec:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
    }
}
