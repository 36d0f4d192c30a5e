use std::collections::BTreeMap;

use bollard::models::HostConfig;

use super::*;
use crate::error::{ErrorKind, ImageProblem};
use crate::spec::{SandboxResources, Value};

fn request_with(change: impl FnOnce(&mut DockerConfig), spec: &SandboxSpec) -> Result<CreateRequest> {
    let mut config = DockerConfig::default();
    config.exec.exec_path = ExecPathPolicy::Engine;
    change(&mut config);
    draft(&config, spec)?.for_engine(ApiVersion::new(1, 41))
}

fn request(spec: &SandboxSpec) -> Result<CreateRequest> {
    request_with(|_| {}, spec)
}

fn host(spec: &SandboxSpec) -> HostConfig {
    request(spec).unwrap().body.host_config.unwrap()
}

#[test]
fn c01_c02_the_image_is_needed_and_its_prefix_is_cut_off() {
    let missing = request(&SandboxSpec::default()).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::InvalidArgument);
    let made = request(&SandboxSpec::new("docker://a/b:1")).unwrap();
    assert_eq!(made.body.image.as_deref(), Some("a/b:1"));
    let bad = request(&SandboxSpec::new("A B")).unwrap_err();
    assert_eq!(bad.kind(), ErrorKind::Image(ImageProblem::InvalidReference));
}

#[test]
fn c04_d28_without_an_entrypoint_a_shell_keeps_the_sandbox_alive() {
    let body = request(&SandboxSpec::new("a").with_entrypoint(Vec::<String>::new()))
        .unwrap()
        .body;
    assert_eq!(body.entrypoint.unwrap(), ["/bin/sh"]);
    let cmd = body.cmd.unwrap();
    assert_eq!(cmd[0], "-c");
    assert!(cmd[1].contains("sleep"));
}

#[test]
fn c05_the_entrypoint_is_the_program_and_the_rest_its_arguments() {
    let body = request(&SandboxSpec::new("a").with_entrypoint(["/srv", "--port", "1"]))
        .unwrap()
        .body;
    assert_eq!(body.entrypoint.unwrap(), ["/srv"]);
    assert_eq!(body.cmd.unwrap(), ["--port", "1"]);
}

#[test]
fn c06_a_ttl_is_rounded_up_to_whole_seconds() {
    for (ttl, seconds) in [
        (Duration::from_millis(10), 1),
        (Duration::from_millis(1500), 2),
        (Duration::from_secs(7), 7),
    ] {
        let body = request(&SandboxSpec::new("a").with_ttl(ttl)).unwrap().body;
        assert!(
            body.cmd.unwrap()[1].contains(&format!("sleep {seconds} ")),
            "{ttl:?}"
        );
    }
    let both = request(
        &SandboxSpec::new("a")
            .with_ttl(Duration::from_secs(1))
            .with_entrypoint(["x"]),
    )
    .unwrap_err();
    assert_eq!(both.kind(), ErrorKind::Unsupported);
}

#[test]
fn c09_c10_c11_workdir_environment_and_init() {
    let made = request(
        &SandboxSpec::new("a")
            .with_workdir("/w")
            .with_env("A", "")
            .with_env("B", "x=y"),
    )
    .unwrap()
    .body;
    assert_eq!(made.working_dir.as_deref(), Some("/w"));
    assert_eq!(made.env.unwrap(), ["A=", "B=x=y"]);
    assert_eq!(made.host_config.unwrap().init, Some(true));
    let off = SandboxSpec::new("a").with_provider_option("use_init", false);
    assert_eq!(host(&off).init, Some(false));
    let relative = request(&SandboxSpec::new("a").with_workdir("w")).unwrap_err();
    assert_eq!(relative.kind(), ErrorKind::InvalidArgument);
    for ours in ["/.gym-sandbox", "//./.gym-sandbox/x", "/.gym-sandbox-socket/"] {
        let refused = request(&SandboxSpec::new("a").with_workdir(ours)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        assert!(refused.to_string().contains(ours), "{refused}");
    }
    assert!(request(&SandboxSpec::new("a").with_workdir("/.gym-sandboxes")).is_ok());
}

#[test]
fn c12_memory_is_without_swap_and_both_limits_can_be_switched_off() {
    let spec =
        SandboxSpec::new("a").with_resources(SandboxResources::default().with_cpu(1.5).with_memory_mib(64));
    let limits = host(&spec);
    assert_eq!(limits.nano_cpus, Some(1_500_000_000));
    assert_eq!(
        (limits.memory, limits.memory_swap),
        (Some(64 << 20), Some(64 << 20))
    );
    let config = CreateConfig {
        apply_resource_limits: false,
        ..CreateConfig::default()
    };
    let off = request_with(|all| all.create = config, &spec)
        .unwrap()
        .body
        .host_config
        .unwrap();
    assert_eq!((off.nano_cpus, off.memory, off.memory_swap), (None, None, None));
}

#[test]
fn d27_disk_and_cards_go_to_the_engine_and_limits_of_nothing_are_refused() {
    let spec =
        SandboxSpec::from_value(serde_json::json!({"image": "a", "resources": {"disk_gib": 2, "gpu": 1}}))
            .unwrap();
    let made = host(&spec);
    assert_eq!(made.storage_opt.unwrap()["size"], "2G");
    assert_eq!(made.device_requests.unwrap()[0].count, Some(1));
    for (key, value) in [
        ("cpu", Value::from(0)),
        ("cpu", Value::from(-1)),
        ("memory_mib", Value::from(0)),
    ] {
        let spec =
            SandboxSpec::from_value(serde_json::json!({"image": "a", "resources": {key: value}})).unwrap();
        assert_eq!(
            request(&spec).unwrap_err().kind(),
            ErrorKind::InvalidArgument,
            "{key}"
        );
    }
}

#[test]
fn c13_security_options_are_mapped_directly() {
    let config = CreateConfig {
        network: Some("none".into()),
        read_only: true,
        cap_drop: vec!["NET_RAW".into()],
        security_opt: vec!["seccomp=unconfined".into()],
        pids_limit: Some(9),
        ..CreateConfig::default()
    };
    let made = request_with(|all| all.create = config, &SandboxSpec::new("a"))
        .unwrap()
        .body
        .host_config
        .unwrap();
    assert_eq!(made.network_mode.as_deref(), Some("none"));
    assert_eq!(made.readonly_rootfs, Some(true));
    assert_eq!(made.cap_drop.unwrap(), ["CAP_NET_RAW"]);
    assert_eq!(made.security_opt.unwrap(), ["seccomp=unconfined"]);
    assert_eq!(made.pids_limit, Some(9));
}

#[test]
fn c14_ports_are_exposed_and_bound_to_the_publish_host() {
    let made = request(&SandboxSpec::new("a").with_ports([8080, 22]).unwrap())
        .unwrap()
        .body;
    assert_eq!(made.exposed_ports.unwrap(), ["8080/tcp", "22/tcp"]);
    let bindings = made.host_config.unwrap().port_bindings.unwrap();
    let binding = &bindings["8080/tcp"].as_ref().unwrap()[0];
    assert_eq!(
        (binding.host_ip.as_deref(), binding.host_port.as_deref()),
        (Some("127.0.0.1"), Some(""))
    );
    assert_eq!(host(&SandboxSpec::new("a")).port_bindings, None);
}

#[test]
fn d17_labels_are_ours_and_the_specs_and_never_mixed_up() {
    let defaults = BTreeMap::from([
        ("team".to_owned(), "a".to_owned()),
        ("k".to_owned(), "default".to_owned()),
    ]);
    let spec = SandboxSpec::new("a").with_metadata("k", "v");
    let created: EngineTime = "2026-01-01T00:00:00Z".parse().unwrap();
    let made = request_with(|all| all.default_metadata = defaults, &spec)
        .unwrap()
        .with_labels(created, Some(Duration::from_secs(60)), &LeaseConfig::default());
    let labels = made.body.labels.unwrap();
    for (key, value) in [
        ("team", "a"),
        ("k", "v"),
        ("gym-sandbox", "1"),
        ("gym-sandbox.created", "2026-01-01T00:00:00.000Z"),
        ("gym-sandbox.expires", "2026-01-01T00:01:00.000Z"),
        ("gym-sandbox.kind", "sandbox"),
    ] {
        assert_eq!(labels.get(key).map(String::as_str), Some(value), "{key}");
    }
    assert!(labels.contains_key("gym-sandbox.owner") && labels.contains_key("gym-sandbox.run"));
    for key in ["gym-sandbox", "gym-sandbox.owner", "gym-sandbox-x"] {
        let error = request(&SandboxSpec::new("a").with_metadata(key, "v")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{key}");
    }
}

#[test]
fn d28_bad_environment_names_are_refused_before_any_call() {
    for name in ["", "X=Y", "N\0"] {
        let error = request(&SandboxSpec::new("a").with_env(name, "secret")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{name:?}");
        assert!(!error.report().to_string().contains("secret"));
    }
}
