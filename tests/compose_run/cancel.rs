//! Futures that are dropped at any point, and processes that are killed: nothing is left, or all of it bears labels.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListNetworksOptionsBuilder, ListVolumesOptionsBuilder,
};
use gym_sandbox::compose::{AsyncSandboxCompose, ProjectName, Source};
use gym_sandbox::{ErrorKind, SandboxProvider};

use crate::common::{cleaned_up, docker};
use crate::proxy::Cut;
use crate::support::{assert_gone, behind_proxy, engine, left_of, project, unique};

const PROJECT: &str = "
services:
  a: {image: 'gym-sandbox/busybox:test', command: sleep 300, volumes: ['data:/data']}
  b: {image: 'gym-sandbox/busybox:test', command: sleep 300, depends_on: [a]}
  c:
    image: gym-sandbox/busybox:test
    command: sleep 300
    depends_on: [b]
    healthcheck: {test: 'false', interval: 60s, start_period: 600s}
volumes:
  data:
";

#[tokio::test]
async fn a_start_that_is_dropped_at_any_point_leaves_nothing() {
    let Some(test) = docker().await else { return };
    // From before the first call to waiting for a service that never gets healthy.
    for milliseconds in [0, 5, 20, 60, 120, 250, 500, 1000, 2500] {
        let project = project(&test, PROJECT);
        let started = tokio::time::timeout(Duration::from_millis(milliseconds), project.start()).await;
        assert!(started.is_err(), "{milliseconds}: it never gets healthy");
        let name = project.project();
        // Nothing can be started twice, whatever was made.
        if let Some(name) = &name {
            let again = tokio::time::timeout(Duration::from_millis(1), project.start()).await;
            if let Ok(Err(error)) = again {
                assert_eq!(error.kind(), ErrorKind::Stopped);
            }
            project.stop().await.unwrap();
            assert_gone(name).await;
        }
    }
}

#[tokio::test]
async fn everything_of_a_project_bears_the_labels_that_a_sweep_needs() {
    let Some(test) = docker().await else { return };
    let project = project(
        &test,
        "services: {a: {image: 'gym-sandbox/busybox:test', command: sleep 300, volumes: ['data:/data']}}\nvolumes: {data: }",
    );
    project.start().await.unwrap();
    let name = project.project().unwrap();
    let filter = HashMap::from([("label".to_owned(), vec![format!("gym-sandbox.project={name}")])]);
    let engine = engine();
    let containers = ListContainersOptionsBuilder::new().filters(&filter).build();
    let container = engine.list_containers(Some(containers)).await.unwrap().remove(0);
    let networks = ListNetworksOptionsBuilder::new().filters(&filter).build();
    let network = engine.list_networks(Some(networks)).await.unwrap().remove(0);
    let volumes = ListVolumesOptionsBuilder::new().filters(&filter).build();
    let volume = engine
        .list_volumes(Some(volumes))
        .await
        .unwrap()
        .volumes
        .unwrap()
        .remove(0);
    for labels in [container.labels.unwrap(), network.labels.unwrap(), volume.labels] {
        for key in [
            "gym-sandbox",
            "gym-sandbox.owner",
            "gym-sandbox.run",
            "gym-sandbox.created",
            "gym-sandbox.kind",
        ] {
            assert!(
                labels.get(key).is_some_and(|value| !value.is_empty()),
                "{key}: {labels:?}"
            );
        }
    }
    project.stop().await.unwrap();
    assert_eq!(left_of(&name).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_the_engine_makes_after_its_project_was_removed_leaves_no_volume() {
    let Some(test) = docker().await else { return };
    let Some((proxy, provider)) = behind_proxy(&test).await else {
        return;
    };
    let name = unique();
    let project = AsyncSandboxCompose::new(Arc::clone(&provider) as Arc<dyn SandboxProvider>)
        .with_source(Source::text("compose.yaml", PROJECT))
        .with_project_name(ProjectName::Given(name.clone()));
    proxy.cut("/containers/create", Cut::UntilReleased);
    let start = tokio::spawn(async move { project.start().await.map(drop) });
    until("the create is on its way", async || {
        proxy.requests("/containers/create") > 0
    })
    .await;
    start.abort();
    let _aborted = start.await;
    // Its volume and its network are gone, and then the create comes to the engine, which makes the volume again.
    assert_gone(&name).await;
    proxy.release();
    cleaned_up(&provider).await;
    assert_eq!(left_of(&name).await, Vec::<String>::new());
    let volume = engine().inspect_volume(&format!("{name}_data")).await;
    assert!(volume.is_err(), "{volume:?}");
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
