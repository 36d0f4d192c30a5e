//! What an image is built from, for any provider. No I/O.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::{ImageCallback, RegistryCredentials};

/// How long a build may go without a sign of life by default: 10 minutes.
pub const DEFAULT_BUILD_STALL_TIMEOUT: Duration = Duration::from_secs(600);

/// An image to build (compose.md 1.5). The default is the `Dockerfile` of a directory, with nothing else.
///
/// What only BuildKit can do is part of the request, so that a provider without it refuses it by name.
///
/// ```
/// use gym_sandbox::BuildSpec;
/// let spec = BuildSpec::new("./task").with_tag("task:1").with_arg("VERSION", "3").with_target("test");
/// assert_eq!(spec.tags, ["task:1"]);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct BuildSpec {
    /// The directory whose content the build sees, less what its `.dockerignore` leaves out. None: an empty one, for an
    /// inline Dockerfile that copies nothing.
    pub context: Option<PathBuf>,
    /// Where the Dockerfile is.
    pub dockerfile: Dockerfile,
    /// Names of the image, with tags. Without one the image is known by its id only.
    pub tags: Vec<String>,
    /// Build arguments. One without a value is taken from the Dockerfile's default: the environment of this process is
    /// never read.
    pub args: BTreeMap<String, Option<String>>,
    /// The stage to build. None: the last one.
    pub target: Option<String>,
    /// Labels of the image.
    pub labels: BTreeMap<String, String>,
    /// `os/architecture[/variant]`. None: the engine's own.
    pub platform: Option<String>,
    /// Whether steps of earlier builds are used again.
    pub cache: BuildCache,
    /// Whether base images are pulled.
    pub base_images: BaseImages,
    /// Images whose steps count as those of earlier builds.
    pub cache_from: Vec<String>,
    /// The network of `RUN` steps: a name, `none`, or None for the engine's default.
    pub network: Option<String>,
    /// Lines `name:address` for the hosts file of `RUN` steps.
    pub extra_hosts: Vec<String>,
    /// The size of `/dev/shm` of `RUN` steps.
    pub shm_size_bytes: Option<u64>,
    /// Limits of `RUN` steps.
    pub ulimits: Vec<BuildUlimit>,
    /// Credentials by registry, before those of the provider's configuration and of the docker command's.
    pub credentials: BTreeMap<String, RegistryCredentials>,
    /// How long the build may go without a sign of life. There is no bound on the whole of it.
    pub stall_timeout: Duration,
    /// Told what happens.
    pub progress: Option<ImageCallback>,
    /// What needs BuildKit.
    pub buildkit: BuildkitOptions,
}

/// Where a Dockerfile is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dockerfile {
    /// A file of the context, by its path in it; or, where that leads out, a file of this machine.
    Path(String),
    /// This text.
    Inline(String),
}

impl Default for Dockerfile {
    fn default() -> Self {
        Self::Path("Dockerfile".to_owned())
    }
}

/// Whether steps of earlier builds are used again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildCache {
    /// Where nothing has changed.
    #[default]
    Use,
    /// Never.
    Ignore,
}

/// Whether base images are pulled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BaseImages {
    /// Where they are missing.
    #[default]
    PullMissing,
    /// Always.
    Pull,
}

/// A limit of `RUN` steps, as in `nofile`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildUlimit {
    /// Its name.
    pub name: String,
    /// Where it starts.
    pub soft: i64,
    /// How far a process may raise it.
    pub hard: i64,
}

/// What of a build needs BuildKit. Everything is empty by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildkitOptions {
    /// Ids of secrets.
    pub secrets: Vec<String>,
    /// Ids of ssh agents.
    pub ssh: Vec<String>,
    /// Contexts beside the main one, by name.
    pub additional_contexts: BTreeMap<String, String>,
    /// Places where the cache is written to.
    pub cache_to: Vec<String>,
    /// Rights of `RUN` steps beyond the usual ones.
    pub entitlements: Vec<String>,
    /// Further platforms to build for in the same build.
    pub more_platforms: Vec<String>,
}

impl Default for BuildSpec {
    fn default() -> Self {
        Self {
            context: None,
            dockerfile: Dockerfile::default(),
            tags: Vec::new(),
            args: BTreeMap::new(),
            target: None,
            labels: BTreeMap::new(),
            platform: None,
            cache: BuildCache::default(),
            base_images: BaseImages::default(),
            cache_from: Vec::new(),
            network: None,
            extra_hosts: Vec::new(),
            shm_size_bytes: None,
            ulimits: Vec::new(),
            credentials: BTreeMap::new(),
            stall_timeout: DEFAULT_BUILD_STALL_TIMEOUT,
            progress: None,
            buildkit: BuildkitOptions::default(),
        }
    }
}

impl BuildSpec {
    /// Builds the `Dockerfile` of a directory.
    pub fn new(context: impl Into<PathBuf>) -> Self {
        Self {
            context: Some(context.into()),
            ..Self::default()
        }
    }

    /// Builds a Dockerfile that is given as text, without a context.
    pub fn inline(dockerfile: impl Into<String>) -> Self {
        Self::default().with_inline_dockerfile(dockerfile)
    }

    /// Takes another file than `Dockerfile`.
    pub fn with_dockerfile(mut self, path: impl Into<String>) -> Self {
        self.dockerfile = Dockerfile::Path(path.into());
        self
    }

    /// Takes this text as the Dockerfile.
    pub fn with_inline_dockerfile(mut self, text: impl Into<String>) -> Self {
        self.dockerfile = Dockerfile::Inline(text.into());
        self
    }

    /// Adds a name.
    pub fn with_tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Adds a build argument.
    pub fn with_arg(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.args.insert(name.into(), Some(value.into()));
        self
    }

    /// Sets the stage.
    pub fn with_target(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    /// Adds a label.
    pub fn with_label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// Sets the platform.
    pub fn with_platform(mut self, platform: impl Into<String>) -> Self {
        self.platform = Some(platform.into());
        self
    }

    /// Sets the network of `RUN` steps.
    pub fn with_network(mut self, network: impl Into<String>) -> Self {
        self.network = Some(network.into());
        self
    }

    /// Sets whether steps of earlier builds are used again.
    pub fn with_cache(mut self, cache: BuildCache) -> Self {
        self.cache = cache;
        self
    }

    /// Sets who is told what happens.
    pub fn with_progress(mut self, progress: ImageCallback) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl fmt::Debug for BuildSpec {
    /// Shows the names of build arguments and not their values: they may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuildSpec")
            .field("context", &self.context)
            .field(
                "dockerfile",
                match &self.dockerfile {
                    Dockerfile::Path(path) => path,
                    Dockerfile::Inline(_) => &"<inline>",
                },
            )
            .field("tags", &self.tags)
            .field("args", &self.args.keys().collect::<Vec<_>>())
            .field("target", &self.target)
            .field("platform", &self.platform)
            .finish_non_exhaustive()
    }
}
