//! Tables of what is refused and of what a sandbox gets.

use std::sync::Arc;

use super::*;
use crate::compose::plan::{HostPorts, VolumeSource};
use crate::compose::{ComposeLoader, LoadOptions, Source};
use crate::error::ErrorKind;
use crate::provider::tests::scripted::{Capabilities, Scripted};

const TIMEOUT: Duration = Duration::from_secs(1200);

fn project(text: &str) -> Project {
    let options = LoadOptions::new()
        .with_file(Source::text("compose.yaml", text))
        .with_project_directory("/work")
        .with_project_name("p");
    match ComposeLoader::new(options).load() {
        Ok(loaded) => loaded.project,
        Err(diagnostics) => panic!("{text}: {diagnostics}"),
    }
}

fn plan_on(provider: &Arc<Scripted>, text: &str, options: &PlanOptions) -> Result<GenericPlan, Refused> {
    GenericPlan::new(&project(text), options, &**provider, TIMEOUT)
}

fn plan(text: &str) -> GenericPlan {
    plan_on(&Scripted::new(), text, &PlanOptions::default()).unwrap_or_else(|refused| panic!("{refused:?}"))
}

/// A service `a` with these keys, beside a service `b` with a port.
fn with(keys: &str) -> String {
    format!("services: {{a: {{image: i, command: c, {keys}}}, b: {{image: i, command: c, expose: ['80']}}}}")
}

/// The kind of a refusal, and that it names the key.
#[track_caller]
fn refused(text: &str, options: &PlanOptions, path: &str) -> ErrorKind {
    let Err(refused) = plan_on(&Scripted::new(), text, options) else {
        panic!("not refused: {text}");
    };
    let told = refused.diagnostics.to_string();
    assert!(told.contains(path), "{text}: {told}");
    refused.kind
}

#[test]
fn m4_what_this_way_has_is_accepted_in_every_form_that_the_loader_knows() {
    let text = "
name: mine
services:
  web:
    image: i
    entrypoint: [run, '']
    command: serve --port 80
    environment: [A=1, EMPTY=, 'NONE']
    working_dir: /w
    user: '1000'
    depends_on: {db: {condition: service_healthy}}
    expose: [80, 81/tcp]
    ports: ['8080:80', '82']
    networks: {default: {aliases: [www]}}
    volumes: ['data:/data:ro']
    cpus: 1.5
    mem_limit: 1000001b
    labels: {team: blue}
    restart: 'no'
    container_name: fixed
    pull_policy: missing
    deploy: {replicas: 1}
    cap_add: [NET_ADMIN]
    shm_size: 1m
    x-sandbox: {hosts: [], resolve_environment: []}
    x-mine: anything
  db:
    image: i
    command: [db]
    healthcheck: {test: check, interval: 1s}
    deploy: {resources: {limits: {cpus: 2, memory: 1g}}}
  side: {image: i, command: s, network_mode: 'service:web'}
volumes: {data: }
";
    let plan = plan(text);
    let names: Vec<&str> = plan
        .services
        .iter()
        .map(|service| service.name.as_str())
        .collect();
    assert_eq!(names, ["db", "web", "side"]);
    let web = &plan.services[1];
    assert_eq!(web.argv, ["run", "", "serve", "--port", "80"]);
    assert_eq!(web.user.as_deref(), Some("1000"));
    assert_eq!(web.names, ["web", "www", "fixed"]);
    assert!(!web.knows_names);
    assert_eq!(
        plan.services[2].relay,
        Some(RelayStep {
            target: 1,
            ports: vec![80, 81, 82]
        })
    );
}

const CANNOT: &[(&str, &str)] = &[
    ("privileged: true", "services.a.privileged"),
    ("devices: ['/dev/null']", "services.a.devices"),
    ("build: .", "services.a.build"),
    ("init: true", "services.a.init"),
    ("hostname: h", "services.a.hostname"),
    ("platform: linux/amd64", "services.a.platform"),
    ("pull_policy: always", "services.a.pull_policy"),
    ("scale: 2", "services.a.scale"),
    ("restart: always", "services.a.restart"),
    ("tmpfs: /t", "services.a.tmpfs"),
    (
        "deploy: {resources: {limits: {pids: 5}}}",
        "services.a.deploy.resources.limits.pids",
    ),
    (
        "deploy: {restart_policy: {condition: any}}",
        "services.a.deploy.restart_policy",
    ),
    ("user: 'a:b'", "services.a.user"),
    ("x-sandbox: {other: 1}", "services.a.x-sandbox.other"),
    (
        "depends_on: {b: {condition: service_started, restart: true}}",
        "depends_on.b.restart",
    ),
    (
        "depends_on: {b: {condition: service_started, required: false}}",
        "depends_on.b.required",
    ),
    ("network_mode: none", "services.a.network_mode"),
    ("network_mode: host", "services.a.network_mode"),
    (
        "network_mode: 'service:b', ports: ['80']",
        "services.a.network_mode",
    ),
    (
        "networks: {default: {ipv4_address: 10.0.0.9}}",
        "networks.default.ipv4_address",
    ),
    ("ports: ['53/udp']", "services.a.ports.0.protocol"),
    ("ports: [{target: 80, mode: host}]", "services.a.ports.0.mode"),
    ("expose: ['53/udp']", "services.a.expose.0"),
    (
        "volumes: [{type: tmpfs, target: /t}]",
        "services.a.volumes.0.type",
    ),
    ("volumes: ['./data:/data']", "services.a.volumes.0.source"),
    (
        "volumes: [{type: bind, source: ./d, target: /d, bind: {propagation: rslave}}]",
        "bind.propagation",
    ),
];

const CANNOT_AT_THE_TOP: &[(&str, &str)] = &[
    (
        "networks: {other: }, services: {a: {image: i, command: c, networks: [other]}}",
        "networks.other",
    ),
    (
        "networks: {default: {internal: true}}, services: {a: {image: i, command: c}}",
        "networks.default.internal",
    ),
    (
        "networks: {default: {ipam: {config: [{subnet: 10.1.0.0/24}]}}}, services: {a: {image: i, command: c}}",
        "networks.default.ipam",
    ),
    (
        "volumes: {dd: {driver: x}}, services: {a: {image: i, command: c, volumes: ['dd:/d']}}",
        "volumes.dd.driver",
    ),
    (
        "volumes: {dd: {external: true}}, services: {a: {image: i, command: c, volumes: ['dd:/d']}}",
        "volumes.dd",
    ),
    (
        "volumes: {dd: }, services: {a: {image: i, command: c, volumes: [{type: volume, source: dd, target: /d, volume: {subpath: s}}]}}",
        "volume.subpath",
    ),
    (
        "configs: {x: {content: y}}, services: {a: {image: i, command: c, configs: [x]}}",
        "configs.x",
    ),
];

#[test]
fn m4_what_cannot_be_had_here_is_refused_by_its_key_before_anything_is_made() {
    let options = PlanOptions::default();
    for &(keys, path) in CANNOT {
        assert_eq!(
            refused(&with(keys), &options, path),
            ErrorKind::Unsupported,
            "{keys}"
        );
    }
    for &(sections, path) in CANNOT_AT_THE_TOP {
        assert_eq!(
            refused(&format!("{{{sections}}}"), &options, path),
            ErrorKind::Unsupported,
            "{sections}"
        );
    }
    let as_written = PlanOptions {
        host_ports: HostPorts::AsWritten,
        ..PlanOptions::default()
    };
    for (keys, path) in [
        ("ports: ['8080:80']", "services.a.ports.0.published"),
        ("ports: ['127.0.0.1::80']", "services.a.ports.0.host_ip"),
    ] {
        assert_eq!(
            refused(&with(keys), &as_written, path),
            ErrorKind::Unsupported,
            "{keys}"
        );
        assert!(
            plan_on(&Scripted::new(), &with(keys), &options).is_ok(),
            "ephemeral: {keys}"
        );
    }
    let until_down = PlanOptions {
        lifetime: ProjectLifetime::UntilDown,
        ..PlanOptions::default()
    };
    assert_eq!(
        refused(&with(""), &until_down, "services"),
        ErrorKind::Unsupported
    );
}

const WRONG: &[(&str, &str)] = &[
    ("x-sandbox: 5", "services.a.x-sandbox"),
    ("x-sandbox: {hosts: [b]}", "x-sandbox.hosts"),
    (
        "x-sandbox: {resolve_environment: A}",
        "x-sandbox.resolve_environment",
    ),
    (
        "x-sandbox: {resolve_environment: [5]}",
        "x-sandbox.resolve_environment",
    ),
    (
        "x-sandbox: {resolve_environment: [MISSING]}",
        "x-sandbox.resolve_environment",
    ),
    (
        "environment: {URL: 'http://elsewhere'}, x-sandbox: {resolve_environment: [URL]}",
        "x-sandbox.resolve_environment",
    ),
    ("networks: {default: {aliases: [b]}}", "aliases"),
    ("networks: {default: {aliases: ['a b']}}", "aliases.0"),
    ("networks: {default: {aliases: [-a]}}", "`-a` is no alias"),
    (
        "depends_on: {b: {condition: service_healthy}}",
        "depends_on.b.condition",
    ),
    ("healthcheck: {test: [CMD]}", "healthcheck.test"),
    ("healthcheck: {test: [CMD-SHELL, a, b]}", "healthcheck.test"),
    ("healthcheck: {interval: 1s}", "healthcheck.test"),
    ("healthcheck: {test: t, interval: 0s}", "healthcheck.interval"),
    ("healthcheck: {test: t, timeout: 0s}", "healthcheck.timeout"),
    (
        "healthcheck: {test: t, start_period: 1s, start_interval: 0s}",
        "healthcheck.start_interval",
    ),
    ("healthcheck: {test: t, retries: 0}", "healthcheck.retries"),
    ("volumes: [/data]", "services.a.volumes.0"),
];

const WRONG_AT_THE_TOP: &[(&str, &str)] = &[
    ("services: {a: {image: i}}", "services.a.command"),
    ("services: {a: {image: i, command: []}}", "services.a.command"),
    ("services: {-a: {image: i, command: c}}", "services.-a"),
    (
        "services: {a: {image: i, command: c, network_mode: 'service:b'}, b: {image: i, command: c}}",
        "services.a.network_mode",
    ),
    (
        "services: {a: {image: i, command: c, networks: {default: {aliases: [x]}}}, b: {image: i, command: c, networks: {default: {aliases: [x]}}}}",
        "aliases",
    ),
];

#[test]
fn m4_what_is_wrong_is_an_invalid_argument_that_names_the_key() {
    let options = PlanOptions::default();
    for &(keys, path) in WRONG {
        assert_eq!(
            refused(&with(keys), &options, path),
            ErrorKind::InvalidArgument,
            "{keys}"
        );
    }
    for &(text, path) in WRONG_AT_THE_TOP {
        assert_eq!(
            refused(text, &options, path),
            ErrorKind::InvalidArgument,
            "{text}"
        );
    }
    let mut unused = PlanOptions::default();
    unused.shared_folders.insert("none".to_owned(), "f".to_owned());
    assert_eq!(
        refused(
            &with("volumes: ['dd:/d']").replace("services:", "volumes: {dd: }\nservices:"),
            &unused,
            "volumes.none"
        ),
        ErrorKind::InvalidArgument
    );
}

#[test]
fn m4_a_capability_that_the_provider_lacks_is_named() {
    let provider = Scripted::with(Capabilities::None);
    for (keys, what) in [
        ("", "addresses and names"),
        ("ports: ['80']", "endpoints"),
        ("network_mode: 'service:b'", "port forwarding"),
        ("cap_add: [NET_ADMIN]", "runtime requirements"),
        ("shm_size: 1m", "runtime requirements"),
        ("volumes: ['./d:/d']", "shared storage"),
    ] {
        let refused = plan_on(&provider, &with(keys), &PlanOptions::default()).unwrap_err();
        let told = refused.diagnostics.to_string();
        assert!(told.contains(what), "{keys}: {told}");
        assert_eq!(refused.kind, ErrorKind::Unsupported);
    }
    assert_eq!(provider.calls(), [], "nothing is made, and nothing is asked");
}

#[test]
fn m5_a_sandbox_gets_what_its_service_says_over_what_the_caller_gives() {
    let text = "
services:
  a:
    image: i
    command: c
    environment: {A: file, N: , B: ''}
    working_dir: /file
    expose: ['81', '80/tcp']
    ports: ['80', '82']
    mem_limit: 1048577b
    labels: {team: file}
  b: {image: i, command: c}
";
    let mut options = PlanOptions::default();
    let given = SandboxSpec::new("other")
        .with_env("A", "given")
        .with_env("C", "given")
        .with_workdir("/given")
        .with_metadata("team", "given")
        .with_metadata("more", "given")
        .with_resources(SandboxResources::default().with_cpu(0.5).with_memory_mib(7))
        .with_entrypoint(["never"])
        .with_file("/f", "text");
    options.service_specs.insert("a".to_owned(), given);
    let plan = plan_on(&Scripted::new(), text, &options).unwrap();
    let spec = &plan.services[0].spec;
    assert_eq!(spec.image(), Some("i"));
    let env: Vec<(&str, &str)> = spec
        .env()
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(env, [("A", "file"), ("B", ""), ("C", "given")]);
    assert_eq!(spec.workdir(), Some("/file"));
    assert_eq!(spec.ports().as_slice(), [81, 80, 82]);
    assert_eq!(spec.resources().cpu, Some(0.5));
    assert_eq!(spec.resources().memory_mib, Some(2), "rounded up to whole MiB");
    assert_eq!(spec.metadata()["team"], "file");
    assert_eq!(spec.metadata()["more"], "given");
    assert!(spec.entrypoint().is_empty(), "the provider keeps it alive");
    assert_eq!(spec.files().collect::<Vec<_>>(), [("/f", "text")]);
    assert_eq!(spec.ttl(), None, "the caller's spec has none");
    // Without one it lives an hour longer than the start may take.
    assert_eq!(
        plan.services[1].spec.ttl(),
        Some(Duration::from_secs(1200 + 3600))
    );
}

#[test]
fn m7_a_check_has_the_references_defaults() {
    let of = |keys: &str| {
        plan(&with(&format!("healthcheck: {{test: t{keys}}}"))).services[0]
            .check
            .clone()
            .unwrap()
    };
    let seconds = Duration::from_secs;
    let check = of("");
    assert_eq!(check.argv, ["/bin/sh", "-c", "t"]);
    assert_eq!(
        (check.timeout, check.interval, check.start_interval),
        (seconds(30), seconds(30), seconds(5))
    );
    assert_eq!((check.start_period, check.retries), (seconds(0), 3));
    let check = of(", timeout: 1s, interval: 2s, start_period: 3s, start_interval: 500ms, retries: 4");
    assert_eq!((check.timeout, check.interval), (seconds(1), seconds(2)));
    assert_eq!(
        (check.start_period, check.start_interval),
        (seconds(3), Duration::from_millis(500))
    );
    assert_eq!(check.retries, 4);
    assert_eq!(
        plan(&with("healthcheck: {test: [CMD, p, '']}")).services[0]
            .check
            .clone()
            .unwrap()
            .argv,
        ["p", ""]
    );
    for none in ["disable: true", "test: [NONE]"] {
        assert!(
            plan(&with(&format!("healthcheck: {{{none}}}"))).services[0]
                .check
                .is_none()
        );
    }
}

#[test]
fn m8_volumes_are_folders_of_the_project_and_are_seeded_by_images() {
    let text = "
services:
  a: {image: ia, command: c, volumes: ['dd:/data', './bind:/bind', 'out:/out']}
  b: {image: ib, command: c, volumes: [{type: volume, source: dd, target: /other, volume: {nocopy: true}}]}
volumes: {dd: , out: {external: true}}
";
    let mut options = PlanOptions::default();
    options
        .volume_sources
        .insert("bind".to_owned(), VolumeSource::new("/files"));
    options
        .shared_folders
        .insert("out".to_owned(), "sets/one".to_owned());
    let provider = Scripted::new();
    let plan = plan_on(&provider, text, &options).unwrap();
    let storage = plan.storage.as_ref().unwrap();
    let names: Vec<&str> = storage
        .volumes
        .iter()
        .map(|volume| volume.name.as_str())
        .collect();
    assert_eq!(names.len(), 2);
    assert_eq!(names[0], "dd");
    assert!(names[1].starts_with("seed-"));
    assert_eq!(
        storage.volumes[1].source.as_deref(),
        Some(std::path::Path::new("/files"))
    );
    assert_eq!(storage.helper.image(), Some("ia"));
    let seeds: Vec<_> = storage
        .seeds
        .iter()
        .map(|seed| (seed.service.as_str(), seed.folder.as_str()))
        .collect();
    assert_eq!(
        seeds,
        [("a", "/data")],
        "nocopy of one does not keep another from it"
    );
    let shared = format!("{:?}", provider.calls());
    for asked in [
        "None /tmp/compose-volumes",
        r#"Some(\"p/dd\") /data"#,
        r#"Some(\"p/dd\") /other"#,
        r#"Some(\"p/dd\") /tmp/compose-seed"#,
        r#"Some(\"sets/one\") /out"#,
    ] {
        assert!(shared.contains(asked), "{asked}: {shared}");
    }
    options.volume_init_image = Some("init".to_owned());
    let plan = plan_on(&provider, text, &options).unwrap();
    assert_eq!(plan.storage.unwrap().helper.image(), Some("init"));
}
