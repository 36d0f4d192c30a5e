//! Sandboxes that are a part of something bigger: started, and mostly removed, by somebody else.

use std::sync::Arc;

use crate::provider::{SandboxHandle, SandboxProvider};

use super::lifecycle::{Started, State};
use super::{AsyncSandbox, Ownership};

impl AsyncSandbox {
    /// A container of a project as a sandbox: started, and removed with the project.
    pub(crate) fn of_service(
        provider: Arc<dyn SandboxProvider>,
        handle: SandboxHandle,
        workdir: Option<String>,
    ) -> Self {
        let sandbox = Self::build(provider, Ownership::Shared);
        *sandbox.state() = State::Started(Arc::new(Started::new(handle, workdir)));
        sandbox
    }

    /// A container that another process started, and that outlives this object.
    pub(crate) fn of_other_process(
        provider: Arc<dyn SandboxProvider>,
        handle: SandboxHandle,
        workdir: Option<String>,
    ) -> Self {
        let mut sandbox = Self::of_service(provider, handle, workdir);
        sandbox.is_connected = true;
        sandbox
    }

    /// The container is gone, or somebody else's: nothing is removed any more.
    pub(crate) fn release_service(&self) {
        *self.state() = State::Stopped;
    }
}
