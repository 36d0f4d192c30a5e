//! `run_args` mean what they mean to `docker run`: both are made on the same engine and compared by inspect, every flag in
//! every spelling (contract D9).

mod inspected;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output};

use bollard::query_parameters::{InspectContainerOptions, RemoveContainerOptionsBuilder};
use gym_sandbox::SandboxProvider;
use gym_sandbox::docker::{DockerConfig, ExecPathPolicy, OnWarning};
use serde_json::json;

use crate::common::{BUSYBOX, DockerTest, TEST_LABEL, busybox, client, config, docker_with};
use crate::inspect;

use inspected::{Parts, parts};
use rows::{CGROUPNS, CONTAINER, DISK, GROUPS, NETWORK, PARENT, PLATFORM, PREFIX, Row, Spelling};

/// The flags of the table in docs/options.md, which has all that the library knows, with their other names.
fn documented() -> BTreeMap<String, Option<String>> {
    let page = include_str!("../../../docs/options.md");
    let begin = page.find("| option | flag |").unwrap();
    let table = &page[begin..begin + page[begin..].find("\n\n").unwrap()];
    let mut flags = BTreeMap::new();
    for line in table.lines().skip(2) {
        let cell = line.split(" | ").nth(1).unwrap_or_default();
        let mut last = String::new();
        let mut before = "";
        for (index, piece) in cell.split('`').enumerate() {
            if index % 2 == 0 {
                before = piece;
            } else if before.ends_with('(') {
                flags.insert(last.clone(), Some(piece.to_owned()));
            } else if piece.starts_with("--") {
                piece.clone_into(&mut last);
                flags.insert(last.clone(), None);
            }
        }
    }
    flags
}

#[test]
fn d9_every_flag_of_the_table_is_compared_with_docker_run() {
    let documented: BTreeSet<String> = documented().into_keys().collect();
    let compared: BTreeSet<String> = GROUPS
        .iter()
        .flat_map(|group| group.iter().map(|(flag, ..)| (*flag).to_owned()))
        .collect();
    assert!(documented.len() > 70, "the table was not found: {documented:?}");
    assert_eq!(
        compared, documented,
        "a flag of docs/options.md has a row in tests/options/docker_run/rows.rs, and each row a flag there"
    );
}

/// What the rows need beside: a network, and a container with a volume. Removed when it is dropped.
struct Around {
    network: String,
    container: String,
    values: BTreeMap<&'static str, String>,
}

impl Around {
    fn make() -> Self {
        let bytes = uuid::Uuid::new_v4().into_bytes();
        let prefix = format!("10.{}.{}", 100 + bytes[0] % 100, bytes[1]);
        let name = format!("gym-sandbox-test-{}", uuid::Uuid::new_v4().simple());
        let mut around = Self {
            network: String::new(),
            container: String::new(),
            values: BTreeMap::new(),
        };
        let subnet = format!("{prefix}.0/24");
        let both = ["network", "create", "--ipv6", "--subnet", &subnet, "--subnet"];
        let made = docker(both.into_iter().chain(["fd00:6a73:1::/64", &name]));
        if !made.status.success() {
            // An engine without IPv6 refuses an address of it, also docker's.
            let made = docker(["network", "create", "--subnet", &subnet, &name]);
            assert!(made.status.success(), "{}", text(&made.stderr));
        }
        around.network.clone_from(&name);
        let made = docker(["create", "--name", &name, "-v", "/from", BUSYBOX, "true"]);
        assert!(made.status.success(), "{}", text(&made.stderr));
        around.container.clone_from(&name);
        let driver = text(&docker(["info", "-f", "{{.CgroupDriver}}"]).stdout);
        let parent = if driver.trim() == "systemd" {
            "system.slice"
        } else {
            "/gym-sandbox-test"
        };
        let groups = text(&docker(["info", "-f", "{{.CgroupVersion}}"]).stdout);
        let namespace = if groups.trim() == "1" { "private" } else { "host" };
        let architecture = text(&docker(["version", "-f", "{{.Server.Arch}}"]).stdout);
        around.values = BTreeMap::from([
            (NETWORK, name.clone()),
            (PREFIX, prefix),
            (CONTAINER, name),
            (DISK, disk().unwrap_or_else(|| "/dev/null".to_owned())),
            (PARENT, parent.to_owned()),
            (CGROUPNS, namespace.to_owned()),
            (PLATFORM, format!("linux/{}", architecture.trim())),
        ]);
        around
    }

    fn filled(&self, value: &str) -> String {
        self.values
            .iter()
            .fold(value.to_owned(), |text, (name, value)| text.replace(name, value))
    }
}

impl Drop for Around {
    fn drop(&mut self) {
        if !self.container.is_empty() {
            docker(["rm", "-f", "-v", &self.container]);
        }
        if !self.network.is_empty() {
            docker(["network", "rm", &self.network]);
        }
    }
}

/// A disk of this machine.
fn disk() -> Option<String> {
    let mut names: Vec<String> = std::fs::read_dir("/sys/block")
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| std::path::Path::new("/dev").join(name).exists())
        .collect();
    names.sort_by_key(|name| (name.starts_with("loop") || name.starts_with("ram"), name.clone()));
    names.first().map(|name| format!("/dev/{name}"))
}

fn docker<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Output {
    Command::new("docker").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The policy and the engine's warnings are not what is compared, and docker has no init unless asked.
fn open(parent: String) -> DockerConfig {
    let mut config = config();
    config.create.use_init = false;
    config.create.on_warning = OnWarning::Warn;
    config.exec.exec_path = ExecPathPolicy::Engine;
    let policy = &mut config.policy;
    policy.allow_privileged = true;
    policy.allow_other_containers = true;
    policy.allow_oom_protection = true;
    policy.allow_devices = vec!["/dev/".into()];
    policy.allow_device_rules = vec!["c 1:3 rwm".into()];
    policy.allow_annotations = vec!["x.test/y".into()];
    policy.allow_cgroup_parents = vec![parent];
    policy.allow_host_namespaces = serde_json::from_value(json!(["pid", "uts", "user", "cgroup"])).unwrap();
    config
}

#[tokio::test(flavor = "multi_thread")]
async fn d9_run_args_do_what_docker_run_does() {
    if Command::new("docker").arg("--version").output().is_err() {
        eprintln!("skipped: there is no docker command");
        return;
    }
    let around = Around::make();
    let Some(test) = docker_with(open(around.filled(PARENT))).await else {
        return;
    };
    let names = documented();
    let plain = by_docker(&[], &test).await.unwrap();
    for group in GROUPS {
        let spelled = |spelling: Spelling| -> Vec<String> {
            let of = |(flag, value, _): &Row| {
                let alias = names.get(*flag).and_then(Option::as_deref);
                spelling.arguments(flag, &around.filled(value), alias)
            };
            group.iter().flat_map(of).collect()
        };
        let theirs = by_docker(&spelled(Spelling::Apart), &test).await;
        let all: BTreeSet<Vec<String>> = Spelling::ALL.into_iter().map(spelled).collect();
        for arguments in all {
            let ours = by_us(&arguments, &test).await;
            match (&ours, &theirs) {
                (Ok(ours), Ok(theirs)) => assert_same(ours, &theirs.0, &arguments),
                (Err(ours), Err(theirs)) => eprintln!("skipped: {arguments:?} is refused: {ours}; {theirs}"),
                (Err(error), Ok(_)) => panic!("{arguments:?} is taken by docker: {error}"),
                (Ok(_), Err(error)) => panic!("{arguments:?} is refused by docker: {error}"),
            }
        }
        let Ok((theirs, warnings)) = theirs else { continue };
        for (flag, _, part) in group.iter().filter(|(_, _, part)| !part.is_empty()) {
            if theirs.get(*part) != plain.0.get(*part) {
                continue;
            }
            // What the engine drops, with a warning, can't be seen.
            assert!(
                warnings.contains("WARNING"),
                "{flag} is not seen in {part} of {theirs:?}"
            );
            eprintln!("skipped: the engine drops {flag}: {}", warnings.trim());
        }
    }
}

fn assert_same(ours: &Parts, theirs: &Parts, arguments: &[String]) {
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    for name in names {
        assert_eq!(ours.get(name), theirs.get(name), "{name} of {arguments:?}");
    }
}

async fn by_us(arguments: &[String], test: &DockerTest) -> Result<Parts, String> {
    let spec = busybox().with_provider_option("run_args", json!(arguments));
    let handle = test
        .provider
        .create(&spec)
        .await
        .map_err(|error| error.report().to_string())?;
    let inspected = inspect(&handle).await;
    test.provider.close(&handle).await.unwrap();
    Ok(parts(inspected))
}

/// What `docker run` makes, and what it says beside; or why it does not.
async fn by_docker(arguments: &[String], test: &DockerTest) -> Result<(Parts, String), String> {
    let label = format!("{TEST_LABEL}={}", test.label());
    let before = ["run", "-d", "--label", &label];
    let after = [BUSYBOX, "sleep", "1000"];
    let output = docker(
        before
            .into_iter()
            .chain(arguments.iter().map(String::as_str))
            .chain(after),
    );
    let client = client().await.unwrap();
    let mut inspected = None;
    // One that could not be started is there, too.
    for name in test.containers().await {
        inspected = Some(
            client
                .inspect_container(&name, None::<InspectContainerOptions>)
                .await
                .unwrap(),
        );
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        client.remove_container(&name, Some(options)).await.unwrap();
    }
    if !output.status.success() {
        return Err(text(&output.stderr).trim().to_owned());
    }
    Ok((parts(inspected.expect("it was made")), text(&output.stderr)))
}
