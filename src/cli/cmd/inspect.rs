//! `inspect`: everything known of one sandbox.

use gym_sandbox::Result;
use gym_sandbox::docker::DockerProvider;

use crate::cli::exit;
use crate::cli::output;
use crate::cli::resolve::DetailRequest;
use crate::cli::session::blocking;

/// Asks and prints, as JSON in any case.
///
/// # Errors
/// There is no such sandbox, or the engine can't be reached.
pub(in crate::cli) async fn run(request: DetailRequest) -> Result<u8> {
    let provider = DockerProvider::connect(request.config).await?;
    let detail = provider.describe(&request.id).await?;
    blocking(move || output::json(&detail)).await?;
    Ok(exit::SUCCESS)
}
