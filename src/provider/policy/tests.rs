use std::collections::BTreeMap;

use crate::spec::container::{
    ContainerSpec, DeviceRequest, DeviceSpec, EndpointSpec, LogSpec, MountSpec, NamespaceMode,
    NetworkAttachment, NetworkSpec, PublishedPort, VolumeSpec,
};

use super::paths::{is_within, reaches_engine, resolved};
use super::{Namespace, Policy, policy_error};
use crate::error::{ErrorKind, Operation};

type Change = fn(&mut ContainerSpec);
type Switch = fn(&mut Policy);

fn changed(change: Change) -> ContainerSpec {
    let mut spec = ContainerSpec::new("image");
    change(&mut spec);
    spec
}

/// What is asked for, the name it is refused by, and the setting that allows it.
#[expect(clippy::too_many_lines, reason = "one table")]
fn refused() -> Vec<(Change, &'static str, Switch)> {
    vec![
        (
            |s| s.privileged = true,
            "`privileged`",
            |p| p.allow_privileged = true,
        ),
        (
            |s| s.network = NetworkAttachment::Host,
            "the host's network namespace",
            |p| p.allow_host_namespaces = vec![Namespace::Network],
        ),
        (
            |s| s.network = NetworkAttachment::Networks(vec![EndpointSpec::new("host")]),
            "the host's network namespace",
            |p| p.allow_host_namespaces = vec![Namespace::Network],
        ),
        (
            |s| s.pid = NamespaceMode::Host,
            "the host's pid namespace",
            |p| p.allow_host_namespaces = vec![Namespace::Pid],
        ),
        (
            |s| s.ipc = NamespaceMode::Host,
            "the host's ipc namespace",
            |p| p.allow_host_namespaces = vec![Namespace::Ipc],
        ),
        (
            |s| s.uts = NamespaceMode::Host,
            "the host's uts namespace",
            |p| p.allow_host_namespaces = vec![Namespace::Uts],
        ),
        (
            |s| s.user_namespace = NamespaceMode::Host,
            "the host's user namespace",
            |p| p.allow_host_namespaces = vec![Namespace::User],
        ),
        (
            |s| s.cgroup_namespace = NamespaceMode::Host,
            "the host's cgroup namespace",
            |p| p.allow_host_namespaces = vec![Namespace::Cgroup],
        ),
        (
            |s| s.network = NetworkAttachment::Container("x".into()),
            "the network of the container `x`",
            |p| p.allow_other_containers = true,
        ),
        (
            |s| s.pid = NamespaceMode::Container("x".into()),
            "the pid namespace of the container `x`",
            |p| p.allow_other_containers = true,
        ),
        (
            |s| s.volumes_from = vec!["x:ro".into()],
            "the volumes of the container `x`",
            |p| p.allow_other_containers = true,
        ),
        (
            |s| s.mounts = vec![MountSpec::bind("/srv/./a//../b/", "/x")],
            "mount of `/srv/b`",
            |p| p.allow_host_binds = vec!["/srv".into()],
        ),
        (
            |s| s.mounts = vec![MountSpec::bind("/srv/b", "/x").read_only()],
            "mount of `/srv/b`",
            |p| p.allow_host_binds = vec!["/srv/b:ro".into()],
        ),
        (
            |s| s.mounts = vec![MountSpec::bind("/var/run/docker.sock", "/x")],
            "mount of `/var/run/docker.sock`",
            |p| p.allow_engine_socket = true,
        ),
        (
            |s| {
                s.devices = vec![DeviceSpec {
                    host_path: "/dev/kvm".into(),
                    ..DeviceSpec::default()
                }];
            },
            "device `/dev/kvm`",
            |p| p.allow_devices = vec!["/dev/kvm".into()],
        ),
        (
            |s| s.device_rules = vec!["c 1:3 r".into()],
            "device rule `c 1:3 r`",
            |p| p.allow_device_rules = vec!["c 1:3 r".into()],
        ),
        (
            |s| {
                s.device_requests = vec![DeviceRequest {
                    driver: Some("cdi".into()),
                    ..DeviceRequest::default()
                }];
            },
            "device driver `cdi`",
            |p| p.allow_device_drivers = vec!["cdi".into()],
        ),
        (
            |s| s.cap_add = vec!["cap_sys_admin".into()],
            "capability `SYS_ADMIN`",
            |p| p.allow_capabilities = vec!["SYS_ADMIN".into()],
        ),
        (
            |s| s.cap_add = vec!["all".into()],
            "capability `ALL`",
            |p| p.allow_capabilities = vec!["ALL".into()],
        ),
        (
            |s| s.security_options = vec!["seccomp=unconfined".into()],
            "security option `seccomp=unconfined`",
            |p| p.allow_security_options = vec!["seccomp=unconfined".into()],
        ),
        (
            |s| {
                s.ports = vec![PublishedPort {
                    host_ip: Some([0, 0, 0, 0].into()),
                    ..PublishedPort::ephemeral(80)
                }];
            },
            "a port published on `0.0.0.0`",
            |p| p.allow_publish_addresses = vec![[0, 0, 0, 0].into()],
        ),
        (
            |s| s.cgroup_parent = Some("/x".into()),
            "cgroup parent `/x`",
            |p| p.allow_cgroup_parents = vec!["/x".into()],
        ),
        (
            |s| s.runtime = Some("mine".into()),
            "runtime `mine`",
            |p| p.allow_runtimes = vec!["mine".into()],
        ),
        (
            |s| s.sysctls = BTreeMap::from([("kernel.core_pattern".into(), "|/x".into())]),
            "kernel parameter `kernel.core_pattern`",
            |p| p.allow_sysctls = vec!["kernel.core_pattern".into()],
        ),
        (
            |s| s.annotations = BTreeMap::from([("run.oci.x".into(), "1".into())]),
            "annotation `run.oci.x`",
            |p| p.allow_annotations = vec!["run.oci.x".into()],
        ),
        (
            |s| {
                s.logging = Some(LogSpec {
                    driver: Some("syslog".into()),
                    ..LogSpec::default()
                });
            },
            "log driver `syslog`",
            |p| p.allow_log_drivers = vec!["syslog".into()],
        ),
        (
            |s| s.limits.oom_score_adj = Some(-1),
            "protection from the OOM killer",
            |p| p.allow_oom_protection = true,
        ),
    ]
}

#[test]
fn d9_d11_what_leaves_the_sandbox_is_refused_by_name_and_allowed_by_its_switch() {
    for (change, named, allow) in refused() {
        let spec = changed(change);
        let found = Policy::default().check(&spec).unwrap_err();
        assert_eq!(found.len(), 1, "{named}: {found:?}");
        assert_eq!(found[0].option, named);
        assert!(found[0].allow.starts_with("policy.allow_"), "{found:?}");
        let mut policy = Policy::default();
        allow(&mut policy);
        assert_eq!(policy.check(&spec), Ok(()), "{named}");
    }
}

#[test]
fn what_stays_in_the_sandbox_needs_no_switch() {
    let fine: &[Change] = &[
        |_| {},
        |s| s.cap_add = vec!["NET_RAW".into(), "cap_chown".into()],
        |s| s.cap_drop = vec!["ALL".into()],
        |s| s.security_options = vec!["no-new-privileges".into(), "no-new-privileges:true".into()],
        |s| s.ports = vec![PublishedPort::ephemeral(80)],
        |s| {
            s.ports = vec![PublishedPort {
                host_ip: Some([127, 0, 0, 2].into()),
                ..PublishedPort::ephemeral(80)
            }];
        },
        |s| s.mounts = vec![MountSpec::volume("data", "/data"), MountSpec::tmpfs("/tmp")],
        |s| s.network = NetworkAttachment::Networks(vec![EndpointSpec::new("hostile")]),
        |s| s.ipc = NamespaceMode::Private,
        |s| s.runtime = Some("runsc".into()),
        |s| s.sysctls = BTreeMap::from([("net.ipv4.ip_forward".into(), "1".into())]),
        |s| s.sysctls = BTreeMap::from([("kernel.shmmax".into(), "1".into())]),
        |s| {
            s.device_requests = vec![DeviceRequest {
                capabilities: vec![vec!["gpu".into()]],
                ..DeviceRequest::default()
            }];
        },
        |s| s.limits.oom_score_adj = Some(500),
        |s| {
            s.logging = Some(LogSpec {
                driver: Some("local".into()),
                ..LogSpec::default()
            });
        },
    ];
    for (index, change) in fine.iter().enumerate() {
        assert_eq!(Policy::default().check(&changed(*change)), Ok(()), "{index}");
    }
}

#[test]
fn a_switch_allows_no_more_than_it_says() {
    let mut policy = Policy {
        allow_host_binds: vec!["/srv/a".into(), "/ro:ro".into(), "relative".into()],
        ..Policy::default()
    };
    for source in ["/srv/ab", "/srv", "/srv/a/../b", "/ro", "/relative", "/"] {
        let mut spec = changed(|_| {});
        spec.mounts = vec![MountSpec::bind(source, "/x")];
        assert!(policy.check(&spec).is_err(), "{source}");
    }
    // All paths, but no engine.
    policy.allow_host_binds = vec!["/".into()];
    for (source, is_allowed) in [
        ("/etc", true),
        ("/run", false),
        ("/", false),
        ("/var", false),
        ("/var/run", false),
        ("/x/../var/run/docker.sock", false),
        ("/run/user/1000", false),
        ("/home/u/docker.sock", false),
        ("/run/mine", true),
    ] {
        let mut spec = ContainerSpec::new("image");
        spec.mounts = vec![MountSpec::bind(source, "/x")];
        assert_eq!(policy.check(&spec).is_ok(), is_allowed, "{source}");
    }
    // A kernel parameter of the network is not the container's own there.
    policy.allow_host_namespaces = vec![Namespace::Network];
    let mut spec = changed(|s| s.network = NetworkAttachment::Host);
    spec.sysctls = BTreeMap::from([("net.ipv4.ip_forward".into(), "1".into())]);
    assert!(policy.check(&spec).is_err());
}

#[test]
fn containers_of_one_project_may_share() {
    let spec = changed(|s| {
        s.network = NetworkAttachment::Container("mine".into());
        s.volumes_from = vec!["mine:ro".into()];
        s.ipc = NamespaceMode::Container("theirs".into());
    });
    let found = Policy::default().check_beside(&spec, &["mine"]).unwrap_err();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].option.contains("theirs"));
    assert!(Policy::default().check_beside(&spec, &["mine", "theirs"]).is_ok());
}

#[test]
fn everything_refused_is_in_one_error() {
    let spec = changed(|s| {
        s.privileged = true;
        s.cap_add = vec!["SYS_ADMIN".into(), "BPF".into()];
    });
    let error = policy_error(Operation::Create, &Policy::default().check(&spec).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let report = error.report().to_string();
    for named in [
        "`privileged`",
        "`SYS_ADMIN`",
        "`BPF`",
        "policy.allow_privileged: true",
    ] {
        assert!(report.contains(named), "{named} in {report}");
    }
}

#[test]
fn volumes_that_mount_the_host_are_seen_through() {
    let volume = |driver: Option<&str>, options: &[(&str, &str)]| {
        let mut spec = VolumeSpec::new("data");
        spec.driver = driver.map(str::to_owned);
        spec.driver_options = options
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        spec
    };
    for (driver, options) in [
        (
            Some("local"),
            &[("type", "none"), ("o", "bind"), ("device", "/")][..],
        ),
        (None, &[("o", "rw,rbind"), ("device", "/etc")]),
        (None, &[("type", "none"), ("device", "/etc")]),
        (None, &[("type", "bind"), ("device", "/etc")]),
        (None, &[("type", "ext4"), ("device", "/dev/sda1")]),
        (None, &[("device", "/dev/sda1")]),
        (
            None,
            &[("type", "nfs"), ("o", "addr=10.0.0.1"), ("device", ":/x")],
        ),
        (
            None,
            &[("type", "overlay"), ("device", "overlay"), ("o", "lowerdir=/")],
        ),
        (Some("rclone"), &[]),
    ] {
        let spec = volume(driver, options);
        let found = Policy::default().check_volume(&spec);
        assert!(found.is_err(), "{spec:?}");
    }
    for options in [
        &[][..],
        &[("type", "tmpfs"), ("device", "tmpfs"), ("o", "size=1m")],
    ] {
        assert_eq!(
            Policy::default().check_volume(&volume(Some("local"), options)),
            Ok(())
        );
    }
    let policy = Policy {
        allow_host_binds: vec!["/srv".into()],
        ..Policy::default()
    };
    let bind = volume(None, &[("type", "none"), ("o", "bind"), ("device", "/srv/x")]);
    assert_eq!(policy.check_volume(&bind), Ok(()));
}

#[test]
fn networks_that_open_the_host_are_refused() {
    for (driver, options) in [
        (Some("macvlan"), &[][..]),
        (Some("host"), &[]),
        (
            None,
            &[("com.docker.network.bridge.host_binding_ipv4", "0.0.0.0")],
        ),
        (
            None,
            &[("com.docker.network.bridge.gateway_mode_ipv4", "nat-unprotected")],
        ),
        (None, &[("com.docker.network.bridge.name", "eth0")]),
    ] {
        let mut spec = NetworkSpec::new("net");
        spec.driver = driver.map(str::to_owned);
        spec.driver_options = options
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        assert!(Policy::default().check_network(&spec).is_err(), "{spec:?}");
    }
    let mut spec = NetworkSpec::new("net");
    spec.driver = Some("bridge".into());
    spec.driver_options = BTreeMap::from([(
        "com.docker.network.bridge.host_binding_ipv4".into(),
        "127.0.0.1".into(),
    )]);
    assert_eq!(Policy::default().check_network(&spec), Ok(()));
}

#[test]
fn paths_are_compared_part_by_part() {
    for (path, same) in [
        ("/a/./b//c/", "/a/b/c"),
        ("/../../a", "/a"),
        ("/a/b/../../..", "/"),
        ("a", "/a"),
    ] {
        assert_eq!(resolved(path), same);
    }
    assert!(is_within("/a/b", "/a") && is_within("/a", "/a") && is_within("/a", "/"));
    assert!(!is_within("/ab", "/a") && !is_within("/", "/a"));
    assert!(reaches_engine("/run/podman") && !reaches_engine("/var/lib"));
}

#[test]
fn a_block_of_configuration_is_read() {
    let policy: Policy = serde_json::from_value(serde_json::json!({
        "allow_host_namespaces": ["network", "pid"],
        "allow_publish_addresses": ["0.0.0.0", "::"],
        "allow_host_binds": ["/srv:ro"],
    }))
    .unwrap();
    assert_eq!(policy.allow_host_namespaces, [Namespace::Network, Namespace::Pid]);
    assert!(!policy.allow_privileged && policy.allow_runtimes.contains(&"runsc".to_owned()));
    let wrong: Result<Policy, _> = serde_json::from_value(serde_json::json!({"allow_privilged": true}));
    assert!(wrong.unwrap_err().to_string().contains("allow_privilged"));
}

/// A hint that names a part of it would be followed in vain.
#[test]
fn a_security_option_too_long_to_be_shown_is_not_hinted_at_in_part() {
    let profile = format!("seccomp={{\"defaultAction\":\"{}\"}}", "x".repeat(100));
    let mut spec = changed(|_| {});
    spec.security_options = vec![profile.clone()];
    let mut policy = Policy::default();
    let found = policy.check(&spec).unwrap_err();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].option.ends_with("...`"), "{found:?}");
    assert!(found[0].allow.contains("whole text"), "{found:?}");
    policy.allow_security_options = vec![profile];
    assert_eq!(policy.check(&spec), Ok(()));
}
