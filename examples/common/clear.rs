//! The end of an example that was cut short.

use gym_sandbox::SandboxProvider;

use crate::common::Failure;

/// Removes everything that this process has made, also what was dropped and is being removed in the background, and
/// closes the provider.
pub(crate) async fn clear(provider: &dyn SandboxProvider) -> Result<(), Failure> {
    if let Some(sweep) = provider.as_sweep() {
        sweep.remove_own().await?;
    }
    Ok(provider.aclose().await?)
}
