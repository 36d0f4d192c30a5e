//! The log of a container's main process as typed lines (engine-facts S24).

use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bollard::container::LogOutput;
use bollard::query_parameters::{LogsOptions, LogsOptionsBuilder};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{LogsProvider, SandboxHandle};
use crate::spec::{LogLine, LogOptions, SandboxId};

use super::failure::{EngineFailure, QUICK};
use super::status::{Looked, removed};
use super::{DockerProvider, DockerRaw, PROVIDER};

mod lines;

use lines::Lines;

#[async_trait]
impl LogsProvider for DockerProvider {
    async fn logs(
        &self,
        handle: &SandboxHandle,
        options: &LogOptions,
    ) -> Result<BoxStream<'static, Result<LogLine>>> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Logs)?;
        let named = |failure| logs_error(failure).with_sandbox(handle.sandbox_id());
        let Looked::There(inspected) = self.look(&raw.container_id).await.map_err(named)? else {
            return Err(named(EngineFailure::Refused {
                status: 404,
                text: String::new(),
            }));
        };
        let is_terminal = inspected.config.and_then(|config| config.tty) == Some(true);
        let engine = self.engine().await?;
        let chunks = if is_terminal {
            // The client would keep a line of a terminal until its end, however long it gets; so it is given something
            // to ask for whose answer it hands on as it comes.
            let path = format!("/containers/{}/logs?{}", raw.container_id, query(options));
            let client = engine.client_for_path(&path);
            let bytes = client.export_container(&raw.container_id);
            bytes.map_ok(|message| LogOutput::Console { message }).boxed()
        } else {
            engine
                .client
                .logs(&raw.container_id, Some(request(options)))
                .boxed()
        };
        let reading = Reading {
            chunks,
            lines: Lines::new(options.timestamps),
            ready: Vec::new().into_iter(),
            follow: options.follow,
            sandbox_id: handle.sandbox_id().clone(),
            ended: false,
        };
        Ok(stream::unfold(reading, |mut reading| async {
            let next = reading.next().await?;
            Some((next, reading))
        })
        .boxed())
    }
}

/// A log that is being read.
struct Reading {
    chunks: BoxStream<'static, Result<LogOutput, bollard::errors::Error>>,
    lines: Lines,
    ready: std::vec::IntoIter<LogLine>,
    follow: bool,
    sandbox_id: SandboxId,
    ended: bool,
}

impl Reading {
    async fn next(&mut self) -> Option<Result<LogLine>> {
        loop {
            if let Some(line) = self.ready.next() {
                return Some(Ok(line));
            }
            if self.ended {
                return None;
            }
            let chunk = if self.follow {
                // Nobody knows when the process prints next.
                self.chunks.next().await
            } else {
                match tokio::time::timeout(QUICK, self.chunks.next()).await {
                    Ok(chunk) => chunk,
                    Err(_) => return Some(self.fail(EngineFailure::Deadline(QUICK))),
                }
            };
            match chunk {
                Some(Ok(chunk)) => self.ready = self.lines.push(chunk).into_iter(),
                Some(Err(error)) => return Some(self.fail(error.into())),
                None => {
                    self.ended = true;
                    self.ready = self.lines.finish().into_iter();
                }
            }
        }
    }

    fn fail(&mut self, failure: EngineFailure) -> Result<LogLine> {
        self.ended = true;
        Err(logs_error(failure).with_sandbox(&self.sandbox_id))
    }
}

fn request(options: &LogOptions) -> LogsOptions {
    let tail = options
        .tail
        .map_or_else(|| "all".to_owned(), |lines| lines.to_string());
    let mut request = LogsOptionsBuilder::new()
        .stdout(true)
        .stderr(true)
        .follow(options.follow)
        .timestamps(options.timestamps)
        .tail(&tail);
    if let Some(since) = options.since {
        request = request.since(seconds(since));
    }
    request.build()
}

/// The same as a query.
fn query(options: &LogOptions) -> String {
    let LogsOptions {
        follow,
        stdout,
        stderr,
        since,
        timestamps,
        tail,
        ..
    } = request(options);
    format!(
        "follow={follow}&stdout={stdout}&stderr={stderr}&since={since}&timestamps={timestamps}&tail={tail}"
    )
}

/// Seconds since the epoch; what lies outside of what the engine takes becomes its nearest end.
fn seconds(time: SystemTime) -> i32 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i32::try_from(since.as_secs()).unwrap_or(i32::MAX),
        Err(_) => 0,
    }
}

fn logs_error(failure: EngineFailure) -> Error {
    if failure.is_status(404) {
        return removed(Operation::Logs);
    }
    // 501 is a driver that keeps nothing; the text is the engine's own (engine-facts S24).
    let unreadable = failure.is_status(501)
        || failure
            .text()
            .is_some_and(|text| text.contains("does not support reading"));
    if unreadable {
        return Error::new(
            ErrorKind::Unsupported,
            Operation::Logs,
            "the log driver of this sandbox keeps nothing that can be read",
        )
        .with_source(failure);
    }
    failure.into_error(
        Operation::Logs,
        "the engine did not give the log",
        ErrorKind::Internal,
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn options_become_the_engines() {
        let all = request(&LogOptions::new());
        assert!(all.stdout && all.stderr && !all.follow && !all.timestamps);
        assert_eq!((all.tail.as_str(), all.since), ("all", 0));
        let some = LogOptions::new()
            .with_follow()
            .with_tail(0)
            .with_timestamps()
            .with_since(UNIX_EPOCH + Duration::from_millis(12_900));
        let some = request(&some);
        assert!(some.follow && some.timestamps);
        assert_eq!((some.tail.as_str(), some.since), ("0", 12));
        assert_eq!(
            query(&LogOptions::new().with_tail(3)),
            "follow=false&stdout=true&stderr=true&since=0&timestamps=false&tail=3"
        );
        assert_eq!(seconds(UNIX_EPOCH - Duration::from_secs(5)), 0);
        assert_eq!(seconds(UNIX_EPOCH + Duration::from_secs(1 << 40)), i32::MAX);
    }

    use crate::error::SandboxReason;

    #[test]
    fn what_keeps_a_log_from_being_read_is_told() {
        let refused = |status, text: &str| {
            logs_error(EngineFailure::Refused {
                status,
                text: text.to_owned(),
            })
            .kind()
        };
        assert_eq!(
            refused(404, "No such container: x"),
            ErrorKind::Sandbox(SandboxReason::Removed)
        );
        assert_eq!(
            refused(501, "configured logging driver does not support reading"),
            ErrorKind::Unsupported
        );
        assert_eq!(refused(500, "boom"), ErrorKind::Internal);
    }
}
