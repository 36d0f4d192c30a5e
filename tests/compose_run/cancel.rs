//! Futures that are dropped at any point, and processes that are killed: nothing is left, or all of it bears labels.

use std::collections::HashMap;
use std::time::Duration;

use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListNetworksOptionsBuilder, ListVolumesOptionsBuilder,
};
use gym_sandbox::ErrorKind;

use crate::common::docker;
use crate::support::{assert_gone, engine, left_of, project};

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
