//! What an engine is like and what of it will get in the way. Asks, decides nothing for other operations.

use std::collections::HashMap;

use bollard::models::{SystemInfo, SystemVersion};
use bollard::query_parameters::ListNetworksOptions;
use serde::Serialize;

use crate::error::{ErrorKind, Operation, Result};

use super::DockerProvider;
use super::connect::{Engine, Flavor, MINIMUM_API};
use super::failure::{QUICK, call};
use super::subnets::subnets_of;

mod pools;

use pools::Pools;

/// Below this many open files a process cannot hold a few hundred running commands: each has a connection.
const FEW_DESCRIPTORS: u64 = 1024;

/// Below this many free networks a handful of Compose projects fails.
const FEW_NETWORKS: u64 = 5;

/// What engine is reached, how, and what it can. Made by [`DockerProvider::diagnose`].
///
/// What the engine does not tell is `None` or empty. Serializes to a JSON object with these names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EngineReport {
    /// The engine's address, such as `unix:///var/run/docker.sock`.
    pub address: String,
    /// Who named the address: `the configured host`, `DOCKER_HOST`, a docker context, or which usual socket it is.
    pub found_by: String,
    /// Whether ports published on the engine's loopback address can be reached on this machine's.
    pub is_local: bool,
    /// The machine of an engine that is not local.
    pub remote_host: Option<String>,
    /// `docker` or `podman`.
    pub engine: String,
    /// The engine's own version, such as `20.10.24`.
    pub engine_version: Option<String>,
    /// The API version that is spoken.
    pub api_version: String,
    /// The newest API version of the engine.
    pub api_version_max: Option<String>,
    /// The oldest API version that the engine accepts.
    pub api_version_min: Option<String>,
    /// The engine's operating system as it names it, such as `Debian GNU/Linux 12 (bookworm)`.
    pub operating_system: Option<String>,
    /// `linux` or `windows`.
    pub os_type: String,
    /// The processor architecture as the kernel names it, such as `x86_64`.
    pub architecture: String,
    /// The kernel's version.
    pub kernel: Option<String>,
    /// `1` or `2`.
    pub cgroup_version: Option<String>,
    /// `systemd`, `cgroupfs` or `none`.
    pub cgroup_driver: Option<String>,
    /// How image layers are stored, such as `overlay2`.
    pub storage_driver: Option<String>,
    /// The runtime of containers that name none, such as `runc`.
    pub default_runtime: Option<String>,
    /// All runtimes that the engine knows, sorted.
    pub runtimes: Vec<String>,
    /// Processors of the engine's machine.
    pub cpus: Option<u32>,
    /// Memory of the engine's machine.
    pub memory_bytes: Option<u64>,
    /// The engine's security options, such as `name=seccomp,profile=default` or `name=rootless`.
    pub security_options: Vec<String>,
    /// Containers on the engine, running or not.
    pub containers: Option<u64>,
    /// Networks on the engine, the predefined ones included.
    pub networks: u64,
    /// How many subnets the engine's default address pools hold.
    pub address_pools_total: u64,
    /// How many of them a network of the engine lies in.
    pub networks_in_use: u64,
    /// How many more networks without a subnet of their own can be made: an estimate.
    pub networks_free: u64,
    /// What the estimate rests on.
    pub address_pools_basis: String,
    /// The engine's clock minus this machine's, in milliseconds; about the time that the question took.
    pub clock_offset_ms: i64,
    /// How many files this process may open; none where the system does not tell.
    pub open_files_limit: Option<u64>,
    /// How commands are run: `agent` is by the resident agent, `engine` through the engine's exec.
    pub exec_path: String,
    /// Why commands are run this way.
    pub exec_path_reason: String,
    /// What works less well than it could.
    pub warnings: Vec<String>,
    /// What makes sandboxes fail. Empty on an engine that can be used.
    pub problems: Vec<String>,
}

impl DockerProvider {
    /// Asks the engine what it is like. Changes nothing on it.
    ///
    /// # Errors
    /// As [`connect`](Self::connect) when the engine was not reached before;
    /// [`ErrorKind::Unavailable`] or [`ErrorKind::Timeout`]
    /// when it does not answer any more. What is wrong with an engine that answers is in the report.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn diagnose(&self) -> Result<EngineReport> {
        let engine = self.engine().await?;
        let refused = |failure: super::failure::EngineFailure, what: &'static str| {
            failure.into_error(Operation::Inspect, what, ErrorKind::Unavailable)
        };
        let version = call(QUICK, engine.client.version())
            .await
            .map_err(|failure| refused(failure, "the engine's version could not be read"))?;
        let info = call(QUICK, engine.client.info())
            .await
            .map_err(|failure| refused(failure, "what the engine is could not be read"))?;
        let networks = call(QUICK, engine.client.list_networks(None::<ListNetworksOptions>))
            .await
            .map_err(|failure| refused(failure, "the engine's networks could not be listed"))?;
        let limits = tokio::fs::read_to_string("/proc/self/limits")
            .await
            .unwrap_or_default();
        let subnets: Vec<String> = subnets_of(&networks).collect();
        let pools = Pools::of(info.default_address_pools.as_deref().unwrap_or_default());
        let mut report = report(engine, &version, &info, &pools, &subnets);
        report.networks = networks.len() as u64;
        (report.exec_path, report.exec_path_reason) = self.exec_path_report(engine);
        report.open_files_limit = open_files_limit(&limits);
        judge(&mut report, &info);
        Ok(report)
    }
}

fn report(
    engine: &Engine,
    version: &SystemVersion,
    info: &SystemInfo,
    pools: &Pools,
    subnets: &[String],
) -> EngineReport {
    let in_use = pools.in_use(subnets);
    EngineReport {
        address: engine.address.to_string(),
        found_by: engine.how.to_string(),
        is_local: engine.is_local,
        remote_host: engine.remote_host.as_deref().map(str::to_owned),
        engine: match engine.flavor {
            Flavor::Docker => "docker".to_owned(),
            Flavor::Podman => "podman".to_owned(),
        },
        engine_version: told(version.version.as_ref().or(info.server_version.as_ref())),
        api_version: engine.api_version.to_string(),
        api_version_max: told(version.api_version.as_ref()),
        api_version_min: told(version.min_api_version.as_ref()),
        operating_system: told(info.operating_system.as_ref()),
        os_type: engine.os_type.to_string(),
        architecture: engine.architecture.to_string(),
        kernel: told(info.kernel_version.as_ref()),
        cgroup_version: info
            .cgroup_version
            .as_ref()
            .and_then(|version| told(Some(&version.to_string()))),
        cgroup_driver: info
            .cgroup_driver
            .as_ref()
            .and_then(|driver| told(Some(&driver.to_string()))),
        storage_driver: told(info.driver.as_ref()),
        default_runtime: told(info.default_runtime.as_ref()),
        runtimes: names(info.runtimes.as_ref()),
        cpus: engine.cpus,
        memory_bytes: engine.memory_bytes,
        security_options: info.security_options.clone().unwrap_or_default(),
        containers: info.containers.and_then(|count| u64::try_from(count).ok()),
        networks: 0,
        address_pools_total: pools.total(),
        networks_in_use: in_use,
        networks_free: pools.total().saturating_sub(in_use),
        address_pools_basis: pools.basis(),
        clock_offset_ms: engine.clock_offset_ms(),
        open_files_limit: None,
        exec_path: "engine".to_owned(),
        exec_path_reason: String::new(),
        warnings: Vec::new(),
        problems: Vec::new(),
    }
}

/// Adds what is bad about the engine.
fn judge(report: &mut EngineReport, info: &SystemInfo) {
    if report.os_type != "linux" {
        report.problems.push(format!(
            "the engine runs {} containers; sandboxes need linux",
            report.os_type
        ));
    }
    if !report.is_local {
        report.warnings.push(
            "the engine is on another machine: a port published on 127.0.0.1, the default, can't be reached from here"
                .to_owned(),
        );
    }
    if report.networks_free == 0 {
        report.warnings.push(
            "no free network is left in the engine's address pools; networks that have their subnet from them will fail"
                .to_owned(),
        );
    } else if report.networks_free < FEW_NETWORKS {
        report.warnings.push(format!(
            "only {} networks are left in the engine's address pools",
            report.networks_free
        ));
    }
    // Podman's compatible API leaves these out or says false where the limits work; only Docker's word counts.
    if report.engine == "docker" {
        for (told, lacks) in [
            (
                info.memory_limit,
                "memory limits are not enforced: the engine has no memory cgroup",
            ),
            (
                info.swap_limit,
                "swap is not limited: the engine has no swap accounting",
            ),
            (
                info.cpu_cfs_quota,
                "cpu limits are not enforced: the engine has no cpu quota",
            ),
            (
                info.pids_limit,
                "limits on the number of processes are not enforced: the engine has no pids cgroup",
            ),
        ] {
            if told == Some(false) {
                report.warnings.push(lacks.to_owned());
            }
        }
    }
    if let Some(limit) = report.open_files_limit.filter(|limit| *limit <= FEW_DESCRIPTORS) {
        report.warnings.push(format!(
            "this process may open {limit} files; each running command needs a connection, raise it with `ulimit -n`"
        ));
    }
    if report.clock_offset_ms.unsigned_abs() > 60_000 {
        report.warnings.push(format!(
            "the engine's clock is {} s off this machine's; leases go by the engine's",
            report.clock_offset_ms / 1000
        ));
    }
    report.warnings.extend(
        info.warnings
            .iter()
            .flatten()
            .map(|warning| format!("the engine says: {}", warning.trim())),
    );
    let newest = report
        .api_version_max
        .as_deref()
        .and_then(|version| version.parse().ok());
    if newest.is_some_and(|newest: super::connect::ApiVersion| newest < MINIMUM_API) {
        report
            .problems
            .push(format!("the engine's API is older than {MINIMUM_API}"));
    }
}

fn told(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

fn names<T>(map: Option<&HashMap<String, T>>) -> Vec<String> {
    let mut names: Vec<String> = map.into_iter().flat_map(HashMap::keys).cloned().collect();
    names.sort_unstable();
    names
}

/// The soft limit in the text of /proc/self/limits.
fn open_files_limit(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests;
