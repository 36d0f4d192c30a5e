//! Ways to the engine's socket that the tests lay: plain, and with mutual TLS.

use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixStream};

/// A listening port of this machine. Dropping it ends its connections.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Passes connections on as they are.
pub(crate) async fn plain(socket: PathBuf) -> Proxy {
    start(move |stream| {
        let socket = socket.clone();
        async move { join(stream, &socket).await }
    })
    .await
}

async fn start<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> Proxy
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(serve(stream));
        }
    });
    Proxy { port, server }
}

async fn join(mut client: impl AsyncRead + AsyncWrite + Unpin, socket: &Path) {
    if let Ok(mut engine) = UnixStream::connect(socket).await {
        let _either_side_ended = copy_bidirectional(&mut client, &mut engine).await;
    }
}

#[cfg(feature = "tls")]
pub(crate) use tls::{certificates, mutual_tls};

#[cfg(feature = "tls")]
mod tls {
    use std::sync::Arc;

    use tokio::process::Command;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use tokio_rustls::rustls::server::WebPkiClientVerifier;
    use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto::ring};

    use super::{Path, PathBuf, Proxy, join, start};
    use crate::{LIMIT, skip};

    /// Asks for a client certificate by the same authority.
    pub(crate) async fn mutual_tls(socket: PathBuf, certificates: &Path) -> Proxy {
        let provider = Arc::new(ring::default_provider());
        let authority = CertificateDer::from_pem_file(certificates.join("ca.pem")).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(authority).unwrap();
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .unwrap();
        let certificate = CertificateDer::from_pem_file(certificates.join("server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(certificates.join("server-key.pem")).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        start(move |stream| {
            let (acceptor, socket) = (acceptor.clone(), socket.clone());
            async move {
                // A refused handshake is the client's to report.
                if let Ok(stream) = acceptor.accept(stream).await {
                    join(stream, &socket).await;
                }
            }
        })
        .await
    }

    /// Makes an authority, a server's certificate for 127.0.0.1 and a client's, with the `openssl` program. None, with a
    /// line that says so, where there is no such program.
    pub(crate) async fn certificates() -> Option<tempfile::TempDir> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("server.ext"),
            "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n",
        )
        .unwrap();
        std::fs::write(folder.path().join("client.ext"), "extendedKeyUsage=clientAuth\n").unwrap();
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        let sign = "-CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 2";
        for line in [
            format!("req -x509 {key} -keyout ca-key.pem -out ca.pem -subj /CN=authority -days 2"),
            format!("req {key} -keyout server-key.pem -out server.csr -subj /CN=server"),
            format!("x509 -req -in server.csr {sign} -out server.pem -extfile server.ext"),
            format!("req {key} -keyout key.pem -out client.csr -subj /CN=client"),
            format!("x509 -req -in client.csr {sign} -out cert.pem -extfile client.ext"),
        ] {
            let command = Command::new("openssl")
                .args(line.split(' '))
                .current_dir(folder.path())
                .output();
            match tokio::time::timeout(LIMIT, command).await.expect("in time") {
                Ok(output) => assert!(
                    output.status.success(),
                    "{line}: {}",
                    String::from_utf8_lossy(&output.stderr)
                ),
                Err(error) => {
                    skip(&format!("the program `openssl` can't be run: {error}"));
                    return None;
                }
            }
        }
        Some(folder)
    }
}
