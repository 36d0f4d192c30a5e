//! Terminal sessions in containers: over an exec of the engine everywhere, and over the agent where there is one
//! (contract 2.14).

mod engine;
mod pump;
pub(super) mod request;

use std::sync::Arc;

use async_trait::async_trait;

use crate::error::{Error, Operation, Result};
pub(super) use crate::provider::{OpenSessions, pty_core as core};
use crate::provider::{PtyAttachProvider, PtyProvider, PtySession, SandboxHandle};
use crate::spec::{PtyAttachOptions, SandboxPtySpec};

use super::{DockerProvider, DockerRaw, PROVIDER};

#[async_trait]
impl PtyProvider for DockerProvider {
    async fn create_pty(&self, handle: &SandboxHandle, spec: &SandboxPtySpec) -> Result<Arc<dyn PtySession>> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Pty)?;
        let id = handle.sandbox_id();
        spec.check(Operation::Pty)
            .map_err(|error| error.with_sandbox(id))?;
        let spec = &self.with_pty_defaults(spec);
        let Some(argv) = request::argv(spec.command.as_ref(), raw.shell.as_deref()) else {
            return Err(
                Error::unsupported(Operation::Pty, PROVIDER, "shells in an image that has none")
                    .with_sandbox(id)
                    .with_hint("give the command as a list"),
            );
        };
        let session = match Box::pin(self.create_pty_by_agent(id, raw, spec, &argv)).await? {
            Some(session) => session,
            None => engine::create(self, id, raw, spec, argv).await?,
        };
        self.terminals().add(&session);
        Ok(session)
    }
}

#[async_trait]
impl PtyAttachProvider for DockerProvider {
    async fn attach_pty(
        &self,
        handle: &SandboxHandle,
        session_id: &str,
        options: PtyAttachOptions,
    ) -> Result<Arc<dyn PtySession>> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Pty)?;
        let session = self
            .attach_pty_by_agent(handle.sandbox_id(), raw, session_id, options)
            .await?;
        self.terminals().add(&session);
        Ok(session)
    }
}
