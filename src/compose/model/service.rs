//! A service.

use super::{
    BlkioConfig, Build, ByteSize, CommandLine, CredentialSpec, Dependency, Deploy, Develop, Device,
    DeviceRequest, EnvFile, FileMount, Healthcheck, Hook, Hosts, Logging, Mount, MountType, Named,
    OptionalValues, Port, Provider, ServiceModel, ServiceNetwork, Ulimit, mapping,
};
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
        self.scale
            .or_else(|| self.deploy.as_ref().and_then(|deploy| deploy.replicas))
            .unwrap_or(1)
    }

    /// Returns the networks, the primary one first: by priority, then by name.
    pub fn networks_by_priority(&self) -> Vec<&str> {
        let priority =
            |network: &Option<ServiceNetwork>| network.as_ref().map_or(0, |network| network.priority);
        let mut networks: Vec<_> = self
            .networks
            .iter()
            .map(|(name, network)| (-priority(network), name.as_str()))
            .collect();
        networks.sort_unstable();
        networks.into_iter().map(|(_, name)| name).collect()
    }

    pub(crate) fn uses_volume(&self, name: &str) -> bool {
        self.volumes
            .iter()
            .any(|mount| mount.kind == MountType::Volume && mount.source == name)
    }

    pub(crate) fn has_profile(&self, active: &[String]) -> bool {
        self.profiles.is_empty()
            || active
                .iter()
                .any(|name| name == "*" || self.profiles.contains(name))
    }
}
