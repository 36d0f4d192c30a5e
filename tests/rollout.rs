//! The example `rollout` as a user runs it: right as it is, and not fooled by a patch that was altered.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test ends where it can't go on, and says why it was skipped"
)]

#[path = "common/example.rs"]
mod example;

use std::fs;
use std::path::Path;

use example::{Ended, command, copy, ended, engine, example};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/rollout");

#[tokio::test]
async fn every_reward_is_right_and_a_patch_that_was_altered_is_noticed() {
    let Some(docker) = engine().await else { return };
    let Ended { code, table, errors } = example(&docker, "rollout", &[]).await;
    assert_eq!(code, Some(0), "{table}{errors}");
    for (candidate, reward, exit, story) in [
        ("1-touching-counts", "1.0", "0", "all 13 tests pass"),
        ("2-rewritten", "1.0", "0", "all 13 tests pass"),
        ("3-new-module", "1.0", "0", "all 13 tests pass"),
        ("4-too-eager", "0.0", "1", "1 of 13 tests fail"),
        ("5-no-python", "0.0", "1", "tests fail"),
        ("6-endless", "0.0", "125", "did not end in 45 s, "),
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
    let arguments = ["--folder", altered.path().to_str().unwrap()];
    let Ended { code, table, .. } = example(&docker, "rollout", &arguments).await;
    assert_eq!(code, Some(1), "{table}");
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
    let mut cargo = command("rollout");
    cargo
        .args(["--", "--provider", "local"])
        .env("DOCKER_HOST", "unix:///nonexistent/engine.sock");
    let Ended { code, table, errors } = ended(cargo).await;
    assert_eq!(code, Some(0), "{table}{errors}");
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
