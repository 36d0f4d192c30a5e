//! A provider that is right but for one fault, to see that the conformance suite finds it.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use gym_sandbox::{
    CapturedOutput, ExecOptions, ExecResult, Result, SandboxHandle, SandboxProvider, SandboxSpec,
    SandboxStatus,
};

use crate::wrapped::{hand_through, hand_through_most};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing: only the fault makes the difference.
    None,
    /// Standard error is lost.
    DropsStderr,
    /// Every command that ends by itself ends with 0.
    LosesTheExitCode,
    /// The working directory of a call is not used.
    IgnoresCwd,
}

/// Another provider with a fault in its commands.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) inner: Arc<dyn SandboxProvider>,
    pub(crate) fault: Fault,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl SandboxProvider for Broken {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<SandboxHandle> {
        self.inner.create(spec).await
    }

    async fn exec(&self, handle: &SandboxHandle, mut options: ExecOptions) -> Result<ExecResult> {
        if self.fault == Fault::IgnoresCwd {
            options.cwd = None;
        }
        let mut result = self.inner.exec(handle, options).await?;
        match self.fault {
            Fault::DropsStderr => result.captured_stderr = CapturedOutput::default(),
            Fault::LosesTheExitCode if result.error_type.is_none() => result.return_code = 0,
            Fault::None | Fault::LosesTheExitCode | Fault::IgnoresCwd => {}
        }
        Ok(result)
    }

    async fn upload_file(&self, handle: &SandboxHandle, local: &Path, remote: &str) -> Result<()> {
        self.inner.upload_file(handle, local, remote).await
    }

    async fn download_file(&self, handle: &SandboxHandle, remote: &str, local: &Path) -> Result<()> {
        self.inner.download_file(handle, remote, local).await
    }

    async fn status(&self, handle: &SandboxHandle) -> Result<SandboxStatus> {
        self.inner.status(handle).await
    }

    async fn close(&self, handle: &SandboxHandle) -> Result<()> {
        self.inner.close(handle).await
    }

    async fn aclose(&self) -> Result<()> {
        self.inner.aclose().await
    }

    hand_through_most!();

    hand_through! {
        as_spawn: SpawnProvider,
        as_containers: ContainersProvider,
        as_images: ImageProvider,
        as_snapshot: SnapshotProvider,
        as_network: NetworkProvider,
        as_services: ServicesProvider,
        as_port_forwarding: PortForwardingProvider,
        as_shared_storage: SharedStorageProvider,
    }
}
