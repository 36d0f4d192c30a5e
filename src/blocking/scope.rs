//! A sandbox that is stopped on every way out (contract D33).

use std::sync::Arc;

use crate::error::Error;
use crate::provider::SandboxProvider;
use crate::spec::SandboxSpec;

use super::Sandbox;

impl Sandbox {
    /// Starts a sandbox, runs the closure with it, and stops it on every way out (contract D33).
    ///
    /// The provider is shared: it is not closed. A closure that panics stops it, too.
    ///
    /// # Errors
    /// That of the closure comes first; then that of the start or the stop. A stop that fails after the closure has
    /// failed is logged, and tried again in the background.
    pub fn scope<T, E, F>(provider: Arc<dyn SandboxProvider>, spec: SandboxSpec, body: F) -> Result<T, E>
    where
        E: From<Error>,
        F: FnOnce(&Sandbox) -> Result<T, E>,
    {
        let sandbox = Self::new(provider)?.with_spec(spec);
        sandbox.start()?;
        let outcome = body(&sandbox);
        match (outcome, sandbox.stop()) {
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
