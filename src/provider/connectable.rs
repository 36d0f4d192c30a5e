//! Handing a sandbox over to another process.

use async_trait::async_trait;

use crate::error::Result;
use crate::spec::{SandboxDescriptor, Value};

use super::{SandboxHandle, SandboxProvider};

/// What becomes of a container that this library did not make.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForeignSandboxes {
    /// It is refused.
    #[default]
    Refuse,
    /// It is used as a sandbox. Closing it removes it.
    Allow,
}

/// Handing a sandbox over to another process, and taking one over (contract K1-K9, L17, L19, D23).
#[async_trait]
pub trait ConnectableProvider: SandboxProvider {
    /// Describes a sandbox so that another process can connect to it. The description holds no secret.
    ///
    /// `scope` is what the caller says about whom it is for; a provider that has no use for it ignores it.
    ///
    /// # Errors
    /// [`ErrorKind::ForeignHandle`](crate::ErrorKind::ForeignHandle) for another provider's handle.
    async fn serialize_handle(
        &self,
        handle: &SandboxHandle,
        scope: Option<&Value>,
    ) -> Result<SandboxDescriptor>;

    /// Gives a handle of a sandbox that another process has made, or this one.
    ///
    /// # Behavior
    /// - A running and a paused sandbox are taken, a paused one without trying anything in it.
    /// - What the descriptor does not say is found out; its id is enough.
    /// - The sandbox is not changed. Closing the handle removes it, as any other one.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when there is no such sandbox;
    /// [`ErrorKind::Sandbox`](crate::ErrorKind::Sandbox) when it is neither running nor paused;
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a descriptor of another provider, and for
    /// a container that is not this library's unless those are allowed.
    ///
    /// # Cancel safety
    /// Nothing is changed.
    async fn connect_handle(
        &self,
        descriptor: &SandboxDescriptor,
        foreign: ForeignSandboxes,
    ) -> Result<SandboxHandle>;
}
