//! `run_args` mean what they mean to `docker run`: both are made on the same engine and compared by inspect (contract D9).

use std::process::Command;

use bollard::models::{ContainerInspectResponse, HostConfig};
use bollard::query_parameters::{InspectContainerOptions, RemoveContainerOptionsBuilder};
use gym_sandbox::SandboxProvider;
use serde_json::{Value, json};

use crate::common::{BUSYBOX, TEST_LABEL, busybox, client, config, docker_with};
use crate::inspect;

/// Flags, and nothing that differs on purpose (docs/options.md): no memory without swap, no port without an address.
/// `--privileged` is left out: not every machine may give all capabilities.
const FLAGS: &[&[&str]] = &[
    &[
        "--shm-size",
        "8m",
        "--memory=64m",
        "--memory-swap=128m",
        "--cpus",
        "0.5",
        "--pids-limit=40",
    ],
    &[
        "-m64m",
        "--memory-swap",
        "-1",
        "-c",
        "512",
        "--cpuset-cpus=0",
        "--memory-reservation=32m",
    ],
    &[
        "--ulimit",
        "nofile=100:200",
        "--ulimit=core=0",
        "--oom-score-adj=5",
    ],
    &[
        "-v",
        "/anonymous",
        "--tmpfs",
        "/t:size=1m,mode=700",
        "--mount",
        "type=volume,dst=/m,volume-nocopy",
    ],
    &[
        "--cap-drop=ALL",
        "--cap-add",
        "chown",
        "--security-opt",
        "no-new-privileges",
    ],
    &[
        "-hbox",
        "--add-host",
        "a:10.0.0.1",
        "--dns=10.0.0.2",
        "--dns-search=x.test",
        "--dns-option",
        "ndots:2",
    ],
    &[
        "-p",
        "127.0.0.1::8080",
        "-p127.0.0.1:0:53/udp",
        "--expose",
        "99",
        "--expose=100-101",
    ],
    &[
        "-u",
        "1:2",
        "-w/tmp",
        "-e",
        "A=b c",
        "--label",
        "x=y",
        "--label=z",
        "--group-add",
        "5",
    ],
    &[
        "--read-only",
        "--ipc=private",
        "--stop-signal",
        "SIGINT",
        "--stop-timeout=3",
        "--no-healthcheck",
    ],
    &[
        "--sysctl",
        "net.core.somaxconn=100",
        "--log-driver=json-file",
        "--log-opt",
        "max-size=1m",
    ],
    &[
        "--health-cmd",
        "true",
        "--health-interval=3s",
        "--health-retries",
        "2",
        "--health-timeout=1m1s",
    ],
    &["--network", "none"],
    &["--init", "--runtime=runc", "--cgroupns=host"],
    &[
        "--pid=host",
        "--uts=host",
        "--userns=host",
        "--device",
        "/dev/null:/dev/x:rw",
    ],
];

#[tokio::test(flavor = "multi_thread")]
async fn d9_run_args_do_what_docker_run_does() {
    if Command::new("docker").arg("--version").output().is_err() {
        eprintln!("skipped: there is no docker command");
        return;
    }
    let mut config = config();
    // Docker has no init unless asked, and the policy is not what is compared.
    config.create.use_init = false;
    config.policy.allow_devices = vec!["/dev/".into()];
    config.policy.allow_host_namespaces =
        serde_json::from_value(json!(["pid", "uts", "user", "cgroup"])).unwrap();
    config.exec.exec_path = gym_sandbox::docker::ExecPathPolicy::Engine;
    let Some(test) = docker_with(config).await else {
        return;
    };
    for flags in FLAGS {
        let spec = busybox().with_provider_option("run_args", json!(flags));
        let handle = test.provider.create(&spec).await.unwrap_or_else(|error| {
            panic!("{flags:?}: {}", error.report());
        });
        let ours = inspect(&handle).await;
        let theirs = by_docker(flags, test.label()).await;
        test.provider.close(&handle).await.unwrap();
        for (what, ours, theirs) in compared(ours, theirs) {
            assert_eq!(ours, theirs, "{what} of {flags:?}");
        }
    }
}

async fn by_docker(flags: &[&str], label: &str) -> ContainerInspectResponse {
    let output = Command::new("docker")
        .arg("run")
        .arg("-d")
        .args(["--label", &format!("{TEST_LABEL}={label}")])
        .args(flags)
        .args([BUSYBOX, "sleep", "1000"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{flags:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let id = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let client = client().await.unwrap();
    let inspected = client
        .inspect_container(&id, None::<InspectContainerOptions>)
        .await
        .unwrap();
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    client.remove_container(&id, Some(options)).await.unwrap();
    inspected
}

/// What must be the same, in one form for both: none, empty and the engine's default are one thing.
fn compared(ours: ContainerInspectResponse, theirs: ContainerInspectResponse) -> Vec<(String, Value, Value)> {
    let (ours, theirs) = (parts(ours), parts(theirs));
    let mut all = Vec::new();
    for (name, value) in &ours {
        let other = theirs.get(name).cloned().unwrap_or(Value::Null);
        all.push((name.clone(), value.clone(), other));
    }
    assert_eq!(ours.len(), theirs.len());
    all
}

fn parts(inspected: ContainerInspectResponse) -> serde_json::Map<String, Value> {
    let config = inspected.config.unwrap();
    let host = inspected.host_config.unwrap();
    let mut mounts: Vec<Value> = inspected
        .mounts
        .unwrap_or_default()
        .into_iter()
        .map(|mount| json!([mount.destination, mount.typ, mount.rw, mount.propagation]))
        .collect();
    mounts.sort_by_key(Value::to_string);
    let mut labels = config.labels.unwrap_or_default();
    labels.retain(|key, _| !key.starts_with("gym-sandbox") && key != TEST_LABEL);
    let mut exposed = config.exposed_ports.unwrap_or_default();
    exposed.sort();
    let mut env = config.env.unwrap_or_default();
    env.retain(|variable| variable.starts_with("A="));
    let random = |key: &str| host.port_bindings.as_ref().and_then(|all| all.get(key).cloned());
    let hostname = config.hostname.filter(|name| name.len() != 12);
    let Value::Object(parts) = json!({
        "mounts": mounts,
        "labels": labels,
        "exposed ports": exposed,
        "binding": [random("8080/tcp").is_some(), random("53/udp").is_some()],
        "env": env,
        "user": config.user.unwrap_or_default(),
        "workdir": config.working_dir.unwrap_or_default(),
        "hostname": hostname,
        "stop signal": config.stop_signal,
        "stop timeout": config.stop_timeout,
        "health": config.healthcheck,
        "host": of_host(&host),
    }) else {
        panic!("not an object");
    };
    parts
}

fn of_host(host: &HostConfig) -> Value {
    let mut ulimits = host.ulimits.clone().unwrap_or_default();
    ulimits.sort_by(|one, other| one.name.cmp(&other.name));
    json!({
        "memory": [host.memory, host.memory_swap, host.memory_reservation],
        "cpu": [host.nano_cpus, host.cpu_shares],
        "cpuset": host.cpuset_cpus,
        "pids": host.pids_limit.filter(|limit| *limit > 0),
        "shm": host.shm_size,
        "ulimits": ulimits,
        "oom": host.oom_score_adj,
        "tmpfs": host.tmpfs.clone().unwrap_or_default(),
        "cap_add": host.cap_add.clone().unwrap_or_default(),
        "cap_drop": host.cap_drop.clone().unwrap_or_default(),
        "security": host.security_opt.clone().unwrap_or_default(),
        "hosts": host.extra_hosts.clone().unwrap_or_default(),
        "dns": [host.dns.clone().unwrap_or_default(), host.dns_search.clone().unwrap_or_default()],
        "dns options": host.dns_options.clone().unwrap_or_default(),
        "groups": host.group_add.clone().unwrap_or_default(),
        "read only": host.readonly_rootfs,
        "ipc": host.ipc_mode,
        "pid": host.pid_mode,
        "uts": host.uts_mode,
        "userns": host.userns_mode,
        "sysctls": host.sysctls.clone().unwrap_or_default(),
        "log": host.log_config.as_ref().map(|log| (log.typ.clone(), log.config.clone().unwrap_or_default())),
        // Two words for the same.
        "network": host.network_mode.as_deref().map(|mode| mode.replace("default", "bridge")),
        "init": host.init.unwrap_or_default(),
        "runtime": host.runtime,
        "privileged": host.privileged,
        "devices": host.devices.clone().unwrap_or_default(),
    })
}
