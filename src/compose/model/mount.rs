//! What a service publishes and mounts: ports, volumes, secrets, configs, devices, environment files.

use serde_json::Value as Json;

use super::codec::{Context, Decode, Encode, Style};
use super::values::warn_decimal_mode;
use super::{ByteSize, FileMode, Named, mapping};
use crate::compose::node::Node;

mapping! {
    /// A published port.
    pub struct Port {
        /// A name for people.
        "name" => name: String,
        /// `ingress` or `host`.
        "mode" => mode: String,
        /// The address of the host; empty for all.
        "host_ip" => host_ip: String,
        /// The port in the container.
        "target" => target: u32,
        /// The port of the host, or a range of which the engine chooses; empty for any.
        "published" => published: String,
        /// `tcp`, `udp` or `sctp`.
        "protocol" => protocol: String,
        /// The protocol above it, for people.
        "app_protocol" => app_protocol: String,
    }
}

mapping! {
    /// A mount.
    pub struct Mount {
        /// What is mounted.
        "type" => kind: MountType,
        /// A path of the host, the name of a volume, or an image; empty for an anonymous volume.
        "source" => source: String,
        /// Where.
        "target" => target: String,
        /// Whether it cannot be written to.
        "read_only" => read_only: bool,
        /// Ignored by engines on Linux.
        "consistency" => consistency: String,
        /// Options of a bind.
        "bind" => bind: Option<BindOptions>,
        /// Options of a volume.
        "volume" => volume: Option<VolumeOptions>,
        /// Options of a tmpfs.
        "tmpfs" => tmpfs: Option<TmpfsOptions>,
        /// Options of an image.
        "image" => image: Option<ImageOptions>,
    }
}

/// Declares an enum whose values are words.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $word:literal, )* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name { $( $(#[$variant_meta])* $variant, )* }

        impl $name {
            /// Returns the word of a Compose file.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $word, )* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl $crate::compose::model::Decode for $name {
            fn decode(node: &$crate::compose::node::Node, context: &mut $crate::compose::model::Context<'_>) -> Self {
                match node.as_str() {
                    $( Some($word) => Self::$variant, )*
                    _ => {
                        context.wrong(node, concat!("one of" $(, " ", $word)*));
                        Self::default()
                    }
                }
            }
        }

        impl $crate::compose::model::Encode for $name {
            fn encode(&self, _style: $crate::compose::model::Style) -> serde_json::Value {
                serde_json::Value::String(self.as_str().to_owned())
            }
        }
    };
}
pub(super) use words;

words! {
    /// What is mounted.
    pub enum MountType {
        /// A path of the host.
        Bind = "bind",
        /// A volume.
        #[default]
        Volume = "volume",
        /// Memory.
        Tmpfs = "tmpfs",
        /// A volume of a cluster.
        Cluster = "cluster",
        /// A named pipe of Windows.
        NamedPipe = "npipe",
        /// The files of an image.
        Image = "image",
    }
}

mapping! {
    /// Options of a bind.
    pub struct BindOptions {
        /// Relabelling: `z` shared, `Z` private.
        "selinux" => selinux: String,
        /// How mounts below it spread.
        "propagation" => propagation: String,
        /// Whether a missing path of the host is made.
        "create_host_path" => create_host_path: bool,
        /// Whether mounts below it are taken along.
        "recursive" => recursive: String,
    }
}

mapping! {
    /// Options of a volume.
    pub struct VolumeOptions {
        /// Labels of the volume.
        "labels" => labels: Named<String>,
        /// Whether the files of the image are not copied into an empty volume.
        "nocopy" => nocopy: bool,
        /// The folder of the volume that is mounted.
        "subpath" => subpath: String,
    }
}

mapping! {
    /// Options of a tmpfs.
    pub struct TmpfsOptions {
        /// Its size.
        "size" => size: ByteSize,
        /// Its permissions, as bits.
        "mode" => mode: TmpfsMode,
    }
}

/// The permissions of a tmpfs, as bits; 0 for the engine's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TmpfsMode(u32);

impl TmpfsMode {
    /// Returns the bits.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl Decode for TmpfsMode {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        let bits = u32::decode(node, context);
        warn_decimal_mode(node, i64::from(bits), context);
        Self(bits)
    }
}

impl Encode for TmpfsMode {
    fn encode(&self, style: Style) -> Json {
        self.0.encode(style)
    }

    fn omit(&self, style: Style) -> bool {
        self.0.omit(style)
    }
}

mapping! {
    /// Options of an image mount.
    pub struct ImageOptions {
        /// The folder of the image that is mounted.
        "subpath" => subpath: String,
    }
}

mapping! {
    /// A secret or config in a container.
    pub struct FileMount {
        /// Its name in the project.
        "source" => source: String,
        /// Where; a relative one is below `/run/secrets`, or `/` for a config.
        "target" => target: String,
        /// The owner.
        "uid" => uid: String,
        /// The group.
        "gid" => gid: String,
        /// The permissions.
        "mode" => mode: Option<FileMode>,
    }
}

mapping! {
    /// A device of the host.
    pub struct Device {
        /// The device, or a CDI name.
        "source" => source: String,
        /// Where.
        "target" => target: String,
        /// What may be done with it: r, w, m.
        "permissions" => permissions: String,
    }
}

/// A file of environment variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnvFile {
    /// The file.
    pub path: String,
    /// Whether it must exist.
    pub required: bool,
    /// Its dialect: empty for `.env`, or `raw`.
    pub format: String,
}

impl Decode for EnvFile {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        let mut file = Self {
            required: true,
            ..Self::default()
        };
        if let Some(path) = node.as_str() {
            path.clone_into(&mut file.path);
            return file;
        }
        context.entries(node, |key, child, context| match key {
            "path" => file.path = Decode::decode(child, context),
            "required" => file.required = Decode::decode(child, context),
            "format" => file.format = Decode::decode(child, context),
            _ => {}
        });
        file
    }
}

impl Encode for EnvFile {
    fn encode(&self, _style: Style) -> Json {
        if self.required && self.format.is_empty() {
            return Json::String(self.path.clone());
        }
        let mut map = serde_json::Map::new();
        map.insert("path".to_owned(), Json::String(self.path.clone()));
        map.insert("required".to_owned(), Json::Bool(self.required));
        if !self.format.is_empty() {
            map.insert("format".to_owned(), Json::String(self.format.clone()));
        }
        Json::Object(map)
    }
}
