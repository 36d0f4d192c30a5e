//! `pause` and `resume`: freezes a sandbox, and lets it run again.

use gym_sandbox::docker::DockerProvider;
use gym_sandbox::provider::PauseProvider;
use gym_sandbox::{Result, SandboxProvider};
use serde::Serialize;

use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::{PauseChange, PauseRequest};
use crate::cli::session::blocking;

/// What `--json` prints.
#[derive(Serialize)]
struct Changed {
    id: String,
    status: &'static str,
}

/// Changes the state and prints the id.
///
/// # Errors
/// There is no such sandbox, it is neither running nor paused, or it is not ready in time.
pub(in crate::cli) async fn run(request: PauseRequest) -> Result<u8> {
    let provider = DockerProvider::connect(request.config).await?;
    let handle = provider.attach(&request.id).await?;
    let status = match request.change {
        PauseChange::Pause => {
            provider.pause(&handle).await?;
            "paused"
        }
        PauseChange::Resume => {
            provider.resume(&handle, None).await?;
            "running"
        }
    };
    let id = handle.sandbox_id().to_string();
    // Nothing of this process is to be left on the engine, its lease of the sandbox included.
    drop(handle);
    if let Err(error) = provider.aclose().await {
        output::note(&error.to_string());
    }
    blocking(move || match request.format {
        Format::Json => output::json(&Changed { id, status }),
        Format::Text => output::data(format!("{id}\n").as_bytes()),
    })
    .await?;
    Ok(exit::SUCCESS)
}
