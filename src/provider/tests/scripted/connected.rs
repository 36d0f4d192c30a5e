//! The capabilities that connect a sandbox with the world around it.

use std::time::Duration;

use async_trait::async_trait;

use crate::error::{Operation, Result};
use crate::provider::{PauseProvider, SandboxHandle};

use super::{Call, Scripted};

#[async_trait]
impl PauseProvider for Scripted {
    async fn pause(&self, _handle: &SandboxHandle) -> Result<()> {
        self.note(Call::Pause);
        self.step(Operation::Pause).await
    }

    async fn resume(&self, handle: &SandboxHandle, ready_timeout: Option<Duration>) -> Result<SandboxHandle> {
        self.note(Call::Resume(ready_timeout));
        self.step(Operation::Resume).await?;
        Ok(handle.clone().with_raw("resumed"))
    }
}
