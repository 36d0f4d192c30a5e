//! A project that is stopped on every way out (contract D33).

use crate::error::Error;

use super::AsyncSandboxCompose;

impl AsyncSandboxCompose {
    /// Starts the project, runs the closure with it, and stops it on every way out (contract D33).
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use gym_sandbox::{SandboxProvider, compose::AsyncSandboxCompose};
    /// # async fn example(provider: Arc<dyn SandboxProvider>) -> gym_sandbox::Result<()> {
    /// let project = AsyncSandboxCompose::new(provider).with_compose_file("compose.yaml");
    /// let result = project
    ///     .scope(async |project| project.default_service()?.exec("make test").await)
    ///     .await?;
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
    /// Dropping the future removes the project in the background.
    pub async fn scope<T, E, F>(self, body: F) -> Result<T, E>
    where
        E: From<Error>,
        F: AsyncFnOnce(&Self) -> Result<T, E>,
    {
        self.start().await?;
        let outcome = body(&self).await;
        let stopped = self.stop().await;
        match (outcome, stopped) {
            (Ok(value), Ok(())) => Ok(value),
            (Ok(_), Err(error)) => Err(error.into()),
            (Err(error), stopped) => {
                if let Err(stop_error) = stopped {
                    tracing::warn!(error = %stop_error, "the project could not be removed; trying again in the background");
                }
                Err(error)
            }
        }
    }
}
