//! A provider that is right but for one fault, to see that the conformance suite finds it.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use gym_sandbox::provider::{
    ConnectableProvider, ContainersProvider, EndpointProvider, FilesProvider, ImageProvider, InspectProvider,
    ListProvider, LogsProvider, NetworkProvider, PauseProvider, PortForwardingProvider, Reaper,
    RuntimeRequirementsProvider, ServicesProvider, SharedStorageProvider, SnapshotProvider, SpawnProvider,
    StatsProvider, SweepProvider,
};
use gym_sandbox::provider::{PtyAttachProvider, PtyProvider};
use gym_sandbox::{
    CapturedOutput, ExecOptions, ExecResult, Result, SandboxHandle, SandboxProvider, SandboxSpec,
    SandboxStatus,
};

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

    fn cleanup(&self) -> Option<&Reaper> {
        self.inner.cleanup()
    }

    fn as_spawn(&self) -> Option<&dyn SpawnProvider> {
        self.inner.as_spawn()
    }

    fn as_endpoint(&self) -> Option<&dyn EndpointProvider> {
        self.inner.as_endpoint()
    }

    fn as_inspect(&self) -> Option<&dyn InspectProvider> {
        self.inner.as_inspect()
    }

    fn as_files(&self) -> Option<&dyn FilesProvider> {
        self.inner.as_files()
    }

    fn as_list(&self) -> Option<&dyn ListProvider> {
        self.inner.as_list()
    }

    fn as_sweep(&self) -> Option<&dyn SweepProvider> {
        self.inner.as_sweep()
    }

    fn as_containers(&self) -> Option<&dyn ContainersProvider> {
        self.inner.as_containers()
    }

    fn as_images(&self) -> Option<&dyn ImageProvider> {
        self.inner.as_images()
    }

    fn as_snapshot(&self) -> Option<&dyn SnapshotProvider> {
        self.inner.as_snapshot()
    }

    fn as_pause(&self) -> Option<&dyn PauseProvider> {
        self.inner.as_pause()
    }

    fn as_connectable(&self) -> Option<&dyn ConnectableProvider> {
        self.inner.as_connectable()
    }

    fn as_pty(&self) -> Option<&dyn PtyProvider> {
        self.inner.as_pty()
    }

    fn as_pty_attach(&self) -> Option<&dyn PtyAttachProvider> {
        self.inner.as_pty_attach()
    }

    fn as_logs(&self) -> Option<&dyn LogsProvider> {
        self.inner.as_logs()
    }

    fn as_stats(&self) -> Option<&dyn StatsProvider> {
        self.inner.as_stats()
    }

    fn as_network(&self) -> Option<&dyn NetworkProvider> {
        self.inner.as_network()
    }

    fn as_services(&self) -> Option<&dyn ServicesProvider> {
        self.inner.as_services()
    }

    fn as_port_forwarding(&self) -> Option<&dyn PortForwardingProvider> {
        self.inner.as_port_forwarding()
    }

    fn as_runtime_requirements(&self) -> Option<&dyn RuntimeRequirementsProvider> {
        self.inner.as_runtime_requirements()
    }

    fn as_shared_storage(&self) -> Option<&dyn SharedStorageProvider> {
        self.inner.as_shared_storage()
    }
}
