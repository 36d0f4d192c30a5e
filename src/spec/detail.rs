//! Everything an engine says of one sandbox.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ExecPath, SandboxEndpoint, SandboxId, SandboxResources, SandboxStatus};

/// Everything known of one sandbox (contract D7).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SandboxDetail {
    /// Its id.
    pub sandbox_id: SandboxId,
    /// The provider that runs it.
    pub provider: String,
    /// The image it was made from, as it was asked for.
    pub image: Option<String>,
    /// What it is doing.
    pub status: SandboxStatus,
    /// The exit code of its main process, once that has ended.
    pub exit_code: Option<i64>,
    /// The engine's OOM flag. It may be set long after the kill, or for a command that was not the main process: it
    /// alone proves nothing (contract D6).
    pub oom_killed: bool,
    /// Why the engine could not start it.
    pub error: Option<String>,
    /// The state of its health check. None where it has none.
    pub health: Option<SandboxHealth>,
    /// The last lines that its main process printed, both streams.
    pub last_log_lines: Vec<String>,
    /// Where its declared ports answer; a port without a binding is absent.
    pub endpoints: BTreeMap<u16, SandboxEndpoint>,
    /// Its limits, as the engine has them.
    pub limits: SandboxResources,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// How commands are run in it.
    pub exec_path: ExecPath,
    /// When it was created, RFC 3339 by the engine's clock.
    pub created: Option<String>,
    /// When its main process started.
    pub started: Option<String>,
    /// When its main process ended.
    pub finished: Option<String>,
}

impl SandboxDetail {
    /// A detail of which only this is known.
    pub fn new(
        sandbox_id: SandboxId,
        provider: impl Into<String>,
        status: SandboxStatus,
        exec_path: ExecPath,
    ) -> Self {
        Self {
            sandbox_id,
            provider: provider.into(),
            image: None,
            status,
            exit_code: None,
            oom_killed: false,
            error: None,
            health: None,
            last_log_lines: Vec::new(),
            endpoints: BTreeMap::new(),
            limits: SandboxResources::default(),
            labels: BTreeMap::new(),
            exec_path,
            created: None,
            started: None,
            finished: None,
        }
    }
}

/// The state of a health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SandboxHealth {
    /// Not decided yet.
    Starting,
    /// The last probe passed.
    Healthy,
    /// Too many probes in a row failed.
    Unhealthy,
}
