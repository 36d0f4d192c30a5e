use serde_json::json;

use super::*;
use crate::error::ErrorKind;
use crate::spec::container::{EndpointSpec, NamespaceMode};

fn base() -> LocalBase {
    LocalBase {
        here: "/here".into(),
        home: Some("/home/me".into()),
    }
}

fn made_with(config: &DockerConfig, spec: &SandboxSpec) -> Result<ContainerSpec> {
    let effective = effective(config, spec)?;
    lay_over(config, effective.preset, spec, ContainerSpec::new("a"), base())
}

fn made(spec: &SandboxSpec) -> Result<ContainerSpec> {
    made_with(&DockerConfig::default(), spec)
}

fn by_arguments(arguments: &[&str]) -> Result<ContainerSpec> {
    made(&SandboxSpec::new("a").with_provider_option("run_args", json!(arguments)))
}

fn by_option(key: &str, value: Value) -> Result<ContainerSpec> {
    made(&SandboxSpec::new("a").with_provider_option(key, value))
}

#[track_caller]
fn refused(made: Result<ContainerSpec>, words: &[&str]) {
    let error = made.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
    let report = error.report().to_string();
    for word in words {
        assert!(report.contains(word), "`{word}` in {report}");
    }
}

#[test]
fn d9_both_spellings_say_the_same() {
    let long = by_arguments(&["--shm-size", "1g", "--memory", "64m", "--init", "--user", "1:2"]).unwrap();
    for spelled in [
        &["--shm-size=1g", "--memory=64m", "--init=true", "--user=1:2"][..],
        &["--shm-size=1g", "-m64m", "--init", "-u1:2"],
        &["--shm-size", "1g", "-m=64m", "-u", "1:2"],
    ] {
        assert_eq!(by_arguments(spelled).unwrap(), long, "{spelled:?}");
    }
    assert_eq!(long.limits.shm_bytes, Some(1 << 30));
    assert_eq!(long.limits.memory_bytes, Some(64 << 20));
    assert_eq!((long.init, long.user.as_deref()), (Some(true), Some("1:2")));
    // A text is one argument.
    let one = by_option("run_args", json!("--shm-size=1g")).unwrap();
    assert_eq!(one.limits.shm_bytes, Some(1 << 30));
}

#[test]
fn d9_d10_what_is_not_known_is_refused_by_name() {
    for (arguments, words) in [
        (&["--shm-siez", "1g"][..], &["`--shm-siez`", "run_args"][..]),
        (&["--shm-size 1g"], &["`--shm-size 1g`", "not split at spaces"]),
        (&["--token=hunter2"], &["`--token`"]),
        (&["-Z"], &["`-Z`"]),
        (&["image"], &["`image`", "not a flag"]),
        (&["--shm-size"], &["`--shm-size`", "no value"]),
        (&["--shm-size", "much"], &["`--shm-size`", "much"]),
        (&["--rm"], &["`--rm`", "removed when it is closed"]),
        (&["-it"], &["`--interactive`"]),
        (&["--name=x"], &["`--name`"]),
        (&["--init=maybe"], &["`--init`", "maybe"]),
        (&["--env", "A"], &["`--env`", "NAME=VALUE"]),
        (&["--security-opt", "seccomp=/x.json"], &["JSON text"]),
        (&["--publish", "localhost:80:80"], &["localhost"]),
        (&["--mount", "type=bind,target=/x"], &["source"]),
        (
            &["--mount", "type=tmpfs,target=/x,volume-nocopy"],
            &["volume-nocopy"],
        ),
        (
            &["--mount", "type=tmpfs,target=/x,consistency=cached"],
            &["consistency"],
        ),
        (&["--network-alias", "x"], &["name"]),
        (&["--pids-limit", "0"], &["`--pids-limit`"]),
    ] {
        refused(by_arguments(arguments), words);
    }
    let secret = by_arguments(&["--token=hunter2"]).unwrap_err();
    assert!(!secret.report().to_string().contains("hunter2"));
    let secret = by_arguments(&["--env", "=hunter2"]).unwrap_err();
    assert!(!secret.report().to_string().contains("hunter2"));
    refused(
        by_option("privilged", json!(true)),
        &["`privilged`", "privileged"],
    );
    refused(by_option("run_args", json!(5.5)), &["run_args"]);
    refused(by_option("run_args", json!({"a": 1})), &["`run_args`"]);
}

#[test]
fn every_flag_has_one_name() {
    let mut names: Vec<&str> = Vec::new();
    for flag in FLAGS {
        names.push(flag.long);
        names.extend(flag.aliases);
    }
    let mut once = names.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), names.len(), "a name is there twice");
    let options: Vec<&str> = FLAGS.iter().filter_map(|flag| Some(flag.option?.0)).collect();
    let page = include_str!("../../../docs/options.md");
    for name in &names {
        let shown = if name.len() == 1 {
            format!("`-{name}`")
        } else {
            format!("`--{name}`")
        };
        assert!(page.contains(&shown), "docs/options.md lacks {shown}");
    }
    for name in options.into_iter().chain(OWN).chain([RUN_ARGS]) {
        assert!(
            page.contains(&format!("`{name}`")),
            "docs/options.md lacks `{name}`"
        );
    }
}

#[test]
fn options_and_arguments_of_one_meaning_do_the_same() {
    let table: Vec<(&str, Value, &[&str])> = vec![
        ("shm_size", json!("64m"), &["--shm-size=64m"]),
        ("shm_size", json!(67_108_864), &["--shm-size=64m"]),
        ("pids_limit", json!(7), &["--pids-limit", "7"]),
        (
            "cap_add",
            json!(["NET_RAW", "KILL"]),
            &["--cap-add=NET_RAW", "--cap-add=KILL"],
        ),
        ("use_init", json!(false), &["--init=false"]),
        ("privileged", json!(true), &["--privileged"]),
        ("read_only", json!(true), &["--read-only"]),
        ("hostname", json!("box"), &["-h", "box"]),
        ("runtime", json!("crun"), &["--runtime=crun"]),
        ("platform", json!("linux/amd64"), &["--platform=linux/amd64"]),
        (
            "sysctls",
            json!({"net.core.somaxconn": 5}),
            &["--sysctl=net.core.somaxconn=5"],
        ),
        (
            "ulimits",
            json!({"nofile": {"soft": 5, "hard": 9}}),
            &["--ulimit", "nofile=5:9"],
        ),
        ("ulimits", json!({"nproc": 5}), &["--ulimit", "nproc=5"]),
        ("tmpfs", json!({"/x": "size=1m"}), &["--tmpfs=/x:size=1m"]),
        ("tmpfs", json!(["/x"]), &["--tmpfs=/x"]),
        ("volumes", json!("data:/d:ro"), &["-v", "data:/d:ro"]),
        ("volumes", json!(["data:/d", "/e"]), &["-vdata:/d", "-v/e"]),
        (
            "mounts",
            json!([{"type": "tmpfs", "target": "/x", "tmpfs_size": "1m", "tmpfs_mode": "700"}]),
            &["--mount", "type=tmpfs,target=/x,tmpfs-size=1m,tmpfs-mode=700"],
        ),
        (
            "devices",
            json!(["/dev/kvm:/dev/x:r"]),
            &["--device=/dev/kvm:/dev/x:r"],
        ),
        ("gpus", json!(2), &["--gpus=2"]),
        (
            "extra_hosts",
            json!({"a": "10.0.0.1"}),
            &["--add-host=a:10.0.0.1"],
        ),
        ("labels", json!({"a": "b=c"}), &["--label=a=b=c"]),
        ("dns", json!(["10.0.0.1"]), &["--dns=10.0.0.1"]),
        (
            "group_add",
            json!([5, "video"]),
            &["--group-add=5", "--group-add=video"],
        ),
        ("network", json!("none"), &["--net", "none"]),
        ("network", json!(["a", "b"]), &["--network=a", "--network=b"]),
        ("ipc_mode", json!("private"), &["--ipc=private"]),
        (
            "publish",
            json!(["127.0.0.1:8080:80/udp"]),
            &["-p127.0.0.1:8080:80/udp"],
        ),
        ("stop_timeout", json!(3), &["--stop-timeout=3"]),
        ("memory_swap", json!(-1), &["--memory-swap=-1"]),
        ("log_opt", json!({"max-size": "1m"}), &["--log-opt=max-size=1m"]),
        ("storage_opt", json!({"size": "1G"}), &["--storage-opt=size=1G"]),
    ];
    for (key, value, arguments) in table {
        let option = by_option(key, value).unwrap();
        assert_eq!(option, by_arguments(arguments).unwrap(), "{key}");
        assert_ne!(
            option,
            made(&SandboxSpec::new("a")).unwrap(),
            "{key} says nothing"
        );
    }
}

#[test]
fn d11_volume_strings() {
    let bind = |text: &str| match by_option("volumes", json!([text])).unwrap().mounts.remove(0).kind {
        MountKind::Bind { source, .. } => source,
        other => panic!("{text}: {other:?}"),
    };
    for (text, source) in [
        ("/a:/b", "/a"),
        ("./a:/b", "/here/./a"),
        ("../a:/b:ro,z", "/here/../a"),
        (".:/b", "/here/."),
        ("~/a:/b:rslave", "/home/me/a"),
        ("~:/b", "/home/me"),
    ] {
        assert_eq!(bind(text), source);
    }
    let named = by_option("volumes", json!("data:/b:ro,nocopy,Z"))
        .unwrap()
        .mounts
        .remove(0);
    assert!(named.read_only);
    let MountKind::Volume {
        source,
        no_copy,
        selinux,
        ..
    } = named.kind
    else {
        panic!("not a volume");
    };
    assert_eq!(
        (source.as_deref(), no_copy, selinux.as_deref()),
        (Some("data"), true, Some("Z"))
    );
    for text in [
        "a:/b:ro,rw",
        "a:/b:zz",
        "a:/b:cached",
        "a:/b:rslave",
        "/a:/b:nocopy",
        "a:/b:ro:rw",
        "~you/a:/b",
    ] {
        refused(by_option("volumes", json!(text)), &["`volumes`"]);
    }
}

#[test]
fn later_layers_win_and_lists_grow() {
    let mut config = DockerConfig::default();
    config.create.network = Some("configured".into());
    config.create.cap_drop = vec!["CHOWN".into()];
    config.create.extra_run_args = vec!["--shm-size=1m".into(), "--cap-drop=KILL".into()];
    let spec = SandboxSpec::new("a");
    let plain = made_with(&config, &spec).unwrap();
    assert_eq!(plain.cap_drop, ["CHOWN", "KILL"]);
    assert_eq!(
        plain.network,
        NetworkAttachment::Networks(vec![EndpointSpec::new("configured")])
    );
    let spec = spec
        .with_provider_option("cap_drop", json!(["MKNOD"]))
        .with_provider_option("network", "none")
        .with_provider_option("shm_size", "2m")
        .with_provider_option(
            "run_args",
            json!(["--shm-size=3m", "--cap-drop=FOWNER", "--net=web"]),
        )
        .with_provider_option("network_aliases", json!(["db"]));
    let laid = made_with(&config, &spec).unwrap();
    assert_eq!(laid.cap_drop, ["MKNOD", "FOWNER"]);
    assert_eq!(laid.limits.shm_bytes, Some(3 << 20));
    let NetworkAttachment::Networks(networks) = laid.network else {
        panic!("no network");
    };
    assert_eq!(networks.len(), 1);
    assert_eq!(
        (networks[0].network.as_str(), &networks[0].aliases),
        ("web", &vec!["db".to_owned()])
    );
}

#[test]
fn d27_resources_are_laid_under_the_arguments() {
    let spec = SandboxSpec::from_value(json!({
        "image": "a",
        "resources": {"cpu": 1.5, "memory_mib": 64, "disk_gib": 3, "gpu": 2},
    }))
    .unwrap();
    let container = made(&spec).unwrap();
    assert_eq!(container.limits.cpus, Some(1.5));
    assert_eq!(container.limits.memory_bytes, Some(64 << 20));
    assert_eq!(container.storage_options["size"], "3G");
    assert_eq!(container.device_requests[0].count, Some(2));
    let more = spec.with_provider_option("run_args", json!(["--memory=32m"]));
    assert_eq!(made(&more).unwrap().limits.memory_bytes, Some(32 << 20));
}

#[test]
fn the_preset_hardened_fills_what_is_not_said() {
    let spec = SandboxSpec::new("a").with_provider_option("preset", "hardened");
    let filled = made(&spec).unwrap();
    assert_eq!(filled.cap_drop, ["ALL"]);
    assert_eq!(filled.security_options, ["no-new-privileges"]);
    assert_eq!(filled.limits.pids, Some(HARDENED_PIDS));
    assert_eq!(filled.limits.memory_bytes, Some(HARDENED_MEMORY));
    assert_eq!(filled.logging.unwrap().options["max-size"], "10m");
    assert!(filled.mounts.is_empty() && !filled.read_only);
    let said = spec
        .with_provider_option("pids_limit", 9)
        .with_provider_option("read_only", true)
        .with_provider_option("log_driver", "none")
        .with_provider_option("cap_add", json!(["CHOWN"]));
    let said = made(&said).unwrap();
    assert_eq!(
        (said.limits.pids, said.cap_add),
        (Some(9), vec!["CHOWN".to_owned()])
    );
    assert_eq!(said.mounts[0].target, "/tmp");
    assert_eq!(said.logging.unwrap().driver.as_deref(), Some("none"));
    let compat = made(&SandboxSpec::new("a")).unwrap();
    assert!(compat.cap_drop.is_empty() && compat.logging.is_none());
    assert_eq!((compat.limits.pids, compat.limits.memory_bytes), (None, None));
    assert_eq!(compat.ipc, NamespaceMode::Default);
}

#[test]
fn values_of_a_wrong_kind_are_refused() {
    for (key, value) in [
        ("pull_policy", json!("sometimes")),
        ("preset", json!("soft")),
        ("exec_path", json!(1)),
        ("keep", json!("yes")),
        ("project", json!("")),
        ("pids_limit", json!(0)),
        ("pids_limit", json!("many")),
        ("cap_drop", json!("ALL")),
        ("network", json!("")),
        ("network", json!({"a": 1})),
        ("read_only", json!("yes")),
        ("ulimits", json!({"nofile": {"soft": 1}})),
        ("mounts", json!(["/x"])),
        ("tmpfs", json!(5)),
        ("shm_size", json!([1])),
    ] {
        refused(by_option(key, value), &[&format!("`{key}`")]);
    }
}

#[test]
fn d9_arguments_for_all_commands() {
    let list = |list: &[&str]| -> Vec<String> { list.iter().map(|&text| text.to_owned()).collect() };
    let read = exec_defaults(
        "exec.extra_exec_args",
        &list(&["-e", "A=b", "--user=me", "-w/x", "--privileged"]),
    )
    .unwrap();
    assert_eq!(read.env, [("A".to_owned(), "b".to_owned())]);
    assert_eq!(
        (read.user.as_deref(), read.workdir.as_deref()),
        (Some("me"), Some("/x"))
    );
    assert!(read.privileged);
    for bad in [&["--memory=1g"][..], &["-t"], &["-e", "=x"], &["x"]] {
        let error = exec_defaults("exec.extra_exec_args", &list(bad)).unwrap_err();
        assert!(error.to_string().contains("exec.extra_exec_args"), "{error}");
    }
}
