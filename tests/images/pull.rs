//! Pulls from a registry that is there: once for all, told of, by policy, and over a connection that is cut.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::join_all;
use gym_sandbox::provider::ImageProvider;
use gym_sandbox::{
    ErrorKind, ImageCallback, ImageEvent, ImageProblem, LayerState, PullOptions, PullPolicy, SandboxProvider,
    SandboxSpec,
};

use crate::common::{docker_with, long_tests_are_wanted};
use crate::registry::{Access, CuttingProxy, Registry, Vanish, VanishingProxy};
use crate::support::{Images, assert_problem, config, docker, pushed};

/// How long the registry may take to note a request.
const NOTED: Duration = Duration::from_secs(60);

async fn sixteen_creates(layer_bytes: u64) {
    let (Some(test), Some(registry)) = (docker().await, Registry::start(Access::Everybody).await) else {
        return;
    };
    let mut images = Images::new();
    let image = pushed(&test, &mut images, &registry.address(), layer_bytes).await;
    let spec = SandboxSpec::new(&image);
    let creates = join_all((0..16).map(|_| test.provider.create(&spec))).await;
    let mut handles = Vec::new();
    for create in creates {
        handles.push(create.unwrap());
    }
    // The configuration and the two random layers; that of the base is there already. The registry notes what it has served
    // after it has served it.
    let deadline = Instant::now() + NOTED;
    while registry.downloads().len() < 3 {
        assert!(Instant::now() < deadline, "{:?}", registry.downloads());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let downloads = registry.downloads();
    assert!(downloads.values().all(|&count| count == 1), "{downloads:?}");
    for handle in handles {
        test.provider.close(&handle).await.unwrap();
    }
}

/// How often a manifest was asked for. One is so short that its answer leaves the registry when it has been noted.
fn manifests(registry: &Registry) -> usize {
    registry.requests_of("\"GET /v2/test/", "/manifests/")
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_sixteen_creates_at_once_download_each_layer_once() {
    sixteen_creates(10 << 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_sixteen_creates_at_once_download_300_mb_once() {
    if !long_tests_are_wanted() {
        eprintln!("skipped: GYM_SANDBOX_LONG is not 1");
        return;
    }
    sixteen_creates(150 << 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_pull_goes_on_when_who_began_it_goes_away() {
    let (Some(test), Some(registry)) = (docker().await, Registry::start(Access::Everybody).await) else {
        return;
    };
    let mut images = Images::new();
    let image = pushed(&test, &mut images, &registry.address(), 10 << 20).await;
    let (told, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let first = tokio::spawn({
        let (provider, image) = (Arc::clone(&test.provider), image.clone());
        async move {
            let progress = ImageCallback::new(move |event| {
                if matches!(event, ImageEvent::Layer { .. }) {
                    let _nobody = told.send(());
                }
            });
            let options = PullOptions::default().with_progress(progress);
            provider.pull_image(&image, &options).await
        }
    });
    begun.recv().await.unwrap();
    let (told, mut joined) = tokio::sync::mpsc::unbounded_channel();
    let second = tokio::spawn({
        let (provider, image) = (Arc::clone(&test.provider), image.clone());
        async move {
            let progress = ImageCallback::new(move |_| {
                let _nobody = told.send(());
            });
            let options = PullOptions::default().with_progress(progress);
            provider.pull_image(&image, &options).await
        }
    });
    // Nothing comes where the pull has ended already.
    joined.recv().await;
    first.abort();
    second.await.unwrap().unwrap();
    assert!(
        registry.downloads().values().all(|&count| count == 1),
        "{:?}",
        registry.downloads()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_pull_tells_of_each_layer() {
    let (Some(test), Some(registry)) = (docker().await, Registry::start(Access::Everybody).await) else {
        return;
    };
    let mut images = Images::new();
    let image = pushed(&test, &mut images, &registry.address(), 2 << 20).await;
    let events: Arc<Mutex<Vec<ImageEvent>>> = Arc::default();
    let seen = Arc::clone(&events);
    let progress = ImageCallback::new(move |event| seen.lock().unwrap().push(event.clone()));
    let detail = test
        .provider
        .pull_image(&image, &PullOptions::default().with_progress(progress))
        .await
        .unwrap();
    assert!(detail.references.contains(&image), "{detail:?}");
    assert_eq!(detail.digests.len(), 1);
    let events = events.lock().unwrap();
    let complete = events.iter().filter(|event| {
        matches!(
            event,
            ImageEvent::Layer {
                state: LayerState::Complete,
                ..
            }
        )
    });
    assert!(complete.count() >= 2, "{events:?}");
    let sizes = events.iter().any(|event| {
        matches!(event, ImageEvent::Layer { total_bytes: Some(total), current_bytes, .. } if current_bytes <= total)
    });
    assert!(sizes, "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_the_policy_says_whether_the_registry_is_asked() {
    let (Some(test), Some(registry)) = (docker().await, Registry::start(Access::Everybody).await) else {
        return;
    };
    let mut images = Images::new();
    let image = pushed(&test, &mut images, &registry.address(), 1000).await;
    let before = manifests(&registry);
    let never = PullOptions::default().with_policy(PullPolicy::Never);
    let error = test.provider.pull_image(&image, &never).await.unwrap_err();
    assert_problem(&error, ImageProblem::NotFound);
    assert_eq!(manifests(&registry), before, "never asks");
    let missing = PullOptions::default();
    let pulled = test.provider.pull_image(&image, &missing).await.unwrap();
    let asked = manifests(&registry);
    assert!(asked > before);
    for policy in [never, missing] {
        assert_eq!(test.provider.pull_image(&image, &policy).await.unwrap(), pulled);
    }
    assert_eq!(manifests(&registry), asked, "what is there is not asked for");
    let heads = registry.requests("\"HEAD /v2/test/");
    let always = PullOptions::default().with_policy(PullPolicy::Always);
    test.provider.pull_image(&image, &always).await.unwrap();
    assert!(
        manifests(&registry) + registry.requests("\"HEAD /v2/test/") > asked + heads,
        "always asks"
    );
    // By its digest, with and without a tag.
    let digest = pulled.digests[0].split_once('@').unwrap().1;
    let repository = image.rsplit_once(':').unwrap().0;
    images.remove(&image).await;
    let by_digest = images.add(format!("{repository}@{digest}"));
    let detail = test
        .provider
        .pull_image(&by_digest, &PullOptions::default())
        .await
        .unwrap();
    assert_eq!(detail.id, pulled.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_connection_that_is_cut_in_the_middle_is_gone_on_with() {
    let (Some(test), Some(registry)) = (docker().await, Registry::start(Access::Everybody).await) else {
        return;
    };
    let mut images = Images::new();
    let image = pushed(&test, &mut images, &registry.address(), 8 << 20).await;
    let proxy = CuttingProxy::start(registry.port(), 2 << 20, 1).await;
    let path = image.split_once('/').unwrap().1;
    let through = images.add(format!("{}/{path}", proxy.address()));
    let detail = test
        .provider
        .pull_image(&through, &PullOptions::default())
        .await
        .unwrap();
    assert_eq!(proxy.left(), 0, "it was cut");
    assert!(detail.size_bytes > 16 << 20, "{detail:?}");
}

/// The engine tries each layer again a few times by itself, for about a minute.
#[tokio::test(flavor = "multi_thread")]
async fn d12_a_registry_that_goes_away_for_good_in_the_middle_is_offline() {
    let (Some(test), Some(registry)) = (docker().await, Registry::start(Access::Everybody).await) else {
        return;
    };
    let mut images = Images::new();
    let image = pushed(&test, &mut images, &registry.address(), 8 << 20).await;
    let path = image.split_once('/').unwrap().1;
    let pulls = [Vanish::Refuse, Vanish::Close].map(async |how| {
        let proxy = VanishingProxy::start(registry.port(), 2 << 20, how).await;
        let through = format!("{}/{path}", proxy.address());
        let options = PullOptions::default();
        let pull = test.provider.pull_image(&through, &options);
        let pulled = tokio::time::timeout(Duration::from_secs(500), pull).await;
        let error = pulled.expect("it ends").unwrap_err();
        assert_problem(&error, ImageProblem::Offline);
        assert!(
            error.is_retryable() && error.to_string().contains(&through),
            "{error}"
        );
        assert_eq!(test.provider.find_image(&through, None).await.unwrap(), None);
    });
    join_all(pulls).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_registry_that_falls_silent_is_a_timeout_that_names_the_image() {
    let mut config = config();
    config.pull.stall_timeout = Duration::from_secs(5);
    let (Some(test), Some(registry)) = (
        docker_with(config).await,
        Registry::start(Access::Everybody).await,
    ) else {
        return;
    };
    let mut images = Images::new();
    let image = pushed(&test, &mut images, &registry.address(), 8 << 20).await;
    let path = image.split_once('/').unwrap().1;
    let proxy = VanishingProxy::start(registry.port(), 2 << 20, Vanish::Silence).await;
    let through = format!("{}/{path}", proxy.address());
    let options = PullOptions::default();
    let pull = test.provider.pull_image(&through, &options);
    let pulled = tokio::time::timeout(Duration::from_secs(300), pull).await;
    let error = pulled.expect("it ends").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{}", error.report());
    assert!(
        error.is_retryable() && error.to_string().contains(&through),
        "{error}"
    );
    assert!(
        error.hint().unwrap().contains("pull.stall_timeout_s"),
        "{:?}",
        error.hint()
    );
}
