//! What the tests of this program share.

use std::time::{Duration, Instant};

use bollard::models::{ContainerInspectResponse, HostConfig};
use bollard::query_parameters::InspectContainerOptions;
use gym_sandbox::docker::{DockerConfig, DockerProvider, DockerRaw};
use gym_sandbox::{
    Error, ErrorKind, ExecOptions, SandboxHandle, SandboxProvider, SandboxSpec, SandboxStatus,
};

use crate::common::{DockerTest, client, docker_with, engine_is_required};
use crate::proxy::Proxy;

/// How long anything may take that a test waits for, several calls of a busy engine among it.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);

/// The id of the container of a sandbox.
pub(crate) fn container_id(handle: &SandboxHandle) -> &str {
    &handle
        .raw::<DockerRaw>()
        .expect("the handle is one of docker")
        .container_id
}

/// What the engine says of a sandbox, asked for beside the library.
pub(crate) async fn inspect(handle: &SandboxHandle) -> ContainerInspectResponse {
    let client = client().await.expect("the engine answers");
    client
        .inspect_container(container_id(handle), None::<InspectContainerOptions>)
        .await
        .expect("the container is there")
}

pub(crate) async fn host_config(handle: &SandboxHandle) -> HostConfig {
    inspect(handle)
        .await
        .host_config
        .expect("every container has one")
}

/// What a shell line prints; it must succeed.
pub(crate) async fn stdout(provider: &DockerProvider, handle: &SandboxHandle, line: &str) -> String {
    let result = provider
        .exec(handle, ExecOptions::new(line))
        .await
        .expect("a shell line is a good argument");
    assert!(result.is_success(), "`{line}`: {result:?}");
    result.stdout().unwrap_or_default()
}

/// How long the error of a failed create is held back for the removal of what it made. A busy engine may take longer.
const HELD_BACK: Duration = Duration::from_secs(10);

/// The error of a create that must fail, and must have left nothing by now.
pub(crate) async fn refused(test: &DockerTest, spec: &SandboxSpec) -> Error {
    let began = Instant::now();
    let error = failed(test, spec).await;
    let took = began.elapsed();
    let left = test.containers().await;
    assert!(
        left.is_empty() || took >= HELD_BACK,
        "{left:?} are left by a create that failed after {took:?} with {error:?}"
    );
    if !left.is_empty() {
        nothing_is_left(test).await;
    }
    error
}

/// The error of a create that must fail.
pub(crate) async fn failed(test: &DockerTest, spec: &SandboxSpec) -> Error {
    match test.provider.create(spec).await {
        Ok(handle) => {
            test.provider
                .close(&handle)
                .await
                .expect("the sandbox can be removed");
            panic!("a sandbox was made from {spec:?}");
        }
        Err(error) => error,
    }
}

/// Polls until something holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let deadline = Instant::now() + LIMIT;
    while !holds().await {
        assert!(Instant::now() < deadline, "not in {LIMIT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Polls until a sandbox has a status.
pub(crate) async fn until_status(provider: &DockerProvider, handle: &SandboxHandle, status: SandboxStatus) {
    until(&format!("the status is {status}"), || async {
        provider.status(handle).await.expect("a status is never an error") == status
    })
    .await;
}

/// Waits for the clean-up in the background, which takes a busy engine more than one `aclose` waits for.
pub(crate) async fn settled(test: &DockerTest) {
    let deadline = Instant::now() + LIMIT;
    while let Err(error) = test.provider.aclose().await {
        assert!(
            error.kind() == ErrorKind::Timeout && Instant::now() < deadline,
            "the clean-up in the background does not end: {}",
            error.report()
        );
    }
}

/// Waits for the clean-up in the background, and looks that nothing is left then.
pub(crate) async fn nothing_is_left(test: &DockerTest) {
    settled(test).await;
    assert_eq!(
        test.containers().await,
        Vec::<String>::new(),
        "left on the engine"
    );
}

/// A provider whose engine is behind a proxy.
pub(crate) async fn behind_proxy(mut config: DockerConfig) -> Option<(Proxy, DockerTest)> {
    let Some(proxy) = Proxy::start().await else {
        assert!(
            !engine_is_required(),
            "SANDBOX_REQUIRE_DOCKER=1 and the engine has no local socket"
        );
        eprintln!("skipped: the engine has no local socket");
        return None;
    };
    config.host = Some(proxy.address());
    let test = docker_with(config).await?;
    Some((proxy, test))
}
