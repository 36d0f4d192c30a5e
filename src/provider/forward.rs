//! Carrying TCP connections into a sandbox and between sandboxes.

use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::Result;

use super::{SandboxHandle, SandboxProvider};

/// Carrying TCP connections into a sandbox and between sandboxes (contract 1.3).
#[async_trait]
pub trait PortForwardingProvider: SandboxProvider {
    /// Says whether sandboxes that this provider makes can have it. Does no I/O.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) with the setting that keeps it from being so.
    fn validate_port_forwarding(&self) -> Result<()>;

    /// Listens on ports of the sandbox's loopback address, and carries each connection to the same port of another
    /// address, as seen from the sandbox. Makes the ready file, in the sandbox, when it listens on all of them. Runs
    /// until it is dropped, and returns only when it can't go on.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) when a port is taken;
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) without a port, for port 0, or one given twice;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) when the ready file can't be made;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a sandbox that has nothing to do it with;
    /// [`ErrorKind::Sandbox`](crate::ErrorKind::Sandbox) when it ends.
    ///
    /// # Cancel safety
    /// Dropping the future ends the relays and their connections, in the background.
    async fn forward_ports(
        &self,
        handle: &SandboxHandle,
        target: IpAddr,
        ports: &[u16],
        ready_file: &str,
    ) -> Result<()>;

    /// Connects to a port of the sandbox's loopback address. The port need not be published.
    ///
    /// When the server closes its side, the connection ends as a whole.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when nothing listens there;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported), [`ErrorKind::Sandbox`](crate::ErrorKind::Sandbox).
    ///
    /// # Cancel safety
    /// Dropping the future, or the connection, ends what was begun, in the background.
    async fn connect_port(&self, handle: &SandboxHandle, port: u16) -> Result<PortConnection>;
}

/// A TCP connection to a port of a sandbox. Shutting down the writing side is seen by the server as the end of its input.
pub struct PortConnection {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// What carries it; it ends with the connection.
    _carrier: Box<dyn std::any::Any + Send + Sync>,
}

impl PortConnection {
    /// Puts one together from its two directions and what keeps them alive.
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        carrier: impl std::any::Any + Send + Sync,
    ) -> Self {
        Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
            _carrier: Box::new(carrier),
        }
    }
}

impl AsyncRead for PortConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.reader).poll_read(context, buffer)
    }
}

impl AsyncWrite for PortConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.writer).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(context)
    }
}

impl fmt::Debug for PortConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortConnection").finish_non_exhaustive()
    }
}
