//! Spans of the calls that connect a sandbox with the world around it.

use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use tracing::{Instrument, field::Empty, info, info_span};

use crate::error::{Operation, Result};
use crate::provider::{
    Capability, ConnectableProvider, ForeignSandboxes, LogsProvider, PauseProvider, SandboxHandle,
    StatsProvider,
};
use crate::spec::{LogLine, LogOptions, SandboxDescriptor, SandboxStats, Value};

use super::{Traced, lost, noted};

impl Traced {
    fn pausing(&self, operation: Operation) -> Result<&dyn PauseProvider> {
        self.inner
            .as_pause()
            .ok_or_else(|| lost(self, operation, Capability::Pause))
    }

    fn connecting(&self, operation: Operation) -> Result<&dyn ConnectableProvider> {
        self.inner
            .as_connectable()
            .ok_or_else(|| lost(self, operation, Capability::Connect))
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

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ConnectableProvider for Traced {
    async fn serialize_handle(
        &self,
        handle: &SandboxHandle,
        scope: Option<&Value>,
    ) -> Result<SandboxDescriptor> {
        let span = self.span(handle, call_span!("sandbox.serialize"));
        async {
            noted(
                self.connecting(Operation::Serialize)?
                    .serialize_handle(handle, scope)
                    .await,
            )
        }
        .instrument(span)
        .await
    }

    async fn connect_handle(
        &self,
        descriptor: &SandboxDescriptor,
        foreign: ForeignSandboxes,
    ) -> Result<SandboxHandle> {
        let span = info_span!(
            "sandbox.connect",
            provider = self.inner.name(),
            sandbox_id = descriptor.sandbox_id.as_str(),
            error = Empty
        );
        async {
            let handle = noted(
                self.connecting(Operation::Attach)?
                    .connect_handle(descriptor, foreign)
                    .await,
            )?;
            info!("connected");
            Ok(handle)
        }
        .instrument(span)
        .await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl LogsProvider for Traced {
    async fn logs(
        &self,
        handle: &SandboxHandle,
        options: &LogOptions,
    ) -> Result<BoxStream<'static, Result<LogLine>>> {
        let span = self.span(handle, call_span!("sandbox.logs"));
        async {
            let inner = self
                .inner
                .as_logs()
                .ok_or_else(|| lost(self, Operation::Logs, Capability::Logs))?;
            noted(inner.logs(handle, options).await)
        }
        .instrument(span)
        .await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StatsProvider for Traced {
    async fn stats(&self, handle: &SandboxHandle) -> Result<BoxStream<'static, Result<SandboxStats>>> {
        let span = self.span(handle, call_span!("sandbox.stats"));
        async {
            let inner = self
                .inner
                .as_stats()
                .ok_or_else(|| lost(self, Operation::Stats, Capability::Stats))?;
            noted(inner.stats(handle).await)
        }
        .instrument(span)
        .await
    }
}
