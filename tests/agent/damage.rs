//! What happens where the agent can't be, and where it is killed by root inside.

use bollard::query_parameters::{
    CommitContainerOptionsBuilder, CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder,
    RemoveImageOptions, UploadToContainerOptionsBuilder,
};
use gym_sandbox::docker::ExecPathPolicy;
use gym_sandbox::{
    ErrorKind, ExecErrorType, ExecOptions, ExecPath, ExecReason, SandboxProvider, SandboxReason, SandboxSpec,
};
use serde_json::json;

use super::{Kept, common, docker, proxy};

/// An image with something where the agent's folder is mounted. Gives its name.
async fn image_with(entries: &[(&str, tar::EntryType, &str)]) -> String {
    let client = common::client().await.unwrap();
    let name = format!("gym-sandbox-test-{}", uuid::Uuid::new_v4().simple());
    let body = bollard::models::ContainerCreateBody {
        image: Some(common::BUSYBOX.to_owned()),
        ..Default::default()
    };
    let options = CreateContainerOptionsBuilder::new().name(&name).build();
    client.create_container(Some(options), body).await.unwrap();
    let mut archive = tar::Builder::new(Vec::new());
    for (path, kind, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o755);
        header.set_size(0);
        if *kind == tar::EntryType::Symlink {
            archive.append_link(&mut header, path, content).unwrap();
        } else {
            header.set_size(content.len() as u64);
            archive
                .append_data(&mut header, path, content.as_bytes())
                .unwrap();
        }
    }
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

async fn remove(image: &str) {
    let client = common::client().await.unwrap();
    client
        .remove_image(image, None::<RemoveImageOptions>, None)
        .await
        .unwrap();
}

#[tokio::test]
async fn an_image_with_a_file_at_the_agents_place_works_by_the_engine() {
    let Some(test) = docker(ExecPathPolicy::Auto).await else {
        return;
    };
    let image = image_with(&[(".gym-sandbox", tar::EntryType::Regular, "mine")]).await;
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
    remove(&image).await;
}

/// A link would lead the mount to somewhere else, over what the image has there.
#[tokio::test]
async fn an_image_with_a_link_at_the_agents_place_keeps_what_it_leads_to() {
    let Some(test) = docker(ExecPathPolicy::Auto).await else {
        return;
    };
    let image = image_with(&[(".gym-sandbox", tar::EntryType::Symlink, "/etc")]).await;
    for entrypoint in [&[][..], &["sleep", "1000"]] {
        let spec = SandboxSpec::new(&image).with_entrypoint(entrypoint.iter().copied());
        let sandbox = Kept::new(&test, spec).await;
        sandbox.assert_by(ExecPath::Engine);
        let users = sandbox.line("cat /etc/passwd").await;
        assert!(users.contains("root"), "{users}");
        sandbox.close().await;
    }
    remove(&image).await;
}

/// A folder is only hidden.
#[tokio::test]
async fn an_image_with_a_folder_at_the_agents_place_has_the_agent() {
    let Some(test) = docker(ExecPathPolicy::Auto).await else {
        return;
    };
    let image = image_with(&[
        (".gym-sandbox", tar::EntryType::Directory, ""),
        (".gym-sandbox/agent", tar::EntryType::Regular, "of the image"),
        (".gym-sandbox/other", tar::EntryType::Regular, "of the image"),
    ])
    .await;
    let sandbox = Kept::new(&test, SandboxSpec::new(&image)).await;
    assert_eq!(sandbox.line("ls /.gym-sandbox").await, "agent\n");
    sandbox.assert_by(ExecPath::Agent);
    sandbox.close().await;
    remove(&image).await;
}

/// No network, nothing to write to, no rights, an ordinary user, and all of it at once.
#[tokio::test]
async fn sandboxes_with_few_rights_have_the_agent() {
    let Some(test) = docker(ExecPathPolicy::Agent).await else {
        return;
    };
    let none = |spec: SandboxSpec| spec.with_provider_option("network", "none");
    let read_only = |spec: SandboxSpec| spec.with_provider_option("read_only", true);
    let hardened = |spec: SandboxSpec| spec.with_provider_option("preset", "hardened");
    let user = || SandboxSpec::new("gym-sandbox/user:test");
    let specs = [
        none(common::busybox()),
        read_only(common::busybox()),
        hardened(common::busybox()),
        user(),
        none(read_only(hardened(user()))),
        none(read_only(hardened(SandboxSpec::new(common::DEBIAN)))),
    ];
    for spec in specs {
        for entrypoint in [&[][..], &["sleep", "1000"]] {
            let spec = spec.clone().with_entrypoint(entrypoint.iter().copied());
            let sandbox = Kept::new(&test, spec).await;
            assert_eq!(sandbox.line("echo on").await, "on\n");
            sandbox.assert_by(ExecPath::Agent);
            sandbox.close().await;
        }
    }
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

/// What the engine refuses for itself it refuses without the agent, too: it is asked once, whether it says no to the create
/// or to the start.
#[tokio::test(flavor = "multi_thread")]
async fn d27_what_is_refused_for_another_reason_is_not_tried_again_without_the_agent() {
    let Some(proxy) = proxy::Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    let mut config = common::config();
    config.host = Some(proxy.address());
    config.exec.exec_path = ExecPathPolicy::Auto;
    let Some(test) = common::docker_with(config).await else {
        return;
    };
    // The first create of an engine makes a container more, which puts the agent's program there.
    let Some(before) = docker(ExecPathPolicy::Auto).await else {
        return;
    };
    Kept::new(&before, common::busybox()).await.close().await;
    let mut asked = proxy.requests("/containers/create");
    for (argument, named) in [
        ("--memory=1m".to_owned(), "memory"),
        ("--ulimit=nofile=2000000000".to_owned(), "rlimit"),
    ] {
        let spec = common::busybox().with_provider_option("run_args", json!([argument]));
        let error = test.provider.create(&spec).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CreateFailed, "{}", error.report());
        let report = error.report().to_string();
        assert!(report.contains(named), "{report}");
        asked += 1;
        assert_eq!(proxy.requests("/containers/create"), asked, "{report}");
    }
    // And the image is none in which the agent does not work.
    let sandbox = Kept::new(&test, common::busybox()).await;
    sandbox.assert_by(ExecPath::Agent);
    sandbox.close().await;
}

/// What keeps a sandbox alive and the agent count, too: that is what is at fault, and no program.
#[tokio::test]
async fn d27_a_limit_of_processes_that_is_too_low_is_said_to_be() {
    let spec = || common::busybox().with_provider_option("pids_limit", 1);
    let Some(test) = docker(ExecPathPolicy::Engine).await else {
        return;
    };
    let error = test.provider.create(&spec()).await.unwrap_err();
    let hint = error.hint().unwrap_or_default();
    assert!(
        hint.contains("limit of 1 processes") && !hint.contains("entrypoint"),
        "{}",
        error.report()
    );
    assert!(test.containers().await.is_empty());
    let Some(test) = docker(ExecPathPolicy::Agent).await else {
        return;
    };
    let sandbox = Kept::new(&test, spec()).await;
    let result = sandbox.exec(ExecOptions::new(["true"])).await;
    assert_eq!(result.error_type, Some(ExecErrorType::Start), "{result:?}");
    let hint = result.hint.as_deref().unwrap_or_default();
    assert!(hint.contains("pids_limit"), "{result:?}");
    sandbox.close().await;
}
