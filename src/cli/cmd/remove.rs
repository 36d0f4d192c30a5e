//! `rm`: removes sandboxes, whatever they are doing.

use futures::{StreamExt, stream};
use gym_sandbox::docker::DockerProvider;
use gym_sandbox::{Error, ErrorKind, Operation, Result};
use serde::Serialize;

use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::RemoveRequest;
use crate::cli::session::blocking;

/// How many are removed at once.
const AT_ONCE: usize = 8;

/// What `--json` prints.
#[derive(Default, Serialize)]
struct Removed {
    removed: Vec<String>,
    failed: Vec<String>,
}

/// Removes all that can be removed, and prints their ids; each that can't be is an error of its own.
///
/// # Errors
/// None of the engine can be reached, or the ids can't be written.
pub(in crate::cli) async fn run(request: RemoveRequest) -> Result<u8> {
    let provider = DockerProvider::connect(request.config).await?;
    let outcomes: Vec<(String, Result<bool>)> = stream::iter(request.ids)
        .map(|id| {
            let provider = provider.clone();
            async move {
                let outcome = provider.remove(&id).await;
                (id, outcome)
            }
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut removed = Removed::default();
    for (id, outcome) in outcomes {
        match outcome {
            Ok(true) => removed.removed.push(id),
            Ok(false) => {
                let error = format!("there is no sandbox `{}`", id.escape_debug());
                output::error(&Error::new(ErrorKind::NotFound, Operation::Close, error));
                removed.failed.push(id);
            }
            Err(error) => {
                output::error(&error);
                removed.failed.push(id);
            }
        }
    }
    let code = if removed.failed.is_empty() {
        exit::SUCCESS
    } else {
        exit::FAILURE
    };
    blocking(move || match request.format {
        Format::Json => output::json(&removed),
        Format::Text => {
            removed.removed.push(String::new());
            output::data(removed.removed.join("\n").as_bytes())
        }
    })
    .await?;
    Ok(code)
}
