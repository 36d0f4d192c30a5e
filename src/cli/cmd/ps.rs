//! `ps`: the sandboxes of an engine, whose they are, and which ones wait to be made.

use gym_sandbox::Result;
use gym_sandbox::docker::DockerProvider;
use gym_sandbox::provider::ListProvider;

use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::ListRequest;
use crate::cli::session::blocking;

/// Lists and prints.
///
/// # Errors
/// The engine can't be reached, or does not answer.
pub(in crate::cli) async fn run(request: ListRequest) -> Result<u8> {
    let provider = DockerProvider::connect(request.config).await?;
    // Those that wait first: one that is made meanwhile is seen twice rather than not at all.
    let waiting = provider.waiting_creates(&request.filter).await?;
    let sandboxes = provider.list_sandboxes(&request.filter).await?;
    blocking(move || match request.format {
        Format::Json => output::json(&output::listed(&sandboxes, &waiting)),
        Format::Text => output::data(output::sandboxes(&sandboxes, &waiting).as_bytes()),
    })
    .await?;
    Ok(exit::SUCCESS)
}
