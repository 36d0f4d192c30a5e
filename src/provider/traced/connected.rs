//! Spans of the calls that connect a sandbox with the world around it.

use std::time::Duration;

use async_trait::async_trait;
use tracing::{Instrument, field::Empty, info, info_span};

use crate::error::{Operation, Result};
use crate::provider::{Capability, PauseProvider, SandboxHandle};

use super::{Traced, lost, noted};

impl Traced {
    fn pausing(&self, operation: Operation) -> Result<&dyn PauseProvider> {
        self.inner
            .as_pause()
            .ok_or_else(|| lost(self, operation, Capability::Pause))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl PauseProvider for Traced {
    async fn pause(&self, handle: &SandboxHandle) -> Result<()> {
        let span = self.span(handle, call_span!("sandbox.pause"));
        async {
            noted(self.pausing(Operation::Pause)?.pause(handle).await)?;
            info!("paused");
            Ok(())
        }
        .instrument(span)
        .await
    }

    async fn resume(&self, handle: &SandboxHandle, ready_timeout: Option<Duration>) -> Result<SandboxHandle> {
        let span = self.span(handle, call_span!("sandbox.resume"));
        async {
            let handle = noted(
                self.pausing(Operation::Resume)?
                    .resume(handle, ready_timeout)
                    .await,
            )?;
            info!("resumed");
            Ok(handle)
        }
        .instrument(span)
        .await
    }
}
