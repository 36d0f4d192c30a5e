//! Networks, background services and forwarding of the scripted provider.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use async_trait::async_trait;

use crate::error::{Operation, Result};
use crate::provider::{
    NetworkProvider, PortConnection, PortForwardingProvider, RuntimeRequirementsProvider, SandboxHandle,
    SandboxProvider, ServicesProvider, SharedAccess, SharedStorageProvider,
};
use crate::spec::{
    CapturedOutput, ExecOptions, ExecResult, Mapping, RuntimeRequirements, ServiceSpec, ServiceStatus,
};

use super::{Call, Scripted};

#[async_trait]
impl NetworkProvider for Scripted {
    fn validate_networking(&self) -> Result<()> {
        Ok(())
    }

    async fn network_address(&self, handle: &SandboxHandle) -> Result<IpAddr> {
        self.note(Call::Connected("address", handle.sandbox_id().to_string()));
        self.step(Operation::Network).await?;
        Ok(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)))
    }

    async fn set_hosts(&self, _handle: &SandboxHandle, hosts: &BTreeMap<String, IpAddr>) -> Result<()> {
        self.note(Call::Connected("hosts", format!("{hosts:?}")));
        self.step(Operation::Network).await
    }
}

#[async_trait]
impl ServicesProvider for Scripted {
    async fn exec_with_services(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<ExecResult> {
        self.note(Call::Connected("exec", handle.sandbox_id().to_string()));
        self.exec(handle, options).await
    }

    async fn start_service(&self, _handle: &SandboxHandle, spec: &ServiceSpec) -> Result<()> {
        let cwd = spec.cwd.clone().unwrap_or_default();
        self.note(Call::Connected("start", format!("{} {cwd}", spec.name)));
        self.step(Operation::Service).await
    }

    async fn service_status(&self, _handle: &SandboxHandle, name: &str) -> Result<Option<ServiceStatus>> {
        self.note(Call::Connected("status", name.to_owned()));
        self.step(Operation::Service).await?;
        Ok(None)
    }

    async fn service_logs(&self, _handle: &SandboxHandle, name: &str) -> Result<CapturedOutput> {
        self.note(Call::Connected("logs", name.to_owned()));
        self.step(Operation::Service).await?;
        Ok(CapturedOutput::default())
    }

    async fn stop_service(
        &self,
        _handle: &SandboxHandle,
        name: &str,
        _grace: Duration,
    ) -> Result<Option<ServiceStatus>> {
        self.note(Call::Connected("stop", name.to_owned()));
        self.step(Operation::Service).await?;
        Ok(None)
    }
}

#[async_trait]
impl PortForwardingProvider for Scripted {
    fn validate_port_forwarding(&self) -> Result<()> {
        Ok(())
    }

    async fn forward_ports(
        &self,
        _handle: &SandboxHandle,
        target: IpAddr,
        ports: &[u16],
        _ready_file: &str,
    ) -> Result<()> {
        self.note(Call::Connected("forward", format!("{target} {ports:?}")));
        self.step(Operation::Forward).await
    }

    async fn connect_port(&self, _handle: &SandboxHandle, port: u16) -> Result<PortConnection> {
        self.note(Call::Connected("connect", port.to_string()));
        self.step(Operation::Forward).await?;
        Ok(PortConnection::new(tokio::io::empty(), tokio::io::sink(), ()))
    }
}

#[async_trait]
impl RuntimeRequirementsProvider for Scripted {
    fn validate_runtime_requirements(&self, _requirements: &RuntimeRequirements) -> Result<Mapping> {
        Ok(Mapping::new())
    }

    async fn configure_runtime(
        &self,
        handle: &SandboxHandle,
        _requirements: &RuntimeRequirements,
    ) -> Result<()> {
        self.note(Call::Connected("configure", handle.sandbox_id().to_string()));
        self.step(Operation::Configure).await
    }
}

impl SharedStorageProvider for Scripted {
    fn shared_volume_options(
        &self,
        source: Option<&str>,
        target: &str,
        access: SharedAccess,
    ) -> Result<Mapping> {
        self.note(Call::Connected(
            "share",
            format!("{source:?} {target} {access:?}"),
        ));
        Ok(Mapping::new())
    }

    fn shared_volume_metadata(&self) -> Result<BTreeMap<String, String>> {
        Ok(BTreeMap::new())
    }
}
