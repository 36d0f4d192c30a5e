//! What a spec, a provider option, `run_args` or a Compose file may ask for beyond a sandbox of its own. Closed unless a
//! switch says otherwise; pure.

mod objects;
mod paths;
mod rules;

#[cfg(test)]
mod tests;

use std::fmt;

use serde::Deserialize;

use crate::error::{Error, Operation, Result};
use crate::spec::container::{ContainerSpec, NetworkSpec, VolumeSpec};

/// What whoever asks for a container may have. The default is closed: right for code that nobody has read.
///
/// It is a block `policy` of a provider's configuration, with these names as keys. Everything it refuses is refused by
/// name before anything is made, with the switch that would allow it (contract D9, D11).
///
/// What needs no switch: everything that stays in the sandbox, such as limits, named volumes, memory mounts, networks of
/// bridges, ports on a loopback address, dropped capabilities, the capabilities that engines give by default, and
/// `no-new-privileges`.
///
/// ```
/// use gym_sandbox::container::{ContainerSpec, MountSpec};
/// use gym_sandbox::provider::Policy;
///
/// let mut spec = ContainerSpec::new("debian:bookworm");
/// spec.mounts.push(MountSpec::bind("/srv/data/../../etc", "/data"));
/// let refused = Policy::default().check(&spec).unwrap_err();
/// assert_eq!(refused[0].option, "mount of `/etc`");
///
/// let mut policy = Policy::default();
/// policy.allow_host_binds = vec!["/srv/data:ro".to_owned()];
/// spec.mounts = vec![MountSpec::bind("/srv/data/set", "/data").read_only()];
/// assert!(policy.check(&spec).is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Policy {
    /// All privileges (`privileged`), of containers and of commands. With this a container is the host's root.
    pub allow_privileged: bool,
    /// Namespaces of the host that may be shared.
    pub allow_host_namespaces: Vec<Namespace>,
    /// Whether namespaces and volumes of other containers may be shared. Containers of one Compose project always may.
    pub allow_other_containers: bool,
    /// Paths of the host that may be mounted, with everything below them; with `:ro` at the end only read-only. `/` allows
    /// all but the engine's sockets.
    ///
    /// A path is compared after `.` and `..` are resolved. Links are not: the engine's machine can't be looked into. Allow
    /// only folders in which nobody you don't trust can make links.
    pub allow_host_binds: Vec<String>,
    /// The sockets of engines, and folders that hold one. With one a container is the host's root.
    pub allow_engine_socket: bool,
    /// Devices of the host, by path; one that ends in `/` allows all below it.
    pub allow_devices: Vec<String>,
    /// Rules of the device control group, word for word, as in `c 1:3 r`.
    pub allow_device_rules: Vec<String>,
    /// Drivers of device requests other than those of graphics cards, such as `cdi`.
    pub allow_device_drivers: Vec<String>,
    /// Capabilities beyond those that engines give by default, such as `SYS_PTRACE`. `ALL` allows all.
    pub allow_capabilities: Vec<String>,
    /// Security options beyond `no-new-privileges`, word for word, such as `seccomp=unconfined`.
    pub allow_security_options: Vec<String>,
    /// Addresses of the host beyond loopback on which ports may be published, such as `0.0.0.0`.
    pub allow_publish_addresses: Vec<std::net::IpAddr>,
    /// Parents of control groups.
    pub allow_cgroup_parents: Vec<String>,
    /// Runtimes. Default: `runc`, `crun`, `youki`, `runsc`, `kata` and their long names.
    pub allow_runtimes: Vec<String>,
    /// Kernel parameters beyond those of a container's own namespaces.
    pub allow_sysctls: Vec<String>,
    /// Annotations of the runtime, by key: some change how a container is isolated.
    pub allow_annotations: Vec<String>,
    /// Log drivers beyond `json-file`, `local` and `none`: the others have the engine talk to an address.
    pub allow_log_drivers: Vec<String>,
    /// Protection from the OOM killer: a negative score, or none at all. Other processes of the host die instead.
    pub allow_oom_protection: bool,
    /// Drivers of volumes beyond `local`, and with `local:nfs` and the like kinds of file systems that it mounts.
    pub allow_volume_drivers: Vec<String>,
    /// Drivers of networks beyond `bridge` and `overlay`, such as `macvlan`: their containers are in the host's network.
    pub allow_network_drivers: Vec<String>,
}

/// A kind of namespace of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Namespace {
    /// Interfaces, and every service of the host.
    Network,
    /// Processes.
    Pid,
    /// Shared memory and semaphores.
    Ipc,
    /// The host name.
    Uts,
    /// Users: switches a remapping of the engine off.
    User,
    /// Control groups.
    Cgroup,
}

impl Namespace {
    /// The word of configuration files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Pid => "pid",
            Self::Ipc => "ipc",
            Self::Uts => "uts",
            Self::User => "user",
            Self::Cgroup => "cgroup",
        }
    }
}

/// One thing that a policy does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// What was asked for, as in `privileged` or ``capability `SYS_ADMIN` ``.
    pub option: String,
    /// Why it is not allowed by itself.
    pub why: &'static str,
    /// The setting that would allow it, as in `policy.allow_privileged: true`.
    pub allow: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not allowed: {}", self.option, self.why)
    }
}

impl Default for Policy {
    fn default() -> Self {
        let runtimes = [
            "runc",
            "crun",
            "youki",
            "runsc",
            "kata",
            "kata-runtime",
            "io.containerd.runc.v2",
            "io.containerd.runsc.v1",
            "io.containerd.kata.v2",
        ];
        Self {
            allow_privileged: false,
            allow_host_namespaces: Vec::new(),
            allow_other_containers: false,
            allow_host_binds: Vec::new(),
            allow_engine_socket: false,
            allow_devices: Vec::new(),
            allow_device_rules: Vec::new(),
            allow_device_drivers: Vec::new(),
            allow_capabilities: Vec::new(),
            allow_security_options: Vec::new(),
            allow_publish_addresses: Vec::new(),
            allow_cgroup_parents: Vec::new(),
            allow_runtimes: runtimes.map(str::to_owned).into(),
            allow_sysctls: Vec::new(),
            allow_annotations: Vec::new(),
            allow_log_drivers: Vec::new(),
            allow_oom_protection: false,
            allow_volume_drivers: Vec::new(),
            allow_network_drivers: Vec::new(),
        }
    }
}

impl Policy {
    /// Checks what a container asks for.
    ///
    /// # Errors
    /// Everything that is not allowed, in the order of the fields of [`ContainerSpec`] as far as that makes sense.
    pub fn check(&self, spec: &ContainerSpec) -> Result<(), Vec<Violation>> {
        self.check_beside(spec, &[])
    }

    /// Checks a container that may share namespaces and volumes with containers of its own project, by name or id.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_beside(&self, spec: &ContainerSpec, own: &[&str]) -> Result<(), Vec<Violation>> {
        let mut found = rules::Found::default();
        rules::container(self, spec, own, &mut found);
        found.into_result()
    }

    /// Checks a network that is to be made.
    ///
    /// # Errors
    /// Everything that is not allowed.
    pub fn check_network(&self, spec: &NetworkSpec) -> Result<(), Vec<Violation>> {
        let mut found = rules::Found::default();
        objects::network(self, spec, &mut found);
        found.into_result()
    }

    /// Checks a volume that is to be made: the local driver can mount any path and device of the host.
    ///
    /// # Errors
    /// Everything that is not allowed.
    pub fn check_volume(&self, spec: &VolumeSpec) -> Result<(), Vec<Violation>> {
        let mut found = rules::Found::default();
        objects::volume(self, spec, &mut found);
        found.into_result()
    }

    /// Checks whether a command may have all privileges.
    ///
    /// # Errors
    /// That it may not.
    pub fn check_privileged_command(&self) -> Result<(), Vec<Violation>> {
        let mut found = rules::Found::default();
        rules::privileged(self, true, &mut found);
        found.into_result()
    }
}

/// Makes one error of everything that a policy refused.
pub fn policy_error(operation: Operation, violations: &[Violation]) -> Error {
    let what: Vec<String> = violations.iter().map(Violation::to_string).collect();
    let mut how: Vec<&str> = Vec::new();
    for violation in violations {
        if !how.contains(&violation.allow.as_str()) {
            how.push(&violation.allow);
        }
    }
    Error::invalid(operation, format!("the policy refuses this: {}", what.join("; "))).with_hint(format!(
        "whoever configures the provider can allow it with {}",
        how.join(", ")
    ))
}
