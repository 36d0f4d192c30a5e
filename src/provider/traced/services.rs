//! Spans of the calls about networks, background services and forwarding.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use tracing::{Instrument, field::Empty, info_span};

use crate::error::{Operation, Result};
use crate::provider::{
    Capability, NetworkProvider, PortConnection, PortForwardingProvider, RuntimeRequirementsProvider,
    SandboxHandle, ServicesProvider, SharedAccess, SharedStorageProvider,
};
use crate::spec::{
    CapturedOutput, ExecOptions, ExecResult, Mapping, RuntimeRequirements, ServiceSpec, ServiceStatus,
};

use super::{Traced, lost, noted};

impl Traced {
    fn networking(&self) -> Result<&dyn NetworkProvider> {
        self.inner
            .as_network()
            .ok_or_else(|| lost(self, Operation::Network, Capability::Network))
    }

    fn serving(&self) -> Result<&dyn ServicesProvider> {
        self.inner
            .as_services()
            .ok_or_else(|| lost(self, Operation::Service, Capability::Services))
    }

    fn forwarding(&self) -> Result<&dyn PortForwardingProvider> {
        self.inner
            .as_port_forwarding()
            .ok_or_else(|| lost(self, Operation::Forward, Capability::PortForwarding))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl NetworkProvider for Traced {
    fn validate_networking(&self) -> Result<()> {
        self.networking()?.validate_networking()
    }

    async fn network_address(&self, handle: &SandboxHandle) -> Result<IpAddr> {
        let span = self.span(handle, call_span!("sandbox.network_address"));
        async { noted(self.networking()?.network_address(handle).await) }
            .instrument(span)
            .await
    }

    async fn set_hosts(&self, handle: &SandboxHandle, hosts: &BTreeMap<String, IpAddr>) -> Result<()> {
        let span = self.span(handle, call_span!("sandbox.set_hosts"));
        async { noted(self.networking()?.set_hosts(handle, hosts).await) }
            .instrument(span)
            .await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ServicesProvider for Traced {
    async fn exec_with_services(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<ExecResult> {
        let span = self.span(handle, call_span!("sandbox.exec"));
        async { noted(self.serving()?.exec_with_services(handle, options).await) }
            .instrument(span)
            .await
    }

    async fn start_service(&self, handle: &SandboxHandle, spec: &ServiceSpec) -> Result<()> {
        let span = self.span(handle, call_span!("sandbox.start_service"));
        async { noted(self.serving()?.start_service(handle, spec).await) }
            .instrument(span)
            .await
    }

    async fn service_status(&self, handle: &SandboxHandle, name: &str) -> Result<Option<ServiceStatus>> {
        let span = self.span(handle, call_span!("sandbox.service_status"));
        async { noted(self.serving()?.service_status(handle, name).await) }
            .instrument(span)
            .await
    }

    async fn service_logs(&self, handle: &SandboxHandle, name: &str) -> Result<CapturedOutput> {
        let span = self.span(handle, call_span!("sandbox.service_logs"));
        async { noted(self.serving()?.service_logs(handle, name).await) }
            .instrument(span)
            .await
    }

    async fn stop_service(
        &self,
        handle: &SandboxHandle,
        name: &str,
        grace: Duration,
    ) -> Result<Option<ServiceStatus>> {
        let span = self.span(handle, call_span!("sandbox.stop_service"));
        async { noted(self.serving()?.stop_service(handle, name, grace).await) }
            .instrument(span)
            .await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl PortForwardingProvider for Traced {
    fn validate_port_forwarding(&self) -> Result<()> {
        self.forwarding()?.validate_port_forwarding()
    }

    async fn forward_ports(
        &self,
        handle: &SandboxHandle,
        target: IpAddr,
        ports: &[u16],
        ready_file: &str,
    ) -> Result<()> {
        let span = self.span(handle, call_span!("sandbox.forward_ports"));
        async {
            noted(
                self.forwarding()?
                    .forward_ports(handle, target, ports, ready_file)
                    .await,
            )
        }
        .instrument(span)
        .await
    }

    async fn connect_port(&self, handle: &SandboxHandle, port: u16) -> Result<PortConnection> {
        let span = self.span(handle, call_span!("sandbox.connect_port"));
        async { noted(self.forwarding()?.connect_port(handle, port).await) }
            .instrument(span)
            .await
    }
}

impl Traced {
    fn requiring(&self) -> Result<&dyn RuntimeRequirementsProvider> {
        self.inner
            .as_runtime_requirements()
            .ok_or_else(|| lost(self, Operation::Configure, Capability::RuntimeRequirements))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl RuntimeRequirementsProvider for Traced {
    fn validate_runtime_requirements(&self, requirements: &RuntimeRequirements) -> Result<Mapping> {
        self.requiring()?.validate_runtime_requirements(requirements)
    }

    async fn configure_runtime(
        &self,
        handle: &SandboxHandle,
        requirements: &RuntimeRequirements,
    ) -> Result<()> {
        let span = self.span(handle, call_span!("sandbox.configure_runtime"));
        async { noted(self.requiring()?.configure_runtime(handle, requirements).await) }
            .instrument(span)
            .await
    }
}

impl Traced {
    fn sharing(&self) -> Result<&dyn SharedStorageProvider> {
        self.inner
            .as_shared_storage()
            .ok_or_else(|| lost(self, Operation::Configure, Capability::SharedStorage))
    }
}

#[deny(clippy::missing_trait_methods)]
impl SharedStorageProvider for Traced {
    fn shared_volume_options(
        &self,
        source: Option<&str>,
        target: &str,
        access: SharedAccess,
    ) -> Result<Mapping> {
        self.sharing()?.shared_volume_options(source, target, access)
    }

    fn shared_volume_metadata(&self) -> Result<BTreeMap<String, String>> {
        self.sharing()?.shared_volume_metadata()
    }
}
