//! `logs`: prints what the main process of a sandbox printed, each stream to its own.

use futures::StreamExt;
use gym_sandbox::docker::DockerProvider;
use gym_sandbox::provider::LogsProvider;
use gym_sandbox::{LogLine, LogStream, Result};
use serde::Serialize;

use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::LogsRequest;
use crate::cli::session::{Outcome, blocking, until_interrupted};

/// What `--json` prints of each line, one object a line.
#[derive(Serialize)]
struct Line {
    stream: LogStream,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    text: String,
    complete: bool,
}

/// Prints the lines as they come.
///
/// # Errors
/// There is no such sandbox, or its log can't be read or written.
pub(in crate::cli) async fn run(request: LogsRequest) -> Result<u8> {
    let provider = DockerProvider::connect(request.config).await?;
    let handle = provider.find(&request.id).await?;
    let work = async {
        let mut lines = provider.logs(&handle, &request.options).await?;
        while let Some(line) = lines.next().await {
            print(line?, request.format).await?;
        }
        Ok(())
    };
    match Box::pin(until_interrupted(work)).await? {
        Outcome::Ended(()) => Ok(exit::SUCCESS),
        Outcome::Interrupted(interrupt) => Ok(interrupt.exit_code()),
    }
}

async fn print(line: LogLine, format: Format) -> Result<()> {
    blocking(move || match format {
        Format::Json => output::json_line(&Line {
            stream: line.stream,
            text: line.text().into_owned(),
            complete: line.is_complete,
            timestamp: line.timestamp,
        }),
        Format::Text => {
            let mut bytes = line
                .timestamp
                .map(|time| format!("{time} "))
                .unwrap_or_default()
                .into_bytes();
            bytes.extend_from_slice(&line.bytes);
            if line.is_complete {
                bytes.push(b'\n');
            }
            match line.stream {
                LogStream::Stderr => output::data_to_stderr(&bytes),
                _ => output::data(&bytes),
            }
        }
    })
    .await
}
