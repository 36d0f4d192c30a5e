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

/// What a host name is.
const HOST_NAME: &str = "a host name is parts of letters, digits, `-` and `_`, with dots between them; a part has at most 63 characters \
                         and neither begins nor ends with `-`, all have at most 253";

/// What an alias is.
pub(crate) const ALIAS: &str = "an alias is parts of letters, digits, `-` and `_`, with dots between them; a part has at most 63 characters and \
     does not begin with `-`, all have at most 253";

/// Says whether a text is the name of a host: as in RFC 1123; underscores are common among services, and resolve.
pub(crate) fn is_host_name(name: &str) -> bool {
    is_alias(name) && name.split('.').all(|part| !part.ends_with('-'))
}

/// Says whether a text can be looked up as another name of a container: engines and resolvers take a `-` at the end of a
/// part, too, which names of services may have.
pub(crate) fn is_alias(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part.len() <= 63
            && !part.starts_with('-')
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    name.len() <= 253 && name.split('.').all(is_part)
}

/// Refuses what is no [name of a host](is_host_name).
pub(crate) fn check_host_name(name: &str) -> Result<()> {
    if is_host_name(name) {
        return Ok(());
    }
    Err(Error::invalid(
        Operation::Network,
        format!("`{}` is no host name", shown_name(name)),
    )
    .with_hint(HOST_NAME))
}

/// A name from outside, of which an error shows no more than is needed to find it.
pub(crate) fn shown_name(name: &str) -> String {
    const MOST: usize = 80;
    let mut characters = name.chars();
    let shown: String = characters
        .by_ref()
        .take(MOST)
        .flat_map(char::escape_debug)
        .collect();
    if characters.next().is_some() {
        return shown + "…";
    }
    shown
}
