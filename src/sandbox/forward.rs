//! Carrying TCP connections into a facade's sandbox and between sandboxes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{Capability, PortConnection, PortForwardingProvider, SandboxHandle, SandboxProvider};

use super::AsyncSandbox;

/// Connections that one local port carries at once; others wait.
const CONNECTIONS: usize = 64;

/// A port of this machine's 127.0.0.1 that leads to a port of a sandbox. Dropping it ends it with its connections.
#[derive(Debug)]
pub struct LocalForward {
    address: SocketAddr,
    task: AbortHandle,
}

impl LocalForward {
    /// Where to connect to.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for LocalForward {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl AsyncSandbox {
    /// Listens on ports of the sandbox's loopback address and carries each connection to the same port of another
    /// address, until the future is dropped; see [`PortForwardingProvider::forward_ports`].
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where the provider, or this sandbox, can't; [`ErrorKind::NotStarted`],
    /// [`ErrorKind::Stopped`]; otherwise as [`PortForwardingProvider::forward_ports`].
    ///
    /// # Cancel safety
    /// Dropping the future ends the relays, in the background.
    pub async fn forward_ports(&self, target: IpAddr, ports: &[u16], ready_file: &str) -> Result<()> {
        let provider = self.forwarding()?;
        let started = self.started(Operation::Forward)?;
        provider
            .forward_ports(&started.handle, target, ports, ready_file)
            .await
    }

    /// Connects to a port of the sandbox, which need not be published.
    ///
    /// # Errors
    /// As [`forward_ports`](Self::forward_ports); [`ErrorKind::NotFound`] when nothing listens there.
    ///
    /// # Cancel safety
    /// Dropping the future, or the connection, ends what was begun, in the background.
    pub async fn connect_port(&self, port: u16) -> Result<PortConnection> {
        let provider = self.forwarding()?;
        let started = self.started(Operation::Forward)?;
        provider.connect_port(&started.handle, port).await
    }

    /// Opens a port of this machine's 127.0.0.1 that leads to a port of the sandbox, which need not be published. The
    /// system chooses the number. At most 64 connections are carried at once; others wait.
    ///
    /// Nothing need listen in the sandbox yet: a connection that finds nobody there is closed.
    ///
    /// ```no_run
    /// # async fn example(sandbox: &gym_sandbox::AsyncSandbox) -> gym_sandbox::Result<()> {
    /// let forward = sandbox.forward_local(8000).await?;
    /// println!("http://{}", forward.local_address());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`forward_ports`](Self::forward_ports); [`ErrorKind::Io`] when no port can be had here.
    ///
    /// # Cancel safety
    /// Nothing is left.
    pub async fn forward_local(&self, port: u16) -> Result<LocalForward> {
        self.forwarding()?;
        let started = self.started(Operation::Forward)?;
        if port == 0 {
            return Err(Error::invalid(Operation::Forward, "port 0 is not in 1..=65535"));
        }
        let failed = |error| {
            Error::new(
                ErrorKind::Io,
                Operation::Forward,
                "no port of this machine can be listened on",
            )
            .with_source(error)
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let serving = serve(listener, Arc::clone(&self.provider), started.handle.clone(), port);
        let task = tokio::spawn(serving).abort_handle();
        Ok(LocalForward { address, task })
    }

    fn forwarding(&self) -> Result<&dyn PortForwardingProvider> {
        self.provider
            .as_port_forwarding()
            .ok_or_else(|| self.unsupported(Operation::Forward, Capability::PortForwarding))
    }
}

/// Takes connections until it is dropped; its connections end with it.
async fn serve(listener: TcpListener, provider: Arc<dyn SandboxProvider>, handle: SandboxHandle, port: u16) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let client = match listener.accept().await {
            Ok((client, _)) => client,
            Err(error) => {
                tracing::warn!(%error, "a forwarded connection could not be taken");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        let (provider, handle) = (Arc::clone(&provider), handle.clone());
        connections.spawn(async move {
            carry(client, &*provider, &handle, port).await;
            drop(place);
        });
    }
}

async fn carry(mut client: TcpStream, provider: &dyn SandboxProvider, handle: &SandboxHandle, port: u16) {
    let Some(forwarding) = provider.as_port_forwarding() else {
        return;
    };
    match forwarding.connect_port(handle, port).await {
        Ok(mut server) => {
            // How either side ends is its own affair.
            let _ended = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        }
        Err(error) => {
            tracing::debug!(sandbox_id = %handle.sandbox_id(), port, %error, "a forwarded connection finds nobody");
        }
    }
}
