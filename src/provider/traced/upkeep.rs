//! Spans of the calls about what is there on an engine.

use async_trait::async_trait;
use tracing::{Instrument, field::Empty, info, info_span, warn};

use crate::error::{Operation, Result};
use crate::provider::{Capability, ListProvider, SweepProvider};
use crate::spec::{SandboxFilter, SandboxSummary, SweepOptions, SweepReport};

use super::{Traced, lost, note_error, noted};

impl Traced {
    fn sweeping(&self) -> Result<&dyn SweepProvider> {
        self.inner
            .as_sweep()
            .ok_or_else(|| lost(self, Operation::Sweep, Capability::Sweep))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ListProvider for Traced {
    async fn list_sandboxes(&self, filter: &SandboxFilter) -> Result<Vec<SandboxSummary>> {
        let span = info_span!("sandbox.list", provider = self.inner.name(), error = Empty);
        async {
            let inner = self
                .inner
                .as_list()
                .ok_or_else(|| lost(self, Operation::List, Capability::List))?;
            noted(inner.list_sandboxes(filter).await)
        }
        .instrument(span)
        .await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl SweepProvider for Traced {
    async fn sweep(&self, options: &SweepOptions) -> Result<SweepReport> {
        let span = info_span!("sandbox.sweep", provider = self.inner.name(), error = Empty);
        async {
            let report = noted(self.sweeping()?.sweep(options).await)?;
            for object in &report.removed {
                info!(kind = %object.kind, name = object.name, why = object.why, mode = ?options.mode, "swept");
            }
            for object in &report.failed {
                warn!(kind = %object.kind, name = object.name, why = object.why, "could not be swept");
            }
            Ok(report)
        }
        .instrument(span)
        .await
    }

    async fn remove_own(&self) -> Result<()> {
        let span = info_span!("sandbox.remove_own", provider = self.inner.name(), error = Empty);
        async {
            let outcome = match self.sweeping() {
                Ok(inner) => inner.remove_own().await,
                Err(error) => Err(error),
            };
            match &outcome {
                Ok(()) => info!("everything of this process is removed"),
                Err(error) => {
                    note_error(error);
                    warn!(kind = ?error.kind(), "something of this process is left");
                }
            }
            outcome
        }
        .instrument(span)
        .await
    }
}
