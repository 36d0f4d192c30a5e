//! `run --provider local`: no engine, and it says that it does not isolate.

use crate::support::Call;

/// An address where nothing can listen: no engine is asked.
const NOWHERE: &str = "unix:///nonexistent/engine.sock";

fn local(arguments: &[&str]) -> Call {
    Call::new(&[&["--provider", "local"], arguments].concat()).env("DOCKER_HOST", NOWHERE)
}

#[tokio::test]
async fn a_command_runs_and_it_says_that_it_is_not_isolated() {
    let line = "echo out; echo err >&2; exit 3";
    let answer = local(&["run", "--shell", line]).answer().await;
    assert_eq!((answer.code, answer.stdout().as_str()), (Some(3), "out\n"));
    assert!(
        answer.stderr().contains("does not isolate"),
        "{}",
        answer.stderr()
    );
    assert!(answer.stderr().contains("err\n"), "{}", answer.stderr());
}

#[tokio::test]
async fn files_go_in_and_out_and_the_folder_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("in"), "12345").unwrap();
    let answer = local(&[
        "run",
        "--json",
        "--upload",
        &format!("{}:sub/in", path("in")),
        "--download",
        &format!("out:{}", path("out")),
        "--shell",
        "wc -c < sub/in > out; pwd",
    ])
    .answer()
    .await;
    assert_eq!(answer.code, Some(0), "{:?}", answer.text());
    let result = answer.json();
    assert_eq!(result["exec_path"], "host");
    assert_eq!(std::fs::read_to_string(path("out")).unwrap().trim(), "5");
    let workspace = result["stdout"].as_str().unwrap().trim();
    assert!(
        !workspace.is_empty() && !std::path::Path::new(workspace).exists(),
        "{workspace}"
    );
}

#[tokio::test]
async fn a_timeout_is_124_and_a_missing_program_127() {
    let answer = local(&["run", "--timeout", "1s", "--", "sleep", "1000"])
        .answer()
        .await;
    assert_eq!(answer.code, Some(124));
    let answer = local(&["run", "--", "no-such-program"]).answer().await;
    assert_eq!(answer.code, Some(127));
}
