//! Everything of ours on an engine: lists, and sweeps of what dead owners have left (contract D35, docs/leaks.md).

mod decide;
mod holds;
mod list;
mod look;
mod remove;
mod sweep;

use async_trait::async_trait;

use crate::error::Result;
use crate::provider::{ListProvider, SweepProvider};
use crate::spec::{SandboxFilter, SandboxSummary, SweepOptions, SweepReport};

use super::DockerProvider;

#[async_trait]
impl ListProvider for DockerProvider {
    async fn list_sandboxes(&self, filter: &SandboxFilter) -> Result<Vec<SandboxSummary>> {
        self.summaries(filter).await
    }
}

#[async_trait]
impl SweepProvider for DockerProvider {
    async fn sweep(&self, options: &SweepOptions) -> Result<SweepReport> {
        self.sweep_engine(options).await
    }

    async fn remove_own(&self) -> Result<()> {
        self.remove_all_own().await
    }
}
