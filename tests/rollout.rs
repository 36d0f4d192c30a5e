//! The example `rollout` as a user runs it: right as it is, and not fooled by a patch that was altered.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test ends where it can't go on, and says why it was skipped"
)]

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use bollard::Docker;
use bollard::query_parameters::ListContainersOptionsBuilder;
use tokio::process::Command;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/rollout");

/// Building the example is part of it where only this test was asked for.
const DEADLINE: Duration = Duration::from_secs(600);

#[tokio::test]
async fn every_reward_is_right_and_a_patch_that_was_altered_is_noticed() {
    let Some(docker) = engine().await else { return };
    let right = rollout(&docker, Path::new(FOLDER)).await;
    let table = String::from_utf8(right.stdout).unwrap();
    let errors = String::from_utf8(right.stderr).unwrap();
    assert_eq!(right.status.code(), Some(0), "{table}{errors}");
    for (candidate, reward, exit, story) in [
        ("1-touching-counts", "1.0", "0", "all 13 tests pass"),
        ("2-rewritten", "1.0", "0", "all 13 tests pass"),
        ("3-new-module", "1.0", "0", "all 13 tests pass"),
        ("4-too-eager", "0.0", "1", "1 of 13 tests fail"),
        ("5-no-python", "0.0", "1", "tests fail"),
        ("6-endless", "0.0", "125", "did not end in 15 s, "),
        ("7-changes-the-test", "0.0", "1", "1 of 13 tests fail"),
        ("8-leaves-early", "0.0", "0", "exit code 0"),
        (
            "9-prints-200-mb",
            "1.0",
            "0",
            "200000000 bytes printed, 16 MiB of them kept",
        ),
        ("10-forks-daemons", "0.0", "125", "killed, none lives"),
        ("11-eats-memory", "0.0", "137", "the OOM killer was at work"),
        (
            "12-imitates-the-engine",
            "0.0",
            "126",
            "exit code 126 of their own, saying \"OCI runtime exec failed",
        ),
    ] {
        let line = table.lines().find(|line| line.starts_with(candidate)).unwrap();
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells[..3], [candidate, reward, exit], "{table}");
        assert!(line.contains(story), "{candidate}: {table}");
    }
    assert!(table.contains("total reward 4.0 of 12 candidates"), "{table}");
    assert!(
        table.ends_with("every reward is right\nnothing is left on the engine\n"),
        "{table}"
    );

    let altered = tempfile::tempdir().unwrap();
    copy(Path::new(FOLDER), altered.path());
    let patches = altered.path().join("patches");
    fs::copy(
        patches.join("4-too-eager.patch"),
        patches.join("2-rewritten.patch"),
    )
    .unwrap();
    let wrong = rollout(&docker, altered.path()).await;
    let table = String::from_utf8(wrong.stdout).unwrap();
    assert_eq!(wrong.status.code(), Some(1), "{table}");
    let line = table
        .lines()
        .find(|line| line.starts_with("2-rewritten"))
        .unwrap();
    assert!(line.contains("WRONG, 1.0 is expected"), "{table}");
    assert!(
        table.contains("\nwrong rewards: 1\nnothing is left on the engine\n"),
        "{table}"
    );
}

#[tokio::test]
async fn without_an_engine_it_runs_on_this_machine_and_says_that_it_does_not_isolate() {
    for tool in ["python3", "git"] {
        if std::process::Command::new(tool)
            .arg("--version")
            .output()
            .is_err()
        {
            eprintln!("skipped: this machine has no {tool}");
            return;
        }
    }
    let mut cargo = example();
    cargo
        .args(["--", "--provider", "local"])
        .env("DOCKER_HOST", "unix:///nonexistent/engine.sock");
    let output = tokio::time::timeout(DEADLINE, cargo.output())
        .await
        .expect("the example ends")
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{table}{errors}");
    assert!(errors.contains("not isolated"), "{errors}");
    for dangerous in ["10-forks-daemons", "11-eats-memory"] {
        assert!(errors.contains(&format!("{dangerous} is left out")), "{errors}");
        assert!(!table.contains(dangerous), "{table}");
    }
    assert!(table.contains("total reward 4.0 of 10 candidates"), "{table}");
    assert!(
        table.ends_with("every reward is right\nnothing is left of the sandboxes\n"),
        "{table}"
    );
}

/// The example, with the same features as this test has, so that nothing is compiled again.
fn example() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--offline", "--example", "rollout"]);
    if cfg!(feature = "conformance") {
        cargo.arg("--all-features");
    }
    cargo
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    cargo
}

/// Runs the example and looks that nothing of it is left.
async fn rollout(docker: &Docker, folder: &Path) -> Output {
    let run = format!("rollout-test-{}", uuid::Uuid::new_v4().simple());
    let mut cargo = example();
    cargo
        .arg("--")
        .arg("--folder")
        .arg(folder)
        .env("GYM_SANDBOX_RUN", &run);
    let output = tokio::time::timeout(DEADLINE, cargo.output())
        .await
        .expect("the example ends")
        .unwrap();
    let filters = HashMap::from([("label", vec![format!("gym-sandbox.run={run}")])]);
    let options = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    let left = docker.list_containers(Some(options)).await.unwrap();
    assert!(left.is_empty(), "left on the engine: {left:?}");
    output
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The engine. None, with a word about it, where there is none and that is allowed.
async fn engine() -> Option<Docker> {
    let reached = async { Docker::connect_with_defaults()?.negotiate_version().await };
    match reached.await {
        Ok(docker) => Some(docker),
        Err(error) if std::env::var_os("SANDBOX_REQUIRE_DOCKER").is_some() => {
            panic!("no engine answers: {error}")
        }
        Err(error) => {
            eprintln!("skipped, no engine answers: {error}");
            None
        }
    }
}
