//! What a start is at, for whoever watches it.

use std::fmt;
use std::sync::Arc;

/// How far a service is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceProgress {
    /// Its containers are made.
    Created,
    /// It waits for another service.
    Waiting {
        /// The other service.
        on: String,
    },
    /// Its containers run.
    Started,
    /// Its health check passes.
    Healthy,
    /// A command of its file runs in it, after its start or before its stop.
    Hook {
        /// Which one, with its command.
        hook: String,
    },
    /// It has ended, as it should.
    Completed,
    /// It failed, and the others can go without it.
    Failed,
    /// Its containers are gone.
    Removed,
}

impl fmt::Display for ServiceProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created => f.write_str("created"),
            Self::Waiting { on } => write!(f, "waiting for {on}"),
            Self::Started => f.write_str("started"),
            Self::Healthy => f.write_str("healthy"),
            Self::Hook { hook } => write!(f, "runs its {hook}"),
            Self::Completed => f.write_str("completed"),
            Self::Failed => f.write_str("failed"),
            Self::Removed => f.write_str("removed"),
        }
    }
}

/// Something that a start or a stop has got to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ComposeEvent {
    /// An image is pulled or built.
    Image {
        /// The image.
        image: String,
        /// What is done, for a person.
        state: String,
    },
    /// A service is further than before.
    Service {
        /// The service.
        service: String,
        /// How far.
        progress: ServiceProgress,
    },
    /// Something that does not stop it.
    Warning(String),
}

/// Told of each [`ComposeEvent`], in the task that starts or stops the project. It must not block.
#[derive(Clone)]
pub struct ProgressCallback(Arc<dyn Fn(&ComposeEvent) + Send + Sync>);

impl ProgressCallback {
    /// Wraps a function.
    pub fn new(callback: impl Fn(&ComposeEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }

    /// Calls it.
    pub fn call(&self, event: &ComposeEvent) {
        (self.0)(event);
    }
}

impl fmt::Debug for ProgressCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressCallback")
    }
}
