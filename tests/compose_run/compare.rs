//! Every fixture is also started by docker compose v2, where there is one, and gives the same container settings:
//! inspect compared field for field. What differs on purpose is in the table below, with its reason.

use std::collections::BTreeMap;
use std::path::Path;

use bollard::query_parameters::ListContainersOptionsBuilder;
use serde_json::Value;
use tokio::process::Command;

use crate::common::docker;
use crate::fixtures::{
    alone, are_all, before, cases, files, json, lacks, project_of, remove_images_of, strings,
};
use crate::support::{engine, unique};

/// Fields that differ on purpose, and why.
const ON_PURPOSE: [(&str, &str); 15] = [
    ("/Config/Labels", "the library's own labels are there as well"),
    (
        "/Config/Hostname",
        "the id of the container where no name is given",
    ),
    ("/Config/AttachStdout", "nobody is attached while it is created"),
    ("/Config/AttachStderr", "nobody is attached while it is created"),
    ("/Config/Image", "compared by itself"),
    (
        "/HostConfig/PortBindings",
        "ephemeral on the loopback address unless asked otherwise",
    ),
    (
        "/HostConfig/NetworkMode",
        "networks are named by their ids: names can be there twice",
    ),
    (
        "/HostConfig/Links",
        "links are part of the endpoint, which user-defined networks read",
    ),
    (
        "/HostConfig/Binds",
        "all mounts are typed; compared as what is mounted",
    ),
    (
        "/HostConfig/Mounts",
        "all mounts are typed; compared as what is mounted",
    ),
    (
        "/HostConfig/VolumesFrom",
        "containers are named by their ids, and differ",
    ),
    (
        "/HostConfig/PidMode",
        "containers are named by their ids, and differ",
    ),
    (
        "/HostConfig/IpcMode",
        "containers are named by their ids, and differ",
    ),
    (
        "/HostConfig/Tmpfs",
        "a typed tmpfs keeps `volumes_from` from working, so that all are of the other kind",
    ),
    ("/HostConfig/ConsoleSize", "no console is there"),
];

/// The docker compose command, if there is one.
async fn docker_compose() -> Option<Vec<String>> {
    let named = std::env::var("GYM_SANDBOX_DOCKER_COMPOSE")
        .ok()
        .map(|path| vec![path]);
    let usual = [
        vec!["docker-compose".to_owned()],
        vec!["docker".to_owned(), "compose".to_owned()],
    ];
    for words in named.into_iter().chain(usual) {
        let version = Command::new(&words[0])
            .args(&words[1..])
            .args(["version", "--short"])
            .output()
            .await;
        if version.is_ok_and(|output| output.status.success() && !output.stdout.starts_with(b"1.")) {
            return Some(words);
        }
    }
    None
}

async fn compose(words: &[String], case: &Path, name: &str, arguments: &[&str]) -> Result<(), String> {
    let described = json(&case.join("case.json"));
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .args(["-p", name, "--project-directory"])
        .arg(case);
    for file in files(case) {
        command.arg("-f").arg(file);
    }
    for profile in strings(&described["profiles"]) {
        command.args(["--profile", &profile]);
    }
    for (key, value) in described["env"].as_object().into_iter().flatten() {
        command.env(key, value.as_str().unwrap());
    }
    // Its own builder needs a plug-in that not every machine has.
    command.env("DOCKER_BUILDKIT", "0");
    let output = command
        .args(arguments)
        .output()
        .await
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The containers of a project, by service and number.
async fn settings(name: &str) -> BTreeMap<String, Value> {
    let filter = [(
        "label".to_owned(),
        vec![format!("com.docker.compose.project={name}")],
    )]
    .into();
    let options = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filter)
        .build();
    let mut found = BTreeMap::new();
    for container in engine().list_containers(Some(options)).await.unwrap() {
        let inspected = engine()
            .inspect_container(&container.id.unwrap(), None)
            .await
            .unwrap();
        let inspected = serde_json::to_value(inspected).unwrap();
        let label = |key: &str| inspected["Config"]["Labels"][key].as_str().unwrap().to_owned();
        let key = format!(
            "{}-{}",
            label("com.docker.compose.service"),
            label("com.docker.compose.container-number")
        );
        found.insert(key, inspected);
    }
    found
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.values().all(is_nothing),
    }
}

/// Environment, hosts and limits in any order, as docker compose writes them; `/tcp` written or not.
fn normal(path: &str, value: &Value, project: &str) -> Value {
    let text = value.to_string().replace(project, "PROJECT");
    let mut value: Value = serde_json::from_str(&text).unwrap();
    if ["/Config/Env", "/HostConfig/ExtraHosts", "/HostConfig/Ulimits"].contains(&path)
        && let Some(items) = value.as_array_mut()
    {
        items.sort_by_key(ToString::to_string);
    }
    if path == "/Config/ExposedPorts"
        && let Some(map) = value.as_object()
    {
        let ports: std::collections::BTreeSet<String> = map
            .keys()
            .map(|port| {
                if port.contains('/') {
                    port.clone()
                } else {
                    format!("{port}/tcp")
                }
            })
            .collect();
        value = serde_json::to_value(ports).unwrap();
    }
    if path == "/HostConfig/RestartPolicy" && value["Name"] == "no" {
        value["Name"] = Value::String(String::new());
    }
    value
}

/// What is mounted where, without the names that the engine makes up.
fn mounts(inspected: &Value) -> Vec<String> {
    let mut mounts: Vec<String> = inspected["Mounts"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|mount| mount["Type"] != "tmpfs")
        .map(|mount| {
            let name = mount["Name"].as_str().unwrap_or_default();
            let name = if name.len() == 64 { "anonymous" } else { name };
            format!(
                "{} {} {} rw={}",
                mount["Type"], name, mount["Destination"], mount["RW"]
            )
        })
        .collect();
    mounts.sort();
    mounts
}

fn differences(ours: &Value, theirs: &Value, our_name: &str, their_name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for section in ["Config", "HostConfig"] {
        let keys: std::collections::BTreeSet<&String> = [ours, theirs]
            .iter()
            .flat_map(|side| side[section].as_object().unwrap().keys())
            .collect();
        for key in keys {
            let path = format!("/{section}/{key}");
            if ON_PURPOSE.iter().any(|(field, _)| *field == path) {
                continue;
            }
            let one = normal(&path, &ours[section][key], our_name);
            let other = normal(&path, &theirs[section][key], their_name);
            if one != other && !(is_nothing(&one) && is_nothing(&other)) {
                found.push(format!("{path}: ours {one}, docker compose's {other}"));
            }
        }
    }
    let image = |side: &Value, name: &str| side["Config"]["Image"].as_str().unwrap().replace(name, "PROJECT");
    if image(ours, our_name) != image(theirs, their_name) {
        found.push(format!(
            "the image: {} and {}",
            ours["Config"]["Image"], theirs["Config"]["Image"]
        ));
    }
    let named = |mounts: Vec<String>, name: &str| -> Vec<String> {
        mounts
            .into_iter()
            .map(|mount| mount.replace(name, "PROJECT"))
            .collect()
    };
    let (one, other) = (named(mounts(ours), our_name), named(mounts(theirs), their_name));
    if one != other {
        found.push(format!("mounts: ours {one:?}, docker compose's {other:?}"));
    }
    let labels = |side: &Value, name: &str| -> BTreeMap<String, String> {
        let changing = ["config-hash", "version", "image", "config_files", "image.builder"];
        let all = side["Config"]["Labels"].as_object().unwrap();
        all.iter()
            .filter(|(key, _)| !key.starts_with("gym-sandbox") && **key != crate::common::TEST_LABEL)
            .filter(|(key, _)| !changing.iter().any(|word| key.ends_with(word)))
            .map(|(key, value)| {
                let value = value.as_str().unwrap().replace(name, "PROJECT");
                // One after the other in any order.
                let mut parts: Vec<&str> = value.split(',').collect();
                parts.sort_unstable();
                (key.clone(), parts.join(","))
            })
            .collect()
    };
    let (one, other) = (labels(ours, our_name), labels(theirs, their_name));
    if one != other {
        found.push(format!("labels: ours {one:?}, docker compose's {other:?}"));
    }
    found
}

#[tokio::test]
async fn d18_the_settings_of_every_fixture_are_those_of_docker_compose() {
    let Some(test) = docker().await else { return };
    let Some(words) = docker_compose().await else {
        eprintln!("SKIPPED: there is no docker compose v2; GYM_SANDBOX_DOCKER_COMPOSE can name one");
        return;
    };
    let mut problems = Vec::new();
    let mut compared = 0;
    for case in cases() {
        let short = case.file_name().unwrap().to_string_lossy().into_owned();
        if lacks(&case).await.is_some() {
            eprintln!("skipped: {short} is for other engines");
            continue;
        }
        if let Some(reason) = json(&case.join("case.json"))["not_compared"].as_str() {
            eprintln!("skipped: {short}: {reason}");
            continue;
        }
        let _alone = alone(&case).await;
        let (our_name, their_name) = (unique(), unique());
        let there = [
            before(&test, &case, &our_name).await,
            before(&test, &case, &their_name).await,
        ];
        let started = compose(&words, &case, &their_name, &["up", "-d", "--quiet-pull"]).await;
        let theirs = settings(&their_name).await;
        let down = compose(
            &words,
            &case,
            &their_name,
            &["down", "-v", "-t", "0", "--rmi", "local"],
        )
        .await;
        if let Err(problem) = started {
            problems.push(format!("{short}: docker compose does not start it: {problem}"));
            continue;
        }
        if let Err(problem) = down {
            problems.push(format!(
                "{short}: docker compose does not take it down: {problem}"
            ));
        }
        let project = project_of(&test, &case, &our_name);
        project.start().await.unwrap();
        let ours = settings(&our_name).await;
        project.stop().await.unwrap();
        remove_images_of(&our_name).await;
        for before in there.into_iter().flatten() {
            before.stop().await.unwrap();
        }
        assert_eq!(
            ours.keys().collect::<Vec<_>>(),
            theirs.keys().collect::<Vec<_>>(),
            "{short}"
        );
        for (key, one) in &ours {
            let found = differences(one, &theirs[key], &our_name, &their_name);
            problems.extend(found.into_iter().map(|found| format!("{short} {key}: {found}")));
        }
        compared += 1;
    }
    eprintln!("{compared} fixtures compared with docker compose");
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    assert!(compared >= 40 || !are_all(), "{compared}");
}
