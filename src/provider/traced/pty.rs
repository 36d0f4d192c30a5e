//! Spans of the calls about terminal sessions.

use std::sync::Arc;

use async_trait::async_trait;
use tracing::{Instrument, field::Empty, info_span};

use crate::error::{Operation, Result};
use crate::provider::{Capability, PtyAttachProvider, PtyProvider, PtySession, SandboxHandle};
use crate::spec::{PtyAttachOptions, SandboxPtySpec};

use super::{Traced, call_span, lost, noted};

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl PtyProvider for Traced {
    async fn create_pty(&self, handle: &SandboxHandle, spec: &SandboxPtySpec) -> Result<Arc<dyn PtySession>> {
        let span = self.span(handle, call_span!("sandbox.create_pty"));
        async {
            let inner = self
                .inner
                .as_pty()
                .ok_or_else(|| lost(self, Operation::Pty, Capability::Pty))?;
            noted(inner.create_pty(handle, spec).await)
        }
        .instrument(span)
        .await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl PtyAttachProvider for Traced {
    async fn attach_pty(
        &self,
        handle: &SandboxHandle,
        session_id: &str,
        options: PtyAttachOptions,
    ) -> Result<Arc<dyn PtySession>> {
        let span = self.span(handle, call_span!("sandbox.attach_pty"));
        async {
            let inner = self
                .inner
                .as_pty_attach()
                .ok_or_else(|| lost(self, Operation::Pty, Capability::PtyAttach))?;
            noted(inner.attach_pty(handle, session_id, options).await)
        }
        .instrument(span)
        .await
    }
}
