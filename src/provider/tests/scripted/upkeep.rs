//! Lists and sweeps of the scripted provider.

use async_trait::async_trait;

use crate::error::{Operation, Result};
use crate::provider::{ListProvider, SweepProvider};
use crate::spec::{SandboxFilter, SandboxSummary, SweepOptions, SweepReport};

use super::{Call, Scripted};

#[async_trait]
impl ListProvider for Scripted {
    async fn list_sandboxes(&self, _filter: &SandboxFilter) -> Result<Vec<SandboxSummary>> {
        self.note(Call::Upkeep("list"));
        self.step(Operation::List).await?;
        Ok(Vec::new())
    }
}

#[async_trait]
impl SweepProvider for Scripted {
    async fn sweep(&self, _options: &SweepOptions) -> Result<SweepReport> {
        self.note(Call::Upkeep("sweep"));
        self.step(Operation::Sweep).await?;
        Ok(SweepReport::default())
    }

    async fn remove_own(&self) -> Result<()> {
        self.note(Call::Upkeep("remove_own"));
        self.step(Operation::Sweep).await
    }
}
