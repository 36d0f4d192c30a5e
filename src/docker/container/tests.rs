use std::collections::BTreeMap;
use std::time::Duration;

use bollard::models::{ContainerCreateBody, HostConfig, MountType};

use super::*;
use crate::error::ErrorKind;
use crate::spec::container::{
    DeviceRequest, DeviceSpec, EndpointSpec, MountKind, MountSpec, NetworkAttachment, Protocol,
    PublishedPort, UlimitSpec,
};

const OLD: ApiVersion = ApiVersion::new(1, 41);
const NEW: ApiVersion = ApiVersion::new(1, 51);

fn spec(change: impl FnOnce(&mut ContainerSpec)) -> ContainerSpec {
    let mut spec = ContainerSpec::new("image");
    change(&mut spec);
    spec
}

fn creation(api: ApiVersion, change: impl FnOnce(&mut ContainerSpec)) -> Result<Creation> {
    map(&spec(change), [127, 0, 0, 1].into())?.for_engine(api)
}

fn body(change: impl FnOnce(&mut ContainerSpec)) -> ContainerCreateBody {
    creation(OLD, change).unwrap().body
}

fn host(change: impl FnOnce(&mut ContainerSpec)) -> HostConfig {
    body(change).host_config.unwrap()
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn an_image_alone_asks_for_nothing_else() {
    let expected = ContainerCreateBody {
        image: Some("image".into()),
        host_config: Some(HostConfig::default()),
        ..ContainerCreateBody::default()
    };
    assert_eq!(body(|_| {}), expected);
}

#[test]
fn c12_memory_without_swap_is_sent_as_both() {
    let made = host(|s| s.limits.memory_bytes = Some(64 << 20));
    assert_eq!((made.memory, made.memory_swap), (Some(64 << 20), Some(64 << 20)));
    let made = host(|s| {
        s.limits.memory_bytes = Some(64 << 20);
        s.limits.memory_swap_bytes = Some(-1);
    });
    assert_eq!((made.memory, made.memory_swap), (Some(64 << 20), Some(-1)));
    let made = host(|s| {
        s.limits.cpus = Some(1.5);
        s.limits.pids = Some(-1);
        s.limits.shm_bytes = Some(1 << 20);
        s.limits.oom_score_adj = Some(7);
        s.limits.block_io.weight = Some(10);
        s.limits.block_io.read_bytes = vec![crate::spec::container::BlockRate {
            path: "/dev/sda".into(),
            rate: 5,
        }];
    });
    assert_eq!(made.nano_cpus, Some(1_500_000_000));
    assert_eq!((made.pids_limit, made.shm_size), (Some(-1), Some(1 << 20)));
    assert_eq!((made.oom_score_adj, made.blkio_weight), (Some(7), Some(10)));
    assert_eq!(made.blkio_device_read_bps.unwrap()[0].rate, Some(5));
}

#[test]
fn the_main_process_is_as_written() {
    let made = body(|s| {
        s.entrypoint = Some(vec![]);
        s.command = Some(strings(&["a", ""]));
        s.environment.set("A", Some("x=y".into()));
        s.environment.set("B", None);
        s.environment.set("C", Some(String::new()));
        s.user = Some("1:2".into());
        s.stop_signal = Some("SIGINT".into());
        s.stop_timeout = Some(Duration::from_millis(1500));
        s.tty = true;
        s.hostname = Some("h".into());
    });
    // An empty list takes the entrypoint away and keeps the image's command (engine-facts S26).
    assert_eq!(made.entrypoint, Some(vec![]));
    assert_eq!(made.cmd, Some(strings(&["a", ""])));
    assert_eq!(made.env, Some(strings(&["A=x=y", "B", "C="])));
    assert_eq!(made.user.as_deref(), Some("1:2"));
    assert_eq!(
        (made.stop_signal.as_deref(), made.stop_timeout),
        (Some("SIGINT"), Some(1))
    );
    assert_eq!((made.tty, made.open_stdin), (Some(true), None));
    assert_eq!(made.hostname.as_deref(), Some("h"));
}

#[test]
fn health_checks_keep_what_they_do_not_say() {
    let check = |test| HealthcheckSpec {
        test,
        interval: Some(Duration::from_secs(1)),
        retries: Some(2),
        ..HealthcheckSpec::default()
    };
    for (test, sent) in [
        (HealthTest::Inherit, None),
        (HealthTest::Disabled, Some(strings(&["NONE"]))),
        (
            HealthTest::Shell("a b".into()),
            Some(strings(&["CMD-SHELL", "a b"])),
        ),
        (
            HealthTest::Command(strings(&["a", "b"])),
            Some(strings(&["CMD", "a", "b"])),
        ),
    ] {
        let made = body(|s| s.healthcheck = Some(check(test))).healthcheck.unwrap();
        assert_eq!(made.test, sent);
        assert_eq!((made.interval, made.timeout), (Some(1_000_000_000), None));
        assert_eq!((made.retries, made.start_period), (Some(2), None));
    }
}

#[test]
fn s10_published_ports_are_exposed_too() {
    let made = body(|s| {
        s.expose = strings(&["5432", "53/UDP", "7000-7001"]);
        s.ports = vec![
            PublishedPort::ephemeral(80),
            PublishedPort {
                target: 53,
                protocol: Protocol::Udp,
                host_ip: Some(std::net::Ipv6Addr::LOCALHOST.into()),
                published: Some("5353-5360".into()),
            },
            PublishedPort {
                published: Some("8080".into()),
                ..PublishedPort::ephemeral(80)
            },
        ];
    });
    assert_eq!(
        made.exposed_ports.unwrap(),
        strings(&["5432/tcp", "53/udp", "7000/tcp", "7001/tcp", "80/tcp"])
    );
    let bindings = made.host_config.unwrap().port_bindings.unwrap();
    let of = |key: &str| -> Vec<(String, String)> {
        let list = bindings[key].as_ref().unwrap().iter();
        list.map(|binding| {
            (
                binding.host_ip.clone().unwrap(),
                binding.host_port.clone().unwrap(),
            )
        })
        .collect()
    };
    let local = |port: &str| ("127.0.0.1".to_owned(), port.to_owned());
    assert_eq!(of("80/tcp"), [local(""), local("8080")]);
    assert_eq!(of("53/udp"), [("::1".to_owned(), "5353-5360".to_owned())]);
}

#[test]
fn mounts_go_as_docker_compose_sends_them() {
    let made = host(|s| {
        s.mounts = vec![
            MountSpec::volume("data", "/a"),
            MountSpec::volume("data", "/b").read_only(),
            MountSpec::bind("/src", "/c"),
            MountSpec {
                target: "/d".into(),
                read_only: true,
                kind: MountKind::Bind {
                    source: "/src".into(),
                    create_host_path: true,
                    propagation: Some("rslave".into()),
                    selinux: Some("Z".into()),
                    recursive: None,
                },
            },
            MountSpec {
                target: "/e".into(),
                read_only: false,
                kind: MountKind::Volume {
                    source: None,
                    no_copy: true,
                    subpath: None,
                    labels: BTreeMap::new(),
                    selinux: None,
                },
            },
            MountSpec {
                target: "/f".into(),
                read_only: true,
                kind: MountKind::Tmpfs {
                    size_bytes: Some(1024),
                    mode: Some(0o1777),
                    options: strings(&["exec"]),
                },
            },
        ];
    });
    assert_eq!(
        made.binds.unwrap(),
        strings(&["data:/a:rw", "data:/b:ro", "/src:/d:ro,Z,rslave"])
    );
    let mounts = made.mounts.unwrap();
    assert_eq!(mounts.len(), 2);
    assert_eq!(
        (mounts[0].typ, mounts[0].source.as_deref()),
        (Some(MountType::BIND), Some("/src"))
    );
    assert_eq!(mounts[0].bind_options, None);
    assert_eq!(
        (mounts[1].typ, mounts[1].source.as_deref()),
        (Some(MountType::VOLUME), None)
    );
    assert_eq!(mounts[1].volume_options.as_ref().unwrap().no_copy, Some(true));
    assert_eq!(made.tmpfs.unwrap()["/f"], "ro,size=1024,mode=1777,exec");
}

#[test]
fn several_networks_go_with_the_create_or_after_it() {
    let two = |s: &mut ContainerSpec| {
        let mut first = EndpointSpec::new("first");
        first.aliases = strings(&["web"]);
        first.ipv4_address = Some("10.0.0.2".into());
        s.network = NetworkAttachment::Networks(vec![first, EndpointSpec::new("second")]);
    };
    let old = creation(OLD, two).unwrap();
    let with_create = old.body.networking_config.unwrap().endpoints_config.unwrap();
    assert_eq!(with_create.len(), 1);
    assert_eq!(with_create["first"].aliases, Some(strings(&["web"])));
    let ipam = with_create["first"].ipam_config.as_ref().unwrap();
    assert_eq!(ipam.ipv4_address.as_deref(), Some("10.0.0.2"));
    assert_eq!(
        old.joins
            .iter()
            .map(|join| join.network.as_str())
            .collect::<Vec<_>>(),
        ["second"]
    );
    assert_eq!(
        old.body.host_config.unwrap().network_mode.as_deref(),
        Some("first")
    );
    let new = creation(NEW, two).unwrap();
    assert_eq!(
        new.body
            .networking_config
            .unwrap()
            .endpoints_config
            .unwrap()
            .len(),
        2
    );
    assert!(new.joins.is_empty());
    for (network, mode) in [
        (NetworkAttachment::None, "none"),
        (NetworkAttachment::Host, "host"),
        (NetworkAttachment::Container("x".into()), "container:x"),
    ] {
        let made = body(|s| s.network = network);
        assert_eq!(made.networking_config, None);
        assert_eq!(made.host_config.unwrap().network_mode.as_deref(), Some(mode));
    }
}

#[test]
fn an_alias_that_nobody_could_look_up_is_refused_by_name() {
    let with = |alias: &str| {
        let alias = alias.to_owned();
        creation(NEW, move |s| {
            let mut front = EndpointSpec::new("front");
            front.aliases = vec!["web".into(), alias];
            s.network = NetworkAttachment::Networks(vec![front]);
        })
    };
    for alias in ["db", "my_db", "DB-1", "a-", "a.b_c.d", "1", &"x".repeat(63)] {
        assert!(with(alias).is_ok(), "{alias}");
    }
    for alias in [
        "",
        "a b",
        "a\nb",
        "é",
        "-a",
        ".a",
        "a.",
        "a..b",
        "a/b",
        "a:b",
        "*",
        &"x".repeat(64),
        &"x.".repeat(150),
    ] {
        let error = with(alias).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{alias:?}");
        let text = error.to_string();
        assert!(
            text.contains("alias") && text.contains("`front`") && text.len() < 250,
            "{text}"
        );
        assert!(error.hint().unwrap().contains("63"));
    }
}

#[test]
fn the_rest_of_the_host_configuration() {
    let made = host(|s| {
        s.cap_add = strings(&["net_admin", "CAP_NET_ADMIN"]);
        s.cap_drop = strings(&["all"]);
        s.security_options = strings(&["no-new-privileges"]);
        s.privileged = true;
        s.group_add = strings(&["1", "video", "1"]);
        s.extra_hosts = vec![("a".into(), "[::1]".into()), ("b".into(), "host-gateway".into())];
        s.dns = strings(&["10.0.0.1"]);
        s.ipc = NamespaceMode::Shareable;
        s.pid = NamespaceMode::Container("x".into());
        s.uts = NamespaceMode::Host;
        s.cgroup_namespace = NamespaceMode::Private;
        s.runtime = Some("crun".into());
        s.restart = RestartPolicy::OnFailure { max_retries: Some(3) };
        s.read_only = true;
        s.sysctls = BTreeMap::from([("net.core.somaxconn".into(), "5".into())]);
        s.storage_options = BTreeMap::from([("size".into(), "1G".into())]);
        s.ulimits = vec![UlimitSpec {
            name: "nofile".into(),
            soft: 10,
            hard: -1,
        }];
        s.devices = vec![DeviceSpec {
            host_path: "/dev/kvm".into(),
            ..DeviceSpec::default()
        }];
        s.device_requests = vec![DeviceRequest {
            capabilities: vec![strings(&["gpu"])],
            ..DeviceRequest::default()
        }];
    });
    assert_eq!(made.cap_add.unwrap(), ["CAP_NET_ADMIN"]);
    assert_eq!(made.cap_drop.unwrap(), ["ALL"]);
    assert_eq!(made.privileged, Some(true));
    assert_eq!(made.group_add.unwrap(), ["1", "video"]);
    assert_eq!(made.extra_hosts.unwrap(), ["a:::1", "b:host-gateway"]);
    assert_eq!(made.dns.unwrap(), ["10.0.0.1"]);
    assert_eq!(
        (
            made.ipc_mode.as_deref(),
            made.pid_mode.as_deref(),
            made.uts_mode.as_deref()
        ),
        (Some("shareable"), Some("container:x"), Some("host"))
    );
    assert_eq!(made.cgroupns_mode, Some(HostConfigCgroupnsModeEnum::PRIVATE));
    assert_eq!(
        made.restart_policy.unwrap().name,
        Some(RestartPolicyNameEnum::ON_FAILURE)
    );
    assert_eq!(made.readonly_rootfs, Some(true));
    assert_eq!(made.sysctls.unwrap()["net.core.somaxconn"], "5");
    assert_eq!(made.storage_opt.unwrap()["size"], "1G");
    let ulimit = &made.ulimits.unwrap()[0];
    assert_eq!((ulimit.soft, ulimit.hard), (Some(10), Some(-1)));
    let device = &made.devices.unwrap()[0];
    assert_eq!(device.path_in_container.as_deref(), Some("/dev/kvm"));
    assert_eq!(device.cgroup_permissions.as_deref(), Some("rwm"));
    assert_eq!(made.device_requests.unwrap()[0].count, Some(-1));
}

type Change = fn(&mut ContainerSpec);

#[test]
fn s7_s8_what_an_engine_would_drop_is_refused_by_both_versions() {
    let table: &[(&str, &str, Change)] = &[
        ("start interval", "1.44", |s| {
            s.healthcheck = Some(HealthcheckSpec {
                start_interval: Some(Duration::from_secs(1)),
                ..HealthcheckSpec::default()
            });
        }),
        ("folder of a volume", "1.45", |s| {
            s.mounts = vec![MountSpec {
                target: "/a".into(),
                read_only: false,
                kind: MountKind::Volume {
                    source: Some("data".into()),
                    no_copy: false,
                    subpath: Some("x".into()),
                    labels: BTreeMap::new(),
                    selinux: None,
                },
            }];
        }),
        ("mount of an image", "1.48", |s| {
            s.mounts = vec![MountSpec {
                target: "/a".into(),
                read_only: true,
                kind: MountKind::Image {
                    source: "b".into(),
                    subpath: None,
                },
            }];
        }),
        ("annotation", "1.43", |s| {
            s.annotations = BTreeMap::from([("a".into(), "b".into())]);
        }),
        ("MAC address", "1.44", |s| {
            s.mac_address = Some("02:42:ac:11:00:02".into());
        }),
        ("MAC address of a network", "1.44", |s| {
            let mut network = EndpointSpec::new("a");
            network.mac_address = Some("02:42:ac:11:00:02".into());
            s.network = NetworkAttachment::Networks(vec![network]);
        }),
        ("gateway priority", "1.48", |s| {
            let mut network = EndpointSpec::new("a");
            network.gateway_priority = Some(1);
            s.network = NetworkAttachment::Networks(vec![network]);
        }),
        ("interface name", "1.48", |s| {
            let mut network = EndpointSpec::new("a");
            network.interface_name = Some("eth7".into());
            s.network = NetworkAttachment::Networks(vec![network]);
        }),
        ("read-only with all", "1.44", |s| {
            s.mounts = vec![MountSpec {
                target: "/a".into(),
                read_only: true,
                kind: MountKind::Bind {
                    source: "/b".into(),
                    create_host_path: false,
                    propagation: None,
                    selinux: None,
                    recursive: Some("readonly".into()),
                },
            }];
        }),
    ];
    for (what, version, change) in table {
        let error = creation(OLD, change).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{what}");
        let text = error.to_string();
        assert!(
            text.contains(what) && text.contains(&format!("API >= {version}, the engine has 1.41")),
            "{text}"
        );
        assert!(creation(NEW, change).is_ok(), "{what}");
    }
}

#[test]
#[allow(clippy::too_many_lines, reason = "one table")]
fn what_no_engine_would_take_as_meant_is_refused() {
    let bind = |source: &str, create: bool, selinux: Option<&str>| MountSpec {
        target: "/x".into(),
        read_only: false,
        kind: MountKind::Bind {
            source: source.into(),
            create_host_path: create,
            propagation: None,
            selinux: selinux.map(str::to_owned),
            recursive: None,
        },
    };
    let refused: Vec<(&str, ContainerSpec)> = vec![
        (
            "library's own",
            spec(|s| s.mounts = vec![MountSpec::volume("gym-sandbox-agent-0123", "/a")]),
        ),
        (
            "library's own",
            spec(|s| s.mounts = vec![MountSpec::tmpfs("//.gym-sandbox/x")]),
        ),
        (
            "two mounts",
            spec(|s| s.mounts = vec![MountSpec::tmpfs("/a"), MountSpec::volume("data", "/a/")]),
        ),
        ("target", spec(|s| s.mounts = vec![MountSpec::tmpfs("a")])),
        ("target", spec(|s| s.mounts = vec![MountSpec::tmpfs("/")])),
        ("target", spec(|s| s.mounts = vec![MountSpec::tmpfs("/a/../b")])),
        ("`x`", spec(|s| s.mounts = vec![MountSpec::volume("x", "/a")])),
        ("`a b`", spec(|s| s.mounts = vec![MountSpec::volume("a b", "/a")])),
        ("not absolute", spec(|s| s.mounts = vec![bind("./a", true, None)])),
        ("`:`", spec(|s| s.mounts = vec![bind("/a:b", true, None)])),
        (
            "relabelled",
            spec(|s| s.mounts = vec![bind("/a", false, Some("z"))]),
        ),
        ("memory", spec(|s| s.limits.memory_bytes = Some(0))),
        ("memory", spec(|s| s.limits.memory_swap_bytes = Some(5))),
        ("processors", spec(|s| s.limits.cpus = Some(f64::NAN))),
        ("processes", spec(|s| s.limits.pids = Some(0))),
        ("OOM", spec(|s| s.limits.oom_score_adj = Some(1001))),
        (
            "`nofile`",
            spec(|s| {
                s.ulimits = vec![UlimitSpec {
                    name: "nofile".into(),
                    soft: 2,
                    hard: 1,
                }];
            }),
        ),
        ("capability", spec(|s| s.cap_add = strings(&["A B"]))),
        ("port 0", spec(|s| s.ports = vec![PublishedPort::ephemeral(0)])),
        (
            "host port",
            spec(|s| {
                s.ports = vec![PublishedPort {
                    published: Some("x".into()),
                    ..PublishedPort::ephemeral(1)
                }];
            }),
        ),
        ("exposed port", spec(|s| s.expose = strings(&["2-1"]))),
        (
            "hosts file",
            spec(|s| s.extra_hosts = vec![("a".into(), "b".into())]),
        ),
        ("name server", spec(|s| s.dns = strings(&["localhost"]))),
        (
            "twice",
            spec(|s| {
                s.network = NetworkAttachment::Networks(vec![EndpointSpec::new("a"), EndpointSpec::new("a")]);
            }),
        ),
        (
            "name of a network",
            spec(|s| s.network = NetworkAttachment::Networks(vec![EndpointSpec::new("host")])),
        ),
        (
            "published ports",
            spec(|s| {
                s.network = NetworkAttachment::Container("a".into());
                s.ports = vec![PublishedPort::ephemeral(80)];
            }),
        ),
        ("host name", spec(|s| s.hostname = Some("x".repeat(65)))),
        ("MAC", spec(|s| s.mac_address = Some("zz".into()))),
        ("pid namespace", spec(|s| s.pid = NamespaceMode::Shareable)),
        (
            "environment",
            spec(|s| s.environment.set("a=b", Some("secret".into()))),
        ),
        (
            "empty",
            spec(|s| {
                s.healthcheck = Some(HealthcheckSpec {
                    test: HealthTest::Command(vec![]),
                    ..HealthcheckSpec::default()
                });
            }),
        ),
    ];
    for (word, spec) in refused {
        let error = map(&spec, [127, 0, 0, 1].into()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{word}");
        assert!(error.to_string().contains(word), "`{word}` in {error}");
        assert!(!error.report().to_string().contains("secret"));
    }
}
