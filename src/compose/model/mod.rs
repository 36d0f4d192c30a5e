//! The typed project: every key of the Compose Specification as a field.
//!
//! Types and their reading from a canonical tree; nothing here looks at files or at the environment.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

mod build;
mod codec;
mod deploy;
mod extension;
mod health;
mod hosts;
mod limits;
mod links;
mod mount;
mod resource;
mod service;
mod values;

pub use build::{Build, SshKey, SshKeys};
pub use deploy::{
    Deploy, DeviceCount, DeviceRequest, DiscreteResource, GenericResource, Placement, PlacementPreference,
    Resource, Resources, RestartPolicy, RolloutConfig,
};
pub use extension::ExtensionValue;
pub use health::{Develop, HealthTest, Healthcheck, Hook, Logging, WatchRule};
pub use hosts::Hosts;
pub use limits::{BlkioConfig, BlkioLimit, BlkioWeight, Ulimit};
pub use links::{CredentialSpec, Dependency, DependencyCondition, Provider, ServiceModel, ServiceNetwork};
pub use mount::{
    BindOptions, Device, EnvFile, FileMount, ImageOptions, Mount, MountType, Port, TmpfsMode, TmpfsOptions,
    VolumeOptions,
};
pub use resource::{Config, Ipam, IpamPool, Model, Network, Secret, Volume};
pub use service::Service;
pub use values::{ByteSize, CommandLine, FileMode, SecretValue};

pub(crate) use codec::{Context, Decode, Encode, FromText, Style};
pub(crate) use extension::encode_float;

/// Named values, sorted by name.
pub type Named<T> = BTreeMap<String, T>;

/// `KEY: value` pairs where a value may be missing: such a variable is unset in the container.
pub type OptionalValues = BTreeMap<String, Option<String>>;

/// The `x-` keys of a mapping.
pub type Extensions = BTreeMap<String, ExtensionValue>;

/// A whole project, ready to be planned.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Project {
    /// The name, which prefixes what the engine holds.
    pub name: String,
    /// The folder relative paths were relative to.
    pub directory: PathBuf,
    /// The services of the active profiles.
    pub services: Named<Service>,
    /// The services whose profiles are not active.
    pub disabled_services: Named<Service>,
    /// The networks, among them an implied `default`.
    pub networks: Named<Network>,
    /// The volumes.
    pub volumes: Named<Volume>,
    /// The secrets.
    pub secrets: Named<Secret>,
    /// The configs.
    pub configs: Named<Config>,
    /// The models.
    pub models: Named<Model>,
    /// The variables that interpolation saw.
    pub environment: Named<String>,
    /// The active profiles; `*` stands for all.
    pub profiles: Vec<String>,
    /// The `x-` keys at the top.
    pub extensions: Extensions,
}

impl Project {
    /// Returns a copy without the networks, volumes, secrets, configs and models that no active service uses.
    pub fn without_unused(&self) -> Self {
        let mut project = self.clone();
        let services = || self.services.values();
        project
            .networks
            .retain(|name, _| services().any(|service| service.networks.contains_key(name)));
        project
            .volumes
            .retain(|name, _| services().any(|service| service.uses_volume(name)));
        project.secrets.retain(|name, _| {
            services().any(|service| {
                let built = service.build.iter().flat_map(|build| &build.secrets);
                service
                    .secrets
                    .iter()
                    .chain(built)
                    .any(|mount| mount.source == *name)
            })
        });
        project.configs.retain(|name, _| {
            services().any(|service| service.configs.iter().any(|mount| mount.source == *name))
        });
        project
            .models
            .retain(|name, _| services().any(|service| service.models.contains_key(name)));
        project
    }

    /// Returns the image of a service: its own, or the one its build makes.
    pub fn image_of(&self, service: &str) -> Option<String> {
        let found = self.services.get(service)?;
        Some(if found.image.is_empty() {
            format!("{}-{service}", self.name)
        } else {
            found.image.clone()
        })
    }
}

impl Serialize for Project {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.encode(Style::Yaml).serialize(serializer)
    }
}

impl Encode for Project {
    fn encode(&self, style: Style) -> serde_json::Value {
        let mut map = serde_json::Map::new();
        map.insert("name".to_owned(), self.name.encode(style));
        map.insert("services".to_owned(), self.services.encode(style));
        let sections = [
            ("networks", self.networks.encode(style), self.networks.is_empty()),
            ("volumes", self.volumes.encode(style), self.volumes.is_empty()),
            ("secrets", self.secrets.encode(style), self.secrets.is_empty()),
            ("configs", self.configs.encode(style), self.configs.is_empty()),
            // docker compose's JSON has no models.
            (
                "models",
                self.models.encode(style),
                self.models.is_empty() || style == Style::Json,
            ),
        ];
        for (key, value, is_empty) in sections {
            if !is_empty {
                map.insert(key.to_owned(), value);
            }
        }
        for (key, value) in &self.extensions {
            map.insert(key.clone(), value.encode(style));
        }
        serde_json::Value::Object(map)
    }
}

/// Declares a mapping type: its keys, its fields, how it is read from a tree and how it is written.
///
/// `"key" => field: Type` is left out when it has its zero value; `"key" always => ...` is always written, and
/// `"key" never => ...` is read and never written.
macro_rules! mapping {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$field_meta:meta])* $key:literal $($when:ident)? => $field:ident : $type:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $type, )*
            /// The `x-` keys of this mapping.
            pub extensions: $crate::compose::model::Extensions,
        }

        impl $crate::compose::model::Decode for $name {
            fn decode(node: &$crate::compose::node::Node, context: &mut $crate::compose::model::Context<'_>) -> Self {
                let mut value = Self::default();
                context.entries(node, |key, child, context| match key {
                    $( $key => value.$field = $crate::compose::model::Decode::decode(child, context), )*
                    _ => {
                        if key.starts_with("x-") {
                            value.extensions.insert(key.to_owned(), $crate::compose::model::Decode::decode(child, context));
                        }
                    }
                });
                value
            }
        }

        impl $crate::compose::model::FromText for $name {}

        impl $crate::compose::model::Encode for $name {
            fn encode(&self, style: $crate::compose::model::Style) -> serde_json::Value {
                let mut map = serde_json::Map::new();
                $(
                    let when = [$(stringify!($when),)? ""][0];
                    if when == "always" || when != "never" && !self.$field.omit(style) {
                        map.insert($key.to_owned(), self.$field.encode(style));
                    }
                )*
                if style == $crate::compose::model::Style::Yaml {
                    for (key, value) in &self.extensions {
                        map.insert(key.clone(), value.encode(style));
                    }
                }
                serde_json::Value::Object(map)
            }

            fn omit(&self, style: $crate::compose::model::Style) -> bool {
                style == $crate::compose::model::Style::Yaml && *self == Self::default()
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use $crate::compose::model::{Encode, Style};
                self.encode(Style::Yaml).serialize(serializer)
            }
        }
    };
}
pub(crate) use mapping;
