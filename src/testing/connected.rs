//! Addresses and names in memory, and handles of sandboxes by their descriptors. Nothing is reached by any of them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use async_trait::async_trait;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{
    ConnectableProvider, ForeignSandboxes, NetworkProvider, SandboxHandle, check_host_name,
};
use crate::spec::{SandboxDescriptor, Value};

use super::MemoryProvider;
use super::provider::{InMemory, NAME, check_handle};

/// An address of its own for each sandbox, from 10.0.0.1 on.
pub(super) fn address_of(number: u64) -> IpAddr {
    const FIRST: u32 = 0x0a00_0000;
    let number = u32::try_from(number & 0x00ff_ffff).unwrap_or_default();
    IpAddr::V4(Ipv4Addr::from(FIRST | number))
}

#[async_trait]
impl NetworkProvider for MemoryProvider {
    fn validate_networking(&self) -> Result<()> {
        Ok(())
    }

    async fn network_address(&self, handle: &SandboxHandle) -> Result<IpAddr> {
        let operation = Operation::Network;
        check_handle(handle, operation)?;
        self.injected(operation).await?;
        self.with_made(handle, operation, |made| Ok(made.address))
    }

    async fn set_hosts(&self, handle: &SandboxHandle, hosts: &BTreeMap<String, IpAddr>) -> Result<()> {
        let operation = Operation::Network;
        check_handle(handle, operation)?;
        hosts.keys().try_for_each(|name| check_host_name(name))?;
        self.injected(operation).await?;
        self.with_made(handle, operation, |made| {
            made.hosts.extend(hosts.clone());
            Ok(())
        })
    }
}

#[async_trait]
impl ConnectableProvider for MemoryProvider {
    async fn serialize_handle(
        &self,
        handle: &SandboxHandle,
        _scope: Option<&Value>,
    ) -> Result<SandboxDescriptor> {
        check_handle(handle, Operation::Serialize)?;
        self.injected(Operation::Serialize).await?;
        let mut descriptor = SandboxDescriptor::new(handle.sandbox_id().clone());
        descriptor.provider = Some(NAME.to_owned());
        descriptor.ports = Some(handle.ports().clone());
        Ok(descriptor)
    }

    async fn connect_handle(
        &self,
        descriptor: &SandboxDescriptor,
        _foreign: ForeignSandboxes,
    ) -> Result<SandboxHandle> {
        let (id, operation) = (&descriptor.sandbox_id, Operation::Attach);
        if let Some(provider) = &descriptor.provider
            && provider != NAME
        {
            let text = format!("the descriptor is one of provider `{}`", provider.escape_debug());
            return Err(Error::invalid(operation, text).with_sandbox(id));
        }
        self.injected(operation).await?;
        let known = {
            let state = self.state();
            state.sandboxes.get(id).map(|made| made.spec.ports().clone())
        };
        let ports = known.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, operation, "there is no such sandbox").with_sandbox(id)
        })?;
        Ok(SandboxHandle::new(id.clone(), NAME)
            .with_ports(descriptor.ports.clone().unwrap_or(ports))
            .with_raw(InMemory))
    }
}
