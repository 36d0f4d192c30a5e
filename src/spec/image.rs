//! What is said of images: when they are pulled, with which credentials, how far that is, what an image is. No I/O.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// When an image is pulled (contract D12).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PullPolicy {
    /// When the engine does not have it.
    #[default]
    Missing,
    /// Every time.
    Always,
    /// Never: a missing image is an error at once.
    Never,
}

/// What a registry wants to know of who pulls. `Debug` shows no secret.
#[derive(Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RegistryCredentials {
    username: Option<String>,
    password: Option<String>,
    identity_token: Option<String>,
}

impl RegistryCredentials {
    /// A user and a password.
    pub fn password(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            username: Some(username.into()),
            password: Some(password.into()),
            identity_token: None,
        }
    }

    /// An identity token, as a login to some registries gives it.
    pub fn identity_token(token: impl Into<String>) -> Self {
        Self {
            username: None,
            password: None,
            identity_token: Some(token.into()),
        }
    }

    /// The name of the user.
    pub fn username(&self) -> Option<&str> {
        self.username.as_deref()
    }

    /// The password, for who logs in with it. Never print it.
    pub fn expose_password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The token, for who logs in with it. Never print it.
    pub fn expose_identity_token(&self) -> Option<&str> {
        self.identity_token.as_deref()
    }
}

impl fmt::Debug for RegistryCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryCredentials")
            .field("username", &self.username)
            .field("password", &self.password.as_ref().map(|_| "<redacted>"))
            .field(
                "identity_token",
                &self.identity_token.as_ref().map(|_| "<redacted>"),
            )
            .finish()
    }
}

/// What happens while an image is pulled or built.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageEvent {
    /// A layer moves.
    Layer {
        /// Its short id, as the engine shows it.
        id: String,
        /// What is done with it.
        state: LayerState,
        /// How many of its bytes are done in this state.
        current_bytes: u64,
        /// How many there are; None where the engine does not say.
        total_bytes: Option<u64>,
    },
    /// The registry limits the rate: the pull is tried again after this pause.
    Waiting(Duration),
    /// A step of a build begins.
    Step {
        /// Which one, from 1.
        number: u32,
        /// How many there are.
        total: u32,
        /// The instruction.
        text: String,
    },
    /// Output of a build, as it comes: a piece may hold several lines, or a part of one.
    Output(String),
    /// Anything else that the engine says.
    Status(String),
}

/// What is done with a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LayerState {
    /// It waits for its turn.
    Waiting,
    /// It comes from the registry.
    Downloading,
    /// It has come and is checked.
    Downloaded,
    /// It is unpacked.
    Extracting,
    /// It is there.
    Complete,
}

/// Told of each [`ImageEvent`], in the task that waits for the image. It must not block.
#[derive(Clone)]
pub struct ImageCallback(Arc<dyn Fn(&ImageEvent) + Send + Sync>);

impl ImageCallback {
    /// Wraps a function.
    pub fn new(callback: impl Fn(&ImageEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }

    /// Calls it.
    pub fn call(&self, event: &ImageEvent) {
        (self.0)(event);
    }
}

impl fmt::Debug for ImageCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ImageCallback")
    }
}

/// How an image is pulled. The default pulls what is missing, for the engine's own platform.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PullOptions {
    /// When it is pulled.
    pub policy: PullPolicy,
    /// `os/architecture[/variant]`. None: the engine's own.
    pub platform: Option<String>,
    /// Credentials for the image's registry. None: those of the provider's configuration, else those of the docker
    /// command's.
    pub credentials: Option<RegistryCredentials>,
    /// Told what happens.
    pub progress: Option<ImageCallback>,
}

impl PullOptions {
    /// Sets when it is pulled.
    pub fn with_policy(mut self, policy: PullPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the platform.
    pub fn with_platform(mut self, platform: impl Into<String>) -> Self {
        self.platform = Some(platform.into());
        self
    }

    /// Sets the credentials.
    pub fn with_credentials(mut self, credentials: RegistryCredentials) -> Self {
        self.credentials = Some(credentials);
        self
    }

    /// Sets who is told what happens.
    pub fn with_progress(mut self, progress: ImageCallback) -> Self {
        self.progress = Some(progress);
        self
    }
}

/// How much room on the engine's disk a prefetch leaves by default: 1 GiB.
pub const DEFAULT_MIN_FREE_BYTES: u64 = 1 << 30;

/// How images are prefetched (contract D35).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PrefetchOptions {
    /// How each image is pulled.
    pub pull: PullOptions,
    /// How much room must be left on the engine's disk, before each pull and by what its layers say of their size. 0
    /// looks at nothing. Where the disk can't be seen, as that of an engine on another machine, nothing is checked.
    /// Default [`DEFAULT_MIN_FREE_BYTES`].
    pub min_free_bytes: u64,
    /// Told what happens to which image, by its place in the list.
    pub progress: Option<PrefetchCallback>,
}

impl Default for PrefetchOptions {
    fn default() -> Self {
        Self {
            pull: PullOptions::default(),
            min_free_bytes: DEFAULT_MIN_FREE_BYTES,
            progress: None,
        }
    }
}

impl PrefetchOptions {
    /// Sets how each image is pulled.
    pub fn with_pull(mut self, pull: PullOptions) -> Self {
        self.pull = pull;
        self
    }

    /// Sets how much room must be left.
    pub fn with_min_free_bytes(mut self, bytes: u64) -> Self {
        self.min_free_bytes = bytes;
        self
    }

    /// Sets who is told what happens.
    pub fn with_progress(mut self, progress: PrefetchCallback) -> Self {
        self.progress = Some(progress);
        self
    }
}

type PrefetchFn = dyn Fn(usize, &ImageEvent) + Send + Sync;

/// Told of the events of a prefetch and the place of the image in the list. It must not block.
#[derive(Clone)]
pub struct PrefetchCallback(Arc<PrefetchFn>);

impl PrefetchCallback {
    /// Wraps a function.
    pub fn new(callback: impl Fn(usize, &ImageEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }

    /// Calls it.
    pub fn call(&self, image: usize, event: &ImageEvent) {
        (self.0)(image, event);
    }
}

impl fmt::Debug for PrefetchCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrefetchCallback")
    }
}

/// What became of one image of a prefetch.
#[derive(Debug)]
#[non_exhaustive]
pub enum Prefetched {
    /// The engine had it.
    Present(ImageDetail),
    /// It was pulled.
    Pulled(ImageDetail),
    /// It could not be had.
    Failed(Error),
}

/// What is known of an image on the engine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ImageDetail {
    /// Its id, as in `sha256:...`.
    pub id: String,
    /// Its names with their tags.
    pub references: Vec<String>,
    /// Its names with the digest that the registry has it under; empty for what was never pulled or pushed.
    pub digests: Vec<String>,
    /// `os/architecture[/variant]`.
    pub platform: String,
    /// The size of its unpacked layers.
    pub size_bytes: u64,
    /// When it was made, RFC 3339.
    pub created: Option<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its entrypoint.
    pub entrypoint: Vec<String>,
    /// Its command.
    pub command: Vec<String>,
    /// Its user; None means root.
    pub user: Option<String>,
    /// Its working directory; None means `/`.
    pub workdir: Option<String>,
}

impl ImageDetail {
    /// Names an image; everything else is empty.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }
}
