//! What happens where the agent can't be, and where it is killed by root inside.

use bollard::query_parameters::{
    CommitContainerOptionsBuilder, CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder,
    RemoveImageOptions, UploadToContainerOptionsBuilder,
};
use gym_sandbox::docker::ExecPathPolicy;
use gym_sandbox::{
    ExecErrorType, ExecOptions, ExecPath, ExecReason, SandboxProvider, SandboxReason, SandboxSpec,
};

use super::{Kept, common, docker};

/// An image with a file where the agent's folder is mounted. Gives its name.
async fn image_with_a_file() -> String {
    let client = common::client().await.unwrap();
    let name = format!("gym-sandbox-test-{}", uuid::Uuid::new_v4().simple());
    let body = bollard::models::ContainerCreateBody {
        image: Some(common::BUSYBOX.to_owned()),
        ..Default::default()
    };
    let options = CreateContainerOptionsBuilder::new().name(&name).build();
    client.create_container(Some(options), body).await.unwrap();
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(4);
    header.set_mode(0o644);
    archive
        .append_data(&mut header, ".gym-sandbox", &b"mine"[..])
        .unwrap();
    let archive = archive.into_inner().unwrap();
    let options = UploadToContainerOptionsBuilder::new().path("/").build();
    client
        .upload_to_container(&name, Some(options), bollard::body_full(archive.into()))
        .await
        .unwrap();
    let options = CommitContainerOptionsBuilder::new()
        .container(&name)
        .repo(&name)
        .tag("test")
        .build();
    client
        .commit_container(options, bollard::models::ContainerConfig::default())
        .await
        .unwrap();
    let options = RemoveContainerOptionsBuilder::new().force(true).build();
    client.remove_container(&name, Some(options)).await.unwrap();
    format!("{name}:test")
}

#[tokio::test]
async fn an_image_with_a_file_at_the_agents_place_works_by_the_engine() {
    let Some(test) = docker(ExecPathPolicy::Auto).await else {
        return;
    };
    let image = image_with_a_file().await;
    for _ in 0..2 {
        let sandbox = Kept::new(&test, SandboxSpec::new(&image)).await;
        sandbox.assert_by(ExecPath::Engine);
        assert!(sandbox.raw().engine_reason().is_some_and(|why| !why.is_empty()));
        assert_eq!(sandbox.line("cat /.gym-sandbox").await, "mine");
        sandbox.close().await;
    }
    let strict = docker(ExecPathPolicy::Agent).await.unwrap();
    strict
        .provider
        .create(&SandboxSpec::new(&image))
        .await
        .unwrap_err();
    let client = common::client().await.unwrap();
    client
        .remove_image(&image, None::<RemoveImageOptions>, None)
        .await
        .unwrap();
}

#[tokio::test]
async fn d06_a_killed_agent_loses_its_commands_and_is_started_again() {
    let Some(test) = docker(ExecPathPolicy::Auto).await else {
        return;
    };
    let sandbox = Kept::new(&test, common::busybox().with_entrypoint(["sleep", "1000"])).await;
    assert_eq!(sandbox.line("echo before").await, "before\n");
    let killer = "for d in /proc/[0-9]*; do grep -q gym-sandbox-agent $d/cmdline 2>/dev/null && kill -9 ${d#/proc/}; done; sleep 60";
    let lost = sandbox.exec(ExecOptions::new(killer)).await;
    assert_eq!(lost.error_type, Some(ExecErrorType::Sandbox), "{lost:?}");
    assert_eq!(
        lost.reason,
        Some(ExecReason::Sandbox(SandboxReason::AgentLost)),
        "{lost:?}"
    );
    assert_eq!(sandbox.line("echo after").await, "after\n");
    sandbox.close().await;
}

#[tokio::test]
async fn d16_an_entrypoint_with_a_ttl_runs_as_the_agents_child() {
    let Some(test) = docker(ExecPathPolicy::Agent).await else {
        return;
    };
    let both = common::busybox()
        .with_entrypoint(["sleep", "1000"])
        .with_ttl(std::time::Duration::from_secs(600));
    let sandbox = Kept::new(&test, both).await;
    let child = sandbox.line("cat /proc/[0-9]*/comm | sort | uniq").await;
    assert!(child.contains("sleep"), "{child}");
    sandbox.close().await;
}
