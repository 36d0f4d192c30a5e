//! Descriptors of sandboxes, and taking a sandbox over by one (contract K1-K9, D23).

use async_trait::async_trait;

use crate::error::{Error, Operation, Result};
use crate::provider::{ConnectableProvider, ForeignSandboxes, SandboxHandle};
use crate::spec::{SandboxDescriptor, Value};

use super::{DockerProvider, DockerRaw, PROVIDER};

#[async_trait]
impl ConnectableProvider for DockerProvider {
    /// The scope is ignored (contract K3).
    async fn serialize_handle(
        &self,
        handle: &SandboxHandle,
        _scope: Option<&Value>,
    ) -> Result<SandboxDescriptor> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Serialize)?;
        let engine = self.engine().await?;
        Ok(descriptor(handle, raw, &engine.address))
    }

    async fn connect_handle(
        &self,
        descriptor: &SandboxDescriptor,
        foreign: ForeignSandboxes,
    ) -> Result<SandboxHandle> {
        if let Some(provider) = &descriptor.provider
            && provider != PROVIDER
        {
            return Err(Error::invalid(
                Operation::Attach,
                format!("the descriptor is one of provider `{}`", provider.escape_debug()),
            )
            .with_sandbox(&descriptor.sandbox_id));
        }
        let taken = self.take_over(descriptor, foreign).await;
        taken.map_err(|error| match &descriptor.engine {
            // The same sandbox is not on every engine.
            Some(engine) if error.kind() == crate::error::ErrorKind::NotFound => error.with_hint(format!(
                "it was described by a provider that used the engine at `{}`",
                engine.escape_debug()
            )),
            _ => error,
        })
    }
}

/// Everything in it is known to the engine or to people anyway: no environment, no registry credentials.
fn descriptor(handle: &SandboxHandle, raw: &DockerRaw, engine: &str) -> SandboxDescriptor {
    let mut descriptor = SandboxDescriptor::new(handle.sandbox_id().clone());
    descriptor.provider = Some(PROVIDER.to_owned());
    descriptor.engine = Some(engine.to_owned());
    descriptor.ports = Some(handle.ports().clone());
    descriptor.shell.clone_from(&raw.shell);
    descriptor
}
