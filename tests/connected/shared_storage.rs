//! Shared storage on the engine: a folder of its machine, and a volume; what the conformance suite does not see.

use std::sync::Arc;

use bollard::query_parameters::RemoveVolumeOptions;
use gym_sandbox::docker::{DockerConfig, DockerRaw};
use gym_sandbox::provider::{SharedAccess, SharedStorageProvider};
use gym_sandbox::{AsyncSandbox, ErrorKind, ExecPath, PathProblem, SandboxProvider};

use crate::common::{DockerTest, busybox, client, config, docker_with};
use crate::stdout;

/// A folder of the engine's machine, which is this one.
async fn with_folder() -> Option<(DockerTest, tempfile::TempDir)> {
    let folder = tempfile::tempdir().unwrap();
    let mut config: DockerConfig = config();
    config.shared_storage.host_path = Some(folder.path().to_str().unwrap().to_owned());
    Some((docker_with(config).await?, folder))
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_a_folder_of_the_host_is_shared_by_its_name_alone() {
    let Some((test, folder)) = with_folder().await else {
        return;
    };
    std::fs::create_dir_all(folder.path().join("p/data")).unwrap();
    let options = test
        .provider
        .shared_volume_options(Some("p/data"), "/data", SharedAccess::ReadWrite)
        .unwrap();
    let spec = busybox()
        .with_provider_option("volumes", "/own")
        .with_added_provider_options(options);
    let handle = test.provider.create(&spec).await.unwrap();
    stdout(
        &test.provider,
        &handle,
        "echo from inside > /data/file; test -d /own",
    )
    .await;
    assert_eq!(
        std::fs::read_to_string(folder.path().join("p/data/file")).unwrap(),
        "from inside\n"
    );
    // Who sees the engine's machine does not get the volume that all sandboxes share.
    assert_eq!(handle.raw::<DockerRaw>().unwrap().exec_path(), ExecPath::Engine);
    test.provider.close(&handle).await.unwrap();
    // The storage is no way around the policy.
    let path = folder.path().to_str().unwrap();
    let by_path = busybox().with_provider_option("volumes", format!("{path}/p/data:/data"));
    let error = test.provider.create(&by_path).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("policy"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_a_link_that_a_sandbox_planted_leads_no_other_sandbox_out() {
    let Some((test, folder)) = with_folder().await else {
        return;
    };
    std::fs::create_dir_all(folder.path().join("p/data")).unwrap();
    let share = |source: &str, target: &str| {
        test.provider
            .shared_volume_options(Some(source), target, SharedAccess::ReadWrite)
            .unwrap()
    };
    let spec = busybox().with_added_provider_options(share("p", "/p"));
    let planter = test.provider.create(&spec).await.unwrap();
    stdout(
        &test.provider,
        &planter,
        "ln -s /etc /p/etc; ln -s / /p/data/root; ln -s data /p/link; echo x > /p/file",
    )
    .await;
    for (source, problem) in [
        ("p/etc", PathProblem::Permission),
        ("p/data/root", PathProblem::Permission),
        ("p/data/root/etc", PathProblem::Permission),
        ("p/link", PathProblem::Permission),
        ("p/file", PathProblem::NotADirectory),
    ] {
        let spec = busybox()
            .with_added_provider_options(share("p/data", "/good"))
            .with_added_provider_options(share(source, "/data"));
        let error = test.provider.create(&spec).await.unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::Path(problem),
            "{source}: {}",
            error.report()
        );
        assert!(error.to_string().contains(source), "{error}");
    }
    // The engine itself names one that is missing.
    let spec = busybox().with_added_provider_options(share("p/none", "/data"));
    let error = test.provider.create(&spec).await.unwrap_err();
    assert!(error.kind().is_create_failure(), "{}", error.report());
    assert!(!folder.path().join("p/none").exists(), "it is not made");
    test.provider.close(&planter).await.unwrap();
    test.provider.aclose().await.unwrap();
    assert_eq!(
        test.containers().await,
        Vec::<String>::new(),
        "also no container that looked"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_is_shared_as_a_whole_and_its_folders_where_the_engine_can() {
    let volume = format!("gym-sandbox-test-{}", uuid::Uuid::new_v4().simple());
    let mut config = config();
    config.shared_storage.volume = Some(volume.clone());
    let Some(test) = docker_with(config).await else {
        return;
    };
    let share = |source, target| {
        test.provider
            .shared_volume_options(source, target, SharedAccess::ReadWrite)
            .unwrap()
    };
    let provider: Arc<dyn SandboxProvider> = test.provider.clone();
    // The image has files in its `/data`: they don't get into the storage.
    let spec = gym_sandbox::SandboxSpec::new("gym-sandbox/volume:test")
        .with_added_provider_options(share(None, "/data"));
    let all = AsyncSandbox::new(Arc::clone(&provider)).with_spec(spec);
    all.start().await.unwrap();
    let seen = all
        .exec("ls -A /data; mkdir /data/sub; echo y > /data/sub/file")
        .await
        .unwrap();
    assert_eq!(seen.stdout().as_deref(), Some(""), "{seen:?}");
    let spec = busybox().with_added_provider_options(share(Some("sub"), "/sub"));
    let part = AsyncSandbox::new(provider).with_spec(spec);
    match part.start().await {
        Ok(_) => {
            let seen = part.exec("cat /sub/file").await.unwrap();
            assert_eq!(seen.stdout().as_deref(), Some("y\n"));
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{}", error.report());
            assert!(error.report().to_string().contains("1.45"), "{}", error.report());
        }
    }
    part.stop().await.unwrap();
    all.stop().await.unwrap();
    client()
        .await
        .unwrap()
        .remove_volume(&volume, None::<RemoveVolumeOptions>)
        .await
        .unwrap();
}
