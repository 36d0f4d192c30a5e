//! Snapshots and forks: what is in them, what is not, and that nothing is left.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gym_sandbox::provider::{ImageProvider, SnapshotProvider};
use gym_sandbox::{
    AsyncSandbox, ErrorKind, ExecOptions, ImageDetail, ImageProblem, SNAPSHOT_OPTION, SandboxHandle,
    SandboxProvider, SandboxSpec, SnapshotOptions,
};

use crate::common::{BUSYBOX, DockerTest, STATIC, cleaned_up, docker_with};
use crate::proxy::{Cut, Proxy};
use crate::support::{Images, config, docker};

async fn run(test: &DockerTest, handle: &SandboxHandle, line: &str) -> String {
    let result = test.provider.exec(handle, ExecOptions::new(line)).await.unwrap();
    assert!(result.is_success(), "{result:?}");
    result.stdout().unwrap()
}

async fn detail(test: &DockerTest, image: &str) -> ImageDetail {
    test.provider.find_image(image, None).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_snapshot_has_the_files_and_nothing_else_of_the_sandbox() {
    let Some(test) = docker().await else { return };
    let mut images = Images::new();
    let spec = SandboxSpec::new("gym-sandbox/user:test")
        .with_env("SECRET", "value-of-it")
        .with_metadata("of", "the sandbox")
        .with_ttl(Duration::from_secs(3600));
    let handle = test.provider.create(&spec).await.unwrap();
    run(
        &test,
        &handle,
        "echo kept > file; echo gone > /dev/shm/file; sleep 1000 > /dev/null 2>&1 &",
    )
    .await;
    let options = SnapshotOptions::default().with_label("mine", "1");
    let snapshot = test.provider.snapshot(&handle, &options).await.unwrap();
    images.add(&snapshot.id);
    assert_eq!(
        run(&test, &handle, "cat file").await,
        "kept\n",
        "the sandbox goes on"
    );
    test.provider.close(&handle).await.unwrap();

    let (base, kept) = (
        detail(&test, "gym-sandbox/user:test").await,
        detail(&test, &snapshot.id).await,
    );
    assert_eq!(
        (kept.entrypoint, kept.command, kept.user, kept.workdir),
        (base.entrypoint, base.command, base.user, base.workdir)
    );
    for (name, value) in [
        ("mine", "1"),
        ("gym-sandbox", "1"),
        ("gym-sandbox.kind", "snapshot"),
    ] {
        assert_eq!(kept.labels[name], value);
    }
    assert!(kept.labels.contains_key("gym-sandbox.owner"));
    for name in ["of", "gym-sandbox.expires"] {
        assert!(
            !kept.labels.contains_key(name),
            "{name} is the sandbox's: {:?}",
            kept.labels
        );
    }
    let client = crate::common::client().await.unwrap();
    let inspected = client.inspect_image(&snapshot.id).await.unwrap();
    let shown = format!("{:?}", inspected.config);
    assert!(!shown.contains("SECRET") && !shown.contains("sleep"), "{shown}");

    // The spec needs no image.
    let from = SandboxSpec::default().with_provider_option(SNAPSHOT_OPTION, snapshot.id.as_str());
    let second = test.provider.create(&from).await.unwrap();
    let seen = run(
        &test,
        &second,
        "cat file; id -u; pwd; ls /dev/shm; echo ${SECRET-none}; ps | grep -c '[s]leep 1000' || :",
    )
    .await;
    assert_eq!(seen, "kept\n1001\n/home/tester\nnone\n0\n");
    let error = test.provider.delete_snapshot(&snapshot.id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    test.provider.close(&second).await.unwrap();
    assert!(test.provider.delete_snapshot(&snapshot.id).await.unwrap());
    assert!(!test.provider.delete_snapshot(&snapshot.id).await.unwrap());
    let error = test.provider.create(&from).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Image(ImageProblem::NotFound), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_an_image_without_an_entrypoint_keeps_none_and_entrypoints_are_kept() {
    let Some(test) = docker().await else { return };
    let mut images = Images::new();
    for (image, spec) in [
        (
            STATIC,
            SandboxSpec::new(STATIC).with_entrypoint(["/static", "sleep"]),
        ),
        (
            "gym-sandbox/entrypoint:test",
            SandboxSpec::new("gym-sandbox/entrypoint:test"),
        ),
        (
            "gym-sandbox/volume:test",
            SandboxSpec::new("gym-sandbox/volume:test"),
        ),
    ] {
        let handle = test.provider.create(&spec).await.unwrap();
        let snapshot = test
            .provider
            .snapshot(&handle, &SnapshotOptions::default())
            .await
            .unwrap();
        images.add(&snapshot.id);
        test.provider.close(&handle).await.unwrap();
        let (base, kept) = (detail(&test, image).await, detail(&test, &snapshot.id).await);
        assert_eq!(
            (&kept.entrypoint, &kept.command),
            (&base.entrypoint, &base.command),
            "{image}"
        );
        assert!(test.provider.delete_snapshot(&snapshot.id).await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_snapshot_of_an_engine_that_loads_no_image_has_no_value_of_the_environment() {
    let Some(proxy) = Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    let mut config = config();
    config.host = Some(proxy.address());
    let Some(test) = docker_with(config).await else {
        return;
    };
    let mut images = Images::new();
    let spec = test
        .spec()
        .with_env("SECRET", "value-of-it")
        .with_ttl(Duration::from_secs(3600));
    let handle = test.provider.create(&spec).await.unwrap();
    run(&test, &handle, "echo kept > /file").await;
    // The first is not done, the second is done without an answer.
    for (cut, labels) in [(Cut::Refuse, 1), (Cut::AfterAnswer, 2)] {
        proxy.cut("/images/load", cut);
        let snapshot = test
            .provider
            .snapshot(&handle, &SnapshotOptions::default())
            .await
            .unwrap();
        images.add(&snapshot.id);
        assert_eq!(proxy.requests("/images/load"), labels);
        let client = crate::common::client().await.unwrap();
        let inspected = client.inspect_image(&snapshot.id).await.unwrap();
        let shown = format!("{:?}", inspected.config);
        assert!(!shown.contains("value-of-it"), "{shown}");
        let kept = detail(&test, &snapshot.id).await;
        assert_eq!(kept.labels["gym-sandbox.kind"], "snapshot");
        let expires = kept.labels.get("gym-sandbox.expires").map_or("", String::as_str);
        assert_eq!(expires, "", "it has no end of its own");

        let from = SandboxSpec::default().with_provider_option(SNAPSHOT_OPTION, snapshot.id.as_str());
        let second = test.provider.create(&from).await.unwrap();
        assert_eq!(
            run(&test, &second, "cat /file; echo \"[$SECRET]\"; ls -d /bin").await,
            "kept\n[]\n/bin\n"
        );
        test.provider.close(&second).await.unwrap();
        assert!(test.provider.delete_snapshot(&snapshot.id).await.unwrap());
        let tag = snapshot.id.split_once(':').unwrap().1;
        assert_eq!(labelled(&format!("gym-sandbox.snapshot={tag}")).await, [""; 0]);
    }
    test.provider.close(&handle).await.unwrap();
}

/// The ids of all images with a label.
async fn labelled(label: &str) -> Vec<String> {
    let filters = std::collections::HashMap::from([("label", vec![label.to_owned()])]);
    let options = bollard::query_parameters::ListImagesOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    let client = crate::common::client().await.unwrap();
    let images = client.list_images(Some(options)).await.unwrap();
    images.into_iter().map(|image| image.id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_snapshots_are_listed_and_only_snapshots_are_deleted() {
    let Some(test) = docker().await else { return };
    let mut images = Images::new();
    let handle = test.provider.create(&test.spec()).await.unwrap();
    let first = test
        .provider
        .snapshot(&handle, &SnapshotOptions::default())
        .await
        .unwrap();
    images.add(&first.id);
    let second = test
        .provider
        .snapshot(&handle, &SnapshotOptions::default())
        .await
        .unwrap();
    images.add(&second.id);
    let listed = test.provider.list_snapshots().await.unwrap();
    let place = |id: &str| listed.iter().position(|snapshot| snapshot.id == id).unwrap();
    assert!(place(&first.id) < place(&second.id), "the oldest first");
    assert_eq!(listed[place(&first.id)].created, first.created);
    for id in [BUSYBOX, "nonsense", ""] {
        let error = test.provider.delete_snapshot(id).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{id}");
        let spec = SandboxSpec::default().with_provider_option(SNAPSHOT_OPTION, id);
        let error = test.provider.create(&spec).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{id}");
    }
    test.provider.close(&handle).await.unwrap();
    let error = test
        .provider
        .snapshot(&handle, &SnapshotOptions::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_cancelled_snapshot_leaves_nothing() {
    let Some(test) = docker().await else { return };
    let handle = test.provider.create(&test.spec()).await.unwrap();
    run(
        &test,
        &handle,
        "dd if=/dev/urandom of=/large bs=1M count=20 2> /dev/null",
    )
    .await;
    for milliseconds in [0, 5, 40, 150, 400] {
        let options = SnapshotOptions::default().with_label("of", test.label());
        let taking = tokio::time::timeout(
            Duration::from_millis(milliseconds),
            test.provider.snapshot(&handle, &options),
        );
        if let Ok(taken) = taking.await {
            let taken = taken.unwrap();
            assert!(test.provider.delete_snapshot(&taken.id).await.unwrap());
        }
    }
    cleaned_up(&test.provider).await;
    let left = labelled(&format!("of={}", test.label())).await;
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(
        run(&test, &handle, "echo on").await,
        "on\n",
        "it does not stay paused"
    );
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_fork_is_many_sandboxes_of_one_and_stops_without_a_rest() {
    let Some(test) = docker().await else { return };
    let provider = Arc::clone(&test.provider) as Arc<dyn SandboxProvider>;
    let spec = test
        .spec()
        .with_workdir("/work")
        .with_file("/work/from-spec", "1")
        .with_env("A", "b");
    let sandbox = AsyncSandbox::new(provider).with_spec(spec);
    let error = sandbox.fork(2).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotStarted);
    sandbox.start().await.unwrap();
    sandbox.exec("echo prepared > setup; rm from-spec").await.unwrap();
    let mut fork = sandbox.fork(3).await.unwrap();
    assert_eq!(fork.sandboxes().len(), 3);
    for (number, one) in fork.sandboxes().iter().enumerate() {
        let line = format!("cat setup; ls; echo $A; echo {number} > setup");
        let result = one.exec(line).await.unwrap();
        assert_eq!(
            result.stdout().unwrap(),
            "prepared\nsetup\nb\n",
            "each has its own files"
        );
    }
    let snapshot = fork.snapshot().id.clone();
    assert!(is_listed(&test, &snapshot).await);
    fork.stop().await.unwrap();
    fork.stop().await.unwrap();
    assert!(!is_listed(&test, &snapshot).await);

    // One that is dropped goes in the background.
    let fork = sandbox.fork(1).await.unwrap();
    let snapshot = fork.snapshot().id.clone();
    drop(fork);
    sandbox.stop().await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(180);
    while is_listed(&test, &snapshot).await {
        assert!(
            Instant::now() < deadline,
            "the snapshot of a dropped fork is left"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn is_listed(test: &DockerTest, id: &str) -> bool {
    let listed = test.provider.list_snapshots().await.unwrap();
    listed.iter().any(|snapshot| snapshot.id == id)
}
