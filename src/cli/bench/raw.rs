//! The baseline: the same engine calls made directly, with nothing around them.
//! The only file of the command that knows bollard; it knows nothing of the library.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, Ipam, IpamConfig, NetworkCreateRequest,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, DownloadFromContainerOptionsBuilder, ListContainersOptionsBuilder,
    ListNetworksOptionsBuilder, RemoveContainerOptionsBuilder, StartContainerOptions,
    UploadToContainerOptionsBuilder, WaitContainerOptions,
};
use bytes::Bytes;
use futures::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio_util::io::ReaderStream;

/// The size of a read from an output stream.
const READ_BYTES: usize = 64 * 1024;

/// The label of what is made without the library, and of Compose projects. Its value is another one for every process.
/// Projects may not have labels that begin as the library's own.
pub(in crate::cli) const LABEL: &str = "bench-of-gym-sandbox";

/// A bare connection to an engine.
#[derive(Debug)]
pub(in crate::cli) struct RawEngine {
    docker: Docker,
    /// The label's value.
    mark: String,
}

/// A container of the baseline.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct RawContainer<'a> {
    pub(in crate::cli) name: &'a str,
    pub(in crate::cli) image: &'a str,
    pub(in crate::cli) argv: &'a [&'a str],
    /// None for the engine's default.
    pub(in crate::cli) network: Option<&'a str>,
    /// Whether the engine's small init runs in it.
    pub(in crate::cli) init: bool,
    /// A command that the engine runs every 500 ms.
    pub(in crate::cli) health: Option<&'a [&'a str]>,
    /// Whether it is gone when it has ended.
    pub(in crate::cli) auto_remove: bool,
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
        let run = std::env::var("GYM_SANDBOX_RUN").unwrap_or_default();
        let mark = format!("{run}/{}", uuid::Uuid::new_v4().simple());
        Ok(Self { docker, mark })
    }

    /// The value of [`LABEL`] of what this process makes.
    pub(in crate::cli) fn mark(&self) -> &str {
        &self.mark
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
        let container = RawContainer {
            name,
            image,
            argv: &["sleep", "600"],
            network,
            init: false,
            health: None,
            auto_remove: true,
        };
        self.make(container).await?;
        self.start(name).await
    }

    /// Creates a container.
    ///
    /// # Errors
    /// The call failed.
    pub(in crate::cli) async fn make(&self, container: RawContainer<'_>) -> Result<(), RawError> {
        let words = |argv: &[&str]| argv.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let health = container.health.map(|argv| HealthConfig {
            test: Some([vec!["CMD".to_owned()], words(argv)].concat()),
            interval: Some(500_000_000),
            ..HealthConfig::default()
        });
        let body = ContainerCreateBody {
            image: Some(container.image.to_owned()),
            entrypoint: Some(words(container.argv)),
            labels: Some(self.labels()),
            healthcheck: health,
            host_config: Some(HostConfig {
                network_mode: container.network.map(str::to_owned),
                auto_remove: Some(container.auto_remove),
                init: Some(container.init),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptionsBuilder::new().name(container.name).build();
        self.docker.create_container(Some(options), body).await?;
        Ok(())
    }

    /// Starts a container.
    ///
    /// # Errors
    /// The call failed.
    pub(in crate::cli) async fn start(&self, container: &str) -> Result<(), RawError> {
        let options = None::<StartContainerOptions>;
        self.docker.start_container(container, options).await?;
        Ok(())
    }

    /// Waits until a container has ended with 0.
    ///
    /// # Errors
    /// It ended otherwise, or the call failed.
    pub(in crate::cli) async fn wait(&self, container: &str) -> Result<(), RawError> {
        let options = None::<WaitContainerOptions>;
        let mut answers = std::pin::pin!(self.docker.wait_container(container, options));
        while let Some(answer) = answers.next().await {
            answer?;
        }
        Ok(())
    }

    /// Makes a network. Without a subnet the engine chooses one of its pools.
    ///
    /// # Errors
    /// The call failed.
    pub(in crate::cli) async fn make_network(
        &self,
        name: &str,
        subnet: Option<&str>,
    ) -> Result<(), RawError> {
        let pool = |subnet: &str| Ipam {
            config: Some(vec![IpamConfig {
                subnet: Some(subnet.to_owned()),
                ..IpamConfig::default()
            }]),
            ..Ipam::default()
        };
        let request = NetworkCreateRequest {
            name: name.to_owned(),
            labels: Some(self.labels()),
            ipam: subnet.map(pool),
            ..NetworkCreateRequest::default()
        };
        self.docker.create_network(request).await?;
        Ok(())
    }

    /// Removes a network.
    ///
    /// # Errors
    /// The call failed.
    pub(in crate::cli) async fn remove_network(&self, network: &str) -> Result<(), RawError> {
        self.docker.remove_network(network).await?;
        Ok(())
    }

    /// The ids of all containers and networks with the label of this process.
    ///
    /// # Errors
    /// A call failed.
    pub(in crate::cli) async fn marked(&self) -> Result<(Vec<String>, Vec<String>), RawError> {
        let filters = HashMap::from([("label", vec![format!("{LABEL}={}", self.mark)])]);
        let containers = ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&filters)
            .build();
        let containers = self.docker.list_containers(Some(containers)).await?;
        let networks = ListNetworksOptionsBuilder::new().filters(&filters).build();
        let networks = self.docker.list_networks(Some(networks)).await?;
        Ok((
            containers
                .into_iter()
                .filter_map(|container| container.id)
                .collect(),
            networks.into_iter().filter_map(|network| network.id).collect(),
        ))
    }

    fn labels(&self) -> HashMap<String, String> {
        HashMap::from([(LABEL.to_owned(), self.mark.clone())])
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
