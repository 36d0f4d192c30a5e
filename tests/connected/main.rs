//! What connects a sandbox with the world around it, on a real engine: pausing, hand-over, endpoints, networks, logs,
//! statistics, services and forwarding (contract 2.6, 2.7, L15-L19, D8, D11, D23, D24).

#![expect(clippy::unwrap_used, reason = "what can't be done fails the test")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/example.rs"]
mod example;

mod access;
mod connect;
mod egress;
mod endpoint;
mod hostile;
mod hosts;
mod logs;
mod networks;
mod pause;
mod requirements;
mod services;
mod shared_storage;

use std::time::{Duration, Instant};

use gym_sandbox::docker::{DockerConfig, DockerProvider, DockerRaw, ExecPathPolicy};
use gym_sandbox::{ExecOptions, SandboxHandle, SandboxProvider};

/// How long anything may take that a test waits for, several calls of a busy engine among it.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);

/// A configuration for each way to run commands.
pub(crate) fn both_paths() -> [DockerConfig; 2] {
    [ExecPathPolicy::Engine, ExecPathPolicy::Agent].map(|path| {
        let mut config = DockerConfig::default();
        config.exec.exec_path = path;
        config
    })
}

/// The id of the container of a sandbox.
pub(crate) fn container_id(handle: &SandboxHandle) -> &str {
    &handle.raw::<DockerRaw>().unwrap().container_id
}

/// What a shell line prints; it must succeed.
pub(crate) async fn stdout(provider: &DockerProvider, handle: &SandboxHandle, line: &str) -> String {
    let result = provider.exec(handle, ExecOptions::new(line)).await.unwrap();
    assert!(result.is_success(), "`{line}`: {result:?}");
    result.stdout().unwrap_or_default()
}

/// Polls until something holds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds().await {
        assert!(Instant::now() < deadline, "not in {LIMIT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
