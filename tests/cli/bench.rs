//! `bench`: the shape of what it prints, and what it leaves. Its numbers are no test's business.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use bollard::Docker;
use bollard::query_parameters::{ListContainersOptionsBuilder, ListNetworksOptionsBuilder};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use crate::support::{Call, assert_nothing_left, ended, engine_or_skip, send, until};

/// A row takes its time where others want the processors, too.
const LONG: Duration = Duration::from_secs(900);

/// The label of what is made without the library, and of projects. Its value begins with the run.
const LABEL: &str = "bench-of-gym-sandbox";

const KEYS: [&str; 10] = [
    "name", "ours", "raw", "baseline", "other", "ratio", "ci", "goal", "n", "verdict",
];

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The containers and networks that a run has made without the library, or as projects.
async fn marked(docker: &Docker, run: &str) -> Vec<String> {
    let filters = HashMap::from([("label", vec![LABEL])]);
    let containers = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    let containers = docker.list_containers(Some(containers)).await.unwrap();
    let networks = ListNetworksOptionsBuilder::new().filters(&filters).build();
    let networks = docker.list_networks(Some(networks)).await.unwrap();
    let containers = containers
        .into_iter()
        .map(|container| (container.id, container.labels));
    let networks = networks.into_iter().map(|network| (network.id, network.labels));
    let is_of_run = |labels: &HashMap<String, String>| labels[LABEL].starts_with(run);
    containers
        .chain(networks)
        .filter(|(_, labels)| labels.as_ref().is_some_and(is_of_run))
        .filter_map(|(id, _)| id)
        .collect()
}

/// Measures these rows quickly, without any other program, and gives what was printed.
async fn quick(docker: &Docker, rows: &str, variables: &[(&str, &str)]) -> Value {
    let nowhere = tempfile::tempdir().unwrap();
    let call = Call::new(&["bench", "--quick", "--json", "--rows", rows])
        .env("PATH", nowhere.path().to_str().unwrap())
        .env("COMPOSE_CORPUS", "")
        .env("GYM_SANDBOX_DOCKER_COMPOSE", "");
    let call = variables
        .iter()
        .fold(call, |call, (name, value)| call.env(name, value));
    let run = call.run.clone();
    let answer = call.answer_within(LONG).await;
    // A quick run on a busy machine may well miss its goal.
    assert!(matches!(answer.code, Some(0 | 1)), "{:?}", answer.text());
    let value = answer.json();
    assert_eq!(keys(&value), ["machine", "engine", "rows", "complete"]);
    assert_eq!(value["complete"], true);
    assert_nothing_left(&run).await;
    assert_eq!(marked(docker, &run).await, Vec::<String>::new());
    value
}

fn seconds(value: &Value) -> f64 {
    value["median_s"].as_f64().unwrap()
}

#[tokio::test]
async fn a_quick_measurement_has_the_documented_shape_and_leaves_nothing() {
    let _docker = engine_or_skip!();
    let call = Call::new(&["bench", "--quick", "--rows", "engine true sequential", "--json"]);
    let run = call.run.clone();
    let answer = call.answer_within(LONG).await;
    assert_nothing_left(&run).await;
    // A quick run on a busy machine may well miss its goal.
    assert!(matches!(answer.code, Some(0 | 1)), "{:?}", answer.text());
    assert_eq!(
        answer.stderr(),
        "gym-sandbox: measuring exec engine true sequential\n\
         gym-sandbox: measuring exec engine true sequential hardened\n"
    );
    let value = answer.json();
    assert_eq!(keys(&value), ["machine", "engine", "rows", "complete"]);
    let row = &value["rows"][0];
    assert_eq!(keys(row), KEYS);
    assert_eq!(row["name"], "exec engine true sequential");
    assert_eq!(
        (&row["baseline"], &value["complete"]),
        (&"raw".into(), &true.into())
    );
    assert!(seconds(&row["ours"]) > 0.0);
    assert_eq!(row["ci"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn copies_are_measured_in_the_sandboxes_of_every_preset() {
    let docker = engine_or_skip!();
    let value = quick(&docker, "1 KiB", &[]).await;
    let names: Vec<_> = value["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["name"])
        .collect();
    for name in ["download agent 1 KiB", "download 1 KiB"] {
        assert!(names.contains(&&name.into()), "{names:?}");
    }
}

#[tokio::test]
async fn a_signal_leaves_nothing_and_prints_the_rows_that_are_measured() {
    let _docker = engine_or_skip!();
    let mut call = Call::new(&["bench", "--quick", "--json", "--rows", "exec engine true"]);
    let mut child = call.command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut begun = Vec::new();
    for expected in ["sequential", "sequential hardened"] {
        let line = tokio::time::timeout(LONG, lines.next_line()).await.unwrap();
        let line = line.unwrap().unwrap();
        let row = format!("exec engine true {expected}");
        assert_eq!(line, format!("gym-sandbox: measuring {row}"));
        begun.push(row);
    }
    send(&child, "INT").await;
    let mut stdout = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut stdout)
        .await
        .unwrap();
    assert_eq!(ended(&mut child).await.code(), Some(130));
    // The signal may have come when it was further than was seen.
    while let Some(line) = lines.next_line().await.unwrap() {
        let row = line.strip_prefix("gym-sandbox: measuring ");
        begun.push(row.unwrap_or_else(|| panic!("{line}")).to_owned());
    }
    let value: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(value["complete"], false);
    let rows = value["rows"].as_array().unwrap();
    let measured: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    // All that it had begun but the last.
    assert_eq!(measured, begun[..begun.len() - 1], "{stdout}");
    assert_nothing_left(&call.run).await;
}

#[tokio::test]
async fn a_signal_in_the_first_row_prints_nothing_and_leaves_no_part_of_a_project() {
    let docker = engine_or_skip!();
    let mut call = Call::new(&["bench", "--quick", "--json", "--rows", "compose up"]);
    let mut child = call.command.spawn().unwrap();
    until("a part of a project is there", async || {
        marked(&docker, &call.run).await.pop()
    })
    .await;
    send(&child, "TERM").await;
    assert_eq!(ended(&mut child).await.code(), Some(143));
    let mut stdout = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut stdout)
        .await
        .unwrap();
    assert_eq!(stdout, "");
    assert_eq!(marked(&docker, &call.run).await, Vec::<String>::new());
    assert_nothing_left(&call.run).await;
}

#[tokio::test]
async fn terminals_and_idle_sandboxes_are_measured() {
    let docker = engine_or_skip!();
    let value = quick(&docker, "terminals", &[]).await;
    let [echo, each] = [&value["rows"][0], &value["rows"][1]];
    assert_eq!(echo["name"], "terminals 64 open agent");
    assert!(seconds(&echo["ours"]) > 0.0);
    assert_eq!((&echo["n"], &echo["goal"]), (&256.into(), &0.01.into()));
    assert_eq!(each["name"], "memory per open terminal");
    assert_eq!(each["ours"]["count"], 64);
    assert!(each["verdict"].is_null());
    let value = quick(&docker, "idle", &[]).await;
    assert_eq!(value["rows"][0]["name"], "memory per idle sandbox");
    assert_eq!(value["rows"][0]["ours"]["count"], 4);
}

#[tokio::test]
async fn queued_creates_are_measured_against_the_best_limit() {
    let docker = engine_or_skip!();
    let row = &quick(&docker, "queued", &[]).await["rows"][0];
    assert_eq!(row["name"], "create 32 queued at once");
    assert!(row["baseline"].as_str().unwrap().starts_with("best: "), "{row}");
    assert!(row["ours"]["execs_per_s"].as_f64().unwrap() > 0.0);
    assert!(
        row["note"].as_str().unwrap().contains("all started; own "),
        "{row}"
    );
}

#[tokio::test]
async fn projects_are_measured_and_say_that_docker_compose_is_missing() {
    let docker = engine_or_skip!();
    for rows in ["compose up", "compose down"] {
        let row = &quick(&docker, rows, &[]).await["rows"][0];
        assert_eq!(row["name"], rows);
        assert!(seconds(&row["ours"]) > 0.0 && seconds(&row["raw"]) > 0.0);
        assert!(row["other"].is_null());
        let note = row["note"].as_str().unwrap();
        assert!(note.starts_with("docker compose v2 is not here"), "{note}");
    }
}

#[tokio::test]
async fn copies_of_a_project_are_measured() {
    let docker = engine_or_skip!();
    let row = &quick(&docker, "64 copies", &[]).await["rows"][0];
    assert_eq!(
        (&row["name"], &row["n"]),
        (&"compose 64 copies".into(), &2.into())
    );
    assert!(seconds(&row["ours"]) > 0.0 && seconds(&row["raw"]) > 0.0);
    assert!(row["note"].as_str().unwrap().starts_with("2 copies, "), "{row}");
}

#[tokio::test]
async fn compose_config_is_measured_in_process_and_as_a_command() {
    let docker = engine_or_skip!();
    let folder = tempfile::tempdir().unwrap();
    // It accepts everything.
    let program = folder.path().join("compose");
    crate::executable::write_script(&program, "[ \"$1\" = version ] && echo 2.99.0\nexit 0\n");
    // A case that is refused takes its time, too.
    let case = folder.path().join("cases/wrong");
    fs::create_dir_all(&case).unwrap();
    fs::write(case.join("case.json"), r#"{"file": "c.yaml", "env": {}}"#).unwrap();
    fs::write(case.join("c.yaml"), "services: {a: {imag: i}}").unwrap();
    let variables = [
        ("GYM_SANDBOX_DOCKER_COMPOSE", program.to_str().unwrap()),
        ("COMPOSE_CORPUS", case.parent().unwrap().to_str().unwrap()),
    ];
    let value = quick(&docker, "compose config", &variables).await;
    let rows = value["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "compose config corpus",
            "compose config corpus command",
            "compose config 200 services",
            "compose config 200 services command",
        ]
    );
    for row in rows {
        assert_eq!(row["baseline"], "docker compose 2.99.0");
        assert!(seconds(&row["ours"]) > 0.0 && seconds(&row["raw"]) > 0.0);
        assert_eq!((&row["n"], &row["goal"]), (&2.into(), &0.05.into()));
    }
    for (row, accepted) in [(&rows[0], "0, 0, 1"), (&rows[2], "1, 1, 1")] {
        let note = row["note"].as_str().unwrap();
        assert!(
            note.starts_with(&format!("files accepted of 1: {accepted} ")),
            "{note}"
        );
    }
}

#[tokio::test]
async fn compose_config_says_that_there_is_nothing_to_compare() {
    let docker = engine_or_skip!();
    let value = quick(&docker, "compose config", &[]).await;
    let rows = value["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in &rows[..2] {
        assert!(row["ours"].is_null() && row["raw"].is_null(), "{row}");
        assert_eq!(row["note"], "COMPOSE_CORPUS names no folder with cases");
    }
    for row in &rows[2..] {
        assert!(seconds(&row["ours"]) > 0.0 && row["raw"].is_null(), "{row}");
        assert_eq!(row["verdict"], "unresolved");
        let note = row["note"].as_str().unwrap();
        assert!(note.contains("docker compose v2 is not here"), "{note}");
    }
}
