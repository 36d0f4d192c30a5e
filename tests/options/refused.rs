//! What is refused is refused by name and before anything is made.

use gym_sandbox::{ErrorKind, SandboxProvider, SandboxResources};
use serde_json::json;

use crate::common::{busybox, config, docker, docker_with};
use crate::inspect;

#[tokio::test(flavor = "multi_thread")]
async fn d9_d11_the_closed_policy_refuses_by_name_and_leaves_nothing() {
    let Some(test) = docker().await else { return };
    for (key, value, named) in [
        ("privileged", json!(true), "`privileged`"),
        ("run_args", json!(["--privileged"]), "`privileged`"),
        ("network", json!("host"), "the host's network namespace"),
        ("run_args", json!(["--pid=host"]), "the host's pid namespace"),
        ("run_args", json!("--network=container:x"), "`x`"),
        ("volumes", json!("/etc:/x:ro"), "`/etc`"),
        ("volumes", json!("/var/run/docker.sock:/x"), "docker.sock"),
        (
            "run_args",
            json!(["--mount", "type=bind,src=/a/../etc,dst=/x"]),
            "`/etc`",
        ),
        ("devices", json!(["/dev/fuse"]), "`/dev/fuse`"),
        ("cap_add", json!(["SYS_ADMIN"]), "`SYS_ADMIN`"),
        (
            "security_opt",
            json!(["seccomp=unconfined"]),
            "seccomp=unconfined",
        ),
        ("publish", json!(["0.0.0.0:0:80"]), "`0.0.0.0`"),
        ("cgroup_parent", json!("/x"), "`/x`"),
        (
            "sysctls",
            json!({"kernel.core_pattern": "x"}),
            "kernel.core_pattern",
        ),
        ("oom_score_adj", json!(-500), "OOM killer"),
    ] {
        let spec = busybox().with_provider_option(key, value);
        let error = test.provider.create(&spec).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{named}: {error:?}");
        assert!(error.to_string().contains(named), "{named} in {error}");
        assert!(error.hint().unwrap().contains("policy.allow_"), "{error:?}");
        assert!(test.containers().await.is_empty(), "{named} left something");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d9_unknown_flags_and_newer_features_are_refused_and_leave_nothing() {
    let Some(test) = docker().await else { return };
    for (arguments, kind, named) in [
        (json!(["--shm-siez=1g"]), ErrorKind::InvalidArgument, "--shm-siez"),
        (
            json!("--shm-size 1g"),
            ErrorKind::InvalidArgument,
            "not split at spaces",
        ),
        (json!(["--name", "mine"]), ErrorKind::InvalidArgument, "--name"),
        (
            json!(["--mount", "type=tmpfs,dst=/x", "--tmpfs", "/x/"]),
            ErrorKind::InvalidArgument,
            "two mounts",
        ),
    ] {
        let spec = busybox().with_provider_option("run_args", arguments);
        let error = test.provider.create(&spec).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{named}: {error:?}");
        assert!(
            error.report().to_string().contains(named),
            "{named} in {}",
            error.report()
        );
        assert!(test.containers().await.is_empty(), "{named} left something");
    }
    let version = test.provider.diagnose().await.unwrap().api_version;
    let minor: u32 = version.split('.').nth(1).unwrap().parse().unwrap();
    if minor < 45 {
        let spec = busybox()
            .with_provider_option("run_args", json!(["--mount", "src=data,dst=/x,volume-subpath=y"]));
        let error = test.provider.create(&spec).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(
            error
                .to_string()
                .contains(&format!("API >= 1.45, the engine has {version}")),
            "{error}"
        );
    } else {
        eprintln!("skipped: API {version} has everything");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d27_resources_that_the_engine_can_not_give_are_named_and_leave_nothing() {
    let Some(test) = docker().await else { return };
    let resources = |change: fn(&mut SandboxResources)| {
        let mut resources = SandboxResources::default();
        change(&mut resources);
        busybox().with_resources(resources)
    };
    for (spec, named) in [
        (
            resources(|r| r.gpu_type = Some("no-such-card".into())),
            "`gpu_type`",
        ),
        (resources(|r| r.gpu = Some(1)), "`gpu`"),
        (resources(|r| r.disk_gib = Some(1)), "`disk_gib`"),
    ] {
        match test.provider.create(&spec).await {
            Ok(handle) => {
                // An engine that has it gives it.
                eprintln!("skipped: this engine gives {named}");
                test.provider.close(&handle).await.unwrap();
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{named}: {error:?}");
                assert!(
                    error.report().to_string().contains(named),
                    "{named} in {}",
                    error.report()
                );
            }
        }
        assert!(test.containers().await.is_empty(), "{named} left something");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d27_a_limit_is_given_or_the_create_fails_and_never_dropped() {
    for (key, value, shown) in [
        ("memory_swappiness", json!(7), "MemorySwappiness"),
        ("oom_kill_disable", json!(true), "OomKillDisable"),
        ("blkio_weight", json!(300), "BlkioWeight"),
        ("cpu_shares", json!(512), "CpuShares"),
        ("storage_opt", json!({"size": "1g"}), "StorageOpt"),
        ("gpus", json!(1), "DeviceRequests"),
    ] {
        let mut config = config();
        config.policy.allow_oom_protection = true;
        let Some(open) = docker_with(config).await else {
            return;
        };
        let spec = busybox()
            .with_resources(SandboxResources::default().with_memory_mib(64))
            .with_provider_option(key, value.clone());
        match open.provider.create(&spec).await {
            Ok(handle) => {
                let host = serde_json::to_value(inspect(&handle).await.host_config).unwrap();
                let given = &host[shown];
                assert!(
                    *given == value || (!given.is_null() && (value.is_object() || key == "gpus")),
                    "{key} is {given}"
                );
                open.provider.close(&handle).await.unwrap();
            }
            Err(error) => {
                // An engine that knows that it can't, or a kernel that says so to the runtime.
                let kinds = [ErrorKind::Unsupported, ErrorKind::CreateFailed];
                assert!(kinds.contains(&error.kind()), "{key}: {}", error.report());
                eprintln!("not given here: {}", error.report());
            }
        }
        assert!(open.containers().await.is_empty(), "{key} left something");
    }
}
