//! From a neutral container to the engine's create body: pure, and tested as a table. The one mapping behind provider
//! options, `run_args` and Compose services.

mod connect;
mod limits;
mod mounts;
mod needs;
mod networks;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigIsolationEnum,
    HostConfigLogConfig, RestartPolicy as EngineRestart, RestartPolicyNameEnum,
};

use crate::error::{Error, Operation, Result};
use crate::spec::container::{
    ContainerSpec, HealthTest, HealthcheckSpec, LogSpec, NamespaceMode, RestartPolicy,
};

use super::connect::ApiVersion;
pub(super) use connect::{networks_of, no_such_network};
pub(super) use mounts::{is_librarys, is_volume_name};
pub(super) use needs::Needs;
use networks::Endpoints;
pub(super) use networks::NetworkJoin;

/// What a container becomes on an engine, before that engine is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mapped {
    body: ContainerCreateBody,
    endpoints: Endpoints,
    needs: Needs,
}

/// The calls that make a container on one engine.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Creation {
    /// The body of the create call.
    pub(super) body: ContainerCreateBody,
    /// Networks to connect after the create and before the start, in this order: before API 1.44 an engine takes only one
    /// with the create.
    pub(super) joins: Vec<NetworkJoin>,
}

/// Maps a container. Ports without an address are published on `publish_address`.
pub(super) fn map(spec: &ContainerSpec, publish_address: IpAddr) -> Result<Mapped> {
    let mut needs = Needs::default();
    let mut host = HostConfig::default();
    let endpoints = networks::endpoints(spec, &mut needs)?;
    limits::apply(spec, &mut host)?;
    mounts::apply(spec, &mut host, &mut needs)?;
    let (exposed_ports, bindings) = networks::ports(spec, publish_address)?;
    host.port_bindings = bindings;
    host.network_mode.clone_from(&endpoints.mode);
    host.extra_hosts = networks::extra_hosts(spec)?;
    host.dns = networks::dns_servers(spec)?;
    host.dns_search = non_empty(spec.dns_search.clone());
    host.dns_options = non_empty(spec.dns_options.clone());
    host.init = spec.init;
    host.readonly_rootfs = spec.read_only.then_some(true);
    host.restart_policy = restart(spec.restart);
    host.log_config = spec.logging.as_ref().map(logging);
    host.group_add = non_empty(unique(&spec.group_add));
    host.volumes_from = non_empty(spec.volumes_from.clone());
    host.cap_add = non_empty(capabilities(&spec.cap_add)?);
    host.cap_drop = non_empty(capabilities(&spec.cap_drop)?);
    host.security_opt = non_empty(spec.security_options.clone());
    host.privileged = spec.privileged.then_some(true);
    host.cgroup_parent.clone_from(&spec.cgroup_parent);
    host.runtime.clone_from(&spec.runtime);
    host.isolation = isolation(spec.isolation.as_deref())?;
    if !spec.annotations.is_empty() {
        needs.require(ApiVersion::new(1, 43), "an annotation");
        host.annotations = map_of(&spec.annotations);
    }
    namespaces(spec, &mut host)?;
    let body = ContainerCreateBody {
        image: Some(spec.image.clone()),
        entrypoint: spec.entrypoint.clone(),
        cmd: spec.command.clone(),
        env: environment(spec)?,
        working_dir: spec.working_dir.clone(),
        user: spec.user.clone(),
        labels: map_of(&spec.labels),
        tty: spec.tty.then_some(true),
        open_stdin: spec.stdin_open.then_some(true),
        stop_signal: spec.stop_signal.clone(),
        // Whole seconds, cut off as docker compose does.
        stop_timeout: spec
            .stop_timeout
            .map(|timeout| i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX)),
        healthcheck: spec
            .healthcheck
            .as_ref()
            .map(|check| health(check, &mut needs))
            .transpose()?,
        hostname: hostname(spec)?,
        domainname: spec.domainname.clone(),
        exposed_ports: non_empty(exposed_ports),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    };
    Ok(Mapped {
        body,
        endpoints,
        needs,
    })
}

impl Mapped {
    /// Refuses what the engine's API is too old for: it would drop it silently (engine-facts S7, S8).
    pub(super) fn for_engine(self, api: ApiVersion) -> Result<Creation> {
        self.needs.check(api)?;
        let mut body = self.body;
        let (networking, joins) = self.endpoints.for_engine(api);
        body.networking_config = networking;
        Ok(Creation { body, joins })
    }
}

/// The longest host name that a kernel takes; the engine says so only at the start.
const MAX_HOSTNAME: usize = 64;

fn hostname(spec: &ContainerSpec) -> Result<Option<String>> {
    match &spec.hostname {
        Some(name) if name.is_empty() || name.len() > MAX_HOSTNAME => Err(invalid(format!(
            "the host name `{}` must have 1 to {MAX_HOSTNAME} characters",
            name.escape_debug()
        ))),
        name => Ok(name.clone()),
    }
}

fn environment(spec: &ContainerSpec) -> Result<Option<Vec<String>>> {
    let mut variables = Vec::new();
    for (name, value) in spec.environment.iter() {
        let has_nul = name.contains('\0') || value.is_some_and(|value| value.contains('\0'));
        if name.is_empty() || name.contains('=') || has_nul {
            return Err(invalid(format!(
                "the environment variable `{}` has a name or a value that no process can get",
                name.escape_debug()
            )));
        }
        variables.push(match value {
            Some(value) => format!("{name}={value}"),
            // The engine takes the image's variable away (bugs B09).
            None => name.to_owned(),
        });
    }
    Ok(non_empty(variables))
}

fn health(check: &HealthcheckSpec, needs: &mut Needs) -> Result<HealthConfig> {
    let test = match &check.test {
        HealthTest::Inherit => None,
        HealthTest::Disabled => Some(vec!["NONE".to_owned()]),
        HealthTest::Command(argv) if argv.is_empty() => {
            return Err(invalid("the health check's command is empty".to_owned()));
        }
        HealthTest::Command(argv) => Some(
            std::iter::once("CMD".to_owned())
                .chain(argv.iter().cloned())
                .collect(),
        ),
        HealthTest::Shell(line) => Some(vec!["CMD-SHELL".to_owned(), line.clone()]),
    };
    if check.start_interval.is_some() {
        needs.require(ApiVersion::new(1, 44), "a health check's start interval");
    }
    let span = |name: &str, value: Option<std::time::Duration>| match value {
        // 0 would be the engine's default, and less than a millisecond is refused by it.
        Some(value) if value < std::time::Duration::from_millis(1) => {
            Err(invalid(format!("the health check's {name} is less than 1 ms")))
        }
        Some(value) => Ok(Some(i64::try_from(value.as_nanos()).unwrap_or(i64::MAX))),
        None => Ok(None),
    };
    Ok(HealthConfig {
        test,
        interval: span("interval", check.interval)?,
        timeout: span("timeout", check.timeout)?,
        retries: check.retries.map(i64::from),
        start_period: span(
            "start period",
            check.start_period.filter(|period| !period.is_zero()),
        )?,
        start_interval: span("start interval", check.start_interval)?,
    })
}

fn restart(policy: RestartPolicy) -> Option<EngineRestart> {
    let (name, count) = match policy {
        RestartPolicy::No => return None,
        RestartPolicy::Always => (RestartPolicyNameEnum::ALWAYS, None),
        RestartPolicy::UnlessStopped => (RestartPolicyNameEnum::UNLESS_STOPPED, None),
        RestartPolicy::OnFailure { max_retries } => (RestartPolicyNameEnum::ON_FAILURE, max_retries),
    };
    Some(EngineRestart {
        name: Some(name),
        maximum_retry_count: count.map(i64::from),
    })
}

fn logging(log: &LogSpec) -> HostConfigLogConfig {
    HostConfigLogConfig {
        typ: log.driver.clone(),
        config: map_of(&log.options),
    }
}

/// Capabilities as the engine names them.
fn capabilities(asked: &[String]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for name in asked {
        let plain = plain_capability(name);
        if plain.is_empty()
            || !plain
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return Err(invalid(format!(
                "`{}` is not the name of a capability",
                name.escape_debug()
            )));
        }
        let full = if plain == "ALL" {
            plain
        } else {
            format!("CAP_{plain}")
        };
        if !all.contains(&full) {
            all.push(full);
        }
    }
    Ok(all)
}

fn plain_capability(name: &str) -> String {
    let upper = name.to_ascii_uppercase();
    upper.strip_prefix("CAP_").unwrap_or(&upper).to_owned()
}

fn isolation(word: Option<&str>) -> Result<Option<HostConfigIsolationEnum>> {
    match word {
        None | Some("") => Ok(None),
        Some("default") => Ok(Some(HostConfigIsolationEnum::DEFAULT)),
        Some("process") => Ok(Some(HostConfigIsolationEnum::PROCESS)),
        Some("hyperv") => Ok(Some(HostConfigIsolationEnum::HYPERV)),
        Some(other) => Err(invalid(format!(
            "the isolation `{}` is none of default, process and hyperv",
            other.escape_debug()
        ))),
    }
}

fn namespaces(spec: &ContainerSpec, host: &mut HostConfig) -> Result<()> {
    use NamespaceMode::{Container, Default, Host, None as Nothing, Private, Shareable};
    let container = |name: &str| format!("container:{name}");
    host.ipc_mode = match &spec.ipc {
        Default => None,
        Private => Some("private".to_owned()),
        Shareable => Some("shareable".to_owned()),
        Nothing => Some("none".to_owned()),
        Host => Some("host".to_owned()),
        Container(name) => Some(container(name)),
    };
    host.pid_mode = match &spec.pid {
        Default | Private => None,
        Host => Some("host".to_owned()),
        Container(name) => Some(container(name)),
        Nothing | Shareable => return Err(no_such_namespace("pid")),
    };
    let own_or_host = |name: &str, mode: &NamespaceMode| match mode {
        Default | Private => Ok(None),
        Host => Ok(Some("host".to_owned())),
        _ => Err(no_such_namespace(name)),
    };
    host.uts_mode = own_or_host("uts", &spec.uts)?;
    host.userns_mode = own_or_host("user", &spec.user_namespace)?;
    host.cgroupns_mode = match &spec.cgroup_namespace {
        Default => None,
        Private => Some(HostConfigCgroupnsModeEnum::PRIVATE),
        Host => Some(HostConfigCgroupnsModeEnum::HOST),
        _ => return Err(no_such_namespace("cgroup")),
    };
    Ok(())
}

fn no_such_namespace(which: &str) -> Error {
    invalid(format!(
        "the {which} namespace can't be shared with others in that way"
    ))
}

/// The values without repetitions: engine 20.10 fails on a group that is given twice.
fn unique(values: &[String]) -> Vec<String> {
    let mut once: Vec<String> = Vec::new();
    for value in values {
        if !once.contains(value) {
            once.push(value.clone());
        }
    }
    once
}

fn map_of(map: &BTreeMap<String, String>) -> Option<HashMap<String, String>> {
    (!map.is_empty()).then(|| map.clone().into_iter().collect())
}

fn non_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

fn invalid(message: String) -> Error {
    Error::invalid(Operation::Create, message)
}

#[cfg(test)]
mod tests;
