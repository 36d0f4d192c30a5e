//! The examples with Compose projects as a user runs them: right as they are, and not fooled by a candidate that was
//! altered.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test ends where it can't go on, and says why it was skipped"
)]

#[path = "common/example.rs"]
mod example;

use std::fs;
use std::path::Path;

use example::{Ended, copy, engine, example};

const ROLLOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/compose_rollout");

#[tokio::test]
async fn a_project_of_several_services_is_judged_in_eight_copies_and_an_altered_candidate_is_noticed() {
    let Some(docker) = engine().await else { return };
    let right = example(&docker, "compose_rollout", &[]).await;
    let Ended { code, table, errors } = &right;
    assert_eq!(*code, Some(0), "{table}{errors}");
    for (candidate, reward, story) in [
        ("1-nets-refunds", "1.0", "all 5 tests pass"),
        ("2-rewritten", "1.0", "all 5 tests pass"),
        ("3-half-way", "0.0", "1 of 5 tests fail, the first is \"nobody\""),
        (
            "4-written-down",
            "0.0",
            "1 of 5 tests fail, the first is \"a new customer\"",
        ),
        ("5-crashes", "0.0", "5 of 5 tests fail"),
        ("6-endless", "0.0", "5 of 5 tests fail"),
        ("7-alters-the-store", "0.0", "orders are others than before"),
        ("8-ends-the-application", "0.0", "the application is gone"),
    ] {
        let line = table.lines().find(|line| line.starts_with(candidate)).unwrap();
        assert_eq!(line.split_whitespace().nth(1), Some(reward), "{table}");
        assert!(line.contains(story), "{candidate}: {table}");
    }
    assert!(table.contains("total reward 2.0 of 8 copies"), "{table}");
    assert!(
        table.ends_with("every reward is right\nnothing is left on the engine\n"),
        "{table}"
    );

    let altered = tempfile::tempdir().unwrap();
    copy(Path::new(ROLLOUT), altered.path());
    let candidates = altered.path().join("candidates");
    fs::write(altered.path().join("expected.json"), r#"{"2-rewritten": 1.0}"#).unwrap();
    for entry in fs::read_dir(&candidates).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("3-half-way.py") {
            fs::rename(path, candidates.join("2-rewritten.py")).unwrap();
        } else if !path.ends_with("2-rewritten.py") {
            fs::remove_file(path).unwrap();
        }
    }
    let wrong = example(
        &docker,
        "compose_rollout",
        &["--folder", altered.path().to_str().unwrap()],
    )
    .await;
    assert_eq!(wrong.code, Some(1), "{}", wrong.table);
    assert!(wrong.table.contains("WRONG, 1.0 is expected"), "{}", wrong.table);
    assert!(
        wrong
            .table
            .ends_with("\nwrong rewards: 1\nnothing is left on the engine\n"),
        "{}",
        wrong.table
    );
}

#[tokio::test]
async fn tasks_in_the_styles_of_three_harnesses_run_and_are_judged() {
    let Some(docker) = engine().await else { return };
    let Ended { code, table, errors } = example(&docker, "compose_styles", &[]).await;
    assert_eq!(code, Some(0), "{table}{errors}");
    for style in ["harbor", "inspect", "terminal-bench"] {
        for (attempt, reward) in [("solved", "1"), ("untouched", "0")] {
            let wanted = [style, attempt, reward, "as", "expected"];
            let has_it = table
                .lines()
                .any(|line| line.split_whitespace().collect::<Vec<_>>() == wanted);
            assert!(has_it, "{wanted:?}: {table}");
        }
    }
    assert!(table.ends_with("every reward is right\n"), "{table}");
    let one = example(&docker, "compose_styles", &["inspect"]).await;
    assert_eq!(one.code, Some(0), "{}{}", one.table, one.errors);
    assert_eq!(one.table.lines().count(), 4, "{}", one.table);
}
