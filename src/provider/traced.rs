//! The tracing decorator: the one place where provider calls get their spans and log lines.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use tracing::{Instrument, Span, debug, field::Empty, info, info_span, warn};

use crate::error::{Error, Result};
use crate::spec::{ExecOptions, ExecResult, SandboxDetail, SandboxEndpoint, SandboxSpec, SandboxStatus};

mod containers;
mod images;
mod pty;
mod upkeep;

use super::{
    ConnectableProvider, ContainersProvider, EndpointProvider, ExecSession, FilesProvider, ImageProvider,
    InspectProvider, ListProvider, LogsProvider, NetworkProvider, PauseProvider, PortForwardingProvider,
    PtyAttachProvider, PtyProvider, Reaper, RuntimeRequirementsProvider, SandboxHandle, SandboxProvider,
    ServicesProvider, SharedStorageProvider, SnapshotProvider, SpawnProvider, StatsProvider, SweepProvider,
};

/// A provider that opens a span for each call of another one.
///
/// Spans are called `sandbox.create`, `sandbox.exec` and so on, with the fields `provider`, `sandbox_id` and, where they
/// apply, `image`, `exit_code` and `error`. Lifecycle is logged at `info`, calls at `debug`, failed clean-up at `warn`.
/// Values of variables, input, output and file contents are never logged.
#[derive(Debug, Clone)]
pub struct Traced {
    inner: Arc<dyn SandboxProvider>,
}

impl Traced {
    /// Wraps a provider.
    pub fn new(inner: Arc<dyn SandboxProvider>) -> Self {
        Self { inner }
    }

    fn span(&self, handle: &SandboxHandle, make: impl FnOnce() -> Span) -> Span {
        let span = make();
        span.record("provider", self.inner.name());
        span.record("sandbox_id", handle.sandbox_id().as_str());
        span
    }
}

macro_rules! call_span {
    ($name:literal) => {
        || {
            info_span!(
                $name,
                provider = Empty,
                sandbox_id = Empty,
                exit_code = Empty,
                error = Empty
            )
        }
    };
}
use call_span;

mod connected;
mod files;
mod services;

/// Notes the outcome in the span and hands it on.
fn noted<T>(result: Result<T>) -> Result<T> {
    if let Err(error) = &result {
        note_error(error);
    }
    result
}

fn note_error(error: &Error) {
    Span::current().record("error", tracing::field::debug(error.kind()));
    debug!(kind = ?error.kind(), "failed");
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl SandboxProvider for Traced {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<SandboxHandle> {
        let span = info_span!(
            "sandbox.create",
            provider = self.inner.name(),
            image = spec.image(),
            sandbox_id = Empty,
            error = Empty
        );
        async {
            let handle = noted(self.inner.create(spec).await)?;
            Span::current().record("sandbox_id", handle.sandbox_id().as_str());
            info!("created");
            Ok(handle)
        }
        .instrument(span)
        .await
    }

    async fn exec(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<ExecResult> {
        let span = self.span(handle, call_span!("sandbox.exec"));
        async {
            let result = noted(self.inner.exec(handle, options).await)?;
            Span::current().record("exit_code", result.return_code);
            debug!(return_code = result.return_code, error_type = ?result.error_type, "ended");
            Ok(result)
        }
        .instrument(span)
        .await
    }

    async fn upload_file(&self, handle: &SandboxHandle, local: &Path, remote: &str) -> Result<()> {
        let span = self.span(handle, call_span!("sandbox.upload"));
        async { noted(self.inner.upload_file(handle, local, remote).await) }
            .instrument(span)
            .await
    }

    async fn download_file(&self, handle: &SandboxHandle, remote: &str, local: &Path) -> Result<()> {
        let span = self.span(handle, call_span!("sandbox.download"));
        async { noted(self.inner.download_file(handle, remote, local).await) }
            .instrument(span)
            .await
    }

    async fn status(&self, handle: &SandboxHandle) -> Result<SandboxStatus> {
        let span = self.span(handle, call_span!("sandbox.status"));
        async { noted(self.inner.status(handle).await) }
            .instrument(span)
            .await
    }

    async fn close(&self, handle: &SandboxHandle) -> Result<()> {
        let span = self.span(handle, call_span!("sandbox.close"));
        async {
            match self.inner.close(handle).await {
                Ok(()) => {
                    info!("removed");
                    Ok(())
                }
                Err(error) => {
                    note_error(&error);
                    warn!(kind = ?error.kind(), "could not be removed");
                    Err(error)
                }
            }
        }
        .instrument(span)
        .await
    }

    async fn aclose(&self) -> Result<()> {
        let span = info_span!("sandbox.aclose", provider = self.inner.name(), error = Empty);
        async { noted(self.inner.aclose().await) }.instrument(span).await
    }

    fn cleanup(&self) -> Option<&Reaper> {
        self.inner.cleanup()
    }

    fn as_spawn(&self) -> Option<&dyn SpawnProvider> {
        self.inner.as_spawn().map(|_| self as &dyn SpawnProvider)
    }

    fn as_endpoint(&self) -> Option<&dyn EndpointProvider> {
        self.inner.as_endpoint().map(|_| self as &dyn EndpointProvider)
    }

    fn as_inspect(&self) -> Option<&dyn InspectProvider> {
        self.inner.as_inspect().map(|_| self as &dyn InspectProvider)
    }

    fn as_files(&self) -> Option<&dyn FilesProvider> {
        self.inner.as_files().map(|_| self as &dyn FilesProvider)
    }

    fn as_containers(&self) -> Option<&dyn ContainersProvider> {
        self.inner
            .as_containers()
            .map(|_| self as &dyn ContainersProvider)
    }

    fn as_images(&self) -> Option<&dyn ImageProvider> {
        self.inner.as_images().map(|_| self as &dyn ImageProvider)
    }

    fn as_snapshot(&self) -> Option<&dyn SnapshotProvider> {
        self.inner.as_snapshot().map(|_| self as &dyn SnapshotProvider)
    }

    fn as_pause(&self) -> Option<&dyn PauseProvider> {
        self.inner.as_pause().map(|_| self as &dyn PauseProvider)
    }

    fn as_connectable(&self) -> Option<&dyn ConnectableProvider> {
        self.inner
            .as_connectable()
            .map(|_| self as &dyn ConnectableProvider)
    }

    fn as_pty(&self) -> Option<&dyn PtyProvider> {
        self.inner.as_pty().map(|_| self as &dyn PtyProvider)
    }

    fn as_pty_attach(&self) -> Option<&dyn PtyAttachProvider> {
        self.inner.as_pty_attach().map(|_| self as &dyn PtyAttachProvider)
    }

    fn as_list(&self) -> Option<&dyn ListProvider> {
        self.inner.as_list().map(|_| self as &dyn ListProvider)
    }

    fn as_sweep(&self) -> Option<&dyn SweepProvider> {
        self.inner.as_sweep().map(|_| self as &dyn SweepProvider)
    }

    fn as_logs(&self) -> Option<&dyn LogsProvider> {
        self.inner.as_logs().map(|_| self as &dyn LogsProvider)
    }

    fn as_stats(&self) -> Option<&dyn StatsProvider> {
        self.inner.as_stats().map(|_| self as &dyn StatsProvider)
    }

    fn as_network(&self) -> Option<&dyn NetworkProvider> {
        self.inner.as_network().map(|_| self as &dyn NetworkProvider)
    }

    fn as_services(&self) -> Option<&dyn ServicesProvider> {
        self.inner.as_services().map(|_| self as &dyn ServicesProvider)
    }

    fn as_port_forwarding(&self) -> Option<&dyn PortForwardingProvider> {
        self.inner
            .as_port_forwarding()
            .map(|_| self as &dyn PortForwardingProvider)
    }

    fn as_runtime_requirements(&self) -> Option<&dyn RuntimeRequirementsProvider> {
        self.inner
            .as_runtime_requirements()
            .map(|_| self as &dyn RuntimeRequirementsProvider)
    }

    fn as_shared_storage(&self) -> Option<&dyn SharedStorageProvider> {
        self.inner
            .as_shared_storage()
            .map(|_| self as &dyn SharedStorageProvider)
    }
}

/// What the capability methods answer when the inner provider has lost the capability since it was asked.
fn lost(
    provider: &dyn SandboxProvider,
    operation: crate::error::Operation,
    what: super::Capability,
) -> Error {
    Error::unsupported(operation, provider.name(), what.as_str())
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl SpawnProvider for Traced {
    async fn spawn(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<Box<dyn ExecSession>> {
        let span = self.span(handle, call_span!("sandbox.spawn"));
        async {
            let inner = self
                .inner
                .as_spawn()
                .ok_or_else(|| lost(self, crate::error::Operation::Spawn, super::Capability::Spawn))?;
            noted(inner.spawn(handle, options).await)
        }
        .instrument(span)
        .await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl EndpointProvider for Traced {
    async fn endpoint(&self, handle: &SandboxHandle, port: u16) -> Result<SandboxEndpoint> {
        let span = self.span(handle, call_span!("sandbox.endpoint"));
        async {
            let inner = self.inner.as_endpoint().ok_or_else(|| {
                lost(
                    self,
                    crate::error::Operation::Endpoint,
                    super::Capability::Endpoint,
                )
            })?;
            noted(inner.endpoint(handle, port).await)
        }
        .instrument(span)
        .await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl InspectProvider for Traced {
    async fn inspect(&self, handle: &SandboxHandle) -> Result<SandboxDetail> {
        let span = self.span(handle, call_span!("sandbox.inspect"));
        async {
            let inner = self
                .inner
                .as_inspect()
                .ok_or_else(|| lost(self, crate::error::Operation::Inspect, super::Capability::Inspect))?;
            noted(inner.inspect(handle).await)
        }
        .instrument(span)
        .await
    }
}
