//! What containers are, in neutral terms.

use std::collections::BTreeMap;
use std::time::Duration;

use bollard::models::{
    ContainerInspectResponse, ContainerState, HealthConfig, HealthStatusEnum, HealthcheckResult, PortMap,
};
use bollard::query_parameters::ListContainersOptionsBuilder;
use futures::{StreamExt, TryStreamExt};

use crate::error::{ErrorKind, Operation, Result};
use crate::spec::SandboxHealth;
use crate::spec::container::{ContainerDetail, HealthProbe, HealthTest, HealthcheckSpec};

use super::super::DockerProvider;
use super::super::endpoint::binding;
use super::super::failure::{QUICK, call};
use super::super::status::{Looked, status_of};
use super::label_filter;

/// How many containers of a list are looked at once.
const AT_ONCE: usize = 16;

impl DockerProvider {
    pub(super) async fn describe_container(
        &self,
        container: &str,
        operation: Operation,
    ) -> Result<Option<ContainerDetail>> {
        match self.look(container).await {
            Ok(Looked::There(inspected)) => Ok(Some(detail_of(*inspected, &self.reachable_host().await))),
            Ok(Looked::Gone) => Ok(None),
            Err(failure) => Err(failure.into_error(
                operation,
                format!("the engine did not describe container `{container}`"),
                ErrorKind::Internal,
            )),
        }
    }

    pub(super) async fn containers_with(
        &self,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<ContainerDetail>> {
        let options = ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&label_filter(labels))
            .build();
        let client = &self.engine().await?.client;
        let listed = call(QUICK, client.list_containers(Some(options)))
            .await
            .map_err(|failure| {
                failure.into_error(
                    Operation::List,
                    "the engine did not list its containers",
                    ErrorKind::Internal,
                )
            })?;
        // The list says neither the exit code nor the health; one that goes meanwhile is left out.
        futures::stream::iter(listed.into_iter().filter_map(|container| container.id))
            .map(|id| async move { self.describe_container(&id, Operation::List).await })
            .buffered(AT_ONCE)
            .try_filter_map(|detail| async move { Ok(detail) })
            .try_collect()
            .await
    }
}

fn detail_of(inspected: ContainerInspectResponse, reachable_host: &str) -> ContainerDetail {
    let state = inspected.state.unwrap_or_default();
    let name = inspected.name.unwrap_or_default();
    let mut detail = ContainerDetail::new(
        inspected.id.unwrap_or_default(),
        name.trim_start_matches('/'),
        status_of(Some(&state)),
    );
    detail.is_restarting = state.restarting == Some(true);
    detail.exit_code = ended_with(&state);
    detail.oom_killed = state.oom_killed == Some(true);
    detail.error = state.error.filter(|error| !error.is_empty());
    detail.restarts = inspected
        .restart_count
        .and_then(|count| u64::try_from(count).ok())
        .unwrap_or_default();
    if let Some(health) = state.health {
        detail.health = health.status.and_then(health_of);
        detail.last_probe = health.log.and_then(|mut probes| probes.pop()).map(probe_of);
    }
    let ports = inspected
        .network_settings
        .and_then(|settings| settings.ports)
        .unwrap_or_default();
    detail.ports = published(&ports, reachable_host);
    if let Some(config) = inspected.config {
        detail.image = config.image.unwrap_or_default();
        detail.healthcheck = config.healthcheck.and_then(check_of);
        detail.stop_timeout = config
            .stop_timeout
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map(Duration::from_secs);
        detail.working_dir = config.working_dir.unwrap_or_default();
        detail.labels = config.labels.unwrap_or_default().into_iter().collect();
    }
    detail
}

/// A failed start has an exit code and no end (bugs B22).
fn ended_with(state: &ContainerState) -> Option<i64> {
    let finished = state
        .finished_at
        .as_deref()
        .is_some_and(|time| !time.starts_with("0001-"));
    let failed_to_start = state.error.as_deref().is_some_and(|error| !error.is_empty());
    state
        .exit_code
        .filter(|_| state.running != Some(true) && (finished || failed_to_start))
}

pub(super) fn health_of(status: HealthStatusEnum) -> Option<SandboxHealth> {
    match status {
        HealthStatusEnum::STARTING => Some(SandboxHealth::Starting),
        HealthStatusEnum::HEALTHY => Some(SandboxHealth::Healthy),
        HealthStatusEnum::UNHEALTHY => Some(SandboxHealth::Unhealthy),
        HealthStatusEnum::NONE | HealthStatusEnum::EMPTY => None,
    }
}

/// The engine's -1 stands for a probe that it ended, or could not run; its output says why.
fn probe_of(probe: HealthcheckResult) -> HealthProbe {
    let exit_code = probe.exit_code.filter(|&code| code >= 0);
    HealthProbe::new(exit_code, probe.output.unwrap_or_default())
}

fn published(ports: &PortMap, reachable_host: &str) -> BTreeMap<u16, String> {
    let numbers = ports
        .keys()
        .filter_map(|key| key.strip_suffix("/tcp")?.parse().ok());
    numbers
        .filter_map(|port: u16| Some((port, binding(ports, port, reachable_host).ok()??)))
        .collect()
}

/// The check in force; None where there is none, or it is switched off.
fn check_of(config: HealthConfig) -> Option<HealthcheckSpec> {
    let words = config.test.unwrap_or_default();
    let test = match words.first().map(String::as_str) {
        Some("CMD") => HealthTest::Command(words[1..].to_vec()),
        Some("CMD-SHELL") => HealthTest::Shell(words[1..].join(" ")),
        // Anything else is no check at all (engine-facts 2.12).
        _ => return None,
    };
    let time = |nanoseconds: Option<i64>| {
        nanoseconds
            .and_then(|nanoseconds| u64::try_from(nanoseconds).ok())
            .filter(|&nanoseconds| nanoseconds > 0)
            .map(Duration::from_nanos)
    };
    Some(HealthcheckSpec {
        test,
        interval: time(config.interval),
        timeout: time(config.timeout),
        retries: config
            .retries
            .and_then(|retries| u32::try_from(retries).ok())
            .filter(|&retries| retries > 0),
        start_period: time(config.start_period),
        start_interval: time(config.start_interval),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b40_a_check_without_a_known_first_word_is_none() {
        let check = |words: &[&str]| {
            check_of(HealthConfig {
                test: Some(words.iter().map(|&word| word.to_owned()).collect()),
                ..HealthConfig::default()
            })
        };
        assert_eq!(check(&[]), None);
        assert_eq!(check(&["NONE"]), None);
        assert_eq!(check(&["test", "-f", "/ok"]), None);
        let command = HealthTest::Command(vec!["test".into(), "-f".into()]);
        assert_eq!(check(&["CMD", "test", "-f"]).unwrap().test, command);
        assert_eq!(
            check(&["CMD-SHELL", "a | b"]).unwrap().test,
            HealthTest::Shell("a | b".into())
        );
    }
}
