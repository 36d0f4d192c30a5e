//! `doctor`: which engine is reached, how, and what it lacks.

use gym_sandbox::Result;
use gym_sandbox::docker::DockerProvider;

use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::DoctorRequest;
use crate::cli::session::blocking;

/// Looks and prints.
///
/// # Errors
/// No engine answers; the error lists everything that was tried.
pub(in crate::cli) async fn run(request: DoctorRequest) -> Result<u8> {
    let provider = DockerProvider::new(request.config)?;
    let report = provider.diagnose().await?;
    let code = if report.problems.is_empty() {
        exit::SUCCESS
    } else {
        exit::FAILURE
    };
    blocking(move || match request.format {
        Format::Json => output::json(&report),
        Format::Text => output::data(output::engine_report(&report).as_bytes()),
    })
    .await?;
    Ok(code)
}
