//! A provider that is another one without its containers, with a note of what is made and removed, and perhaps a fault.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use gym_sandbox::provider::{
    ContainersProvider, ImageProvider, NetworkProvider, PortConnection, PortForwardingProvider,
    ServicesProvider, SharedAccess, SharedStorageProvider, SnapshotProvider, SpawnProvider,
};
use gym_sandbox::{
    Command, ExecOptions, ExecResult, Mapping, Result, SandboxHandle, SandboxProvider, SandboxSpec,
    SandboxStatus,
};

use crate::wrapped::{hand_through, hand_through_most};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Names are not made known.
    ForgetsNames,
    /// Every command runs as the sandbox's own user.
    LosesTheUser,
    /// Every command that ends by itself ends with 0.
    LosesTheExitCode,
    /// Shared folders can always be written to.
    SharesForWriting,
    /// A relay says that it listens, and does not.
    RelaysNothing,
    /// Variables of a command are not set.
    LosesVariables,
    /// A sandbox that is closed lives on.
    KeepsSandboxes,
    /// A sandbox is removed under the first command that has this in it.
    KillsAt(&'static str),
}

/// Another provider without containers.
#[derive(Debug)]
pub(crate) struct Plain {
    inner: Arc<dyn SandboxProvider>,
    fault: Fault,
    /// Whether commands can be spawned, beside being run to their end.
    spawns: bool,
    notes: Mutex<Vec<String>>,
    has_killed: AtomicBool,
}

impl Plain {
    pub(crate) fn new(inner: Arc<dyn SandboxProvider>) -> Arc<Self> {
        Self::with(inner, Fault::None, true)
    }

    pub(crate) fn with(inner: Arc<dyn SandboxProvider>, fault: Fault, spawns: bool) -> Arc<Self> {
        Arc::new(Self {
            inner,
            fault,
            spawns,
            notes: Mutex::default(),
            has_killed: AtomicBool::new(false),
        })
    }

    /// What was made and removed, as `create ID IMAGE` and `close ID`, in its order.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap().clone()
    }

    fn note(&self, text: String) {
        self.notes.lock().unwrap().push(text);
    }

    /// Removes what a fault has kept.
    pub(crate) async fn tidy(&self, handles: &[SandboxHandle]) {
        for handle in handles {
            self.inner.close(handle).await.unwrap();
        }
    }
}

fn text_of(command: &Command) -> String {
    match command {
        Command::Argv(argv) => argv.join(" "),
        Command::Shell(line) => line.clone(),
        other => panic!("{other:?}"),
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl SandboxProvider for Plain {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<SandboxHandle> {
        let handle = self.inner.create(spec).await?;
        self.note(format!(
            "create {} {}",
            handle.sandbox_id(),
            spec.image().unwrap_or_default()
        ));
        Ok(handle)
    }

    async fn exec(&self, handle: &SandboxHandle, mut options: ExecOptions) -> Result<ExecResult> {
        match self.fault {
            Fault::LosesTheUser => options.user = None,
            Fault::LosesVariables => options.env.clear(),
            Fault::KillsAt(word)
                if text_of(&options.command).contains(word)
                    && !self.has_killed.swap(true, Ordering::Relaxed) =>
            {
                self.inner.close(handle).await?;
            }
            _ => {}
        }
        let mut result = self.inner.exec(handle, options).await?;
        if self.fault == Fault::LosesTheExitCode && result.error_type.is_none() {
            result.return_code = 0;
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
        if self.fault != Fault::KeepsSandboxes {
            self.inner.close(handle).await?;
        }
        self.note(format!("close {}", handle.sandbox_id()));
        Ok(())
    }

    async fn aclose(&self) -> Result<()> {
        self.note("aclose".to_owned());
        self.inner.aclose().await
    }

    hand_through_most!();

    fn as_spawn(&self) -> Option<&dyn SpawnProvider> {
        self.inner.as_spawn().filter(|_| self.spawns)
    }

    fn as_containers(&self) -> Option<&dyn ContainersProvider> {
        None
    }

    fn as_images(&self) -> Option<&dyn ImageProvider> {
        None
    }

    fn as_snapshot(&self) -> Option<&dyn SnapshotProvider> {
        None
    }

    fn as_network(&self) -> Option<&dyn NetworkProvider> {
        self.inner.as_network().map(|_| self as &dyn NetworkProvider)
    }

    fn as_services(&self) -> Option<&dyn ServicesProvider> {
        None
    }

    fn as_port_forwarding(&self) -> Option<&dyn PortForwardingProvider> {
        self.inner
            .as_port_forwarding()
            .map(|_| self as &dyn PortForwardingProvider)
    }

    fn as_shared_storage(&self) -> Option<&dyn SharedStorageProvider> {
        self.inner
            .as_shared_storage()
            .map(|_| self as &dyn SharedStorageProvider)
    }
}

#[async_trait]
impl NetworkProvider for Plain {
    fn validate_networking(&self) -> Result<()> {
        self.inner.as_network().unwrap().validate_networking()
    }

    async fn network_address(&self, handle: &SandboxHandle) -> Result<IpAddr> {
        self.inner.as_network().unwrap().network_address(handle).await
    }

    async fn set_hosts(&self, handle: &SandboxHandle, hosts: &BTreeMap<String, IpAddr>) -> Result<()> {
        if self.fault == Fault::ForgetsNames {
            return Ok(());
        }
        self.inner.as_network().unwrap().set_hosts(handle, hosts).await
    }
}

#[async_trait]
impl PortForwardingProvider for Plain {
    fn validate_port_forwarding(&self) -> Result<()> {
        self.inner
            .as_port_forwarding()
            .unwrap()
            .validate_port_forwarding()
    }

    async fn forward_ports(
        &self,
        handle: &SandboxHandle,
        target: IpAddr,
        ports: &[u16],
        ready_file: &str,
    ) -> Result<()> {
        if self.fault == Fault::RelaysNothing {
            let touched = ExecOptions::new(["touch", ready_file]).with_user("0");
            assert!(self.inner.exec(handle, touched).await?.is_success());
            std::future::pending::<()>().await;
        }
        let inner = self.inner.as_port_forwarding().unwrap();
        inner.forward_ports(handle, target, ports, ready_file).await
    }

    async fn connect_port(&self, handle: &SandboxHandle, port: u16) -> Result<PortConnection> {
        let inner = self.inner.as_port_forwarding().unwrap();
        inner.connect_port(handle, port).await
    }
}

impl SharedStorageProvider for Plain {
    fn shared_volume_options(
        &self,
        source: Option<&str>,
        target: &str,
        access: SharedAccess,
    ) -> Result<Mapping> {
        let access = match self.fault {
            Fault::SharesForWriting => SharedAccess::ReadWrite,
            _ => access,
        };
        let inner = self.inner.as_shared_storage().unwrap();
        inner.shared_volume_options(source, target, access)
    }

    fn shared_volume_metadata(&self) -> Result<BTreeMap<String, String>> {
        self.inner.as_shared_storage().unwrap().shared_volume_metadata()
    }
}
