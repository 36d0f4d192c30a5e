//! Many images at once, by the library and by the command.

use std::process::Command;

use gym_sandbox::provider::ImageProvider;
use gym_sandbox::{ErrorKind, ImageProblem, PrefetchOptions, Prefetched, Resource};

use crate::common::BUSYBOX;
use crate::registry::{Access, Registry};
use crate::support::{Images, docker, pushed};

#[tokio::test(flavor = "multi_thread")]
async fn d35_each_image_is_told_of_in_its_place() {
    let (Some(test), Some(registry)) = (docker().await, Registry::start(Access::Everybody).await) else {
        return;
    };
    let mut images = Images::new();
    let image = pushed(&test, &mut images, &registry.address(), 100_000).await;
    let missing = format!("{}/no/such:1", registry.address());
    let wanted = [BUSYBOX.to_owned(), missing.clone(), image.clone()];
    let outcomes = test
        .provider
        .prefetch_images(&wanted, &PrefetchOptions::default().with_min_free_bytes(1))
        .await
        .unwrap();
    let [
        Prefetched::Present(_),
        Prefetched::Failed(error),
        Prefetched::Pulled(pulled),
    ] = outcomes.as_slice()
    else {
        panic!("{outcomes:?}");
    };
    assert_eq!(error.kind(), ErrorKind::Image(ImageProblem::NotFound));
    assert!(error.to_string().contains(&missing), "{error}");
    assert!(pulled.references.contains(&image));

    // One that is no reference stops it before anything is pulled.
    images.remove(&image).await;
    let wanted = [image.clone(), "A/B".to_owned()];
    let error = test
        .provider
        .prefetch_images(&wanted, &PrefetchOptions::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Image(ImageProblem::InvalidReference));
    assert_eq!(test.provider.find_image(&image, None).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_without_room_on_the_disk_nothing_is_pulled() {
    let (Some(test), Some(registry)) = (docker().await, Registry::start(Access::Everybody).await) else {
        return;
    };
    if !test.provider.diagnose().await.unwrap().is_local {
        eprintln!("skipped: the engine's disk can't be seen");
        return;
    }
    let mut images = Images::new();
    let image = pushed(&test, &mut images, &registry.address(), 1000).await;
    let options = PrefetchOptions::default().with_min_free_bytes(u64::MAX / 2);
    let outcomes = test
        .provider
        .prefetch_images(std::slice::from_ref(&image), &options)
        .await
        .unwrap();
    let [Prefetched::Failed(error)] = outcomes.as_slice() else {
        panic!("{outcomes:?}");
    };
    assert_eq!(
        error.kind(),
        ErrorKind::ResourceExhausted(Resource::Disk),
        "{error}"
    );
    assert_eq!(registry.requests("\"GET /v2/test/"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_the_command_prints_what_became_of_each_image() {
    let (Some(test), Some(registry)) = (docker().await, Registry::start(Access::Everybody).await) else {
        return;
    };
    let mut images = Images::new();
    let image = pushed(&test, &mut images, &registry.address(), 1000).await;
    let missing = format!("{}/no/such:1", registry.address());
    let run = |arguments: Vec<String>| async move {
        let run = move || {
            Command::new(env!("CARGO_BIN_EXE_gym-sandbox"))
                .args(arguments)
                .env("DOCKER_CONFIG", "/nonexistent")
                .output()
                .unwrap()
        };
        tokio::task::spawn_blocking(run).await.unwrap()
    };
    let output = run(vec!["prefetch".into(), image.clone(), BUSYBOX.into()]).await;
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = said
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows, [[image.as_str(), "pulled"], [BUSYBOX, "present"]]);
    assert!(
        output.stderr.is_empty(),
        "no progress where there is no terminal: {:?}",
        output.stderr
    );

    let output = run(vec![
        "--json".into(),
        "prefetch".into(),
        missing.clone(),
        image.clone(),
    ])
    .await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["images"][0]["image"], missing.as_str());
    assert_eq!(json["images"][0]["outcome"], "failed");
    assert_eq!(json["images"][1]["outcome"], "present");
    let output = run(vec!["prefetch".into(), "A/B".into()]).await;
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("A/B"));
}
