//! Mounts and volumes.

use std::collections::BTreeMap;

use serde::Serialize;

/// A mount of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MountSpec {
    /// Where in the container.
    pub target: String,
    /// Whether it cannot be written to.
    pub read_only: bool,
    /// What is mounted.
    pub kind: MountKind,
}

/// What is mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "type")]
#[non_exhaustive]
pub enum MountKind {
    /// A path of the engine's host. Needs a policy that allows it.
    Bind {
        /// The path on the host.
        source: String,
        /// Whether a missing path is made, as a directory. Else a missing path is an error.
        create_host_path: bool,
        /// How mounts below it spread, as in `rslave`.
        propagation: Option<String>,
        /// Relabelling: `z` shared, `Z` private.
        selinux: Option<String>,
        /// What happens to mounts below it: `enabled`, `disabled`, `writable`, `readonly`. API 1.44.
        recursive: Option<String>,
    },
    /// A volume.
    Volume {
        /// The name of the volume. None for one of its own that goes with the container.
        source: Option<String>,
        /// Whether the files of the image are not copied into an empty volume.
        no_copy: bool,
        /// The folder of the volume that is mounted. API 1.45.
        subpath: Option<String>,
        /// Labels of a volume that is made for it.
        labels: BTreeMap<String, String>,
        /// Relabelling: `z` shared, `Z` private.
        selinux: Option<String>,
    },
    /// Memory.
    Tmpfs {
        /// The size in bytes. None for half of the host's memory.
        size_bytes: Option<u64>,
        /// Permission bits. None for the engine's default.
        mode: Option<u32>,
        /// More options, as in `exec` or `uid=1000`.
        options: Vec<String>,
    },
    /// The files of an image. API 1.48.
    Image {
        /// The image.
        source: String,
        /// The folder of the image that is mounted.
        subpath: Option<String>,
    },
}

impl MountSpec {
    /// Mounts a named volume.
    pub fn volume(name: impl Into<String>, target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            read_only: false,
            kind: MountKind::Volume {
                source: Some(name.into()),
                no_copy: false,
                subpath: None,
                labels: BTreeMap::new(),
                selinux: None,
            },
        }
    }

    /// Mounts a path of the engine's host, which must be there.
    pub fn bind(source: impl Into<String>, target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            read_only: false,
            kind: MountKind::Bind {
                source: source.into(),
                create_host_path: false,
                propagation: None,
                selinux: None,
                recursive: None,
            },
        }
    }

    /// Mounts memory.
    pub fn tmpfs(target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            read_only: false,
            kind: MountKind::Tmpfs {
                size_bytes: None,
                mode: None,
                options: Vec::new(),
            },
        }
    }

    /// Makes it read-only.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }
}

/// A volume to make (Engine API `VolumeCreate`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VolumeSpec {
    /// The name.
    pub name: String,
    /// The driver. None for `local`.
    pub driver: Option<String>,
    /// Options of the driver.
    pub driver_options: BTreeMap<String, String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
}

impl VolumeSpec {
    /// Describes a volume of the default driver.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}
