//! Where sandboxes find each other.

use std::collections::BTreeMap;
use std::net::IpAddr;

use async_trait::async_trait;

use crate::error::{Error, Operation, Result};

use super::{SandboxHandle, SandboxProvider};

/// Addresses of sandboxes, and names for them (contract 1.3).
///
/// This is the way of providers whose sandboxes share one network without names. Where an engine has networks with name
/// servers of their own, use those: `NetworkSpec` and aliases.
#[async_trait]
pub trait NetworkProvider: SandboxProvider {
    /// Says whether sandboxes of this provider can reach each other as it is configured. Does no I/O.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) with the setting that keeps them apart.
    fn validate_networking(&self) -> Result<()>;

    /// The address at which other sandboxes of the same network reach this one.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for a sandbox without an address of its own;
    /// [`ErrorKind::Sandbox`](crate::ErrorKind::Sandbox) when it is not running or gone.
    async fn network_address(&self, handle: &SandboxHandle) -> Result<IpAddr>;

    /// Makes names known in the sandbox, in addition to those that it knows. A name given again gets the new address;
    /// an address can have many names.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for what is no host name, before anything is
    /// changed; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the sandbox has nothing to do it with;
    /// [`ErrorKind::Sandbox`](crate::ErrorKind::Sandbox) when it runs no commands.
    ///
    /// # Cancel safety
    /// Dropping the future may leave all of the names set or none.
    async fn set_hosts(&self, handle: &SandboxHandle, hosts: &BTreeMap<String, IpAddr>) -> Result<()>;
}

/// Checks a name of a host: as in RFC 1123; underscores are common among services, and resolve.
pub(crate) fn check_host_name(name: &str) -> Result<()> {
    let valid = !name.is_empty()
        && name.len() <= 253
        && name.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        });
    if valid {
        return Ok(());
    }
    Err(Error::invalid(
        Operation::Network,
        format!("`{}` is no host name", name.escape_debug()),
    ))
}
