//! A sandbox that is stopped on every way out (contract D33).

use std::sync::Arc;

use crate::error::Error;
use crate::provider::SandboxProvider;
use crate::spec::SandboxSpec;

use super::AsyncSandbox;

impl AsyncSandbox {
    /// Starts a sandbox, runs the closure with it, and stops it on every way out (contract L8, D33).
    ///
    /// The provider is shared: it is not closed.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use gym_sandbox::{AsyncSandbox, SandboxProvider, SandboxSpec};
    /// # async fn example(provider: Arc<dyn SandboxProvider>) -> gym_sandbox::Result<()> {
    /// let result = AsyncSandbox::scope(provider, SandboxSpec::new("debian:bookworm"), async |sandbox| {
    ///     sandbox.exec("python3 --version").await
    /// })
    /// .await?;
    /// # drop(result);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// That of the closure comes first; then that of the start or the stop. A stop that fails after the closure has
    /// failed is logged, and tried again in the background.
    ///
    /// # Cancel safety
    /// Dropping the future removes the sandbox in the background.
    pub async fn scope<T, E, F>(
        provider: Arc<dyn SandboxProvider>,
        spec: SandboxSpec,
        body: F,
    ) -> Result<T, E>
    where
        E: From<Error>,
        F: AsyncFnOnce(&AsyncSandbox) -> Result<T, E>,
    {
        let sandbox = Self::new(provider).with_spec(spec);
        sandbox.start().await?;
        let outcome = body(&sandbox).await;
        let stopped = sandbox.stop().await;
        match (outcome, stopped) {
            (Ok(value), Ok(())) => Ok(value),
            (Ok(_), Err(error)) => Err(error.into()),
            (Err(error), stopped) => {
                if let Err(stop_error) = stopped {
                    tracing::warn!(error = %stop_error, "the sandbox could not be removed; trying again in the background");
                }
                Err(error)
            }
        }
    }
}
