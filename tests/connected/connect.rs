//! Handing a sandbox over to another process, and taking one over from a dead one (K6-K9, E6, L17, D23).

use std::collections::HashMap;
use std::process::Stdio;

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{CreateContainerOptionsBuilder, KillContainerOptions, StartContainerOptions};
use gym_sandbox::docker::{DockerConfig, DockerProvider, ExecPathPolicy};
use gym_sandbox::provider::{ConnectableProvider, ForeignSandboxes};
use gym_sandbox::{
    AsyncSandbox, ConnectOptions, ErrorKind, SandboxDescriptor, SandboxProvider, SandboxReason, SandboxStatus,
};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::common::{BUSYBOX, TEST_LABEL, busybox, client, docker, docker_with};
use crate::{LIMIT, both_paths, container_id, stdout, until};

/// What tells the child process which way commands are run, and the label of the test that removes what it leaves.
const CHILD_PATH: &str = "CONNECTED_CHILD_EXEC_PATH";
const CHILD_LABEL: &str = "CONNECTED_CHILD_LABEL";

/// Not a test: the process that creates a sandbox and is killed. Run by the next one.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by another test in a process of its own"]
#[allow(clippy::print_stdout, reason = "the parent reads the descriptor")]
async fn child_that_creates_and_is_killed() {
    let Ok(label) = std::env::var(CHILD_LABEL) else {
        return;
    };
    let mut config = DockerConfig::default();
    config.default_metadata.insert(TEST_LABEL.to_owned(), label);
    if std::env::var(CHILD_PATH).as_deref() == Ok("agent") {
        config.exec.exec_path = ExecPathPolicy::Agent;
    }
    let provider = DockerProvider::connect(config).await.unwrap();
    let spec = busybox()
        .with_ports([8000])
        .unwrap()
        .with_workdir("/work")
        .with_env("TOKEN", "of-the-creator");
    let sandbox = AsyncSandbox::new(std::sync::Arc::new(provider)).with_spec(spec);
    sandbox.start().await.unwrap();
    let descriptor = sandbox.serialize(None).await.unwrap();
    let endpoint = sandbox.endpoint(8000).await.unwrap();
    // A connection to an agent is open, and a command runs, when the process is killed.
    let line = "echo data > file; httpd -p 8000 -h /work; sleep 1000";
    let running = sandbox.exec(line);
    let said = json!({"descriptor": descriptor.to_value(), "endpoint": endpoint.endpoint()});
    println!("\nCHILD {said}");
    running.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn k06_k07_e06_a_sandbox_whose_creator_was_killed_is_taken_over_used_and_removed() {
    for config in both_paths() {
        let path = config.exec.exec_path;
        let Some(test) = docker_with(config.clone()).await else {
            return;
        };
        let mut child = tokio::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "connect::child_that_creates_and_is_killed",
                "--ignored",
                "--nocapture",
            ])
            .env(CHILD_LABEL, test.label())
            .env(
                CHILD_PATH,
                if path == ExecPathPolicy::Agent {
                    "agent"
                } else {
                    "engine"
                },
            )
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = loop {
            let line = tokio::time::timeout(LIMIT, lines.next_line())
                .await
                .unwrap()
                .unwrap();
            if let Some(said) = line.expect("the child says it").strip_prefix("CHILD ") {
                break serde_json::from_str::<serde_json::Value>(said).unwrap();
            }
        };
        assert!(!said.to_string().contains("of-the-creator"), "no secret: {said}");
        let descriptor = SandboxDescriptor::from_value(said["descriptor"].clone()).unwrap();
        let other = DockerProvider::connect(config).await.unwrap();
        let handle = other
            .connect_handle(&descriptor, ForeignSandboxes::Refuse)
            .await
            .unwrap();
        until("the creator's command runs", async || {
            stdout(&other, &handle, "cat /work/file 2>/dev/null; true").await == "data\n"
        })
        .await;
        child.kill().await.unwrap();

        let sandbox = AsyncSandbox::connect(test.provider.clone(), &descriptor)
            .await
            .unwrap();
        let result = sandbox.exec("pwd; cat file; echo $TOKEN").await.unwrap();
        assert_eq!(
            result.stdout().as_deref(),
            Some("/work\ndata\nof-the-creator\n"),
            "{result:?}"
        );
        assert_eq!(sandbox.serialize(None).await.unwrap(), descriptor);
        assert_eq!(
            sandbox.endpoint(8000).await.unwrap().endpoint(),
            said["endpoint"].as_str().unwrap()
        );
        assert_eq!(
            sandbox.endpoint(8001).await.unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
        sandbox.stop().await.unwrap();
        assert_eq!(test.containers().await, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l17_a_borrower_leaves_the_sandbox_to_its_owner() {
    let Some(test) = docker().await else { return };
    let owner = AsyncSandbox::new(test.provider.clone()).with_spec(busybox());
    owner.start().await.unwrap();
    let descriptor = owner.serialize(None).await.unwrap();
    let borrower = DockerProvider::connect(DockerConfig::default()).await.unwrap();
    let options = ConnectOptions::new().with_owned_provider();
    let lent = AsyncSandbox::connect_with(std::sync::Arc::new(borrower), &descriptor, &options)
        .await
        .unwrap();
    lent.exec("echo lent > /tmp/lent").await.unwrap();
    lent.disconnect().await.unwrap();
    drop(lent);
    let dropped = AsyncSandbox::connect(test.provider.clone(), &descriptor)
        .await
        .unwrap();
    drop(dropped);
    assert_eq!(
        owner.exec("cat /tmp/lent").await.unwrap().stdout().as_deref(),
        Some("lent\n")
    );
    owner.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn k09_only_what_runs_or_is_paused_is_connected_to() {
    let Some(test) = docker().await else { return };
    let owner = AsyncSandbox::new(test.provider.clone()).with_spec(busybox());
    owner.start().await.unwrap();
    let mut descriptor = owner.serialize(None).await.unwrap();
    let connect = |descriptor: SandboxDescriptor| {
        let provider = test.provider.clone();
        async move {
            provider
                .connect_handle(&descriptor, ForeignSandboxes::Refuse)
                .await
        }
    };
    owner.pause().await.unwrap();
    let paused = connect(descriptor.clone()).await.unwrap();
    assert_eq!(
        test.provider.status(&paused).await.unwrap(),
        SandboxStatus::Paused
    );
    owner.resume().await.unwrap();
    let raw = client().await.unwrap();
    let handle = owner.handle().unwrap();
    raw.kill_container(container_id(&handle), None::<KillContainerOptions>)
        .await
        .unwrap();
    until("it has ended", async || {
        test.provider.status(&handle).await.unwrap() == SandboxStatus::Stopped
    })
    .await;
    let error = connect(descriptor.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Sandbox(SandboxReason::NotRunning));
    owner.stop().await.unwrap();
    descriptor.engine = Some("tcp://elsewhere:2375".to_owned());
    let error = connect(descriptor).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error.hint().unwrap().contains("tcp://elsewhere:2375"),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn k08_the_beginning_of_an_id_is_nobodys() {
    let Some(test) = docker().await else { return };
    let owner = AsyncSandbox::new(test.provider.clone()).with_spec(busybox());
    owner.start().await.unwrap();
    let handle = owner.handle().unwrap();
    let (id, name) = (container_id(&handle), handle.sandbox_id().as_str());
    for whole in [id, name] {
        let found = test.provider.attach(whole).await.unwrap();
        assert_eq!(found.sandbox_id(), handle.sandbox_id());
        assert_eq!(
            test.provider.describe(whole).await.unwrap().sandbox_id,
            *handle.sandbox_id()
        );
    }
    for beginning in [&id[..12], &id[..63]] {
        let error = test.provider.attach(beginning).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{}", error.report());
        assert!(error.hint().unwrap().contains("last digit"), "{error:?}");
        assert!(test.provider.find(beginning).await.is_err());
        assert!(!test.provider.remove(beginning).await.unwrap());
    }
    assert!(owner.exec("true").await.unwrap().is_success());
    owner.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d23_somebody_elses_container_is_taken_only_where_that_is_allowed() {
    let Some(test) = docker().await else { return };
    let raw = client().await.unwrap();
    let name = format!("test-foreign-{}", uuid::Uuid::new_v4().simple());
    let body = ContainerCreateBody {
        image: Some(BUSYBOX.to_owned()),
        cmd: Some(vec!["sleep".to_owned(), "1000".to_owned()]),
        // The guard of the test finds it by this.
        labels: Some(HashMap::from([(TEST_LABEL.to_owned(), test.label().to_owned())])),
        ..ContainerCreateBody::default()
    };
    let options = CreateContainerOptionsBuilder::new().name(&name).build();
    raw.create_container(Some(options), body).await.unwrap();
    let descriptor = SandboxDescriptor::from_value(json!(name)).unwrap();
    let allowed = ConnectOptions::new().with_foreign_allowed();
    let connect = |options: ConnectOptions| {
        let (provider, descriptor) = (test.provider.clone(), descriptor.clone());
        async move { AsyncSandbox::connect_with(provider, &descriptor, &options).await }
    };
    // A created one is refused for its state.
    let error = connect(allowed).await.unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Sandbox(SandboxReason::NotRunning),
        "{error:?}"
    );
    raw.start_container(&name, None::<StartContainerOptions>)
        .await
        .unwrap();
    let error = connect(ConnectOptions::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(
        error.hint().is_some_and(|hint| hint.contains("allow")),
        "{error:?}"
    );
    let sandbox = connect(allowed).await.unwrap();
    let result = tokio::time::timeout(LIMIT, sandbox.exec("echo taken")).await;
    assert_eq!(result.unwrap().unwrap().stdout().as_deref(), Some("taken\n"));
    assert_eq!(sandbox.sandbox_id().unwrap().as_str(), name);
    sandbox.stop().await.unwrap();
    assert_eq!(test.containers().await, Vec::<String>::new());
}
