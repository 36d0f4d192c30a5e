//! Images that can't be had (B23, D12): which error, and that it is asked for once.

use std::time::{Duration, Instant};

use gym_sandbox::docker::DockerConfig;
use gym_sandbox::{ErrorKind, ImageProblem, PullPolicy, SandboxProvider, SandboxSpec};

use crate::common::BUSYBOX;
use crate::support::{behind_proxy, refused};

const PULL: &str = "/images/create";

#[tokio::test(flavor = "multi_thread")]
async fn b23_never_is_not_found_at_once_and_pulls_nothing() {
    let Some((proxy, test)) = behind_proxy(DockerConfig::default()).await else {
        return;
    };
    let spec =
        SandboxSpec::new("gym-sandbox/busybox:no-such-tag").with_provider_option("pull_policy", "never");
    let began = Instant::now();
    let error = refused(&test, &spec).await;
    assert_eq!(
        error.kind(),
        ErrorKind::Image(ImageProblem::NotFound),
        "{error:?}"
    );
    assert!(
        error.to_string().contains("gym-sandbox/busybox:no-such-tag"),
        "{error}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "it took {:?}",
        began.elapsed()
    );
    assert_eq!(proxy.requests(PULL), 0);

    // The configuration's policy holds as well, and the spec's wins over it.
    let mut config = DockerConfig::default();
    config.create.pull_policy = PullPolicy::Never;
    let Some((proxy, test)) = behind_proxy(config).await else {
        return;
    };
    let error = refused(&test, &SandboxSpec::new("localhost:1/no/such:1")).await;
    assert_eq!(
        error.kind(),
        ErrorKind::Image(ImageProblem::NotFound),
        "{error:?}"
    );
    assert_eq!(proxy.requests(PULL), 0);
    let spec = SandboxSpec::new("localhost:1/no/such:1").with_provider_option("pull_policy", "missing");
    refused(&test, &spec).await;
    assert_eq!(proxy.requests(PULL), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn b23_another_platform_is_its_own_error_and_pulls_nothing() {
    let Some((proxy, test)) = behind_proxy(DockerConfig::default()).await else {
        return;
    };
    let other = if cfg!(target_arch = "aarch64") {
        "linux/amd64"
    } else {
        "linux/arm64"
    };
    for policy in ["missing", "never"] {
        let spec = crate::common::busybox()
            .with_provider_option("platform", other)
            .with_provider_option("pull_policy", policy);
        let error = refused(&test, &spec).await;
        assert_eq!(
            error.kind(),
            ErrorKind::Image(ImageProblem::Platform),
            "{error:?}"
        );
        assert!(!error.is_retryable());
    }
    assert_eq!(proxy.requests(PULL), 0);
    let same = if cfg!(target_arch = "aarch64") {
        "linux/arm64"
    } else {
        "linux/amd64"
    };
    let handle = test
        .provider
        .create(&crate::common::busybox().with_provider_option("platform", same))
        .await
        .unwrap();
    test.provider.close(&handle).await.unwrap();
}

/// Nothing listens at the first, the second has no address: the same on every machine.
#[tokio::test(flavor = "multi_thread")]
async fn b23_a_registry_that_can_not_be_reached_is_asked_once() {
    let Some((proxy, test)) = behind_proxy(DockerConfig::default()).await else {
        return;
    };
    for image in ["localhost:1/no/such:1", "registry.invalid/no/such:1"] {
        let before = proxy.requests(PULL);
        let error = refused(&test, &SandboxSpec::new(image)).await;
        assert_eq!(
            error.kind(),
            ErrorKind::Image(ImageProblem::Offline),
            "{image}: {}",
            error.report()
        );
        assert!(error.is_retryable(), "{error:?}");
        assert!(
            error.report().to_string().contains("caused by"),
            "the registry's own text is kept"
        );
        assert_eq!(proxy.requests(PULL), before + 1, "{image}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_always_pulls_before_the_create_and_its_failure_is_the_error() {
    let Some((proxy, test)) = behind_proxy(DockerConfig::default()).await else {
        return;
    };
    let spec = SandboxSpec::new("localhost:1/no/such:1").with_provider_option("pull_policy", "always");
    let error = refused(&test, &spec).await;
    assert_eq!(error.kind(), ErrorKind::Image(ImageProblem::Offline), "{error:?}");
    assert_eq!(
        (proxy.requests(PULL), proxy.requests("/containers/create")),
        (1, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn c02_an_image_that_is_there_is_not_pulled() {
    let Some((proxy, test)) = behind_proxy(DockerConfig::default()).await else {
        return;
    };
    let handle = test
        .provider
        .create(&SandboxSpec::new(format!("docker://{BUSYBOX}")))
        .await
        .unwrap();
    assert_eq!(proxy.requests(PULL), 0);
    test.provider.close(&handle).await.unwrap();
}
