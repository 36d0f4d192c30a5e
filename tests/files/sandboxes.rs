//! Sandboxes with mounts and users that a spec alone does not make, and what is looked at inside them.

use std::collections::HashMap;
use std::path::Path;

use bollard::Docker;
use bollard::models::{ContainerCreateBody, HostConfig, VolumeCreateRequest};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, KillContainerOptions, RemoveVolumeOptions, StartContainerOptions,
};
use gym_sandbox::provider::FilesProvider;
use gym_sandbox::{
    DownloadOptions, DownloadTarget, Error, ErrorKind, ExecOptions, PathProblem, SandboxHandle,
    SandboxProvider, TransferProgress, UploadOptions, UploadSource, User,
};

use crate::common::{DockerTest, TEST_LABEL};

/// A sandbox of one test, removed with it.
pub(crate) struct Box {
    pub(crate) test: DockerTest,
    pub(crate) handle: SandboxHandle,
    client: Docker,
    volumes: Vec<String>,
}

/// What a sandbox is made with.
#[derive(Default, Clone)]
pub(crate) struct Shape<'a> {
    pub(crate) image: &'a str,
    pub(crate) user: &'a str,
    pub(crate) read_only: bool,
    pub(crate) tmpfs: &'a [&'a str],
    pub(crate) volumes: &'a [&'a str],
    pub(crate) cap_drop: &'a [&'a str],
}

impl Box {
    /// Makes a sandbox; None, with a word, where there is no engine.
    pub(crate) async fn new(shape: &Shape<'_>) -> Option<Self> {
        let test = crate::common::docker().await?;
        let client = Docker::connect_with_defaults().unwrap();
        let id = uuid::Uuid::new_v4().simple().to_string();
        let mut binds = Vec::new();
        let mut volumes = Vec::new();
        for (index, place) in shape.volumes.iter().enumerate() {
            let name = format!("gym-sandbox-test-{id}-{index}");
            let labels = [
                ("gym-sandbox".to_owned(), "1".to_owned()),
                (TEST_LABEL.to_owned(), test.label().to_owned()),
            ];
            let request = VolumeCreateRequest {
                name: Some(name.clone()),
                labels: Some(labels.into_iter().collect::<HashMap<_, _>>()),
                ..VolumeCreateRequest::default()
            };
            client.create_volume(request).await.unwrap();
            binds.push(format!("{name}:{place}"));
            volumes.push(name);
        }
        let is_static = shape.image == crate::common::STATIC;
        let body = ContainerCreateBody {
            image: Some(shape.image.to_owned()),
            user: (!shape.user.is_empty()).then(|| shape.user.to_owned()),
            entrypoint: (!is_static).then(|| vec!["sleep".to_owned(), "600".to_owned()]),
            labels: Some(HashMap::from([
                ("gym-sandbox".to_owned(), "1".to_owned()),
                ("gym-sandbox.kind".to_owned(), "sandbox".to_owned()),
                (TEST_LABEL.to_owned(), test.label().to_owned()),
            ])),
            host_config: Some(HostConfig {
                readonly_rootfs: Some(shape.read_only),
                tmpfs: Some(
                    shape
                        .tmpfs
                        .iter()
                        .map(|path| ((*path).to_owned(), String::new()))
                        .collect(),
                ),
                binds: Some(binds),
                cap_drop: Some(shape.cap_drop.iter().map(|cap| (*cap).to_owned()).collect()),
                network_mode: Some("none".to_owned()),
                init: Some(!is_static),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptionsBuilder::new()
            .name(&format!("gym-sandbox-{id}"))
            .build();
        let created = client.create_container(Some(options), body).await.unwrap();
        client
            .start_container(&created.id, None::<StartContainerOptions>)
            .await
            .unwrap();
        let handle = test.provider.attach(&created.id).await.unwrap();
        Some(Self {
            test,
            handle,
            client,
            volumes,
        })
    }

    pub(crate) async fn busybox() -> Option<Self> {
        Self::new(&Shape {
            image: crate::common::BUSYBOX,
            ..Shape::default()
        })
        .await
    }

    pub(crate) fn files(&self) -> &dyn FilesProvider {
        self.test.provider.as_files().unwrap()
    }

    /// Runs a shell line as root and gives what it printed.
    pub(crate) async fn sh(&self, line: &str) -> String {
        let options = ExecOptions::new(line).with_user(User::from(0));
        let result = self.test.provider.exec(&self.handle, options).await.unwrap();
        assert_eq!(
            result.return_code,
            0,
            "{line}: {:?} {:?}",
            result.stdout(),
            result.stderr()
        );
        result.stdout().unwrap()
    }

    pub(crate) async fn write(&self, remote: &str, content: impl Into<bytes::Bytes>) -> Result<(), Error> {
        self.write_with(remote, content, &UploadOptions::default()).await
    }

    pub(crate) async fn write_with(
        &self,
        remote: &str,
        content: impl Into<bytes::Bytes>,
        options: &UploadOptions,
    ) -> Result<(), Error> {
        let source = UploadSource::Bytes(content.into());
        self.files()
            .upload(&self.handle, source, remote, options)
            .await
            .map(|_| ())
    }

    pub(crate) async fn read(&self, remote: &str) -> Result<Vec<u8>, Error> {
        let mut content = Vec::new();
        let target = DownloadTarget::Writer(&mut content);
        self.files()
            .download(&self.handle, remote, target, &DownloadOptions::default())
            .await?;
        Ok(content)
    }

    pub(crate) async fn upload(&self, local: &Path, remote: &str) -> Result<TransferProgress, Error> {
        self.files()
            .upload(
                &self.handle,
                UploadSource::Path(local),
                remote,
                &UploadOptions::default(),
            )
            .await
    }

    pub(crate) async fn download(&self, remote: &str, local: &Path) -> Result<TransferProgress, Error> {
        let target = DownloadTarget::Path(local);
        self.files()
            .download(&self.handle, remote, target, &DownloadOptions::default())
            .await
    }

    pub(crate) fn container(&self) -> String {
        self.handle.sandbox_id().as_str().to_owned()
    }

    pub(crate) async fn kill(&self) {
        self.client
            .kill_container(&self.container(), None::<KillContainerOptions>)
            .await
            .unwrap();
    }

    pub(crate) async fn pause(&self) {
        self.client.pause_container(&self.container()).await.unwrap();
    }

    /// Removes everything; the guard of the test then sees that nothing is left.
    pub(crate) async fn close(self) {
        crate::common::cleaned_up(&self.test.provider).await;
        self.test.provider.close(&self.handle).await.unwrap();
        for volume in &self.volumes {
            self.client
                .remove_volume(volume, None::<RemoveVolumeOptions>)
                .await
                .unwrap();
        }
    }
}

/// The kind of the error that a call must have ended with.
pub(crate) fn problem<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    result.unwrap_err().kind()
}

pub(crate) const NOT_FOUND: ErrorKind = ErrorKind::Path(PathProblem::NotFound);
pub(crate) const IS_A_DIRECTORY: ErrorKind = ErrorKind::Path(PathProblem::IsADirectory);
pub(crate) const NOT_A_DIRECTORY: ErrorKind = ErrorKind::Path(PathProblem::NotADirectory);
pub(crate) const READ_ONLY: ErrorKind = ErrorKind::Path(PathProblem::ReadOnly);

/// Bytes of which no part is like another.
pub(crate) fn bytes_of(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
