//! What a container is, as its engine says.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::{HealthProbe, HealthcheckSpec};
use crate::spec::{SandboxHealth, SandboxStatus};

/// What is known of a container.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ContainerDetail {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The image it was made from, as it was asked for.
    pub image: String,
    /// What it is doing.
    pub status: SandboxStatus,
    /// Whether its main process has ended and will be started again.
    pub is_restarting: bool,
    /// The exit code of the last main process that ended; none before the first has.
    pub exit_code: Option<i64>,
    /// The engine's OOM flag: a process of it was killed for want of memory. That need not have been the main one.
    pub oom_killed: bool,
    /// Why the engine could not start it.
    pub error: Option<String>,
    /// How often the engine has started it again.
    pub restarts: u64,
    /// What its health check says; none without one.
    pub health: Option<SandboxHealth>,
    /// The last probe of its health; none before the first has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_probe: Option<HealthProbe>,
    /// The health check in force: its own, over the image's. None without one.
    pub healthcheck: Option<HealthcheckSpec>,
    /// How long a stop waits for it; none for the engine's default.
    pub stop_timeout: Option<Duration>,
    /// The working directory; empty for `/`.
    pub working_dir: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Published TCP ports: in the container, and where they answer.
    pub ports: BTreeMap<u16, String>,
}

impl ContainerDetail {
    /// Describes a container of which only this is known.
    pub fn new(id: impl Into<String>, name: impl Into<String>, status: SandboxStatus) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            image: String::new(),
            status,
            is_restarting: false,
            exit_code: None,
            oom_killed: false,
            error: None,
            restarts: 0,
            health: None,
            last_probe: None,
            healthcheck: None,
            stop_timeout: None,
            working_dir: String::new(),
            labels: BTreeMap::new(),
            ports: BTreeMap::new(),
        }
    }
}

/// Something that happened to a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ContainerEvent {
    /// The container's id.
    pub container: String,
    /// What happened.
    pub change: ContainerChange,
}

impl ContainerEvent {
    /// Says what happened to a container.
    pub fn new(container: impl Into<String>, change: ContainerChange) -> Self {
        Self {
            container: container.into(),
            change,
        }
    }
}

/// What happens to containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ContainerChange {
    /// Its main process runs.
    Started,
    /// Its main process has ended.
    Ended {
        /// With this exit code.
        exit_code: i64,
    },
    /// Its health check says something else than before.
    Health(SandboxHealth),
    /// It is gone.
    Removed,
}

/// A network or a volume that is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SharedObject {
    /// Its id; for a volume its name.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

impl SharedObject {
    /// Names a network or volume.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            labels: BTreeMap::new(),
        }
    }
}
