//! Volumes that the engine makes with a container of a create that comes to nothing: of a project that was removed
//! while its create was on its way. They go with it, and not from under another container.

use bollard::query_parameters::{InspectContainerOptions, RemoveVolumeOptionsBuilder};
use gym_sandbox::container::{ContainerSpec, EndpointSpec, MountSpec, NetworkAttachment, NetworkSpec};
use gym_sandbox::provider::{ContainersProvider, SandboxProvider};

use crate::common::{BUSYBOX, client, config};
use crate::proxy::Cut;
use crate::support::{behind_proxy, nothing_is_left, until};

fn unique(what: &str) -> String {
    format!("{what}-{}", uuid::Uuid::new_v4().simple())
}

fn spec(name: &str, volume: &str) -> ContainerSpec {
    let mut spec = ContainerSpec::new(BUSYBOX);
    spec.name = Some(name.to_owned());
    spec.command = Some(vec!["sleep".to_owned(), "300".to_owned()]);
    spec.mounts = vec![MountSpec::volume(volume, "/data")];
    spec
}

async fn is_there(volume: &str) -> bool {
    client().await.unwrap().inspect_volume(volume).await.is_ok()
}

/// The name of a volume, which is removed at the end where a test that fails has left it.
struct Volume(String);

impl Volume {
    fn new(what: &str) -> Self {
        Self(unique(what))
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let name = self.0.clone();
        let removed = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let options = RemoveVolumeOptionsBuilder::new().force(true).build();
                client().await.unwrap().remove_volume(&name, Some(options)).await
            })
        });
        // It may be gone.
        let _gone = removed.join();
    }
}

async fn until_made(container: &str) {
    let engine = client().await.unwrap();
    until("the engine has made the container", || async {
        let look = engine.inspect_container(container, None::<InspectContainerOptions>);
        look.await.is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c18_a_volume_of_two_creates_that_were_cut_off_goes_with_the_last_of_them() {
    let volume = Volume::new("cut");
    let Some((proxy, test)) = behind_proxy(config()).await else {
        return;
    };
    // The proxy's rules are for as long as the program.
    let names: [&'static str; 2] = ["first", "second"].map(|what| &*unique(what).leak());
    let mut calls = Vec::new();
    for name in names {
        proxy.cut(name, Cut::HoldAnswer);
        let (provider, spec) = (test.provider.clone(), spec(name, &volume.0));
        calls.push(tokio::spawn(
            async move { provider.create_container(&spec).await },
        ));
        // The first one's call has made the volume.
        until_made(name).await;
    }
    // Only the first one can be looked for, and removed.
    proxy.cut(names[1], Cut::UntilReleased);
    for call in calls {
        call.abort();
        let _aborted = call.await;
    }
    let removal = format!("/volumes/{}?force", volume.0).leak();
    until("the volume's removal is tried", || async {
        proxy.requests(removal) > 0
    })
    .await;
    assert!(is_there(&volume.0).await, "it was taken from under the second");
    proxy.release();
    nothing_is_left(&test).await;
    assert!(!is_there(&volume.0).await, "the volume is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn c18_a_volume_of_a_create_that_was_cut_off_stays_for_a_container_that_was_handed_out() {
    let volume = Volume::new("kept");
    let Some((proxy, test)) = behind_proxy(config()).await else {
        return;
    };
    let cut: &'static str = unique("cut").leak();
    proxy.cut(cut, Cut::HoldAnswer);
    let (provider, with_volume) = (test.provider.clone(), spec(cut, &volume.0));
    let call = tokio::spawn(async move { provider.create_container(&with_volume).await });
    until_made(cut).await;
    let mut other = spec(&unique("other"), &volume.0);
    other.command = Some(vec![
        "sh".to_owned(),
        "-c".to_owned(),
        "echo kept > /data/file; sleep 300".to_owned(),
    ]);
    let other = test.provider.create_container(&other).await.unwrap();
    test.provider.start_container(&other).await.unwrap();
    call.abort();
    let _aborted = call.await;
    let removal = format!("/volumes/{}?force", volume.0).leak();
    until("the volume's removal is tried", || async {
        proxy.requests(removal) > 1
    })
    .await;
    let handle = test
        .provider
        .container_handle(&other, &gym_sandbox::Ports::default())
        .await
        .unwrap();
    assert_eq!(
        crate::support::stdout(&test.provider, &handle, "cat /data/file").await,
        "kept\n"
    );
    test.provider.close(&handle).await.unwrap();
    nothing_is_left(&test).await;
    assert!(!is_there(&volume.0).await, "the volume is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn c18_a_create_that_fails_after_its_project_was_removed_leaves_no_volume() {
    let volume = Volume::new("failed");
    let Some((proxy, test)) = behind_proxy(config()).await else {
        return;
    };
    let network = NetworkSpec::new(unique("there"));
    let id = test.provider.create_network(&network).await.unwrap();
    let mut spec = spec(&unique("failed"), &volume.0);
    spec.network = NetworkAttachment::Networks(vec![
        EndpointSpec::new(network.name.as_str()),
        EndpointSpec::new(unique("gone")),
    ]);
    // The engine makes the container and its volume before it finds out that the second network is gone.
    proxy.cut("/connect", Cut::Answer(404, "network gone not found"));
    let failed = test.provider.create_container(&spec).await;
    test.provider.aclose().await.unwrap();
    test.provider.remove_network(&id).await.unwrap();
    let error = failed.unwrap_err();
    assert_eq!(error.cleanup_errors().len(), 0, "{error:?}");
    assert!(!is_there(&volume.0).await, "the volume is left");
}
