//! Terminal sessions in containers: over an exec of the engine everywhere, and over the agent where there is one
//! (contract 2.14).

pub(super) mod core;
mod engine;
pub(super) mod request;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;

use crate::error::{Error, Operation, Result};
use crate::provider::{PtyAttachProvider, PtyProvider, PtySession, SandboxHandle};
use crate::spec::{PtyAttachOptions, SandboxId, SandboxPtySpec};

use super::{DockerProvider, DockerRaw, PROVIDER};

/// The sessions that this provider has made or joined and that may still be open (contract Z12).
#[derive(Debug, Default)]
pub(super) struct OpenSessions(Mutex<Vec<Weak<dyn PtySession>>>);

impl OpenSessions {
    fn add(&self, session: &Arc<dyn PtySession>) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|known| known.upgrade().is_some_and(|known| !known.is_closed()));
        open.push(Arc::downgrade(session));
    }

    /// Closes those that were made here and leaves those that were joined.
    pub(super) async fn close_all(&self) {
        let open = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let closing = open
            .iter()
            .filter_map(Weak::upgrade)
            .map(|session| async move {
                if let Err(error) = session.close().await {
                    tracing::warn!(session = session.session_id(), %error, "a terminal session could not be closed");
                }
            });
        futures::future::join_all(closing).await;
    }
}

#[async_trait]
impl PtyProvider for DockerProvider {
    async fn create_pty(&self, handle: &SandboxHandle, spec: &SandboxPtySpec) -> Result<Arc<dyn PtySession>> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Pty)?;
        let id = handle.sandbox_id();
        spec.check(Operation::Pty)
            .map_err(|error| error.with_sandbox(id))?;
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

/// What ending the input of a terminal is answered with.
pub(super) fn no_input_end(id: &SandboxId) -> Error {
    Error::unsupported(Operation::Pty, PROVIDER, "ending the input of a terminal")
        .with_sandbox(id)
        .with_hint("write the key ^D, byte 4, at the start of a line")
}

/// What resizing pipes is answered with.
pub(super) fn no_size(id: &SandboxId) -> Error {
    Error::unsupported(Operation::Pty, PROVIDER, "a size of pipes").with_sandbox(id)
}
