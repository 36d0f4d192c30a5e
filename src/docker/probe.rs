//! When a new sandbox is ready, and what is said of one that ends before (contract P1-P7, D15, bugs B22).

use std::sync::Arc;
use std::time::Duration;

use bollard::query_parameters::WaitContainerOptionsBuilder;
use futures::StreamExt;
use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::{ExecErrorType, ExecOptions, ExecResult, SandboxId, SandboxSpec};

use super::agent::Resident;
use super::config::ProbeConfig;
use super::image::ImageReference;
use super::status::Looked;
use super::{DockerProvider, DockerRaw};

/// A limit of fewer processes may be what a main process has ended of: an init, a shell and what it runs are three.
const FEW_PROCESSES: i64 = 16;

impl DockerProvider {
    /// Waits until the sandbox is ready, and finds its shell. Ends at once when the main process does.
    pub(super) async fn wait_ready(
        &self,
        container_id: &str,
        agent: &Arc<Resident>,
        image: &ImageReference,
        spec: &SandboxSpec,
    ) -> Result<Option<String>> {
        let ready = async {
            let shell = self.wait_usable(container_id, agent).await?;
            self.check_alive(container_id, image).await?;
            Ok(shell)
        };
        let bounded = async {
            // Contract D15: the smaller of the two bounds holds; the probe's own is applied inside.
            match spec.ready_timeout() {
                Some(timeout) => match tokio::time::timeout(timeout, ready).await {
                    Ok(shell) => shell,
                    Err(_) => Err(not_ready(format!("the sandbox was not ready in {timeout:?}"))
                        .with_hint("raise `ready_timeout`, or look at what the main process does")),
                },
                None => ready.await,
            }
        };
        tokio::select! {
            shell = bounded => match shell {
                // A failed exec may only be the first sign of an ended main process, which says more.
                Err(error) => Err(self.check_alive(container_id, image).await.err().unwrap_or(error)),
                shell => shell,
            },
            () = self.main_process_ended(container_id) => {
                self.check_alive(container_id, image).await?;
                Err(not_ready("the main process ended before the sandbox was ready".to_owned()))
            }
        }
    }

    /// Waits until a sandbox runs commands, and finds its shell. Without bound but the probe's own.
    pub(super) async fn wait_usable(
        &self,
        container_id: &str,
        agent: &Arc<Resident>,
    ) -> Result<Option<String>> {
        self.probe(container_id, agent).await?;
        self.find_shell(container_id, agent).await
    }

    /// Ends when the main process does; never, when the engine can't be asked.
    pub(super) async fn main_process_ended(&self, container_id: &str) {
        if let Ok(engine) = self.engine().await {
            let options = WaitContainerOptionsBuilder::new()
                .condition("not-running")
                .build();
            let mut ended = Box::pin(engine.client.wait_container(container_id, Some(options)));
            // A non-zero exit code comes as an error of the client: it means the same here.
            let first = ended.next().await;
            if let Some(Ok(_) | Err(bollard::errors::Error::DockerContainerWaitError { .. })) = first {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Fails with exit code and last output when the main process has ended.
    async fn check_alive(&self, container_id: &str, image: &ImageReference) -> Result<()> {
        let looked = self.look(container_id).await.map_err(|failure| {
            failure.into_error(
                Operation::Create,
                "the new sandbox can't be inspected",
                ErrorKind::CreateFailed,
            )
        })?;
        let Looked::There(inspected) = looked else {
            return Err(not_ready("the container was removed by somebody else".to_owned()));
        };
        let state = inspected.state.unwrap_or_default();
        if state.running == Some(true) && state.restarting != Some(true) {
            return Ok(());
        }
        let mut message = format!(
            "the main process of image `{image}` exited with {} before the sandbox was ready",
            state.exit_code.unwrap_or_default()
        );
        let lines = self.last_lines(container_id).await;
        if !lines.is_empty() {
            message.push_str("; its last output was:\n");
            message.push_str(&lines.join("\n"));
        }
        let limit = inspected.host_config.and_then(|host| host.pids_limit);
        Err(not_ready(message).with_hint(ended_hint(limit)))
    }

    async fn probe(&self, container_id: &str, agent: &Arc<Resident>) -> Result<()> {
        let probe = &self.config().probe;
        let Some(command) = &probe.command else {
            return Ok(());
        };
        let id = SandboxId::new(container_id)?;
        // Contract X9: the probe itself always uses sh.
        let raw = DockerRaw {
            container_id: container_id.to_owned(),
            shell: Some("sh".to_owned()),
            agent: Arc::clone(agent),
            admitted: None,
            _taken: None,
        };
        let deadline = probe
            .deadline
            // A deadline beyond what a clock can say is none, but attempts go on.
            .map(|deadline| Instant::now().checked_add(deadline).unwrap_or_else(far_future));
        let mut passed = 0;
        let mut last = "no attempt ended in time".to_owned();
        loop {
            let options = ExecOptions::new(command.as_str()).with_timeout(probe.timeout);
            // The deadline also bounds an attempt that hangs (contract D15).
            let Some(result) = before(deadline, self.run_unslotted(&id, &raw, options)).await else {
                return Err(not_ready(format!("the readiness probe failed: {last}")));
            };
            match failure_of(probe, &result?) {
                None => {
                    passed += 1;
                    if passed >= probe.stable_count {
                        return Ok(());
                    }
                    last = format!("it did not pass {} times in a row in time", probe.stable_count);
                }
                Some(failed) if deadline.is_none() => {
                    return Err(not_ready(format!("the readiness probe failed: {failed}")));
                }
                Some(failed) => {
                    passed = 0;
                    last = failed;
                }
            }
            if before(deadline, tokio::time::sleep(probe.stable_delay))
                .await
                .is_none()
            {
                return Err(not_ready(format!("the readiness probe failed: {last}")));
            }
        }
    }

    /// The shell for shell lines (contract X9). None when the image has none.
    async fn find_shell(&self, container_id: &str, agent: &Arc<Resident>) -> Result<Option<String>> {
        if let Some(shell) = &self.config().exec.exec_shell {
            return Ok(Some(shell.clone()));
        }
        super::shell::find(self, container_id, agent).await
    }
}

/// What may help where the main process ended, by the sandbox's limit of processes.
fn ended_hint(pids_limit: Option<i64>) -> String {
    match pids_limit {
        Some(limit) if (1..FEW_PROCESSES).contains(&limit) => format!(
            "the limit of {limit} processes (`pids_limit`) may be too low: it counts everything in the sandbox, threads and \
             what keeps the sandbox alive included; allow at least {FEW_PROCESSES}"
        ),
        _ => "the entrypoint must keep running; leave it out to only run commands".to_owned(),
    }
}

/// What a future gives, or None when the deadline comes first.
async fn before<T>(deadline: Option<Instant>, future: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, future).await.ok(),
        None => Some(future.await),
    }
}

/// Later than anybody waits for.
fn far_future() -> Instant {
    Instant::now() + Duration::from_secs(30 * 365 * 86_400)
}

/// Why an attempt failed; None when it passed (contract P2).
fn failure_of(probe: &ProbeConfig, result: &ExecResult) -> Option<String> {
    if result.error_type == Some(ExecErrorType::Timeout) {
        return Some(format!("no end in {:?}", probe.timeout));
    }
    if !result.is_success() {
        let detail = result.stderr().unwrap_or_default();
        return Some(format!("exit code {}: {}", result.return_code, detail.trim_end()));
    }
    let expected = probe.expected_stdout.as_deref()?;
    let stdout = result.stdout().unwrap_or_default();
    (!stdout.contains(expected)).then(|| format!("its output does not hold `{expected}`"))
}

fn not_ready(message: String) -> Error {
    Error::new(ErrorKind::NotReady, Operation::Create, message)
}
