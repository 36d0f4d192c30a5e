//! The capabilities that connect a sandbox with the world around it.

use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::error::{Operation, Result};
use crate::provider::{
    ConnectableProvider, ForeignSandboxes, LogsProvider, PauseProvider, SandboxHandle, StatsProvider,
};
use crate::spec::{LogLine, LogOptions, LogStream, SandboxDescriptor, SandboxStats, Value};

use super::{Call, NAME, Scripted};

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

#[async_trait]
impl ConnectableProvider for Scripted {
    async fn serialize_handle(
        &self,
        handle: &SandboxHandle,
        scope: Option<&Value>,
    ) -> Result<SandboxDescriptor> {
        self.note(Call::Serialize(scope.cloned()));
        self.step(Operation::Serialize).await?;
        let mut descriptor = SandboxDescriptor::new(handle.sandbox_id().clone());
        descriptor.ports = Some(handle.ports().clone());
        Ok(descriptor)
    }

    async fn connect_handle(
        &self,
        descriptor: &SandboxDescriptor,
        _foreign: ForeignSandboxes,
    ) -> Result<SandboxHandle> {
        self.note(Call::Connect(descriptor.sandbox_id.to_string()));
        self.step(Operation::Attach).await?;
        Ok(SandboxHandle::new(descriptor.sandbox_id.clone(), NAME)
            .with_ports(descriptor.ports.clone().unwrap_or_default()))
    }
}

#[async_trait]
impl LogsProvider for Scripted {
    async fn logs(
        &self,
        _handle: &SandboxHandle,
        _options: &LogOptions,
    ) -> Result<BoxStream<'static, Result<LogLine>>> {
        self.note(Call::Logs);
        self.step(Operation::Logs).await?;
        Ok(stream::iter([Ok(LogLine::new(LogStream::Stdout, "scripted"))]).boxed())
    }
}

#[async_trait]
impl StatsProvider for Scripted {
    async fn stats(&self, _handle: &SandboxHandle) -> Result<BoxStream<'static, Result<SandboxStats>>> {
        self.note(Call::Stats);
        self.step(Operation::Stats).await?;
        Ok(stream::iter([Ok(SandboxStats::default())]).boxed())
    }
}
