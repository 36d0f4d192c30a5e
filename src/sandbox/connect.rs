//! Handing a sandbox over to another process, and using one that another process made (contract K1-K7, L17, D24).

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{Capability, ConnectableProvider, ForeignSandboxes, SandboxProvider};
use crate::spec::{SandboxDescriptor, Value};

use super::lifecycle::{Started, State};
use super::{AsyncSandbox, Ownership};

/// How a sandbox that is there is connected to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// What becomes of a container that this library did not make. Refused by default.
    pub foreign: ForeignSandboxes,
    owns_provider: bool,
}

impl ConnectOptions {
    /// The defaults: only sandboxes of this library, by a provider that others use, too.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also takes a container that this library did not make. [`stop`](AsyncSandbox::stop) removes it.
    pub fn with_foreign_allowed(mut self) -> Self {
        self.foreign = ForeignSandboxes::Allow;
        self
    }

    /// Gives the provider to the sandbox: it is closed by `disconnect`, by `stop`, and when the connection fails.
    pub fn with_owned_provider(mut self) -> Self {
        self.owns_provider = true;
        self
    }

    /// Whether the provider is given to what is connected.
    pub(crate) fn owns_provider(self) -> bool {
        self.owns_provider
    }

    /// The same, for one of several that use the provider.
    pub(crate) fn with_shared_provider(mut self) -> Self {
        self.owns_provider = false;
        self
    }
}

impl AsyncSandbox {
    /// Describes the sandbox so that another process can [`connect`](Self::connect) to it. The description is JSON
    /// without secrets; `scope` is handed to the provider as it is.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where the provider can't serialize and connect, [`ErrorKind::NotStarted`],
    /// [`ErrorKind::Stopped`].
    pub async fn serialize(&self, scope: Option<&Value>) -> Result<SandboxDescriptor> {
        let provider = connectable(&*self.provider, Operation::Serialize)?;
        let started = self.started(Operation::Serialize)?;
        let mut descriptor = provider.serialize_handle(&started.handle, scope).await?;
        if descriptor.workdir.is_none() {
            descriptor.workdir.clone_from(&started.workdir);
        }
        Ok(descriptor)
    }

    /// Uses a sandbox that another process made. The provider is shared, and only sandboxes of this library are taken.
    ///
    /// The sandbox is started then. [`disconnect`](Self::disconnect), or dropping it, leaves it as it is;
    /// [`stop`](Self::stop) removes it.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use gym_sandbox::{AsyncSandbox, SandboxDescriptor, SandboxProvider};
    /// # async fn example(provider: Arc<dyn SandboxProvider>, text: &str) -> gym_sandbox::Result<()> {
    /// let descriptor = SandboxDescriptor::from_value(serde_json::from_str(text).unwrap())?;
    /// let sandbox = AsyncSandbox::connect(provider, &descriptor).await?;
    /// sandbox.exec("make test").await?;
    /// sandbox.disconnect().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where the provider can't serialize and connect; otherwise as
    /// [`ConnectableProvider::connect_handle`].
    ///
    /// # Cancel safety
    /// Nothing is changed.
    pub async fn connect(provider: Arc<dyn SandboxProvider>, descriptor: &SandboxDescriptor) -> Result<Self> {
        Self::connect_with(provider, descriptor, &ConnectOptions::new()).await
    }

    /// As [`connect`](Self::connect), with options.
    ///
    /// # Errors
    /// As [`connect`](Self::connect). An owned provider is closed then.
    ///
    /// # Cancel safety
    /// The sandbox is not changed. An owned provider is dropped without being closed.
    pub async fn connect_with(
        provider: Arc<dyn SandboxProvider>,
        descriptor: &SandboxDescriptor,
        options: &ConnectOptions,
    ) -> Result<Self> {
        let ownership = if options.owns_provider {
            Ownership::Owned
        } else {
            Ownership::Shared
        };
        let mut sandbox = Self::build(provider, ownership);
        sandbox.is_connected = true;
        let connected = async {
            connectable(&*sandbox.provider, Operation::Attach)?
                .connect_handle(descriptor, options.foreign)
                .await
        };
        let handle = match connected.await {
            Ok(handle) => handle,
            Err(error) => {
                return Err(match sandbox.release().await {
                    Ok(()) => error,
                    Err(cleanup) => error.with_cleanup_error(cleanup),
                });
            }
        };
        *sandbox.state() = State::Started(Arc::new(Started {
            handle,
            workdir: descriptor.workdir.clone(),
            ready_timeout: None,
            spec: None,
        }));
        Ok(sandbox)
    }

    /// Lets go of a sandbox that was [connected](Self::connect) to, which lives on; closes an owned provider.
    ///
    /// Afterwards the [status](Self::status) is unknown and everything else fails as not started. Called again it does
    /// nothing.
    ///
    /// # Errors
    /// [`ErrorKind::NotConnected`] for a sandbox that was made here; what kept an owned provider from being closed,
    /// after which it may be called again.
    ///
    /// # Cancel safety
    /// The sandbox is let go of; call it again to close an owned provider.
    pub async fn disconnect(&self) -> Result<()> {
        if !self.is_connected {
            return Err(Error::new(
                ErrorKind::NotConnected,
                Operation::Disconnect,
                "the sandbox was made here, not connected to",
            )
            .with_hint("its creator stops it; only who has connected to it disconnects"));
        }
        let _lifecycle = self.lifecycle.lock().await;
        {
            let mut state = self.state();
            if matches!(&*state, State::Started(_) | State::Stopping(_)) {
                *state = State::Disconnected;
            }
        }
        self.release().await
    }
}

fn connectable(provider: &dyn SandboxProvider, operation: Operation) -> Result<&dyn ConnectableProvider> {
    provider
        .as_connectable()
        .ok_or_else(|| Error::unsupported(operation, provider.name(), Capability::Connect.as_str()))
}
