//! Every option that create maps, as the engine keeps it or as it is seen from inside (C4, C9-C13, D17).

use std::collections::BTreeMap;

use gym_sandbox::docker::{CreateConfig, DockerConfig, ExecPathPolicy, Preset};
use gym_sandbox::{ErrorKind, ExecOptions, SandboxProvider, SandboxResources};

use crate::common::{config, docker, docker_with};
use crate::support::{container_id, host_config, inspect, refused, stdout, until};

#[tokio::test(flavor = "multi_thread")]
async fn c09_c10_c11_workdir_environment_and_init_are_there() {
    let Some(test) = docker().await else { return };
    let spec = crate::common::busybox()
        .with_provider_option("exec_path", "engine")
        .with_workdir("/made/for this")
        .with_env("GIVEN", "a=b c")
        .with_env("EMPTY", "");
    let handle = test.provider.create(&spec).await.unwrap();
    assert_eq!(stdout(&test.provider, &handle, "pwd").await, "/made/for this\n");
    assert_eq!(
        stdout(
            &test.provider,
            &handle,
            "printf '%s|%s' \"$GIVEN\" \"${EMPTY-unset}\""
        )
        .await,
        "a=b c|"
    );
    let container = inspect(&handle).await;
    let config = container.config.unwrap();
    assert_eq!(config.working_dir.as_deref(), Some("/made/for this"));
    assert!(config.env.unwrap().contains(&"GIVEN=a=b c".to_owned()));
    // The keepalive shell is the main process, below an init that reaps what is orphaned.
    assert_eq!(config.entrypoint.unwrap(), ["/bin/sh"]);
    assert_eq!(container.host_config.unwrap().init, Some(true));
    let first = stdout(&test.provider, &handle, "tr '\\000' ' ' < /proc/1/cmdline").await;
    assert!(first.contains("init"), "process 1 is `{first}`");
    test.provider.close(&handle).await.unwrap();
}

/// The agent is process 1 and reaps what is orphaned, so that C4 and C11 don't apply (D28).
#[tokio::test(flavor = "multi_thread")]
async fn c09_c10_d28_workdir_and_environment_are_there_with_the_agent() {
    let Some(test) = docker().await else { return };
    let spec = crate::common::busybox()
        .with_workdir("/made/for this")
        .with_env("GIVEN", "a=b c")
        .with_env("EMPTY", "");
    let handle = test.provider.create(&spec).await.unwrap();
    let line = "pwd; printf '%s|%s' \"$GIVEN\" \"${EMPTY-unset}\"";
    assert_eq!(
        stdout(&test.provider, &handle, line).await,
        "/made/for this\na=b c|"
    );
    let container = inspect(&handle).await;
    let config = container.config.unwrap();
    assert_eq!(config.working_dir.as_deref(), Some("/made/for this"));
    assert!(config.env.unwrap().contains(&"GIVEN=a=b c".to_owned()));
    assert_eq!(config.entrypoint.unwrap()[..2], ["/.gym-sandbox/agent", "init"]);
    assert_eq!(container.host_config.unwrap().init, Some(false));
    let orphan = "(sh -c 'sleep 0.01 & exit 0' &) ; sleep 0.2";
    stdout(&test.provider, &handle, orphan).await;
    let zombies = "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null; true";
    let reaped = || async { stdout(&test.provider, &handle, zombies).await.is_empty() };
    until("all orphans are reaped", reaped).await;
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn c11_without_init_the_keepalive_shell_is_process_1() {
    let Some(test) = docker().await else { return };
    let handle = test
        .provider
        .create(
            &crate::common::busybox()
                .with_provider_option("exec_path", "engine")
                .with_provider_option("use_init", false),
        )
        .await
        .unwrap();
    let first = stdout(&test.provider, &handle, "tr '\\000' ' ' < /proc/1/cmdline").await;
    assert!(first.starts_with("/bin/sh -c"), "process 1 is `{first}`");
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn c12_limits_are_set_without_swap_and_hold_inside() {
    let Some(test) = docker().await else { return };
    let limits = SandboxResources::default().with_cpu(0.5).with_memory_mib(64);
    let handle = test
        .provider
        .create(&crate::common::busybox().with_resources(limits))
        .await
        .unwrap();
    let host = host_config(&handle).await;
    assert_eq!(host.nano_cpus, Some(500_000_000));
    assert_eq!((host.memory, host.memory_swap), (Some(64 << 20), Some(64 << 20)));
    let find = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null; true";
    assert_eq!(
        stdout(&test.provider, &handle, find).await.trim(),
        (64 << 20).to_string()
    );
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn c12_limits_can_be_switched_off() {
    let mut config = DockerConfig::default();
    config.create.apply_resource_limits = false;
    let Some(test) = docker_with(config).await else {
        return;
    };
    let limits = SandboxResources::default().with_cpu(0.5).with_memory_mib(64);
    let handle = test
        .provider
        .create(&crate::common::busybox().with_resources(limits))
        .await
        .unwrap();
    let host = host_config(&handle).await;
    assert_eq!((host.nano_cpus.unwrap_or(0), host.memory.unwrap_or(0)), (0, 0));
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn c13_hardened_drops_everything_and_caps_processes_memory_and_logs() {
    let Some(test) = docker().await else { return };
    let handle = test
        .provider
        .create(&crate::common::busybox().with_provider_option("preset", "hardened"))
        .await
        .unwrap();
    let status = stdout(&test.provider, &handle, "cat /proc/self/status").await;
    let of = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim).map(str::to_owned)
    };
    for set in ["CapEff", "CapPrm", "CapBnd"] {
        assert_eq!(of(set).as_deref(), Some("0000000000000000"), "{set}");
    }
    assert_eq!(of("NoNewPrivs").as_deref(), Some("1"));
    let find = "cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null; true";
    assert_eq!(stdout(&test.provider, &handle, find).await.trim(), "512");
    let host = host_config(&handle).await;
    assert_eq!(
        (host.pids_limit, host.memory, host.memory_swap),
        (Some(512), Some(2 << 30), Some(2 << 30))
    );
    assert_eq!(host.cap_drop.unwrap(), ["ALL"]);
    assert_eq!(host.security_opt.unwrap(), ["no-new-privileges"]);
    let log = host.log_config.unwrap();
    assert_eq!(log.typ.as_deref(), Some("json-file"));
    let log = log.config.unwrap();
    assert_eq!(log.get("max-size").map(String::as_str), Some("10m"));
    assert_eq!(log.get("max-file").map(String::as_str), Some("2"));
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn c13_what_is_set_beside_hardened_wins() {
    let mut config = DockerConfig::default();
    config.create.preset = Preset::Hardened;
    let Some(test) = docker_with(config).await else {
        return;
    };
    let spec = crate::common::busybox()
        .with_resources(SandboxResources::default().with_memory_mib(128))
        .with_provider_option("pids_limit", 33);
    let handle = test.provider.create(&spec).await.unwrap();
    let host = host_config(&handle).await;
    assert_eq!((host.pids_limit, host.memory), (Some(33), Some(128 << 20)));
    test.provider.close(&handle).await.unwrap();
    let compat = test
        .provider
        .create(&crate::common::busybox().with_provider_option("preset", "compat"))
        .await
        .unwrap();
    let host = host_config(&compat).await;
    assert!(host.cap_drop.unwrap_or_default().is_empty());
    assert_eq!((host.pids_limit.unwrap_or(0), host.memory.unwrap_or(0)), (0, 0));
    test.provider.close(&compat).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn c13_read_only_without_network_and_a_dropped_capability() {
    let Some(test) = docker().await else { return };
    let spec = crate::common::busybox()
        .with_provider_option("read_only", true)
        .with_provider_option("network", "none")
        .with_provider_option("cap_drop", serde_json::json!(["CHOWN"]));
    let handle = test.provider.create(&spec).await.unwrap();
    let write = test
        .provider
        .exec(&handle, ExecOptions::new("echo x > /tmp/x"))
        .await
        .unwrap();
    assert_ne!(write.return_code, 0, "the root is writable");
    assert_eq!(write.error_type, None);
    assert_eq!(stdout(&test.provider, &handle, "ls /sys/class/net").await, "lo\n");
    let chown = test
        .provider
        .exec(&handle, ExecOptions::new("chown 1:1 /dev/shm"))
        .await
        .unwrap();
    assert_ne!(chown.return_code, 0, "the capability is there");
    let host = host_config(&handle).await;
    assert_eq!(host.network_mode.as_deref(), Some("none"));
    assert_eq!(host.readonly_rootfs, Some(true));
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d17_name_and_labels() {
    let mut config = DockerConfig::default();
    config.default_metadata = BTreeMap::from([("team", "red"), ("stage", "default")])
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let Some(test) = docker_with(config).await else {
        return;
    };
    let handle = test
        .provider
        .create(&crate::common::busybox().with_metadata("stage", "spec"))
        .await
        .unwrap();
    let second = test.provider.create(&crate::common::busybox()).await.unwrap();
    let container = inspect(&handle).await;
    let name = container.name.unwrap();
    assert_eq!(name.trim_start_matches('/'), handle.sandbox_id().as_str());
    let hex = handle.sandbox_id().as_str().strip_prefix("gym-sandbox-").unwrap();
    assert!(
        hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{hex}"
    );
    assert_eq!(container.id.as_deref(), Some(container_id(&handle)));
    let labels = container.config.unwrap().labels.unwrap();
    // The spec's metadata wins over the configuration's (F6).
    for (key, value) in [
        ("gym-sandbox", "1"),
        ("gym-sandbox.kind", "sandbox"),
        ("team", "red"),
        ("stage", "spec"),
    ] {
        assert_eq!(labels.get(key).map(String::as_str), Some(value), "{key}");
    }
    assert!(
        !labels.contains_key("gym-sandbox.expires"),
        "without a ttl nothing expires"
    );
    let second = (inspect(&second).await.config.unwrap().labels.unwrap(), second);
    for key in ["gym-sandbox.owner", "gym-sandbox.run"] {
        assert!(labels.get(key).is_some_and(|value| !value.is_empty()), "{key}");
        assert_eq!(labels.get(key), second.0.get(key), "one process has one {key}");
    }
    // By the engine's clock, which is the one of its own record.
    let created = labels.get("gym-sandbox.created").unwrap();
    let recorded = container.created.unwrap();
    let apart = second_of_day(created).abs_diff(second_of_day(&recorded));
    assert!(
        created.ends_with('Z') && !(60..86_340).contains(&apart),
        "the label says {created}, the engine {recorded}"
    );
    test.provider.close(&handle).await.unwrap();
    test.provider.close(&second.1).await.unwrap();
}

/// Of a time such as `2026-01-31T23:59:58.5Z`.
fn second_of_day(time: &str) -> u32 {
    let number = |start: usize| time[start..start + 2].parse::<u32>().unwrap();
    number(11) * 3600 + number(14) * 60 + number(17)
}

#[tokio::test(flavor = "multi_thread")]
async fn d10_d17_d27_what_is_refused_leaves_nothing() {
    let Some(test) = docker().await else { return };
    let json = |key: &str, value: serde_json::Value| {
        let mut spec = serde_json::to_value(crate::common::busybox()).unwrap();
        spec[key] = value;
        gym_sandbox::SandboxSpec::from_value(spec).unwrap()
    };
    for (spec, kind, named) in [
        (
            crate::common::busybox().with_metadata("gym-sandbox.owner", "me"),
            ErrorKind::InvalidArgument,
            "gym-sandbox.owner",
        ),
        (
            crate::common::busybox().with_workdir("relative"),
            ErrorKind::InvalidArgument,
            "relative",
        ),
        (
            crate::common::busybox().with_provider_option("volumes", "/:/host"),
            ErrorKind::InvalidArgument,
            "mount of `/`",
        ),
        (
            crate::common::busybox().with_provider_option("pull_policy", "maybe"),
            ErrorKind::InvalidArgument,
            "pull_policy",
        ),
        (
            crate::common::busybox().with_provider_option("pids_limit", 0),
            ErrorKind::InvalidArgument,
            "pids_limit",
        ),
        (
            crate::common::busybox().with_provider_option("privileged", true),
            ErrorKind::InvalidArgument,
            "privileged",
        ),
        (
            json("resources", serde_json::json!({"disk_gib": 1})),
            ErrorKind::Unsupported,
            "disk_gib",
        ),
        (
            json("resources", serde_json::json!({"gpu": 1})),
            ErrorKind::Unsupported,
            "gpu",
        ),
        (
            json("resources", serde_json::json!({"memory_mib": 0})),
            ErrorKind::InvalidArgument,
            "memory_mib",
        ),
        (
            crate::common::busybox().with_entrypoint(["sh\0"]),
            ErrorKind::InvalidArgument,
            "entrypoint",
        ),
    ] {
        let error = refused(&test, &spec).await;
        assert_eq!(error.kind(), kind, "{named}: {error:?}");
        assert!(
            error.report().to_string().contains(named),
            "{named} in {}",
            error.report()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c16_what_the_engine_refuses_is_typed_and_leaves_nothing() {
    let mut config = config();
    config.policy.allow_security_options = vec!["nonsense=1".into()];
    let Some(test) = docker_with(config).await else {
        return;
    };
    let many = SandboxResources::default().with_cpu(100_000.0);
    let small = SandboxResources::default().with_memory_mib(1);
    for (spec, told) in [
        // The engine makes this one, and only the start fails (engine-facts S16).
        (
            crate::common::busybox().with_provider_option("network", "no-such-network-of-a-test"),
            "no-such-network-of-a-test",
        ),
        // It does not make these.
        (crate::common::busybox().with_resources(many), "CPUs"),
        (crate::common::busybox().with_resources(small), "emory"),
        (
            crate::common::busybox().with_provider_option("security_opt", serde_json::json!(["nonsense=1"])),
            "nonsense",
        ),
        (
            crate::common::busybox().with_provider_option("cap_drop", serde_json::json!(["NO_SUCH"])),
            "NO_SUCH",
        ),
    ] {
        let error = refused(&test, &spec).await;
        assert_eq!(error.kind(), ErrorKind::CreateFailed, "{told}: {error:?}");
        assert!(
            error.report().to_string().contains(told),
            "`{told}` in {}",
            error.report()
        );
        assert!(!error.is_retryable(), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c04_the_keepalive_of_the_configuration_is_used() {
    let mut config = DockerConfig::default();
    // With the agent there is none (D28).
    config.exec.exec_path = ExecPathPolicy::Engine;
    config.create.keepalive_shell = "sh".to_owned();
    config.create.keepalive_cmd = "touch /tmp/kept; exec sleep 4321".to_owned();
    let Some(test) = docker_with(config).await else {
        return;
    };
    let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
    let config = inspect(&handle).await.config.unwrap();
    assert_eq!(config.entrypoint.unwrap(), ["sh"]);
    assert_eq!(config.cmd.unwrap(), ["-c", "touch /tmp/kept; exec sleep 4321"]);
    test.provider.close(&handle).await.unwrap();
    assert!(CreateConfig::default().keepalive_cmd.contains("TERM"));
}
