//! The decorator passes every call on, once, and changes nothing.

use std::path::Path;
use std::sync::Arc;

use crate::error::{ErrorKind, Operation};
use crate::provider::{SandboxHandle, SandboxProvider, Traced};
use crate::spec::container::{ContainerSpec, NetworkSpec, VolumeSpec};
use crate::spec::{
    BuildSpec, DownloadOptions, DownloadTarget, ExecOptions, Ports, PrefetchOptions, PullOptions, RemoveMode,
    SandboxFilter, SandboxId, SandboxSpec, SandboxStatus, SnapshotOptions, SweepOptions, UploadOptions,
    UploadSource,
};

use super::scripted::{Call, NAME, Scripted, Seen, Step};

fn pair() -> (Arc<Scripted>, Traced) {
    let inner = Scripted::new();
    let outer = Traced::new(Arc::clone(&inner) as Arc<dyn SandboxProvider>);
    (inner, outer)
}

async fn images_and_snapshots(outer: &Traced, handle: &SandboxHandle) {
    let images = outer.as_images().unwrap();
    images.pull_image("a", &PullOptions::default()).await.unwrap();
    let both = ["a".to_owned(), "b".to_owned()];
    images
        .prefetch_images(&both, &PrefetchOptions::default())
        .await
        .unwrap();
    images
        .build_image(&BuildSpec::inline("FROM a").with_tag("t:1"))
        .await
        .unwrap();
    assert_eq!(images.find_image("a", None).await.unwrap(), None);
    assert!(!images.remove_image("a").await.unwrap());
    let snapshots = outer.as_snapshot().unwrap();
    snapshots
        .snapshot(handle, &SnapshotOptions::default())
        .await
        .unwrap();
    snapshots.list_snapshots().await.unwrap();
    assert!(snapshots.delete_snapshot("s").await.unwrap());
}

#[tokio::test]
async fn every_call_about_containers_reaches_the_inner_provider_once() {
    let (inner, outer) = pair();
    let containers = outer.as_containers().unwrap();
    let mut spec = ContainerSpec::new("image");
    spec.name = Some("c".to_owned());
    let labels = std::collections::BTreeMap::new();
    assert_eq!(containers.create_container(&spec).await.unwrap(), "c");
    containers.start_container("c").await.unwrap();
    containers.stop_container("c", None).await.unwrap();
    containers.kill_container("c", None).await.unwrap();
    containers.remove_container("c").await.unwrap();
    assert_eq!(containers.inspect_container("c").await.unwrap(), None);
    assert!(containers.last_log_lines("c").await.is_empty());
    assert!(containers.list_containers(&labels).await.unwrap().is_empty());
    drop(containers.container_events(&labels).await.unwrap());
    let handle = containers.container_handle("c", &Ports::default()).await.unwrap();
    assert_eq!(handle.sandbox_id().as_str(), "c");
    containers.create_network(&NetworkSpec::new("n")).await.unwrap();
    assert!(containers.find_networks("n").await.unwrap().is_empty());
    assert!(containers.list_networks(&labels).await.unwrap().is_empty());
    containers.remove_network("n").await.unwrap();
    containers.create_volume(&VolumeSpec::new("v")).await.unwrap();
    assert_eq!(containers.find_volume("v").await.unwrap(), None);
    assert!(containers.list_volumes(&labels).await.unwrap().is_empty());
    containers.remove_volume("v").await.unwrap();
    let calls = [
        ("create container", "c"),
        ("start container", "c"),
        ("stop container", "c"),
        ("kill container", "c"),
        ("remove container", "c"),
        ("inspect container", "c"),
        ("log lines", "c"),
        ("list containers", ""),
        ("events", ""),
        ("handle", "c"),
        ("create network", "n"),
        ("find networks", "n"),
        ("list networks", ""),
        ("remove network", "n"),
        ("create volume", "v"),
        ("find volume", "v"),
        ("list volumes", ""),
        ("remove volume", "v"),
    ];
    let expected = calls.map(|(what, object)| Call::Containers(what, object.to_owned()));
    assert_eq!(inner.calls(), expected);
}

#[tokio::test]
async fn every_call_reaches_the_inner_provider_once() {
    let (inner, outer) = pair();
    assert_eq!(outer.name(), NAME);
    let handle = outer.create(&SandboxSpec::new("image")).await.unwrap();
    let options = || ExecOptions::new("true").with_cwd("/w").with_env("A", "b");
    outer.exec(&handle, options()).await.unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    outer.upload_file(&handle, file.path(), "/up").await.unwrap();
    outer
        .download_file(&handle, "/down", Path::new("down"))
        .await
        .unwrap();
    assert_eq!(outer.status(&handle).await.unwrap(), SandboxStatus::Paused);
    outer
        .as_spawn()
        .unwrap()
        .spawn(&handle, options())
        .await
        .unwrap_err();
    assert_eq!(
        outer
            .as_endpoint()
            .unwrap()
            .endpoint(&handle, 80)
            .await
            .unwrap()
            .endpoint(),
        "http://127.0.0.1:80"
    );
    outer.as_inspect().unwrap().inspect(&handle).await.unwrap();
    let (files, options_up) = (outer.as_files().unwrap(), UploadOptions::default());
    files
        .upload(&handle, UploadSource::Path(Path::new("dir")), "/dir", &options_up)
        .await
        .unwrap();
    let target = DownloadTarget::Path(Path::new("dir"));
    files
        .download(&handle, "/dir", target, &DownloadOptions::default())
        .await
        .unwrap();
    files.stat(&handle, "/s").await.unwrap();
    files.list(&handle, "/l").await.unwrap();
    files.remove(&handle, "/r", RemoveMode::One).await.unwrap();
    files.make_directory(&handle, "/m", &options_up).await.unwrap();
    images_and_snapshots(&outer, &handle).await;
    let filter = SandboxFilter::default();
    outer.as_list().unwrap().list_sandboxes(&filter).await.unwrap();
    let sweeping = outer.as_sweep().unwrap();
    sweeping.sweep(&SweepOptions::default()).await.unwrap();
    sweeping.remove_own().await.unwrap();
    outer.close(&handle).await.unwrap();
    outer.aclose().await.unwrap();
    let seen = Seen::from(&options());
    assert_eq!(
        inner.calls(),
        [
            Call::Create(Some("image".to_owned())),
            Call::Exec(seen.clone()),
            Call::Upload("/up".to_owned(), String::new()),
            Call::Download("/down".to_owned()),
            Call::Status,
            Call::Spawn(seen),
            Call::Endpoint(80),
            Call::Inspect,
            Call::Upload("/dir".to_owned(), "dir".to_owned()),
            Call::Download("/dir".to_owned()),
            Call::Files("stat", "/s".to_owned()),
            Call::Files("list", "/l".to_owned()),
            Call::Files("remove", "/r".to_owned()),
            Call::Files("make_directory", "/m".to_owned()),
            Call::Images("pull", "a".to_owned()),
            Call::Images("prefetch", "a b".to_owned()),
            Call::Images("build", "t:1".to_owned()),
            Call::Images("find", "a".to_owned()),
            Call::Images("remove", "a".to_owned()),
            Call::Snapshot("make", "box-1".to_owned()),
            Call::Snapshot("list", String::new()),
            Call::Snapshot("delete", "s".to_owned()),
            Call::Upkeep("list"),
            Call::Upkeep("sweep"),
            Call::Upkeep("remove_own"),
            Call::Close("box-1".to_owned()),
            Call::Aclose,
        ]
    );
}

#[tokio::test]
async fn errors_come_through_unchanged() {
    let (inner, outer) = pair();
    let handle = SandboxHandle::new(SandboxId::new("box-1").unwrap(), NAME);
    for operation in [
        Operation::Create,
        Operation::Exec,
        Operation::Close,
        Operation::Stop,
    ] {
        inner.script(operation, [Step::Fail(ErrorKind::Conflict)]);
    }
    let errors = [
        outer.create(&SandboxSpec::default()).await.err().unwrap(),
        outer.exec(&handle, ExecOptions::new("true")).await.err().unwrap(),
        outer.close(&handle).await.err().unwrap(),
        outer.aclose().await.err().unwrap(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.to_string().ends_with("the script says so"), "{error}");
    }
}
