//! Compose files, read as docker compose reads them.
//!
//! [`ComposeLoader`] takes files to a typed [`Project`]: it reads YAML and JSON, replaces variables, follows `include`
//! and `extends`, merges files, turns short forms into long ones, fills in what is implied, and checks that it all fits
//! together. It needs no engine and no docker command, and nothing of the process but what it is given.
//!
//! | stage | file |
//! |---|---|
//! | files, and refusing to read them | `source.rs`, `names.rs` |
//! | text to trees | `yaml.rs`, `scalar.rs` |
//! | variables | `interpolate.rs`, `template.rs`, `dotenv.rs` |
//! | other files | `extends.rs`, `include.rs` |
//! | one file over another | `merge.rs`, `unicity.rs` |
//! | known keys and types | `schema/` |
//! | short forms | `canonical.rs`, `short.rs` |
//! | what is left out | `defaults.rs`, `paths.rs`, `normalize.rs` |
//! | the typed project | `model/` |
//! | active services, references | `profile.rs`, `consistency.rs`, `envfile.rs` |
//! | `compose config` | [`config`] |
//! | what it becomes on an engine | [`plan`] |
//!
//! Every stage reports all it finds, as [`Diagnostics`] with file, line, column and path. What docker compose does
//! silently and an author cannot have meant is diagnosed too: see [`Strictness`].

mod adapter;
mod canonical;
pub mod config;
mod consistency;
mod defaults;
mod diagnostic;
mod dotenv;
mod envfile;
mod extends;
mod gofmt;
mod include;
mod interpolate;
mod load;
mod merge;
pub mod model;
mod names;
mod node;
mod normalize;
mod options;
mod path;
mod paths;
mod pathtext;
pub mod plan;
mod profile;
mod run;
mod scalar;
mod schema;
mod shellwords;
mod short;
mod source;
pub mod support;
mod template;
mod trap;
mod unicity;
mod units;
mod yaml;

pub use adapter::{
    AsyncSandboxCompose, ComposeDescriptor, DEFAULT_START_TIMEOUT, ProjectName, ProjectService, compose_down,
    compose_service, compose_services,
};
pub use diagnostic::{Diagnostic, Diagnostics, Severity, render};
pub use load::{ComposeLoader, Loaded};
pub use model::{Project, Service};
pub use options::{Interpolation, LoadOptions};
pub use path::{Segment, YamlPath};
pub use plan::{
    ContainerNames, HostPorts, ImageNames, Plan, PlanOptions, ProjectLifetime, ProjectNetworks, VolumeSource,
};
pub use run::{ComposeEvent, DownOptions, ProgressCallback, ServiceProgress, VolumeFate};
pub use source::{DiskFiles, FileKind, LARGEST_FILE_BYTES, MemoryFiles, OutsidePaths, ProjectFiles, Source};
pub use trap::Strictness;
pub use units::ComposeDuration;
