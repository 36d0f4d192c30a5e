//! What the caller of a project decides and its files do not.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::provider::Policy;
use crate::spec::container::Subnets;
use crate::spec::{FileOwner, SandboxSpec};

/// What becomes of the host ports that a file asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostPorts {
    /// Every published port gets a free port of the loopback address: copies of a project run side by side.
    #[default]
    Ephemeral,
    /// The ports and addresses of the file. A port without an address is on the provider's publish address, 127.0.0.1
    /// by default.
    AsWritten,
    /// Nothing is published.
    Unpublished,
}

/// What becomes of `container_name`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContainerNames {
    /// It is a name in the project's networks only: copies of a project run side by side.
    #[default]
    Alias,
    /// It is the name of the container, which there can be once on an engine.
    Literal,
}

/// Which networks a project's services are in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProjectNetworks {
    /// Networks of its own: projects do not reach each other.
    #[default]
    Own,
    /// This network of the engine, which must exist, in place of every plain one: a bridge without a subnet, options or
    /// `internal`. Networks that ask for more stay the project's own.
    ///
    /// **Projects that share a network reach each other by their addresses.** They don't by mistake: the names of
    /// services lead to those of the same project only, through links. On the network itself a service is called
    /// `SERVICE.PROJECT`.
    Shared(String),
}

/// What built images are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageNames {
    /// By the project and the service, as docker compose does.
    #[default]
    Project,
    /// By the service and what it is built from, so that copies of a project under other names share them.
    Shared,
}

/// How long a project lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProjectLifetime {
    /// At most as long as the process that started it: a sweep removes what a dead process left.
    #[default]
    Process,
    /// Until it is taken down by its name. Dropping the object that started it leaves it.
    UntilDown,
}

/// Files of this machine that a volume is filled with before a service sees it (contract D20).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VolumeSource {
    /// The folder or file. None for an empty volume that only gets an owner.
    pub path: Option<PathBuf>,
    /// Who owns the files and the volume's folder; None: the numeric `user` of the first service that mounts it, else
    /// root.
    pub owner: Option<FileOwner>,
}

impl VolumeSource {
    /// Fills the volume with the content of a folder, or with one file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: Some(path.into()),
            owner: None,
        }
    }

    /// Leaves the volume empty and gives it an owner.
    pub fn owned_by(owner: FileOwner) -> Self {
        Self {
            path: None,
            owner: Some(owner),
        }
    }

    /// Sets who owns the files.
    pub fn with_owner(mut self, owner: FileOwner) -> Self {
        self.owner = Some(owner);
        self
    }
}

/// What the caller of a project decides and its files do not.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PlanOptions {
    /// What the project may ask for beyond its own containers. Its own folder may always be mounted.
    pub policy: Policy,
    /// What becomes of the host ports that a file asks for.
    pub host_ports: HostPorts,
    /// What becomes of `container_name`.
    pub container_names: ContainerNames,
    /// Which networks services are in.
    pub networks: ProjectNetworks,
    /// Where the subnets of networks come from that name none.
    pub subnets: Subnets,
    /// What built images are called.
    pub image_names: ImageNames,
    /// Images to take in place of what a service names or builds, by service.
    pub images: BTreeMap<String, String>,
    /// What a service gets beside what its file says, by service: the file wins.
    pub service_specs: BTreeMap<String, SandboxSpec>,
    /// What volumes are filled with: by the key of a volume, or by the source of a bind mount, which then is a volume.
    pub volume_sources: BTreeMap<String, VolumeSource>,
    /// Folders of the provider's shared storage, relative to it, that are there and are mounted as they are: by the key of
    /// a volume, or by the source of a bind mount. For providers without containers; another one refuses them.
    pub shared_folders: BTreeMap<String, String>,
    /// The image of the containers that fill volumes. None for that of the service that uses the volume.
    pub volume_init_image: Option<String>,
    /// How long the project lives.
    pub lifetime: ProjectLifetime,
    /// The files of the project, for its labels.
    pub config_files: Vec<PathBuf>,
}
