//! Every option is seen from inside the sandbox, or in inspect where nothing inside shows it.

use std::time::Duration;

use gym_sandbox::docker::{DockerConfig, ExecPathPolicy};
use gym_sandbox::{
    ErrorKind, ExecOptions, ExecPath, SandboxHandle, SandboxProvider, SandboxPtySpec, SandboxResources,
};
use serde_json::json;

use crate::common::{DockerTest, busybox, client, config, docker, docker_with};
use crate::{inspect, run, stdout};

#[tokio::test(flavor = "multi_thread")]
async fn c12_d9_limits_are_seen_from_inside() {
    let Some(test) = docker().await else { return };
    let spec = busybox()
        .with_resources(SandboxResources::default().with_cpu(0.5).with_memory_mib(64))
        .with_provider_option("pids_limit", 50)
        .with_provider_option("shm_size", "8m")
        .with_provider_option(
            "ulimits",
            json!({"nofile": {"soft": 100, "hard": 200}, "core": 0}),
        )
        .with_provider_option("oom_score_adj", 300)
        .with_provider_option("cpuset_cpus", "0");
    let handle = test.provider.create(&spec).await.unwrap();
    // cgroup v1 and v2 have other files for the same.
    let group =
        "cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max";
    assert_eq!(stdout(&test, &handle, group).await.trim(), (64 << 20).to_string());
    let group = "cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max";
    assert_eq!(stdout(&test, &handle, group).await.trim(), "50");
    let quota = "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null || cut -d' ' -f1 /sys/fs/cgroup/cpu.max";
    assert_eq!(stdout(&test, &handle, quota).await.trim(), "50000");
    let shm = stdout(&test, &handle, "df -k /dev/shm | tail -n 1 | awk '{print $2}'").await;
    assert_eq!(shm.trim(), "8192");
    assert_eq!(
        stdout(&test, &handle, "ulimit -Sn; ulimit -Hn; ulimit -c").await,
        "100\n200\n0\n"
    );
    let allowed = stdout(&test, &handle, "grep Cpus_allowed_list /proc/self/status").await;
    assert_eq!(allowed.split_whitespace().last(), Some("0"));
    let score: i64 = stdout(&test, &handle, "cat /proc/1/oom_score_adj")
        .await
        .trim()
        .parse()
        .unwrap();
    assert!(score >= 300, "{score}");
    // Swap beside the memory: the engine would give as much again (engine-facts C12).
    let host = inspect(&handle).await.host_config.unwrap();
    assert_eq!((host.memory, host.memory_swap), (Some(64 << 20), Some(64 << 20)));
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d9_names_groups_kernel_parameters_and_hosts_are_seen_from_inside() {
    let Some(test) = docker().await else { return };
    let spec = busybox()
        .with_provider_option("hostname", "box")
        .with_provider_option("user", "1234:1235")
        .with_provider_option("group_add", json!([2345]))
        .with_provider_option(
            "sysctls",
            json!({"net.ipv4.ip_default_ttl": 77, "kernel.msgmax": 4096}),
        )
        .with_provider_option("extra_hosts", json!({"upstream": "10.9.8.7"}))
        .with_provider_option("dns", json!(["10.1.1.1"]))
        .with_provider_option("dns_search", json!(["example.test"]))
        .with_provider_option("labels", json!({"colour": "blue"}))
        .with_provider_option("stop_signal", "SIGUSR1")
        .with_provider_option(
            "run_args",
            json!(["--env", "ADDED=yes", "-w/var/tmp", "--stop-timeout=7"]),
        );
    let handle = test.provider.create(&spec).await.unwrap();
    assert_eq!(stdout(&test, &handle, "hostname").await, "box\n");
    assert_eq!(stdout(&test, &handle, "id -u; id -g").await, "1234\n1235\n");
    assert!(
        stdout(&test, &handle, "id -G")
            .await
            .split_whitespace()
            .any(|group| group == "2345")
    );
    assert_eq!(
        stdout(
            &test,
            &handle,
            "cat /proc/sys/net/ipv4/ip_default_ttl /proc/sys/kernel/msgmax"
        )
        .await,
        "77\n4096\n"
    );
    assert!(
        stdout(&test, &handle, "cat /etc/hosts")
            .await
            .contains("10.9.8.7\tupstream")
    );
    let resolver = stdout(&test, &handle, "cat /etc/resolv.conf").await;
    assert!(
        resolver.contains("10.1.1.1") && resolver.contains("example.test"),
        "{resolver}"
    );
    assert_eq!(
        stdout(&test, &handle, "echo $ADDED; pwd").await,
        "yes\n/var/tmp\n"
    );
    let inspected = inspect(&handle).await.config.unwrap();
    assert_eq!(inspected.labels.unwrap()["colour"], "blue");
    assert_eq!(inspected.stop_timeout, Some(7));
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn c15_d11_mounts_are_seen_from_inside() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "from the host").unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    let mut config: DockerConfig = config();
    config.policy.allow_host_binds = vec![format!("{path}:ro")];
    let Some(test) = docker_with(config).await else {
        return;
    };
    let volume = format!("gym-sandbox-test-{}", uuid::Uuid::new_v4().simple());
    let spec = busybox()
        .with_provider_option("volumes", json!([format!("{volume}:/data"), format!("{path}:/host:ro"), "/own"]))
        .with_provider_option("tmpfs", json!({"/memory": "size=1m,mode=700"}))
        .with_provider_option(
            "mounts",
            json!([{"type": "tmpfs", "target": "/more", "tmpfs_size": "2m", "tmpfs_mode": "1777", "readonly": true}]),
        );
    let handle = test.provider.create(&spec).await.unwrap();
    assert_eq!(stdout(&test, &handle, "cat /host/file").await, "from the host");
    assert!(!run(&test, &handle, "echo x > /host/file").await.is_success());
    assert_eq!(
        stdout(
            &test,
            &handle,
            "echo x > /data/f; echo y > /own/f; cat /data/f /own/f"
        )
        .await,
        "x\ny\n"
    );
    let size = |folder: &str| format!("df -k {folder} | tail -n 1 | awk '{{print $2}}'");
    assert_eq!(stdout(&test, &handle, &size("/memory")).await.trim(), "1024");
    assert_eq!(stdout(&test, &handle, &size("/more")).await.trim(), "2048");
    assert_eq!(
        stdout(&test, &handle, "stat -c %a /memory /more").await,
        "700\n1777\n"
    );
    assert!(!run(&test, &handle, "echo x > /more/f").await.is_success());
    test.provider.close(&handle).await.unwrap();
    // A named volume outlives its sandbox, with what is in it; its own does not.
    let again = busybox().with_provider_option("volumes", format!("{volume}:/data:ro"));
    let handle = test.provider.create(&again).await.unwrap();
    assert_eq!(stdout(&test, &handle, "cat /data/f").await, "x\n");
    assert!(!run(&test, &handle, "echo z > /data/f").await.is_success());
    test.provider.close(&handle).await.unwrap();
    let client = client().await.unwrap();
    client
        .remove_volume(&volume, None::<bollard::query_parameters::RemoveVolumeOptions>)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d9_capabilities_runtime_and_devices_are_seen_from_inside() {
    let mut config: DockerConfig = config();
    config.policy.allow_capabilities = vec!["SYS_PTRACE".into()];
    config.policy.allow_devices = vec!["/dev/null".into()];
    let Some(test) = docker_with(config).await else {
        return;
    };
    let spec = busybox()
        .with_provider_option("cap_drop", json!(["ALL"]))
        .with_provider_option("cap_add", json!(["SYS_PTRACE", "cap_chown"]))
        .with_provider_option("devices", json!(["/dev/null:/dev/nothing:r"]))
        .with_provider_option("runtime", "runc");
    let handle = test.provider.create(&spec).await.unwrap();
    let line = stdout(&test, &handle, "grep CapBnd /proc/self/status").await;
    let bits = u64::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap();
    // CHOWN is bit 0, SYS_PTRACE bit 19.
    assert_eq!(bits, 1 | 1 << 19, "{line}");
    assert_eq!(
        stdout(&test, &handle, "stat -c %t:%T /dev/nothing").await,
        "1:3\n"
    );
    let host = inspect(&handle).await.host_config.unwrap();
    assert_eq!(host.runtime.as_deref(), Some("runc"));
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d9_published_ports_and_logs_are_seen_by_inspect() {
    let Some(test) = docker().await else { return };
    let spec = busybox()
        .with_provider_option("publish", json!(["8080", "53/udp"]))
        .with_provider_option("log_driver", "json-file")
        .with_provider_option("log_opt", json!({"max-size": "1m"}))
        .with_provider_option("no_healthcheck", true);
    let handle = test.provider.create(&spec).await.unwrap();
    let inspected = inspect(&handle).await;
    let ports = inspected.network_settings.unwrap().ports.unwrap();
    for key in ["8080/tcp", "53/udp"] {
        let bindings = ports[key].as_ref().unwrap();
        assert_eq!(bindings.len(), 1, "{key}: {bindings:?}");
        assert_eq!(bindings[0].host_ip.as_deref(), Some("127.0.0.1"));
        assert!(bindings[0].host_port.as_deref().unwrap().parse::<u16>().unwrap() > 0);
    }
    let log = inspected.host_config.unwrap().log_config.unwrap();
    assert_eq!(log.config.unwrap()["max-size"], "1m");
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d9_arguments_of_all_commands_are_laid_under_each() {
    let mut config = config();
    config.exec.extra_exec_args = ["-e", "WHO=all", "--user", "1234", "-w", "/var"]
        .map(str::to_owned)
        .into();
    let Some(test) = docker_with(config).await else {
        return;
    };
    let handle = test.provider.create(&busybox()).await.unwrap();
    assert_eq!(
        stdout(&test, &handle, "echo $WHO; id -u; pwd").await,
        "all\n1234\n/var\n"
    );
    let own = ExecOptions::new("echo $WHO; id -u; pwd")
        .with_env("WHO", "me")
        .with_user("0")
        .with_cwd("/tmp");
    let result = test.provider.exec(&handle, own).await.unwrap();
    assert_eq!(result.stdout().as_deref(), Some("me\n0\n/tmp\n"));
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d9_arguments_of_all_commands_are_laid_under_terminals_too() {
    for exec_path in [ExecPathPolicy::Engine, ExecPathPolicy::Agent] {
        let mut config = config();
        config.exec.exec_path = exec_path;
        config.exec.extra_exec_args = ["-e", "WHO=all", "--user=1234", "-w/var"]
            .map(str::to_owned)
            .into();
        let Some(test) = docker_with(config).await else {
            return;
        };
        let handle = test.provider.create(&busybox()).await.unwrap();
        let plain = SandboxPtySpec::new("echo $WHO; id -u; pwd");
        let own = plain
            .clone()
            .with_env("WHO", "me")
            .with_user("0")
            .with_cwd("/tmp");
        for (spec, expected) in [(plain, "all\r\n1234\r\n/var\r\n"), (own, "me\r\n0\r\n/tmp\r\n")] {
            let (shown, path) = shown(&test, &handle, &spec).await;
            assert_eq!(shown, expected, "{path:?}");
            assert_eq!(path == ExecPath::Agent, exec_path == ExecPathPolicy::Agent);
        }
        test.provider.close(&handle).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d9_privileged_terminals_go_by_the_engine() {
    let mut config = config();
    config.policy.allow_privileged = true;
    config.exec.extra_exec_args = vec!["--privileged".to_owned()];
    let Some(test) = docker_with(config).await else {
        return;
    };
    let handle = test.provider.create(&busybox()).await.unwrap();
    let spec = SandboxPtySpec::new("grep CapEff /proc/self/status");
    let (capabilities, path) = shown(&test, &handle, &spec).await;
    assert_eq!(path, ExecPath::Engine);
    if !capabilities.contains("CapEff") {
        eprintln!("skipped: this machine gives nobody all privileges: {capabilities}");
        test.provider.close(&handle).await.unwrap();
        return;
    }
    let bits = u64::from_str_radix(capabilities.split_whitespace().last().unwrap(), 16).unwrap();
    // SYS_ADMIN is bit 21, which no sandbox has by itself.
    assert_ne!(bits & 1 << 21, 0, "{capabilities}");
    test.provider.close(&handle).await.unwrap();
}

/// All that a program prints in a terminal, and which way it was reached.
async fn shown(test: &DockerTest, handle: &SandboxHandle, spec: &SandboxPtySpec) -> (String, ExecPath) {
    let pty = test.provider.as_pty().unwrap();
    let session = pty.create_pty(handle, spec).await.unwrap();
    let mut shown = Vec::new();
    loop {
        let chunk = tokio::time::timeout(Duration::from_secs(180), session.read()).await;
        let chunk = chunk.expect("it is read in time").unwrap();
        if chunk.is_empty() {
            return (String::from_utf8_lossy(&shown).into_owned(), session.exec_path());
        }
        shown.extend_from_slice(&chunk);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d9_d27_a_runtime_is_the_one_asked_for_or_refused_by_name() {
    for exec_path in [ExecPathPolicy::Engine, ExecPathPolicy::Agent] {
        let mut config = config();
        config.exec.exec_path = exec_path;
        let Some(test) = docker_with(config).await else {
            return;
        };
        let known = test.provider.diagnose().await.unwrap().runtimes;
        for runtime in ["runc", "crun", "runsc"] {
            let spec = busybox().with_provider_option("runtime", runtime);
            match test.provider.create(&spec).await {
                Ok(handle) => {
                    let host = inspect(&handle).await.host_config.unwrap();
                    assert_eq!(host.runtime.as_deref(), Some(runtime));
                    assert_eq!(stdout(&test, &handle, "echo works").await, "works\n", "{runtime}");
                    test.provider.close(&handle).await.unwrap();
                }
                Err(error) => {
                    assert!(!known.iter().any(|known| known == runtime), "{}", error.report());
                    assert_eq!(error.kind(), ErrorKind::Unsupported, "{}", error.report());
                    assert!(
                        error.to_string().contains(&format!("no runtime `{runtime}`")),
                        "{error}"
                    );
                    eprintln!("skipped: this engine has no runtime {runtime}");
                }
            }
            assert!(test.containers().await.is_empty(), "{runtime} left something");
        }
    }
}
