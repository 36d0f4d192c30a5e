//! Addresses and names of a facade's sandbox.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::error::{Operation, Result};
use crate::provider::{Capability, NetworkProvider};

use super::AsyncSandbox;

impl AsyncSandbox {
    /// The address at which other sandboxes of the same network reach this one.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the provider can't;
    /// [`ErrorKind::NotStarted`](crate::ErrorKind::NotStarted), [`ErrorKind::Stopped`](crate::ErrorKind::Stopped);
    /// otherwise as [`NetworkProvider::network_address`].
    pub async fn network_address(&self) -> Result<IpAddr> {
        let provider = self.network()?;
        let started = self.started(Operation::Network)?;
        provider.network_address(&started.handle).await
    }

    /// Makes names known in the sandbox, in addition to those that it knows.
    ///
    /// # Errors
    /// As [`network_address`](Self::network_address) and [`NetworkProvider::set_hosts`].
    ///
    /// # Cancel safety
    /// Dropping the future may leave all of the names set or none.
    pub async fn set_hosts(&self, hosts: &BTreeMap<String, IpAddr>) -> Result<()> {
        let provider = self.network()?;
        let started = self.started(Operation::Network)?;
        provider.set_hosts(&started.handle, hosts).await
    }

    fn network(&self) -> Result<&dyn NetworkProvider> {
        self.provider
            .as_network()
            .ok_or_else(|| self.unsupported(Operation::Network, Capability::Network))
    }
}
