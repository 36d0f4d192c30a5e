//! Background services in a container. A command's children live on when it ends, on both exec paths (contract D4), so
//! that services are a matter of commands.

use std::time::Duration;

use async_trait::async_trait;

use crate::error::Result;
use crate::provider::{ByCommands, SandboxHandle, SandboxProvider, ServicesProvider};
use crate::spec::{CapturedOutput, ExecOptions, ExecResult, ServiceSpec, ServiceStatus};

use super::DockerProvider;

#[async_trait]
impl ServicesProvider for DockerProvider {
    async fn exec_with_services(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<ExecResult> {
        self.exec(handle, options).await
    }

    async fn start_service(&self, handle: &SandboxHandle, spec: &ServiceSpec) -> Result<()> {
        ByCommands::new(self, handle).start(spec).await
    }

    async fn service_status(&self, handle: &SandboxHandle, name: &str) -> Result<Option<ServiceStatus>> {
        ByCommands::new(self, handle).status(name).await
    }

    async fn service_logs(&self, handle: &SandboxHandle, name: &str) -> Result<CapturedOutput> {
        ByCommands::new(self, handle).logs(name).await
    }

    async fn stop_service(
        &self,
        handle: &SandboxHandle,
        name: &str,
        grace: Duration,
    ) -> Result<Option<ServiceStatus>> {
        ByCommands::new(self, handle).stop(name, grace).await
    }
}
