//! Options, limits and policy on the real engine: what is asked for is seen from inside the sandbox or in the engine's
//! inspect, what is refused leaves nothing, and what a sandbox does with its limits stays in it (contract C12-C15, D9-D11,
//! D27).

#![allow(clippy::unwrap_used, reason = "what can't be done fails the test")]
#![allow(clippy::print_stderr, reason = "a skipped test says why")]
#![allow(
    clippy::similar_names,
    reason = "`test` and `text` stand beside each other everywhere"
)]

#[path = "../common/mod.rs"]
mod common;

mod admission;
mod contained;
mod docker_run;
mod hardened;
mod refused;
mod seen;

use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::InspectContainerOptions;
use gym_sandbox::docker::DockerRaw;
use gym_sandbox::{ExecOptions, ExecResult, SandboxHandle, SandboxProvider};

use common::{DockerTest, client};

/// What the engine says of a sandbox, asked for beside the library.
async fn inspect(handle: &SandboxHandle) -> ContainerInspectResponse {
    let id = &handle.raw::<DockerRaw>().unwrap().container_id;
    let client = client().await.unwrap();
    client
        .inspect_container(id, None::<InspectContainerOptions>)
        .await
        .unwrap()
}

async fn run(test: &DockerTest, handle: &SandboxHandle, line: &str) -> ExecResult {
    test.provider.exec(handle, ExecOptions::new(line)).await.unwrap()
}

/// What a shell line prints; it must succeed.
async fn stdout(test: &DockerTest, handle: &SandboxHandle, line: &str) -> String {
    let result = run(test, handle, line).await;
    assert!(result.is_success(), "`{line}`: {result:?}");
    result.stdout().unwrap_or_default()
}
