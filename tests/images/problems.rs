//! Every way in which an image can't be had, made to happen.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use gym_sandbox::provider::ImageProvider;
use gym_sandbox::{
    ErrorKind, ImageCallback, ImageEvent, ImageProblem, PullOptions, SandboxProvider, SandboxSpec,
};

use crate::common::{BUSYBOX, docker_with};
use crate::registry::{Access, Answer, FakeRegistry, Registry, TakenPort};
use crate::support::{assert_problem, config, docker};

const JSON: &str = "application/json";

fn error_answer(status: u16, code: &str, message: &str) -> Answer {
    (
        status,
        JSON,
        format!(r#"{{"errors":[{{"code":"{code}","message":"{message}"}}]}}"#),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_what_the_registry_does_not_have_is_not_found() {
    let (Some(test), Some(registry)) = (docker().await, Registry::start(Access::Everybody).await) else {
        return;
    };
    let image = format!("{}/no/such:1", registry.address());
    let error = test
        .provider
        .pull_image(&image, &PullOptions::default())
        .await
        .unwrap_err();
    assert_problem(&error, ImageProblem::NotFound);
    assert!(
        error.to_string().contains(&image) && !error.is_retryable(),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_rate_limit_is_waited_out_a_bounded_number_of_times() {
    let mut config = config();
    config.pull.rate_limit_attempts = 3;
    let Some(test) = docker_with(config).await else {
        return;
    };
    let registry = FakeRegistry::start(|path| match path {
        "/v2/" => (200, JSON, "{}".to_owned()),
        _ => error_answer(429, "TOOMANYREQUESTS", "slow down"),
    })
    .await;
    let image = format!("{}/limited:1", registry.address());
    let waited: Arc<Mutex<Vec<ImageEvent>>> = Arc::default();
    let seen = Arc::clone(&waited);
    let progress = ImageCallback::new(move |event| {
        if matches!(event, ImageEvent::Waiting(_)) {
            seen.lock().unwrap().push(event.clone());
        }
    });
    let options = PullOptions::default().with_progress(progress);
    let error = test.provider.pull_image(&image, &options).await.unwrap_err();
    assert_problem(&error, ImageProblem::RateLimited);
    assert!(error.is_retryable());
    let pause = |milliseconds| ImageEvent::Waiting(std::time::Duration::from_millis(milliseconds));
    assert_eq!(*waited.lock().unwrap(), [pause(50), pause(100)]);
    assert!(registry.requests("/manifests/") >= 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_rate_limit_that_ends_ends_the_waiting() {
    let Some(test) = docker().await else { return };
    let asked = Arc::new(AtomicUsize::new(0));
    let limited = Arc::clone(&asked);
    // The first two requests for the image are refused, whatever their method.
    let registry = FakeRegistry::start(move |path| match path {
        "/v2/" => (200, JSON, "{}".to_owned()),
        _ if limited.fetch_add(1, Ordering::SeqCst) < 2 => error_answer(429, "TOOMANYREQUESTS", "slow down"),
        _ => error_answer(404, "MANIFEST_UNKNOWN", "manifest unknown"),
    })
    .await;
    let image = format!("{}/limited:1", registry.address());
    let error = test
        .provider
        .pull_image(&image, &PullOptions::default())
        .await
        .unwrap_err();
    assert_problem(&error, ImageProblem::NotFound);
    assert!(asked.load(Ordering::SeqCst) > 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_an_image_for_other_platforms_only_is_a_platform_error() {
    let Some(test) = docker().await else { return };
    let list = format!(
        r#"{{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.list.v2+json","manifests":[
            {{"mediaType":"application/vnd.docker.distribution.manifest.v2+json","size":7,"digest":"sha256:{}",
              "platform":{{"architecture":"s390x","os":"linux"}}}}]}}"#,
        "1".repeat(64)
    );
    let registry = FakeRegistry::start(move |path| match path {
        "/v2/" => (200, JSON, "{}".to_owned()),
        _ => (
            200,
            "application/vnd.docker.distribution.manifest.list.v2+json",
            list.clone(),
        ),
    })
    .await;
    let image = format!("{}/other:1", registry.address());
    let error = test
        .provider
        .pull_image(&image, &PullOptions::default())
        .await
        .unwrap_err();
    assert_problem(&error, ImageProblem::Platform);
    // One that is there for another platform is not pulled, and never again and again.
    for other in ["linux/s390x", "linux/arm/v5"] {
        let options = PullOptions::default().with_platform(other);
        let error = test.provider.pull_image(BUSYBOX, &options).await.unwrap_err();
        assert_problem(&error, ImageProblem::Platform);
        assert!(error.to_string().contains(other), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_registry_that_is_not_there_is_offline() {
    let Some(test) = docker().await else { return };
    let port = TakenPort::new();
    let image = format!("127.0.0.1:{}/some/image:1", port.number());
    let error = test
        .provider
        .pull_image(&image, &PullOptions::default())
        .await
        .unwrap_err();
    assert_problem(&error, ImageProblem::Offline);
    assert!(error.is_retryable());
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_text_that_nobody_knows_is_an_image_error_with_that_text() {
    let Some(test) = docker().await else { return };
    let registry = FakeRegistry::start(|path| match path {
        "/v2/" => (200, JSON, "{}".to_owned()),
        _ => error_answer(418, "TEAPOT", "short and stout"),
    })
    .await;
    let image = format!("{}/tea:1", registry.address());
    let error = test.provider.create(&SandboxSpec::new(&image)).await.unwrap_err();
    assert_problem(&error, ImageProblem::Other);
    assert!(
        error.report().to_string().contains("short and stout"),
        "{}",
        error.report()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn b23_what_is_no_reference_is_refused_before_the_registry_is_asked() {
    let Some(test) = docker().await else { return };
    for image in ["A/B", "", "a b"] {
        let error = test
            .provider
            .pull_image(image, &PullOptions::default())
            .await
            .unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::Image(ImageProblem::InvalidReference),
            "{image}"
        );
    }
}
