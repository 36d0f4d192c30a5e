//! Endpoints over the life of a sandbox (E6, N2, bugs B31).

use gym_sandbox::provider::{EndpointProvider, PauseProvider, PortForwardingProvider};
use gym_sandbox::{ErrorKind, SandboxProvider, SandboxReason, SandboxStatus};

use crate::common::{busybox, client, docker};
use crate::{container_id, until};

#[tokio::test(flavor = "multi_thread")]
async fn b31_n2_an_endpoint_is_kept_over_a_pause_gone_when_stopped_and_fresh_after_a_start() {
    let Some(test) = docker().await else { return };
    let provider = &test.provider;
    let handle = provider
        .create(&busybox().with_ports([8080]).unwrap())
        .await
        .unwrap();
    let before = provider.endpoint(&handle, 8080).await.unwrap();
    provider.pause(&handle).await.unwrap();
    assert_eq!(provider.endpoint(&handle, 8080).await.unwrap(), before);
    provider.resume(&handle, None).await.unwrap();
    assert_eq!(provider.endpoint(&handle, 8080).await.unwrap(), before);
    let raw = client().await.unwrap();
    let stop = bollard::query_parameters::StopContainerOptionsBuilder::new()
        .t(0)
        .build();
    raw.stop_container(container_id(&handle), Some(stop))
        .await
        .unwrap();
    let error = provider.endpoint(&handle, 8080).await.unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Sandbox(SandboxReason::NotRunning),
        "{error:?}"
    );
    assert!(error.hint().unwrap().contains("new sandbox"), "{error:?}");
    raw.start_container(
        container_id(&handle),
        None::<bollard::query_parameters::StartContainerOptions>,
    )
    .await
    .unwrap();
    until("it runs again", async || {
        provider.status(&handle).await.unwrap() == SandboxStatus::Running
    })
    .await;
    let after = provider.endpoint(&handle, 8080).await.unwrap();
    // The engine's own word at this moment decides: the number may be the old one or another.
    let inspected = raw
        .inspect_container(
            container_id(&handle),
            None::<bollard::query_parameters::InspectContainerOptions>,
        )
        .await
        .unwrap();
    let ports = inspected.network_settings.unwrap().ports.unwrap();
    let number = ports["8080/tcp"].clone().unwrap()[0].host_port.clone().unwrap();
    assert_eq!(after.endpoint(), format!("http://127.0.0.1:{number}"));
    provider.close(&handle).await.unwrap();
    let error = provider.endpoint(&handle, 8080).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Sandbox(SandboxReason::Removed));
    assert!(error.hint().unwrap().contains("make a new one"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_of_a_paused_or_removed_sandbox_is_not_connected_to_and_the_hint_says_what_to_do() {
    let [_, agent] = crate::both_paths();
    let Some(test) = crate::common::docker_with(agent).await else {
        return;
    };
    let provider = &test.provider;
    let handle = provider.create(&busybox()).await.unwrap();
    let refused = async || {
        let error = provider.connect_port(&handle, 8080).await.unwrap_err();
        (error.kind(), error.hint().unwrap_or_default().to_owned())
    };
    let (kind, hint) = refused().await;
    assert_eq!(kind, ErrorKind::NotFound);
    assert!(hint.contains("server must listen"), "{hint}");
    provider.pause(&handle).await.unwrap();
    let (kind, hint) = refused().await;
    assert_eq!(kind, ErrorKind::Sandbox(SandboxReason::Paused));
    assert!(hint.contains("resume it"), "{hint}");
    provider.resume(&handle, None).await.unwrap();
    provider.close(&handle).await.unwrap();
    let (kind, hint) = refused().await;
    assert_eq!(kind, ErrorKind::Sandbox(SandboxReason::Removed));
    assert!(hint.contains("make a new one"), "{hint}");
}
