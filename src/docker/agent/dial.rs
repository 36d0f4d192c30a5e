//! The channel through the engine: an exec of `connect` hands its streams to the agent, starting it where there is none.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bollard::container::LogOutput;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::ExecConfig;
use futures::StreamExt;
use tokio_util::io::StreamReader;

use super::super::DockerProvider;
use super::super::failure::{EngineFailure, QUICK, call};
use super::super::starting::starting;
use super::PATIENCE;
use super::launch::Launch;
use super::link::{Link, Lost, Wire};
use super::outbox::Writer;
use super::program::PROGRAM;

/// How much of what a failed `connect` says is kept.
const COMPLAINT_BYTES: usize = 500;

/// Connects to the agent of a container by an exec.
pub(super) async fn connect(
    provider: &DockerProvider,
    container_id: &str,
    launch: &Launch,
) -> Result<Link, Lost> {
    let complaint = Complaint::default();
    let wire = exec(provider, container_id, launch, complaint.clone())
        .await
        .map_err(|failure| Lost(format!("the agent can't be reached: {failure}").into()))?;
    match Link::open(wire, PATIENCE).await {
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
) -> Result<Wire, EngineFailure> {
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
            Ok(Wire {
                reader: Box::pin(StreamReader::new(output)),
                writer: Writer::Stream(input),
            })
        }
        StartExecResults::Detached => Err(EngineFailure::Unreadable {
            text: "an attached exec was started detached".to_owned(),
        }),
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
