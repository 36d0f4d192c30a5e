//! The steps of a plan.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

use crate::compose::diagnostic::Diagnostics;
use crate::compose::model::{DependencyCondition, SecretValue};
use crate::spec::container::{ContainerSpec, EnvironmentSpec, NetworkSpec, VolumeSpec};
use crate::spec::{FileOwner, Ports};

/// What a project becomes on an engine, in the order in which it is made. What stands side by side in a list and does
/// not depend on each other is made at once.
///
/// Containers refer to each other and to networks by name; who carries it out puts in the ids.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// The name of the project.
    pub project: String,
    /// Images to have.
    pub images: Vec<ImageStep>,
    /// Networks to make or to find.
    pub networks: Vec<NetworkStep>,
    /// Volumes to make or to find.
    pub volumes: Vec<VolumeStep>,
    /// Containers that fill volumes and are gone before the services start.
    pub helpers: Vec<HelperStep>,
    /// The services, each after those it depends on.
    pub services: Vec<ServiceStep>,
    /// What has no effect, and why.
    #[serde(serialize_with = "as_lines")]
    pub warnings: Diagnostics,
}

fn as_lines<S: Serializer>(diagnostics: &Diagnostics, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(diagnostics.iter().map(ToString::to_string))
}

/// An image to have.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ImageStep {
    /// The image.
    pub image: String,
    /// Its platform.
    pub platform: Option<String>,
    /// The first service that needs it.
    pub service: String,
    /// Where it comes from.
    pub source: ImageSource,
}

/// Where an image comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ImageSource {
    /// A registry.
    Pull(PullWhen),
    /// A build.
    Build(Box<BuildStep>),
}

/// When an image is pulled or built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PullWhen {
    /// When the engine does not have it.
    #[default]
    Missing,
    /// Always.
    Always,
    /// Never: a missing image is an error.
    Never,
}

/// How an image is built.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BuildStep {
    /// When.
    pub when: PullWhen,
    /// The folder the build sees.
    pub context: PathBuf,
    /// The build file, relative to the context.
    pub dockerfile: Option<String>,
    /// The build file itself.
    pub dockerfile_inline: Option<String>,
    /// Build arguments; one without a value has the Dockerfile's.
    pub args: BTreeMap<String, Option<String>>,
    /// The stage.
    pub target: Option<String>,
    /// Labels of the image.
    pub labels: BTreeMap<String, String>,
    /// More names of the image.
    pub tags: Vec<String>,
    /// Images to take layers from.
    pub cache_from: Vec<String>,
    /// Whether layers of earlier builds are not used.
    pub no_cache: bool,
    /// Whether base images are always pulled.
    pub pull: bool,
    /// The network of the steps.
    pub network: Option<String>,
    /// Lines of the hosts file of the steps.
    pub extra_hosts: Vec<(String, String)>,
    /// The size of `/dev/shm` of the steps, in bytes.
    pub shm_bytes: Option<u64>,
    /// Limits of the steps: name, soft and hard.
    pub ulimits: Vec<(String, i64, i64)>,
}

/// A network to make or to find.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct NetworkStep {
    /// Its key in the project.
    pub key: String,
    /// Whether it must exist already.
    pub external: bool,
    /// Whether it stands for networks of the project: the caller has named it, and not the file.
    #[serde(skip)]
    pub(crate) is_shared: bool,
    /// What it is.
    pub spec: NetworkSpec,
}

/// A volume to make or to find.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct VolumeStep {
    /// Its key in the project.
    pub key: String,
    /// Whether it must exist already.
    pub external: bool,
    /// What it is.
    pub spec: VolumeSpec,
}

/// A container that fills a volume. It is created and never started: its image needs no program.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HelperStep {
    /// The volume.
    pub volume: String,
    /// Its key in the project, or the source of the bind mount that it stands for.
    pub key: String,
    /// The first service that mounts it.
    pub service: String,
    /// The container; the volume is mounted at [`HelperStep::TARGET`].
    pub spec: ContainerSpec,
    /// The folder or file of this machine whose content goes in.
    pub source: Option<PathBuf>,
    /// Folders to make in the volume: those that services mount by themselves.
    pub folders: Vec<String>,
    /// Who owns what goes in, and the volume's own folder.
    pub owner: Option<FileOwner>,
}

impl HelperStep {
    /// Where the volume is mounted in the helper.
    pub const TARGET: &'static str = "/gym-sandbox-volume";
}

/// A service: its containers and what they wait for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServiceStep {
    /// Its name.
    pub name: String,
    /// What must have been reached before it starts.
    pub depends_on: Vec<DependencyStep>,
    /// Its containers; none when it is scaled to 0.
    pub containers: Vec<ContainerStep>,
    /// Files that are put into each container before it starts.
    pub files: Vec<FileStep>,
    /// Commands in each container after its start.
    pub post_start: Vec<HookStep>,
    /// Commands in each container before it is stopped.
    pub pre_stop: Vec<HookStep>,
    /// The TCP ports that have endpoints.
    pub ports: Ports,
    /// How long a stop waits; none: it is killed at once (contract D22).
    pub stop_grace: Option<Duration>,
    /// Whether another service waits for its end: then its end is no failure.
    pub is_one_shot: bool,
    /// Whether it may fail: all that depend on it can go without.
    pub is_optional: bool,
    /// Whether it is the one to work in: marked `x-default`, or called `default` or `main`.
    pub is_default: bool,
}

/// Something a service waits for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DependencyStep {
    /// The other service.
    pub service: String,
    /// What it must have reached.
    #[serde(serialize_with = "as_word")]
    pub condition: DependencyCondition,
    /// Whether this one cannot go without.
    pub required: bool,
    /// Whether an explicit restart of the other one restarts this one.
    pub restart: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands fields over by reference"
)]
fn as_word<S: Serializer>(condition: &DependencyCondition, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(condition.as_str())
}

/// A container of a service.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ContainerStep {
    /// Its name.
    pub name: String,
    /// Which one of the service it is, from 1.
    pub number: u32,
    /// What it is.
    pub spec: ContainerSpec,
}

/// A file that is put into a container before it starts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FileStep {
    /// Where.
    pub target: String,
    /// The content, which is never printed.
    #[serde(skip)]
    pub content: SecretValue,
    /// The permissions.
    pub mode: u32,
    /// The owner.
    pub owner: Option<FileOwner>,
}

/// A command in a running container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HookStep {
    /// The command.
    pub command: Vec<String>,
    /// The user; none for the container's.
    pub user: Option<String>,
    /// The working directory; none for the container's.
    pub working_dir: Option<String>,
    /// More variables.
    pub environment: EnvironmentSpec,
}
