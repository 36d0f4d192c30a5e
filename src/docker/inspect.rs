//! Everything the engine says of one container, in neutral terms (contract D7).

use async_trait::async_trait;
use bollard::container::LogOutput;
use bollard::models::{ContainerInspectResponse, HealthStatusEnum, HostConfig};
use bollard::query_parameters::LogsOptionsBuilder;
use futures::StreamExt;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{InspectProvider, SandboxHandle};
use crate::spec::{
    CapturedOutput, ExecPath, SandboxDetail, SandboxEndpoint, SandboxHealth, SandboxResources,
};

use super::endpoint::binding;
use super::failure::QUICK;
use super::status::{Looked, status_of};
use super::{DockerProvider, DockerRaw, PROVIDER};

/// How many of the last lines are kept, and how many bytes of them.
const LAST_LINES: usize = 20;
const LAST_BYTES: usize = 16 * 1024;

#[async_trait]
impl InspectProvider for DockerProvider {
    async fn inspect(&self, handle: &SandboxHandle) -> Result<SandboxDetail> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Inspect)?;
        self.container_detail(handle, raw).await
    }
}

impl DockerProvider {
    pub(super) async fn container_detail(
        &self,
        handle: &SandboxHandle,
        raw: &DockerRaw,
    ) -> Result<SandboxDetail> {
        let named = |error: Error| error.with_sandbox(handle.sandbox_id());
        let looked = self.look(&raw.container_id).await.map_err(|failure| {
            named(failure.into_error(
                Operation::Inspect,
                "the engine did not describe the sandbox",
                ErrorKind::Internal,
            ))
        })?;
        let Looked::There(inspected) = looked else {
            return Err(named(Error::new(
                ErrorKind::NotFound,
                Operation::Inspect,
                "the sandbox does not exist any more",
            )));
        };
        let mut detail = detail_of(handle, *inspected, &self.reachable_host().await);
        detail.exec_path = raw.exec_path();
        detail.last_log_lines = self.last_lines(&raw.container_id).await;
        Ok(detail)
    }

    /// The last lines of both streams of the main process. Empty where they can't be read: this is for error texts.
    pub(super) async fn last_lines(&self, container: &str) -> Vec<String> {
        let Ok(engine) = self.engine().await else {
            return Vec::new();
        };
        let options = LogsOptionsBuilder::new()
            .stdout(true)
            .stderr(true)
            .tail(&LAST_LINES.to_string())
            .build();
        let mut logs = engine.client.logs(container, Some(options));
        let mut kept = crate::spec::Capture::new(2 * LAST_BYTES);
        let read = async {
            while let Some(Ok(chunk)) = logs.next().await {
                let bytes = match chunk {
                    LogOutput::StdOut { message }
                    | LogOutput::StdErr { message }
                    | LogOutput::Console { message } => message,
                    LogOutput::StdIn { .. } => continue,
                };
                kept.push(&bytes);
            }
        };
        // A log that does not end in time gives what was read until then.
        let _timed_out = tokio::time::timeout(QUICK, read).await.is_err();
        lines_of(&kept.finish())
    }
}

fn lines_of(output: &CapturedOutput) -> Vec<String> {
    let text = output.text();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..]
        .iter()
        .map(|&line| line.to_owned())
        .collect()
}

fn detail_of(
    handle: &SandboxHandle,
    inspected: ContainerInspectResponse,
    reachable_host: &str,
) -> SandboxDetail {
    let state = inspected.state.unwrap_or_default();
    let mut detail = SandboxDetail::new(
        handle.sandbox_id().clone(),
        PROVIDER,
        status_of(Some(&state)),
        ExecPath::Engine,
    );
    let started = state.started_at.filter(|time| !time.starts_with("0001-"));
    let finished = state.finished_at.filter(|time| !time.starts_with("0001-"));
    let has_ended = state.running != Some(true) && finished.is_some();
    detail.exit_code = state.exit_code.filter(|_| has_ended);
    detail.oom_killed = state.oom_killed.unwrap_or_default();
    detail.error = state.error.filter(|error| !error.is_empty());
    detail.health = state
        .health
        .and_then(|health| health.status)
        .and_then(|status| match status {
            HealthStatusEnum::STARTING => Some(SandboxHealth::Starting),
            HealthStatusEnum::HEALTHY => Some(SandboxHealth::Healthy),
            HealthStatusEnum::UNHEALTHY => Some(SandboxHealth::Unhealthy),
            HealthStatusEnum::NONE | HealthStatusEnum::EMPTY => None,
        });
    let ports = inspected
        .network_settings
        .and_then(|settings| settings.ports)
        .unwrap_or_default();
    for &port in handle.ports().as_slice() {
        if let Ok(Some(url)) = binding(&ports, port, reachable_host)
            && let Ok(endpoint) = SandboxEndpoint::new(url)
        {
            detail.endpoints.insert(port, endpoint);
        }
    }
    if let Some(config) = inspected.config {
        detail.image = config.image;
        detail.labels = config.labels.unwrap_or_default().into_iter().collect();
    }
    detail.limits = inspected
        .host_config
        .map(|host_config| limits_of(&host_config))
        .unwrap_or_default();
    detail.created = inspected.created;
    detail.started = started;
    detail.finished = finished;
    detail
}

fn limits_of(config: &HostConfig) -> SandboxResources {
    let mut limits = SandboxResources::default();
    #[expect(clippy::cast_precision_loss, reason = "processor counts are small")]
    if let Some(nano_cpus) = config.nano_cpus.filter(|&nano_cpus| nano_cpus > 0) {
        limits = limits.with_cpu(nano_cpus as f64 / 1e9);
    }
    if let Some(bytes) = config
        .memory
        .and_then(|bytes| u64::try_from(bytes).ok())
        .filter(|&bytes| bytes > 0)
    {
        limits = limits.with_memory_mib(bytes >> 20);
    }
    limits
}
