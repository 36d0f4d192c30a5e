//! A service and the mappings only services have.

use serde_json::Value as Json;

use super::codec::{Context, Decode, Encode, FromText, Style};
use super::mount::words;
use super::{
    Build, ByteSize, CommandLine, Deploy, Device, DeviceRequest, EnvFile, FileMount, Hosts, Mount, MountType, Named,
    OptionalValues, Port, mapping,
};
use crate::compose::node::{Node, Value};
use crate::compose::units::ComposeDuration;

mapping! {
    /// A service.
    pub struct Service {
        /// The profiles that activate it; always active without any.
        "profiles" => profiles: Vec<String>,
        /// Annotations of its containers.
        "annotations" => annotations: Named<String>,
        /// Whether its output is shown.
        "attach" => attach: Option<bool>,
        /// How its image is built.
        "build" => build: Option<Build>,
        /// What happens during development.
        "develop" => develop: Option<Develop>,
        /// Limits of block devices.
        "blkio_config" => blkio_config: Option<BlkioConfig>,
        /// Capabilities added.
        "cap_add" => cap_add: Vec<String>,
        /// Capabilities dropped.
        "cap_drop" => cap_drop: Vec<String>,
        /// The parent control group.
        "cgroup_parent" => cgroup_parent: String,
        /// The control group namespace.
        "cgroup" => cgroup: String,
        /// Processors, on Windows.
        "cpu_count" => cpu_count: i64,
        /// Percent of the processors, on Windows.
        "cpu_percent" => cpu_percent: f32,
        /// Length of a scheduler period in microseconds.
        "cpu_period" => cpu_period: i64,
        /// Microseconds of a period the service gets.
        "cpu_quota" => cpu_quota: i64,
        /// Length of a real-time period in microseconds.
        "cpu_rt_period" => cpu_rt_period: i64,
        /// Microseconds of a real-time period the service gets.
        "cpu_rt_runtime" => cpu_rt_runtime: i64,
        /// Processors.
        "cpus" => cpus: f32,
        /// Which processors.
        "cpuset" => cpuset: String,
        /// Weight against other containers.
        "cpu_shares" => cpu_shares: i64,
        /// The command.
        "command" => command: CommandLine,
        /// Configs it reads.
        "configs" => configs: Vec<FileMount>,
        /// The name of its container.
        "container_name" => container_name: String,
        /// Credentials, on Windows.
        "credential_spec" => credential_spec: Option<CredentialSpec>,
        /// The services it needs.
        "depends_on" => depends_on: Named<Dependency>,
        /// How it is deployed.
        "deploy" => deploy: Option<Deploy>,
        /// Rules for devices.
        "device_cgroup_rules" => device_cgroup_rules: Vec<String>,
        /// Devices.
        "devices" => devices: Vec<Device>,
        /// Name servers.
        "dns" => dns: Vec<String>,
        /// Options of the resolver.
        "dns_opt" => dns_opt: Vec<String>,
        /// Search domains.
        "dns_search" => dns_search: Vec<String>,
        /// The domain name.
        "domainname" => domainname: String,
        /// The entrypoint.
        "entrypoint" => entrypoint: CommandLine,
        /// A program that provides the service.
        "provider" => provider: Option<Provider>,
        /// Environment variables, those of `env_file` among them.
        "environment" => environment: OptionalValues,
        /// The files its environment was read from.
        "env_file" => env_files: Vec<EnvFile>,
        /// Ports other services reach.
        "expose" => expose: Vec<String>,
        /// The service it extends, when that could not be resolved.
        "extends" => extends: Named<String>,
        /// Links to containers of others.
        "external_links" => external_links: Vec<String>,
        /// Host names it knows.
        "extra_hosts" => extra_hosts: Hosts,
        /// More groups of its user.
        "group_add" => group_add: Vec<String>,
        /// Graphics cards.
        "gpus" => gpus: Vec<DeviceRequest>,
        /// The host name.
        "hostname" => hostname: String,
        /// How its health is checked.
        "healthcheck" => healthcheck: Option<Healthcheck>,
        /// The image.
        "image" => image: String,
        /// Whether an init process runs in the container.
        "init" => init: Option<bool>,
        /// The IPC namespace.
        "ipc" => ipc: String,
        /// Isolation technology.
        "isolation" => isolation: String,
        /// Labels, those of `label_file` among them.
        "labels" => labels: Named<String>,
        /// The files its labels were read from.
        "label_file" => label_files: Vec<String>,
        /// Links to other services.
        "links" => links: Vec<String>,
        /// Where its output goes.
        "logging" => logging: Option<Logging>,
        /// The most memory.
        "mem_limit" => mem_limit: ByteSize,
        /// Memory it is sure to get.
        "mem_reservation" => mem_reservation: ByteSize,
        /// The most memory and swap.
        "memswap_limit" => memswap_limit: ByteSize,
        /// How readily memory is swapped.
        "mem_swappiness" => mem_swappiness: ByteSize,
        /// The MAC address.
        "mac_address" => mac_address: String,
        /// Models it uses.
        "models" => models: Named<Option<ServiceModel>>,
        /// A namespace instead of networks.
        "network_mode" => network_mode: String,
        /// The networks it is in.
        "networks" => networks: Named<Option<ServiceNetwork>>,
        /// Whether the kernel may not kill it for memory.
        "oom_kill_disable" => oom_kill_disable: bool,
        /// How readily the kernel kills it for memory.
        "oom_score_adj" => oom_score_adj: i64,
        /// The PID namespace.
        "pid" => pid: String,
        /// The most processes.
        "pids_limit" => pids_limit: i64,
        /// The platform.
        "platform" => platform: String,
        /// Published ports.
        "ports" => ports: Vec<Port>,
        /// Whether it is privileged.
        "privileged" => privileged: bool,
        /// When its image is pulled.
        "pull_policy" => pull_policy: String,
        /// How old an image may be before it is pulled again.
        "pull_refresh_after" never => pull_refresh_after: String,
        /// Whether its root file system cannot be written to.
        "read_only" => read_only: bool,
        /// When its container is started again.
        "restart" => restart: String,
        /// The runtime.
        "runtime" => runtime: String,
        /// How many containers.
        "scale" => scale: Option<i64>,
        /// Secrets it reads.
        "secrets" => secrets: Vec<FileMount>,
        /// Security options.
        "security_opt" => security_opt: Vec<String>,
        /// Size of `/dev/shm`.
        "shm_size" => shm_size: ByteSize,
        /// Whether its standard input stays open.
        "stdin_open" => stdin_open: bool,
        /// How long a stop waits.
        "stop_grace_period" => stop_grace_period: Option<ComposeDuration>,
        /// The signal of a stop.
        "stop_signal" => stop_signal: String,
        /// Options of the storage driver.
        "storage_opt" => storage_opt: Named<String>,
        /// Kernel parameters.
        "sysctls" => sysctls: Named<String>,
        /// Folders in memory, with options after a colon.
        "tmpfs" => tmpfs: Vec<String>,
        /// Whether it has a terminal.
        "tty" => tty: bool,
        /// Resource limits.
        "ulimits" => ulimits: Named<Ulimit>,
        /// Whether it gets the engine's socket.
        "use_api_socket" => use_api_socket: bool,
        /// The user.
        "user" => user: String,
        /// The user namespace.
        "userns_mode" => userns_mode: String,
        /// The UTS namespace.
        "uts" => uts: String,
        /// Mounts.
        "volumes" => volumes: Vec<Mount>,
        /// Services whose mounts it gets too.
        "volumes_from" => volumes_from: Vec<String>,
        /// The working folder.
        "working_dir" => working_dir: String,
        /// What runs after a start.
        "post_start" => post_start: Vec<Hook>,
        /// What runs before a stop.
        "pre_stop" => pre_stop: Vec<Hook>,
    }
}

impl Service {
    /// Returns how many containers it has.
    pub fn replicas(&self) -> i64 {
        self.scale.or_else(|| self.deploy.as_ref().and_then(|deploy| deploy.replicas)).unwrap_or(1)
    }

    /// Returns the networks, the primary one first: by priority, then by name.
    pub fn networks_by_priority(&self) -> Vec<&str> {
        let priority = |network: &Option<ServiceNetwork>| network.as_ref().map_or(0, |network| network.priority);
        let mut networks: Vec<_> = self.networks.iter().map(|(name, network)| (-priority(network), name.as_str())).collect();
        networks.sort_unstable();
        networks.into_iter().map(|(_, name)| name).collect()
    }

    pub(crate) fn uses_volume(&self, name: &str) -> bool {
        self.volumes.iter().any(|mount| mount.kind == MountType::Volume && mount.source == name)
    }

    pub(crate) fn has_profile(&self, active: &[String]) -> bool {
        self.profiles.is_empty() || active.iter().any(|name| name == "*" || self.profiles.contains(name))
    }
}

mapping! {
    /// A dependency on another service.
    pub struct Dependency {
        /// What the other service must have reached.
        "condition" => condition: DependencyCondition,
        /// Whether an explicit restart of the other one restarts this one.
        "restart" => restart: bool,
        /// Whether this one cannot go without.
        "required" always => required: bool,
    }
}

words! {
    /// What a dependency must have reached.
    pub enum DependencyCondition {
        /// It was started.
        #[default]
        Started = "service_started",
        /// Its health check passes.
        Healthy = "service_healthy",
        /// It ended with exit code 0.
        CompletedSuccessfully = "service_completed_successfully",
    }
}

mapping! {
    /// A service in a network.
    pub struct ServiceNetwork {
        /// More names it has there.
        "aliases" => aliases: Vec<String>,
        /// Options of the driver.
        "driver_opts" => driver_opts: Named<String>,
        /// Which network has the default route: the highest.
        "gw_priority" => gw_priority: i64,
        /// The name of the interface.
        "interface_name" => interface_name: String,
        /// The IPv4 address.
        "ipv4_address" => ipv4_address: String,
        /// The IPv6 address.
        "ipv6_address" => ipv6_address: String,
        /// Link-local addresses.
        "link_local_ips" => link_local_ips: Vec<String>,
        /// The MAC address.
        "mac_address" => mac_address: String,
        /// Which network is the primary one: the highest.
        "priority" => priority: i64,
    }
}

impl FromText for Option<ServiceNetwork> {}

mapping! {
    /// A model a service uses.
    pub struct ServiceModel {
        /// The variable that gets the endpoint.
        "endpoint_var" => endpoint_var: String,
        /// The variable that gets the name.
        "model_var" => model_var: String,
    }
}

impl FromText for Option<ServiceModel> {}

mapping! {
    /// How health is checked.
    pub struct Healthcheck {
        /// `CMD` and words, `CMD-SHELL` and a line, or `NONE`; empty for the image's.
        "test" => test: HealthTest,
        /// How long a check may take.
        "timeout" => timeout: Option<ComposeDuration>,
        /// Time between checks.
        "interval" => interval: Option<ComposeDuration>,
        /// How many failures make unhealthy.
        "retries" => retries: Option<u64>,
        /// How long failures do not count.
        "start_period" => start_period: Option<ComposeDuration>,
        /// Time between checks during that.
        "start_interval" => start_interval: Option<ComposeDuration>,
        /// Whether the image's check is off.
        "disable" => disable: bool,
    }
}

/// What a health check runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthTest(Vec<String>);

impl HealthTest {
    /// Returns the words, `CMD`, `CMD-SHELL` or `NONE` first; empty for the image's check.
    pub fn words(&self) -> &[String] {
        &self.0
    }
}

impl Decode for HealthTest {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        match node.as_str() {
            Some(line) => Self(vec!["CMD-SHELL".to_owned(), line.to_owned()]),
            None => Self(Decode::decode(node, context)),
        }
    }
}

impl Encode for HealthTest {
    fn encode(&self, style: Style) -> Json {
        self.0.encode(style)
    }

    fn omit(&self, _style: Style) -> bool {
        self.0.is_empty()
    }
}

mapping! {
    /// Where output goes.
    pub struct Logging {
        /// The driver.
        "driver" => driver: String,
        /// Options of the driver.
        "options" => options: Named<String>,
    }
}

mapping! {
    /// A command in a running container.
    pub struct Hook {
        /// The command.
        "command" => command: CommandLine,
        /// The user.
        "user" => user: String,
        /// Whether it is privileged.
        "privileged" => privileged: bool,
        /// The working folder.
        "working_dir" => working_dir: String,
        /// Environment variables.
        "environment" => environment: OptionalValues,
    }
}

mapping! {
    /// What happens during development.
    pub struct Develop {
        /// What to do when files change.
        "watch" => watch: Vec<WatchRule>,
    }
}

mapping! {
    /// What to do when files change.
    pub struct WatchRule {
        /// The files.
        "path" always => path: String,
        /// What to do.
        "action" always => action: String,
        /// Where changed files go.
        "target" => target: String,
        /// What to run.
        "exec" => exec: Hook,
        /// Files that count.
        "include" => include: Vec<String>,
        /// Files that do not.
        "ignore" => ignore: Vec<String>,
        /// Whether files are copied at the start.
        "initial_sync" => initial_sync: bool,
    }
}

mapping! {
    /// Credentials, on Windows.
    pub struct CredentialSpec {
        /// The config that holds them.
        "config" => config: String,
        /// The file that holds them.
        "file" => file: String,
        /// The registry value that holds them.
        "registry" => registry: String,
    }
}

mapping! {
    /// A program that provides a service.
    pub struct Provider {
        /// Its kind.
        "type" => kind: String,
        /// Its options.
        "options" => options: Named<Vec<String>>,
    }
}

mapping! {
    /// Limits of block devices.
    pub struct BlkioConfig {
        /// Weight against other containers.
        "weight" => weight: u16,
        /// Weights for single devices.
        "weight_device" => weight_device: Vec<BlkioWeight>,
        /// Bytes read a second.
        "device_read_bps" => device_read_bps: Vec<BlkioLimit>,
        /// Reads a second.
        "device_read_iops" => device_read_iops: Vec<BlkioLimit>,
        /// Bytes written a second.
        "device_write_bps" => device_write_bps: Vec<BlkioLimit>,
        /// Writes a second.
        "device_write_iops" => device_write_iops: Vec<BlkioLimit>,
    }
}

/// Declares a pair of a device and a number, which docker compose's JSON writes with capitals.
macro_rules! device_pair {
    ($(#[$meta:meta])* pub struct $name:ident { $field:ident : $type:ty = $key:literal / $json_key:literal, $docs:literal }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name {
            /// The device.
            pub path: String,
            #[doc = $docs]
            pub $field: $type,
        }

        impl Decode for $name {
            fn decode(node: &Node, context: &mut Context<'_>) -> Self {
                let mut value = Self::default();
                context.entries(node, |key, child, context| match key {
                    "path" => value.path = Decode::decode(child, context),
                    $key => value.$field = Decode::decode(child, context),
                    _ => {}
                });
                value
            }
        }

        impl Encode for $name {
            fn encode(&self, style: Style) -> Json {
                let keys = if style == Style::Json { ["Path", $json_key] } else { ["path", $key] };
                let values = [self.path.encode(style), self.$field.encode(style)];
                Json::Object(keys.into_iter().map(str::to_owned).zip(values).collect())
            }
        }
    };
}

device_pair! {
    /// The weight of one device.
    pub struct BlkioWeight { weight: u16 = "weight" / "Weight", "The weight." }
}

device_pair! {
    /// The limit of one device.
    pub struct BlkioLimit { rate: ByteSize = "rate" / "Rate", "Bytes or operations a second." }
}

/// A resource limit: one value, or a soft and a hard one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ulimit {
    /// Both limits.
    Single(i64),
    /// Two limits.
    Pair {
        /// The one that counts at first.
        soft: i64,
        /// The one it may be raised to.
        hard: i64,
    },
}

impl FromText for Ulimit {}

impl Decode for Ulimit {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        if !matches!(node.value, Value::Map(_)) {
            return Self::Single(i64::decode(node, context));
        }
        let (mut soft, mut hard) = (0, 0);
        context.entries(node, |key, child, context| match key {
            "soft" => soft = Decode::decode(child, context),
            "hard" => hard = Decode::decode(child, context),
            _ => {}
        });
        Self::Pair { soft, hard }
    }
}

impl Encode for Ulimit {
    fn encode(&self, style: Style) -> Json {
        let pair = |soft: i64, hard: i64| {
            let mut map = serde_json::Map::new();
            for (key, value) in [("soft", soft), ("hard", hard)] {
                if value != 0 || style == Style::Yaml {
                    map.insert(key.to_owned(), Json::from(value));
                }
            }
            Json::Object(map)
        };
        match self {
            // The reference cannot tell a single 0 from none.
            Self::Single(0) => pair(0, 0),
            Self::Single(limit) => Json::from(*limit),
            Self::Pair { soft, hard } => pair(*soft, *hard),
        }
    }
}
