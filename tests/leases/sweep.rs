//! What a sweep removes, and how sweeps get along with each other and with objects that are in use.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HostConfig, Mount, MountType, NetworkCreateRequest, VolumeCreateRequest,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, InspectContainerOptions, RemoveContainerOptionsBuilder,
};
use gym_sandbox::provider::SweepProvider;
use gym_sandbox::{ObjectKind, SecondLook, SweepMode, SweepOptions};

use crate::client::{Client, Machine, Role};
use crate::common::{BUSYBOX, client};
use crate::proxy::Proxy;
use crate::support::{LASTING, Run, SHORT, run_with_grace, until};

/// Makes a network, a volume and a helper container that are a client's as its sandbox is, and gives their name.
async fn belongings(run: &Run, sandbox: &str) -> String {
    let docker = client().await.unwrap();
    let labels: HashMap<String, String> = docker
        .inspect_container(sandbox, None::<InspectContainerOptions>)
        .await
        .unwrap()
        .config
        .unwrap()
        .labels
        .unwrap();
    let name = format!("{}-thing", run.name);
    docker
        .create_network(NetworkCreateRequest {
            name: name.clone(),
            labels: Some(labels.clone()),
            internal: Some(true),
            ..NetworkCreateRequest::default()
        })
        .await
        .unwrap();
    docker
        .create_volume(VolumeCreateRequest {
            name: Some(name.clone()),
            labels: Some(labels.clone()),
            ..VolumeCreateRequest::default()
        })
        .await
        .unwrap();
    let options = CreateContainerOptionsBuilder::new().name(&name).build();
    let body = ContainerCreateBody {
        image: Some(BUSYBOX.to_owned()),
        labels: Some(labels),
        host_config: Some(HostConfig {
            network_mode: Some(name.clone()),
            mounts: Some(vec![volume_mount(&name)]),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    docker.create_container(Some(options), body).await.unwrap();
    name
}

fn volume_mount(name: &str) -> Mount {
    Mount {
        typ: Some(MountType::VOLUME),
        source: Some(name.to_owned()),
        target: Some("/v".to_owned()),
        ..Mount::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_b20_containers_networks_and_volumes_go_also_under_two_sweeps_at_once() {
    let Some(run) = run_with_grace(0.0).await else {
        return;
    };
    let mut owner = Client::start(Role::Holder, &run.name, Machine::This, LASTING);
    let sandbox = owner.make("").await;
    let name = belongings(&run, &sandbox).await;
    // None is on its way when it is killed.
    until("there is a lease", || async { !run.leases().await.is_empty() }).await;
    let options = SweepOptions::default().with_filter(run.filter());
    assert_eq!(run.provider.sweep(&options).await.unwrap().removed, []);
    owner.kill().await;
    let dry = options.clone().with_mode(SweepMode::DryRun);
    let dry = run.provider.sweep(&dry).await.unwrap();
    let named = |kind| {
        dry.removed
            .iter()
            .any(|object| object.kind == kind && object.name == name)
    };
    assert!(
        named(ObjectKind::Container) && named(ObjectKind::Network) && named(ObjectKind::Volume),
        "{dry:?}"
    );
    let others = run_with_grace(0.0).await.unwrap();
    let (first, second) = tokio::join!(run.provider.sweep(&options), others.provider.sweep(&options));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!((&first.failed, &second.failed), (&vec![], &vec![]));
    let removed = first.removed.iter().chain(&second.removed);
    assert!(removed.count() >= 4, "{first:?} {second:?}");
    assert_eq!(run.objects().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_what_is_in_use_is_named_and_goes_with_the_next_sweep() {
    let Some(run) = run_with_grace(0.0).await else {
        return;
    };
    let Some(proxy) = Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    let mut owner = Client::behind(&proxy, Role::Holder, &run.name, Machine::Other, SHORT);
    let sandbox = owner.make("").await;
    let name = belongings(&run, &sandbox).await;
    until("there is a lease", || async { !run.leases().await.is_empty() }).await;
    // A container of somebody who does not use this library has the volume.
    let docker = client().await.unwrap();
    let foreign = format!("{name}-foreign");
    let options = CreateContainerOptionsBuilder::new().name(&foreign).build();
    let body = ContainerCreateBody {
        image: Some(BUSYBOX.to_owned()),
        host_config: Some(HostConfig {
            mounts: Some(vec![volume_mount(&name)]),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    docker.create_container(Some(options), body).await.unwrap();
    owner.kill().await;
    proxy.until_made().await;
    let options = SweepOptions::default()
        .with_second_look(SecondLook::Never)
        .with_filter(run.filter());
    let failed = std::sync::Mutex::new(Vec::new());
    until("the owner is seen dead", || async {
        let report = run.provider.sweep(&options).await.unwrap();
        let mut failed = failed.lock().unwrap();
        *failed = report.failed;
        !failed.is_empty()
    })
    .await;
    let failed = failed.into_inner().unwrap();
    assert_eq!(
        (failed.len(), failed[0].kind),
        (1, ObjectKind::Volume),
        "{failed:?}"
    );
    assert!(failed[0].why.contains("in use"), "{failed:?}");
    // The lease that proves the death stays with it.
    assert!(!run.leases().await.is_empty());
    let gone = RemoveContainerOptionsBuilder::new().force(true).build();
    docker.remove_container(&foreign, Some(gone)).await.unwrap();
    let report = run.sweep(SecondLook::Never).await;
    assert!(report.removed.len() >= 2, "{report:?}");
    assert_eq!(run.objects().await, Vec::<String>::new());
}
