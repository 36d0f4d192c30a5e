//! The channel through the engine: an exec of `connect` hands its streams to the agent, starting it where there is none.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::ExecConfig;
use futures::StreamExt;
use tokio::time::Instant;
use tokio_util::io::StreamReader;

use super::super::DockerProvider;
use super::super::failure::{EngineFailure, QUICK, call};
use super::super::starting::starting;
use super::PATIENCE;
use super::launch::Launch;
use super::link::{Link, Lost, Wire};
use super::outbox::Writer;
use super::program::PROGRAM;

/// How often the engine is asked whether it has started what it was asked to start.
const LOOK: Duration = Duration::from_millis(500);

/// How much of what a failed `connect` says is kept.
const COMPLAINT_BYTES: usize = 500;

/// Connects to the agent of a container by an exec.
pub(super) async fn connect(
    provider: &DockerProvider,
    container_id: &str,
    launch: &Launch,
) -> Result<Link, Lost> {
    let complaint = Complaint::default();
    let (wire, begun) = exec(provider, container_id, launch, complaint.clone())
        .await
        .map_err(|failure| Lost(format!("the agent can't be reached: {failure}").into()))?;
    match Link::open(wire, begun.too_long_ago()).await {
        Ok(link) => Ok(link),
        Err(Lost(why)) => Err(Lost(match complaint.text() {
            Some(text) => format!("{why}; `connect` says: {text}").into(),
            None => why,
        })),
    }
}

async fn exec(
    provider: &DockerProvider,
    container_id: &str,
    launch: &Launch,
    complaint: Complaint,
) -> Result<(Wire, Begun), EngineFailure> {
    let engine = provider
        .engine()
        .await
        .map_err(|error| EngineFailure::Transport {
            text: error.to_string(),
        })?;
    let mut argv = vec![PROGRAM.to_owned(), "connect".to_owned()];
    argv.extend(launch.common_arguments());
    let config = ExecConfig {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(false),
        cmd: Some(argv),
        ..ExecConfig::default()
    };
    let _starting = starting(container_id).await;
    let exec = call(QUICK, engine.client.create_exec(container_id, config)).await?;
    let start = StartExecOptions {
        detach: false,
        tty: false,
        output_capacity: Some(128 * 1024),
    };
    match call(2 * QUICK, engine.client.start_exec(&exec.id, Some(start))).await? {
        StartExecResults::Attached { output, input } => {
            let output = output.filter_map(move |chunk| {
                let kept = match chunk {
                    Ok(LogOutput::StdOut { message } | LogOutput::Console { message }) => Some(Ok(message)),
                    Ok(LogOutput::StdErr { message }) => {
                        complaint.add(&message);
                        None
                    }
                    Ok(LogOutput::StdIn { .. }) => None,
                    Err(error) => Some(Err(io::Error::other(EngineFailure::from(error)))),
                };
                std::future::ready(kept)
            });
            let wire = Wire {
                reader: Box::pin(StreamReader::new(output)),
                writer: Writer::Stream(input),
            };
            let begun = Begun {
                client: engine.client.clone(),
                exec_id: exec.id,
            };
            Ok((wire, begun))
        }
        StartExecResults::Detached => Err(EngineFailure::Unreadable {
            text: "an attached exec was started detached".to_owned(),
        }),
    }
}

/// An exec that the engine has taken. Some hand out its streams before its process runs, for which a busy engine takes
/// ten seconds.
struct Begun {
    client: Docker,
    exec_id: String,
}

impl Begun {
    /// Ends when its process has had the patience of an agent.
    async fn too_long_ago(self) {
        let until = Instant::now() + 2 * QUICK;
        let mut is_late = false;
        tokio::time::sleep(PATIENCE).await;
        while Instant::now() < until && !self.has_a_process().await {
            is_late = true;
            tokio::time::sleep(LOOK).await;
        }
        if is_late {
            tokio::time::sleep(PATIENCE).await;
        }
    }

    /// Says whether its process runs or has ended. What can't be seen is not waited for.
    async fn has_a_process(&self) -> bool {
        match call(QUICK, self.client.inspect_exec(&self.exec_id)).await {
            Ok(inspected) => inspected.pid.unwrap_or_default() != 0 || inspected.exit_code.is_some(),
            Err(_) => true,
        }
    }
}

/// What `connect` printed to its standard error, as far as it is worth keeping.
#[derive(Debug, Clone, Default)]
struct Complaint(Arc<Mutex<Vec<u8>>>);

impl Complaint {
    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = COMPLAINT_BYTES.saturating_sub(kept.len());
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn text(&self) -> Option<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept).trim().escape_debug().to_string();
        (!text.is_empty()).then_some(text)
    }
}
