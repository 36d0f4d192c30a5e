//! The baseline: the same engine calls made directly, with nothing around them.
//! The only file of the command that knows bollard; it knows nothing of the library.

use std::path::{Path, PathBuf};

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, DownloadFromContainerOptionsBuilder, RemoveContainerOptionsBuilder,
    StartContainerOptions, UploadToContainerOptionsBuilder,
};
use bytes::Bytes;
use futures::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio_util::io::ReaderStream;

/// The size of a read from an output stream.
const READ_BYTES: usize = 64 * 1024;

/// A bare connection to an engine.
#[derive(Debug)]
pub(in crate::cli) struct RawEngine {
    docker: Docker,
}

/// Why the baseline failed.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum RawError {
    #[error("the baseline can't reach the engine at `{address}`")]
    Connect {
        address: String,
        source: bollard::errors::Error,
    },
    #[error("a call of the baseline failed")]
    Call(#[from] bollard::errors::Error),
    #[error("a file of the baseline can't be used")]
    File(#[from] std::io::Error),
    #[error("the baseline's exec ended with exit code {code:?} after {stdout_bytes} bytes")]
    Ended { code: Option<i64>, stdout_bytes: u64 },
}

/// How an exec ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct RawEnd {
    pub(in crate::cli) code: Option<i64>,
    pub(in crate::cli) stdout_bytes: u64,
}

/// An archive to send.
#[derive(Debug)]
pub(in crate::cli) enum RawArchive {
    /// All of it.
    Whole(Bytes),
    /// A file of this machine, read while it is sent.
    File(PathBuf),
}

impl RawEngine {
    /// Connects to the engine at that address.
    ///
    /// # Errors
    /// The engine does not answer, or the address is of no known kind.
    pub(in crate::cli) async fn connect(address: &str) -> Result<Self, RawError> {
        let unreachable = |source| RawError::Connect {
            address: address.to_owned(),
            source,
        };
        let docker = Docker::connect_with_host(address).map_err(unreachable)?;
        let docker = docker.negotiate_version().await.map_err(unreachable)?;
        Ok(Self { docker })
    }

    /// Creates a container that sleeps, and starts it. It ends by itself after ten minutes, and is gone then.
    ///
    /// # Errors
    /// A call failed.
    pub(in crate::cli) async fn create(
        &self,
        name: &str,
        image: &str,
        network: Option<&str>,
    ) -> Result<(), RawError> {
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            entrypoint: Some(vec!["sleep".to_owned(), "600".to_owned()]),
            host_config: Some(HostConfig {
                network_mode: network.map(str::to_owned),
                auto_remove: Some(true),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptionsBuilder::new().name(name).build();
        self.docker.create_container(Some(options), body).await?;
        self.docker
            .start_container(name, None::<StartContainerOptions>)
            .await?;
        Ok(())
    }

    /// Kills and removes a container.
    ///
    /// # Errors
    /// The call failed.
    pub(in crate::cli) async fn remove(&self, container: &str) -> Result<(), RawError> {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        self.docker.remove_container(container, Some(options)).await?;
        Ok(())
    }

    /// Runs a program that must exit with 0 after so many bytes on standard output.
    ///
    /// # Errors
    /// A call failed, or the program ended otherwise.
    pub(in crate::cli) async fn exec(
        &self,
        container: &str,
        argv: &[&str],
        stdout_bytes: u64,
    ) -> Result<(), RawError> {
        let end = self.exec_to_the_end(container, argv).await?;
        if end.code == Some(0) && end.stdout_bytes == stdout_bytes {
            Ok(())
        } else {
            Err(RawError::Ended {
                code: end.code,
                stdout_bytes: end.stdout_bytes,
            })
        }
    }

    /// Runs a program: create, start, read to the end, inspect.
    ///
    /// # Errors
    /// A call failed.
    pub(in crate::cli) async fn exec_to_the_end(
        &self,
        container: &str,
        argv: &[&str],
    ) -> Result<RawEnd, RawError> {
        let options = CreateExecOptions {
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(argv.to_vec()),
            ..CreateExecOptions::default()
        };
        let exec = self.docker.create_exec(container, options).await?;
        let options = StartExecOptions {
            output_capacity: Some(READ_BYTES),
            ..StartExecOptions::default()
        };
        let mut stdout_bytes = 0;
        if let StartExecResults::Attached { mut output, .. } =
            self.docker.start_exec(&exec.id, Some(options)).await?
        {
            while let Some(chunk) = output.next().await {
                if let LogOutput::StdOut { message } = chunk? {
                    stdout_bytes += message.len() as u64;
                }
            }
        }
        let code = self.docker.inspect_exec(&exec.id).await?.exit_code;
        Ok(RawEnd { code, stdout_bytes })
    }

    /// Unpacks an archive at the root of a container.
    ///
    /// # Errors
    /// The archive can't be read, or the call failed.
    pub(in crate::cli) async fn put(&self, container: &str, archive: RawArchive) -> Result<(), RawError> {
        let body = match archive {
            RawArchive::Whole(bytes) => bollard::body_full(bytes),
            RawArchive::File(path) => {
                let file = tokio::fs::File::open(path).await?;
                bollard::body_try_stream(ReaderStream::with_capacity(file, READ_BYTES))
            }
        };
        let options = UploadToContainerOptionsBuilder::new().path("/").build();
        self.docker
            .upload_to_container(container, Some(options), body)
            .await?;
        Ok(())
    }

    /// Reads the archive of a path in a container.
    ///
    /// # Errors
    /// The call failed.
    pub(in crate::cli) async fn get(&self, container: &str, path: &str) -> Result<Vec<u8>, RawError> {
        let options = DownloadFromContainerOptionsBuilder::new().path(path).build();
        let mut chunks = std::pin::pin!(self.docker.download_from_container(container, Some(options)));
        let mut archive = Vec::new();
        while let Some(chunk) = chunks.next().await {
            archive.extend_from_slice(&chunk?);
        }
        Ok(archive)
    }

    /// Writes the archive of a path in a container to a file.
    ///
    /// # Errors
    /// The file can't be written, or the call failed.
    pub(in crate::cli) async fn get_to(
        &self,
        container: &str,
        path: &str,
        target: &Path,
    ) -> Result<(), RawError> {
        let options = DownloadFromContainerOptionsBuilder::new().path(path).build();
        let mut chunks = std::pin::pin!(self.docker.download_from_container(container, Some(options)));
        let mut file = tokio::fs::File::create(target).await?;
        while let Some(chunk) = chunks.next().await {
            file.write_all(&chunk?).await?;
        }
        file.flush().await?;
        Ok(())
    }
}
