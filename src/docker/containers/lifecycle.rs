//! Starting and ending containers.

use std::time::Duration;

use bollard::query_parameters::{
    KillContainerOptionsBuilder, StartContainerOptions, StopContainerOptionsBuilder,
};

use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Operation, Result};

use super::super::DockerProvider;
use super::super::create::CREATE_CALL;
use super::super::failure::{EngineFailure, QUICK, REMOVE, call, has_no_address};
use super::labels::name_of;

/// How long the engine waits where neither the caller nor the container says.
const USUAL_GRACE: Duration = Duration::from_secs(10);

/// How long a second network of a name may be there once it is seen, and how often it is looked for.
const GIVES_WAY: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl DockerProvider {
    /// Starts a container. While there are two networks of one name an engine that allows that starts nothing in either:
    /// another process has begun the same project and gives way, which is waited for shortly (bugs B33).
    pub(super) async fn start_created(&self, container: &str) -> Result<()> {
        let mut deadline = None;
        loop {
            match self.start_once(container).await {
                Err(failure)
                    if is_ambiguous(&failure)
                        && Instant::now() <= *deadline.get_or_insert_with(|| Instant::now() + GIVES_WAY) =>
                {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                started => return started.map_err(|failure| not_started(container, failure)),
            }
        }
    }

    async fn start_once(&self, container: &str) -> Result<(), EngineFailure> {
        let transport = |error: Error| EngineFailure::Transport {
            text: error.to_string(),
        };
        let _slot = self.lanes().create_slot().await.map_err(transport)?;
        let client = &self.engine().await.map_err(transport)?.client;
        let started = client.start_container(container, None::<StartContainerOptions>);
        call(CREATE_CALL, started).await
    }

    pub(super) async fn stop_gently(&self, container: &str, grace: Option<Duration>) -> Result<()> {
        let own = match grace {
            Some(grace) => Some(grace),
            None => self
                .describe_container(container, Operation::Stop)
                .await?
                .and_then(|detail| detail.stop_timeout),
        };
        let mut options = StopContainerOptionsBuilder::new();
        if let Some(grace) = grace {
            // Whole seconds; a part of one is rounded up, so that a short grace is not none.
            let seconds = grace.as_secs() + u64::from(grace.subsec_nanos() > 0);
            options = options.t(i32::try_from(seconds).unwrap_or(i32::MAX));
        }
        let client = &self.engine().await?.client;
        let deadline = own.unwrap_or(USUAL_GRACE).saturating_add(REMOVE);
        let stopped = call(deadline, client.stop_container(container, Some(options.build()))).await;
        over(stopped, Operation::Stop, || {
            format!("container `{}` could not be stopped", name_of(container))
        })
    }

    pub(super) async fn send_signal(&self, container: &str, signal: Option<&str>) -> Result<()> {
        if let Some(signal) = signal
            && (signal.is_empty()
                || !signal
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"+-".contains(&byte)))
        {
            return Err(Error::invalid(
                Operation::Stop,
                format!("`{}` is not a signal", signal.escape_debug()),
            ));
        }
        let options = KillContainerOptionsBuilder::new()
            .signal(signal.unwrap_or("KILL"))
            .build();
        let client = &self.engine().await?.client;
        let killed = call(QUICK, client.kill_container(container, Some(options))).await;
        over(killed, Operation::Stop, || {
            format!("container `{}` could not be signalled", name_of(container))
        })
    }
}

fn is_ambiguous(failure: &EngineFailure) -> bool {
    failure.text().is_some_and(|text| text.contains("is ambiguous"))
}

fn not_started(container: &str, failure: EngineFailure) -> Error {
    let missing = failure.text().is_some_and(|text| {
        text.contains("no such file or directory") || text.contains("executable file not found")
    });
    let ambiguous = is_ambiguous(&failure);
    let without_devices = failure
        .text()
        .is_some_and(|text| text.contains("could not select device driver"));
    let has_no_address = failure.text().is_some_and(has_no_address);
    let kind = if ambiguous || has_no_address {
        ErrorKind::Conflict
    } else {
        ErrorKind::CreateFailed
    };
    let text = format!("container `{}` could not be started", name_of(container));
    let error = failure.into_error(Operation::Start, text, kind);
    if missing {
        return error.with_hint("the image may have no such program, or a mount may have no such source");
    }
    if without_devices {
        return error
            .with_hint("the engine has no such devices; leave `gpus` and reservations of devices out");
    }
    if has_no_address {
        return error
            .with_hint("another container has its address; give each its own, or leave `ipv4_address` out");
    }
    if ambiguous {
        return error.with_hint(
            "remove all networks of that name but one, by their ids, or take another project name",
        );
    }
    error
}

/// What does not run, or is gone, has ended.
fn over(
    ended: Result<(), EngineFailure>,
    operation: Operation,
    message: impl FnOnce() -> String,
) -> Result<()> {
    match ended {
        Ok(()) => Ok(()),
        Err(failure) if failure.is_status(404) || failure.is_status(409) || failure.is_status(304) => Ok(()),
        Err(failure) => Err(failure.into_error(operation, message(), ErrorKind::Conflict)),
    }
}
