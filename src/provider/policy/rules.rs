//! The rules of containers, one function a part.

use crate::spec::container::{
    ContainerSpec, EndpointSpec, MountKind, MountSpec, NamespaceMode, NetworkAttachment,
};

use super::paths::{is_within, reaches_engine, resolved};
use super::{Namespace, Policy, Violation};

/// What engines give by default (Docker's list).
const DEFAULT_CAPABILITIES: [&str; 14] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "NET_RAW",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Kernel parameters of an IPC namespace (the engine's own list).
const IPC_SYSCTLS: [&str; 8] = [
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
];

#[derive(Debug, Default)]
pub(super) struct Found(Vec<Violation>);

impl Found {
    pub(super) fn into_result(self) -> Result<(), Vec<Violation>> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
    }

    pub(super) fn add(&mut self, option: impl Into<String>, why: &'static str, allow: impl Into<String>) {
        self.0.push(Violation {
            option: option.into(),
            why,
            allow: allow.into(),
        });
    }

    /// Refuses a word that is not in a list of the policy.
    pub(super) fn unless_listed(
        &mut self,
        listed: &[String],
        word: &str,
        what: &str,
        why: &'static str,
        setting: &str,
    ) {
        if !listed.iter().any(|allowed| allowed == word) {
            self.add(
                format!("{what} `{}`", word.escape_debug()),
                why,
                listing(setting, word),
            );
        }
    }
}

/// The most characters of a security option that are shown.
const SHOWN: usize = 60;

pub(super) fn listing(setting: &str, word: &str) -> String {
    format!("policy.{setting}: [\"{}\"]", word.escape_debug())
}

pub(super) fn container(policy: &Policy, spec: &ContainerSpec, own: &[&str], found: &mut Found) {
    privileged(policy, spec.privileged, found);
    namespaces(policy, spec, own, found);
    for mount in &spec.mounts {
        self::mount(policy, mount, found);
    }
    for from in &spec.volumes_from {
        let name = from.split(':').next().unwrap_or_default();
        other_container(policy, name, "the volumes", own, found);
    }
    devices(policy, spec, found);
    capabilities(policy, &spec.cap_add, found);
    security_options(policy, &spec.security_options, found);
    for port in &spec.ports {
        if let Some(address) = port.host_ip {
            publish(policy, address, found);
        }
    }
    if let Some(parent) = &spec.cgroup_parent {
        let why = "it leaves the limits of the engine's own group";
        found.unless_listed(
            &policy.allow_cgroup_parents,
            parent,
            "cgroup parent",
            why,
            "allow_cgroup_parents",
        );
    }
    if let Some(runtime) = &spec.runtime {
        let why = "a runtime decides how a container is isolated";
        found.unless_listed(&policy.allow_runtimes, runtime, "runtime", why, "allow_runtimes");
    }
    sysctls(policy, spec, found);
    for key in spec.annotations.keys() {
        let why = "some change how the runtime isolates";
        found.unless_listed(
            &policy.allow_annotations,
            key,
            "annotation",
            why,
            "allow_annotations",
        );
    }
    if let Some(driver) = spec.logging.as_ref().and_then(|log| log.driver.as_deref())
        && !["", "json-file", "local", "none"].contains(&driver)
    {
        let why = "the engine would send logs somewhere";
        found.unless_listed(
            &policy.allow_log_drivers,
            driver,
            "log driver",
            why,
            "allow_log_drivers",
        );
    }
    let protected = spec.limits.oom_kill_disable == Some(true)
        || spec.limits.oom_score_adj.is_some_and(|score| score < 0);
    if protected && !policy.allow_oom_protection {
        found.add(
            "protection from the OOM killer",
            "other processes of the host would be killed instead",
            "policy.allow_oom_protection: true",
        );
    }
}

pub(super) fn privileged(policy: &Policy, asked: bool, found: &mut Found) {
    if asked && !policy.allow_privileged {
        found.add(
            "`privileged`",
            "it makes a container the host's root",
            "policy.allow_privileged: true",
        );
    }
}

fn namespaces(policy: &Policy, spec: &ContainerSpec, own: &[&str], found: &mut Found) {
    match &spec.network {
        NetworkAttachment::Host => host_namespace(policy, Namespace::Network, found),
        NetworkAttachment::Container(name) => other_container(policy, name, "the network", own, found),
        NetworkAttachment::Networks(networks) => {
            for network in networks {
                named_network(policy, network, own, found);
            }
        }
        _ => {}
    }
    for (namespace, mode) in [
        (Namespace::Pid, &spec.pid),
        (Namespace::Ipc, &spec.ipc),
        (Namespace::Uts, &spec.uts),
        (Namespace::User, &spec.user_namespace),
        (Namespace::Cgroup, &spec.cgroup_namespace),
    ] {
        match mode {
            NamespaceMode::Host => host_namespace(policy, namespace, found),
            NamespaceMode::Container(name) => {
                let what = format!("the {} namespace", namespace.as_str());
                other_container(policy, name, &what, own, found);
            }
            _ => {}
        }
    }
}

/// A list of networks may not smuggle in a mode.
fn named_network(policy: &Policy, network: &EndpointSpec, own: &[&str], found: &mut Found) {
    if network.network == "host" {
        host_namespace(policy, Namespace::Network, found);
    } else if let Some(name) = network.network.strip_prefix("container:") {
        other_container(policy, name, "the network", own, found);
    }
}

fn host_namespace(policy: &Policy, namespace: Namespace, found: &mut Found) {
    if !policy.allow_host_namespaces.contains(&namespace) {
        let word = namespace.as_str();
        found.add(
            format!("the host's {word} namespace"),
            "the container would be in the host's own",
            listing("allow_host_namespaces", word),
        );
    }
}

fn other_container(policy: &Policy, name: &str, what: &str, own: &[&str], found: &mut Found) {
    if !policy.allow_other_containers && !own.contains(&name) {
        found.add(
            format!("{what} of the container `{}`", name.escape_debug()),
            "it may be anybody's",
            "policy.allow_other_containers: true",
        );
    }
}

fn mount(policy: &Policy, mount: &MountSpec, found: &mut Found) {
    if let MountKind::Bind { source, .. } = &mount.kind {
        bind(policy, source, mount.read_only, found);
    }
}

pub(super) fn bind(policy: &Policy, source: &str, read_only: bool, found: &mut Found) {
    let path = resolved(source);
    let named = format!("mount of `{}`", path.escape_debug());
    if reaches_engine(&path) {
        if !policy.allow_engine_socket {
            found.add(
                named.clone(),
                "it holds an engine's socket",
                "policy.allow_engine_socket: true",
            );
        }
        // The socket itself is named by its own switch.
        if path.rsplit('.').next() == Some("sock") {
            return;
        }
    }
    let allowed = policy.allow_host_binds.iter().any(|entry| {
        let (folder, only_reading) = match entry.strip_suffix(":ro") {
            Some(folder) => (folder, true),
            None => (entry.as_str(), false),
        };
        folder.starts_with('/') && is_within(&path, &resolved(folder)) && (read_only || !only_reading)
    });
    if !allowed {
        let entry = if read_only { format!("{path}:ro") } else { path };
        found.add(
            named,
            "it is a path of the host",
            listing("allow_host_binds", &entry),
        );
    }
}

pub(super) fn device(policy: &Policy, path: &str, found: &mut Found) {
    let path = resolved(path);
    let allowed = policy.allow_devices.iter().any(|entry| {
        let folder = resolved(entry);
        path == folder || (entry.ends_with('/') && is_within(&path, &folder))
    });
    if !allowed {
        let allow = listing("allow_devices", &path);
        found.add(
            format!("device `{}`", path.escape_debug()),
            "it is a device of the host",
            allow,
        );
    }
}

fn devices(policy: &Policy, spec: &ContainerSpec, found: &mut Found) {
    for asked in &spec.devices {
        device(policy, &asked.host_path, found);
    }
    for rule in &spec.device_rules {
        let why = "it opens devices of the host";
        found.unless_listed(
            &policy.allow_device_rules,
            rule,
            "device rule",
            why,
            "allow_device_rules",
        );
    }
    for request in &spec.device_requests {
        let is_gpu = request
            .capabilities
            .iter()
            .any(|list| list.iter().any(|capability| capability == "gpu"));
        let driver = request.driver.as_deref().unwrap_or_default();
        if !is_gpu || !["", "nvidia"].contains(&driver) {
            let why = "it gives out devices of the host";
            found.unless_listed(
                &policy.allow_device_drivers,
                driver,
                "device driver",
                why,
                "allow_device_drivers",
            );
        }
    }
}

fn plain_capability(name: &str) -> String {
    let upper = name.to_ascii_uppercase();
    upper.strip_prefix("CAP_").unwrap_or(&upper).to_owned()
}

fn capabilities(policy: &Policy, added: &[String], found: &mut Found) {
    let listed: Vec<String> = policy
        .allow_capabilities
        .iter()
        .map(|name| plain_capability(name))
        .collect();
    for name in added {
        let plain = plain_capability(name);
        let by_default = DEFAULT_CAPABILITIES.contains(&plain.as_str());
        if !by_default && !listed.iter().any(|allowed| allowed == "ALL") {
            let why = "engines don't give it by default";
            found.unless_listed(&listed, &plain, "capability", why, "allow_capabilities");
        }
    }
}

fn security_options(policy: &Policy, options: &[String], found: &mut Found) {
    for option in options {
        let tightens = [
            "no-new-privileges",
            "no-new-privileges:true",
            "no-new-privileges=true",
            "seccomp=builtin",
        ];
        if !tightens.contains(&option.as_str()) {
            let why = "it may loosen what confines a container";
            let listed = &policy.allow_security_options;
            // A profile may be given as a whole text, which is nothing for an error.
            let begin: String = option.chars().take(SHOWN).collect();
            if begin == *option {
                found.unless_listed(listed, option, "security option", why, "allow_security_options");
            } else if !listed.contains(option) {
                found.add(
                    format!("security option `{}...`", begin.escape_debug()),
                    why,
                    "policy.allow_security_options with the whole text of it".to_owned(),
                );
            }
        }
    }
}

pub(super) fn publish(policy: &Policy, address: std::net::IpAddr, found: &mut Found) {
    if !address.is_loopback() && !policy.allow_publish_addresses.contains(&address) {
        let word = address.to_string();
        found.add(
            format!("a port published on `{word}`"),
            "others than this machine could reach it",
            listing("allow_publish_addresses", &word),
        );
    }
}

fn sysctls(policy: &Policy, spec: &ContainerSpec, found: &mut Found) {
    let own_network = spec.network != NetworkAttachment::Host;
    let own_ipc = spec.ipc != NamespaceMode::Host;
    for name in spec.sysctls.keys() {
        let is_own = (name.starts_with("net.") && own_network)
            || ((name.starts_with("fs.mqueue.") || IPC_SYSCTLS.contains(&name.as_str())) && own_ipc)
            || (name == "kernel.domainname" && spec.uts != NamespaceMode::Host);
        if !is_own {
            let why = "it is not of the container's own namespaces";
            found.unless_listed(
                &policy.allow_sysctls,
                name,
                "kernel parameter",
                why,
                "allow_sysctls",
            );
        }
    }
}
