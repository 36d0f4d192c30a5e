//! Using and removing a sandbox by its id (K7-K9, D23).

use std::collections::HashMap;

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, KillContainerOptions, RemoveContainerOptionsBuilder,
};
use gym_sandbox::docker::{DockerConfig, DockerProvider, DockerRaw};
use gym_sandbox::provider::EndpointProvider;
use gym_sandbox::{ErrorKind, SandboxProvider, SandboxReason, SandboxStatus};

use crate::common::{BUSYBOX, TEST_LABEL, client, docker};
use crate::support::{container_id, stdout, until_status};

#[tokio::test(flavor = "multi_thread")]
async fn k07_k08_an_id_is_enough() {
    let Some(test) = docker().await else { return };
    let handle = test
        .provider
        .create(&crate::common::busybox().with_ports([8080, 9090]).unwrap())
        .await
        .unwrap();
    let other = DockerProvider::connect(DockerConfig::default()).await.unwrap();
    for id in [handle.sandbox_id().as_str(), container_id(&handle)] {
        let attached = other.attach(id).await.unwrap();
        assert_eq!(attached.sandbox_id(), handle.sandbox_id());
        assert_eq!(attached.ports().as_slice(), [8080, 9090]);
        assert_eq!(attached.raw::<DockerRaw>().unwrap().shell.as_deref(), Some("sh"));
        assert_eq!(stdout(&other, &attached, "echo attached").await, "attached\n");
        let endpoint = other.endpoint(&attached, 8080).await.unwrap();
        assert_eq!(
            endpoint.endpoint(),
            test.provider.endpoint(&handle, 8080).await.unwrap().endpoint()
        );
    }
    // K7: closing an attached one removes it.
    let attached = other.attach(handle.sandbox_id().as_str()).await.unwrap();
    other.close(&attached).await.unwrap();
    assert_eq!(
        test.provider.status(&handle).await.unwrap(),
        SandboxStatus::Stopped
    );
    let error = other.attach(handle.sandbox_id().as_str()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn k09_a_paused_one_is_taken_and_an_ended_one_is_not() {
    let Some(test) = docker().await else { return };
    let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
    let raw = client().await.unwrap();
    let id = handle.sandbox_id().as_str();
    raw.pause_container(container_id(&handle)).await.unwrap();
    let attached = test.provider.attach(id).await.unwrap();
    assert_eq!(
        test.provider.status(&attached).await.unwrap(),
        SandboxStatus::Paused
    );
    raw.unpause_container(container_id(&handle)).await.unwrap();
    assert_eq!(stdout(&test.provider, &attached, "echo thawed").await, "thawed\n");
    raw.kill_container(container_id(&handle), None::<KillContainerOptions>)
        .await
        .unwrap();
    until_status(&test.provider, &handle, SandboxStatus::Stopped).await;
    let error = test.provider.attach(id).await.unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Sandbox(SandboxReason::NotRunning),
        "{error:?}"
    );
    assert!(test.provider.remove(id).await.unwrap());
    assert!(!test.provider.remove(id).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn d23_a_container_of_somebody_else_is_not_touched() {
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
    for outcome in [
        test.provider.attach(&name).await.map(drop),
        test.provider.remove(&name).await.map(drop),
    ] {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    assert_eq!(test.containers().await, std::slice::from_ref(&name));
    let force = RemoveContainerOptionsBuilder::new().force(true).build();
    raw.remove_container(&name, Some(force)).await.unwrap();
    for id in ["", "a b", "../x"] {
        assert!(test.provider.attach(id).await.is_err(), "{id:?}");
    }
}
