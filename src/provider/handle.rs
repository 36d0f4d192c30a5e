//! What names a sandbox to its provider.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::{Ports, SandboxId};

/// A sandbox as its provider knows it (contract 1.1).
///
/// The id and the provider's name outlive the process; what [`raw`](Self::raw) gives does not, and is not stable.
#[derive(Clone)]
pub struct SandboxHandle {
    sandbox_id: SandboxId,
    provider_name: Arc<str>,
    ports: Ports,
    raw: Option<Arc<dyn Any + Send + Sync>>,
}

impl SandboxHandle {
    /// Names a sandbox of a provider.
    pub fn new(sandbox_id: SandboxId, provider_name: impl Into<Arc<str>>) -> Self {
        Self {
            sandbox_id,
            provider_name: provider_name.into(),
            ports: Ports::default(),
            raw: None,
        }
    }

    /// Adds the ports that the sandbox was created with.
    pub fn with_ports(mut self, ports: Ports) -> Self {
        self.ports = ports;
        self
    }

    /// Adds what only the provider understands.
    pub fn with_raw(mut self, raw: impl Any + Send + Sync) -> Self {
        self.raw = Some(Arc::new(raw));
        self
    }

    /// The sandbox's id.
    pub fn sandbox_id(&self) -> &SandboxId {
        &self.sandbox_id
    }

    /// The name of the provider it belongs to.
    pub fn provider_name(&self) -> &str {
        &self.provider_name
    }

    /// The ports that the sandbox was created with.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// What only the provider understands, if it is a `T`.
    pub fn raw<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.raw.as_deref()?.downcast_ref()
    }

    /// Checks that the handle belongs to the provider of that name, and gives its private part.
    ///
    /// # Errors
    /// [`ErrorKind::ForeignHandle`] naming both providers.
    pub fn raw_for<T: Any + Send + Sync>(&self, provider_name: &str, operation: Operation) -> Result<&T> {
        self.check_provider(provider_name, operation)?;
        self.raw().ok_or_else(|| self.foreign(provider_name, operation))
    }

    /// Checks that the handle belongs to the provider of that name.
    ///
    /// # Errors
    /// [`ErrorKind::ForeignHandle`] naming both providers.
    pub fn check_provider(&self, provider_name: &str, operation: Operation) -> Result<()> {
        if self.provider_name() == provider_name {
            Ok(())
        } else {
            Err(self.foreign(provider_name, operation))
        }
    }

    fn foreign(&self, provider_name: &str, operation: Operation) -> Error {
        Error::new(
            ErrorKind::ForeignHandle,
            operation,
            format!(
                "the handle is one of provider `{}` and was given to `{provider_name}`",
                self.provider_name
            ),
        )
        .with_sandbox(&self.sandbox_id)
        .with_hint("use the provider that created the sandbox, or attach to it by its id")
    }
}

impl fmt::Debug for SandboxHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxHandle")
            .field("sandbox_id", &self.sandbox_id)
            .field("provider_name", &self.provider_name)
            .finish_non_exhaustive()
    }
}
