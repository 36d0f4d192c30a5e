//! The volume with the program under stress: first creates that race, fills that were interrupted, files that are no
//! program. With an engine; each test has a volume of its own.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use std::cell::{Cell, RefCell};

use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, RemoveVolumeOptions, UploadToContainerOptionsBuilder,
};
use futures::future::join_all;

use super::super::config::DockerConfig;
use super::launch::{shared_labels, volume_mount};
use super::*;
use crate::error::Operation;
use crate::provider::{SandboxHandle, SandboxProvider};
use crate::spec::{ExecOptions, ExecPath, SandboxSpec};

thread_local! {
    /// Behind the name of the volume. The runtime of a test is one thread.
    pub(super) static SUFFIX: RefCell<String> = const { RefCell::new(String::new()) };

    /// When a lock counts as left behind, instead of the usual time.
    pub(super) static STALE_AFTER: Cell<Option<Duration>> = const { Cell::new(None) };
}

const IMAGE: &str = "gym-sandbox/busybox:test";

async fn provider(policy: ExecPathPolicy) -> Option<DockerProvider> {
    let mut config = DockerConfig::default();
    config.exec.exec_path = policy;
    let unique = format!("-test-{}", uuid::Uuid::new_v4().simple());
    SUFFIX.with(|suffix| *suffix.borrow_mut() = unique);
    match DockerProvider::connect(config).await {
        Ok(provider) => Some(provider),
        Err(error) => {
            assert!(
                std::env::var("SANDBOX_REQUIRE_DOCKER").is_err(),
                "{}",
                error.report()
            );
            eprintln!("skipped: no engine answers");
            None
        }
    }
}

async fn create(provider: &DockerProvider) -> SandboxHandle {
    let spec = SandboxSpec::new(IMAGE).with_provider_option("network", "none");
    provider.create(&spec).await.unwrap()
}

async fn assert_works(provider: &DockerProvider, handle: &SandboxHandle, path: ExecPath) {
    let result = provider.exec(handle, ExecOptions::new("echo on")).await.unwrap();
    assert_eq!(result.stdout().as_deref(), Some("on\n"), "{result:?}");
    let raw = handle.raw::<super::super::DockerRaw>().unwrap();
    assert_eq!(result.exec_path, path, "{:?}", raw.engine_reason());
}

/// A container that is never started, with the agent's volume or another.
async fn hold(provider: &DockerProvider, name: &str, volume: &str) {
    let client = &provider.engine().await.unwrap().client;
    let mut mount = volume_mount(false);
    mount.source = Some(volume.to_owned());
    let body = ContainerCreateBody {
        image: Some(IMAGE.to_owned()),
        labels: Some(shared_labels()),
        host_config: Some(HostConfig {
            mounts: Some(vec![mount]),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let options = CreateContainerOptionsBuilder::new().name(name).build();
    client.create_container(Some(options), body).await.unwrap();
}

/// Puts a file where the program should be.
async fn put(provider: &DockerProvider, bytes: &[u8]) {
    let client = &provider.engine().await.unwrap().client;
    let name = format!("gym-sandbox-test-{}", uuid::Uuid::new_v4().simple());
    hold(provider, &name, &program::volume()).await;
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o755);
    archive.append_data(&mut header, "agent", bytes).unwrap();
    let archive = archive.into_inner().unwrap();
    let options = UploadToContainerOptionsBuilder::new()
        .path(program::FOLDER)
        .build();
    let body = bollard::body_full(archive.into());
    client
        .upload_to_container(&name, Some(options), body)
        .await
        .unwrap();
    provider.remove_container(&name).await.unwrap();
}

async fn end(provider: &DockerProvider, handles: Vec<SandboxHandle>) {
    let closes = handles.iter().map(|handle| provider.close(handle));
    for closed in join_all(closes).await {
        closed.unwrap();
    }
    provider.aclose().await.unwrap();
    let client = &provider.engine().await.unwrap().client;
    // Fails while anything still mounts it: also the containers of the fillers are gone.
    let removed = client
        .remove_volume(&program::volume(), None::<RemoveVolumeOptions>)
        .await;
    removed.unwrap();
}

#[tokio::test]
async fn first_creates_that_race_all_have_the_agent() {
    let Some(provider) = provider(ExecPathPolicy::Agent).await else {
        return;
    };
    let handles = join_all((0..32).map(|_| create(&provider))).await;
    for handle in &handles {
        assert_works(&provider, handle, ExecPath::Agent).await;
    }
    end(&provider, handles).await;
}

#[tokio::test]
async fn an_interrupted_fill_is_made_good() {
    let Some(provider) = provider(ExecPathPolicy::Agent).await else {
        return;
    };
    let program = gym_sandbox_agent::BINARY.unwrap();
    put(&provider, &program[..program.len() / 2]).await;
    let handle = create(&provider).await;
    assert_works(&provider, &handle, ExecPath::Agent).await;
    end(&provider, vec![handle]).await;
}

/// Nobody would remove the lock of a filling whose create was cut off: what is begun goes on.
#[tokio::test]
async fn a_first_create_that_is_cut_off_leaves_no_lock() {
    for delay in (0..12).map(|step| Duration::from_millis(step * 5)) {
        let Some(provider) = provider(ExecPathPolicy::Agent).await else {
            return;
        };
        let spec = SandboxSpec::new(IMAGE).with_provider_option("network", "none");
        if let Ok(created) = tokio::time::timeout(delay, provider.create(&spec)).await {
            provider.close(&created.unwrap()).await.unwrap();
        }
        provider.aclose().await.unwrap();
        let client = &provider.engine().await.unwrap().client;
        let lock = client.inspect_container(&program::filler(), None).await;
        assert!(lock.is_err(), "a lock is left after {delay:?}");
        // It may not have come to that.
        let _ = client
            .remove_volume(&program::volume(), None::<RemoveVolumeOptions>)
            .await;
    }
}

/// Whoever filled was killed in between: its lock is in the way until it is old.
#[tokio::test]
async fn a_lock_that_was_left_behind_ages_out() {
    let Some(provider) = provider(ExecPathPolicy::Agent).await else {
        return;
    };
    STALE_AFTER.set(Some(Duration::from_secs(10)));
    // A create takes a fraction of this. The lock is not older than this moment, and may be seconds old when it is told.
    let began = std::time::Instant::now();
    hold(&provider, &program::filler(), &program::volume()).await;
    let handle = create(&provider).await;
    assert!(
        began.elapsed() > Duration::from_secs(8),
        "the lock was not respected"
    );
    assert_works(&provider, &handle, ExecPath::Agent).await;
    end(&provider, vec![handle]).await;
    STALE_AFTER.set(None);
}

#[tokio::test]
async fn volumes_of_other_builds_go_when_nothing_mounts_them() {
    let Some(provider) = provider(ExecPathPolicy::Auto).await else {
        return;
    };
    let unique = || {
        let number = uuid::Uuid::new_v4().simple().to_string();
        number[..gym_sandbox_agent::FINGERPRINT.len()].to_owned()
    };
    let (used, unused) = (unique(), unique());
    let volume = |hash: &str| format!("gym-sandbox-agent-{hash}");
    let holder = format!("gym-sandbox-test-{used}");
    let lock = format!("{}{unused}", program::FILLER);
    STALE_AFTER.set(Some(Duration::from_secs(600)));
    hold(&provider, &holder, &volume(&used)).await;
    hold(&provider, &lock, &volume(&unused)).await;
    let removed = async |dry_run: bool| {
        let mut gone = provider
            .remove_stale_volumes(Operation::List, dry_run)
            .await
            .unwrap();
        gone.retain(|name| name.contains(&used) || name.contains(&unused));
        gone
    };
    assert_eq!(
        removed(false).await,
        Vec::<String>::new(),
        "both are in use, the lock is new"
    );
    STALE_AFTER.set(Some(Duration::ZERO));
    // The age of a container is told in whole seconds.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(removed(true).await, std::slice::from_ref(&lock));
    STALE_AFTER.set(None);
    provider.remove_container(&lock).await.unwrap();
    assert_eq!(removed(true).await, [volume(&unused)]);
    assert_eq!(removed(false).await, [volume(&unused)]);
    provider.remove_container(&holder).await.unwrap();
    assert_eq!(removed(false).await, [volume(&used)]);
    provider.aclose().await.unwrap();
}

#[tokio::test]
async fn a_file_of_the_right_size_that_is_no_agent_is_seen_through() {
    let size = usize::try_from(program::size_bytes()).unwrap();
    for start in [
        &b"garbage"[..],
        b"#!/bin/sh\nsleep 1000\n",
        b"#!/bin/sh\nwhile echo garbage; do sleep 1; done\n",
    ] {
        let Some(provider) = provider(ExecPathPolicy::Auto).await else {
            return;
        };
        let mut file = start.to_vec();
        file.resize(size, b'\n');
        put(&provider, &file).await;
        let handle = create(&provider).await;
        assert_works(&provider, &handle, ExecPath::Engine).await;
        end(&provider, vec![handle]).await;
    }
}
