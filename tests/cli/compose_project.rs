//! `compose plan`, `up`, `run`, `ps`, `logs`, `exec`, `down`.

use crate::support::{Call, engine_or_skip, expected, until};

pub(crate) const TEXT: &str = "
services:
  main:
    image: gym-sandbox/busybox:test
    command: [sh, -c, 'echo started; sleep 300']
    depends_on: {db: {condition: service_healthy}}
  db:
    image: gym-sandbox/busybox:test
    command: [sh, -c, 'touch /ok; sleep 300']
    healthcheck: {test: 'test -f /ok', interval: 1s, retries: 300}
";

pub(crate) fn folder(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("compose.yaml"), text).unwrap();
    folder
}

pub(crate) async fn compose(folder: &tempfile::TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut call = Call::new(&[&["compose"], arguments].concat());
    call.command.current_dir(folder.path());
    call.answer().await.text()
}

/// Asks for logs until they have so many lines: what a service prints is there a moment after its start.
async fn logged(folder: &tempfile::TempDir, arguments: &[&str], lines: usize) -> String {
    until("the lines are in the log", async || {
        let (code, stdout, stderr) = compose(folder, arguments).await;
        assert_eq!(code, Some(0), "{stderr}");
        (stdout.lines().count() >= lines).then_some(stdout)
    })
    .await
}

fn name() -> String {
    format!("cli-{}", uuid::Uuid::new_v4().simple())
}

#[tokio::test]
async fn a_plan_is_data_and_what_is_not_allowed_is_refused_by_name() {
    let good = folder(TEXT);
    let (code, stdout, stderr) = compose(&good, &["plan", "-p", "p", "--format", "json"]).await;
    let plan: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(plan["services"][0]["name"], "db");
    assert_eq!(plan["services"][1]["containers"][0]["name"], "p-main-1");
    let bad = folder("services: {a: {image: 'gym-sandbox/busybox:test', privileged: true}}");
    let (code, stdout, stderr) = compose(&bad, &["plan", "-p", "p"]).await;
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(
        stderr.contains("services.a") && stderr.contains("privileged"),
        "{stderr}"
    );
    // Where networks come from is the caller's choice, and seen in the plan.
    let chosen = ["plan", "-p", "p", "--subnets", "10.77.0.0/16", "--format", "json"];
    let (code, stdout, _) = compose(&good, &chosen).await;
    let plan: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(code, Some(0));
    assert_eq!(plan["networks"][0]["spec"]["subnets"]["range"], "10.77.0.0/16");
    let (code, _, stderr) = compose(&good, &["plan", "-p", "p", "--subnets", "10.77.1.0/16"]).await;
    assert_eq!(code, Some(2));
    assert!(stderr.contains("10.77.1.0/16"), "{stderr}");
    let shared = ["plan", "-p", "p", "--shared-network", "bench", "--format", "json"];
    let (code, stdout, _) = compose(&good, &shared).await;
    let plan: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &plan["networks"][0]["external"]), (Some(0), &true.into()));
    assert_eq!(plan["networks"][0]["spec"]["name"], "bench");
}

#[tokio::test]
async fn a_project_is_started_looked_at_used_and_taken_down() {
    let _docker = engine_or_skip!();
    let folder = folder(TEXT);
    let name = name();
    let (code, stdout, stderr) = compose(&folder, &["up", "-d", "-p", &name, "--wait-timeout", "170s"]).await;
    assert_eq!((code, stdout), (Some(0), format!("{name}\n")), "{stderr}");
    let (code, stdout, _) = compose(&folder, &["ps", "-p", &name]).await;
    assert_eq!(code, Some(0));
    assert!(
        stdout.contains("db") && stdout.contains(&format!("{name}-main-1")) && stdout.contains("running"),
        "{stdout}"
    );
    let main = logged(&folder, &["logs", "-p", &name, "main"], 1).await;
    assert_eq!(main, "main | started\n");
    let (code, stdout, _) = compose(
        &folder,
        &["logs", "-p", &name, "--json", "--tail", "1", "--timestamps"],
    )
    .await;
    let line: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (code, &line["service"], &line["text"]),
        (Some(0), &"main".into(), &"started".into())
    );
    assert!(
        line["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')),
        "{line}"
    );
    let answer = compose(
        &folder,
        &["exec", "-p", &name, "main", "--", "sh", "-c", "echo here; exit 7"],
    )
    .await;
    assert_eq!(answer, expected(7, "here\n", ""));
    let (code, _, stderr) = compose(&folder, &["exec", "-p", &name, "nobody", "--", "true"]).await;
    assert_eq!(code, Some(125));
    assert!(stderr.contains("db") && stderr.contains("main"), "{stderr}");
    let (code, stdout, _) = compose(&folder, &["down", "-p", &name, "--json"]).await;
    let removed: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &removed["removed"]), (Some(0), &3.into()));
    let (code, _, _) = compose(&folder, &["down", "-p", &name]).await;
    assert_eq!(code, Some(0));
    let (code, _, stderr) = compose(&folder, &["ps", "-p", &name]).await;
    assert_eq!(code, Some(1));
    assert!(stderr.contains("no project"), "{stderr}");
}

#[tokio::test]
async fn of_two_ups_of_one_name_at_once_the_loser_says_what_to_do() {
    let _docker = engine_or_skip!();
    let folder = folder(TEXT);
    for _ in 0..3 {
        let name = name();
        let up = ["up", "-d", "-p", &name];
        let (one, other) = tokio::join!(compose(&folder, &up), compose(&folder, &up));
        let (won, lost): (Vec<_>, Vec<_>) = [one, other].into_iter().partition(|(code, ..)| *code == Some(0));
        let (code, ..) = compose(&folder, &["down", "-p", &name]).await;
        assert_eq!(code, Some(0));
        assert_eq!(won.len(), 1, "{lost:?}");
        for (code, stdout, stderr) in lost {
            assert_eq!((code, stdout.as_str()), (Some(1), ""));
            assert!(
                stderr.contains(&name) && stderr.contains("wait") && stderr.contains("another project name"),
                "{stderr}"
            );
        }
    }
}

#[tokio::test]
async fn a_run_has_the_exit_code_of_its_command_and_a_failed_start_says_why() {
    let _docker = engine_or_skip!();
    let good = folder(TEXT);
    let answer = compose(
        &good,
        &[
            "run",
            "main",
            "--",
            "sh",
            "-c",
            "ping -c1 -W60 db >/dev/null && echo reached; exit 9",
        ],
    )
    .await;
    assert_eq!(answer, expected(9, "reached\n", ""));
    // Somebody waits for it: how soon it ends does not matter.
    let bad = folder(
        "services: {main: {image: 'gym-sandbox/exit:test'}, after: {image: 'gym-sandbox/busybox:test', \
         depends_on: {main: {condition: service_completed_successfully}}}}",
    );
    let (code, stdout, stderr) = compose(&bad, &["run", "main", "--", "true"]).await;
    assert_eq!((code, stdout.as_str()), (Some(125), ""));
    assert!(
        stderr.contains("`main` did not complete successfully: it exited with 3") && stderr.contains("boom"),
        "{stderr}"
    );
}

#[tokio::test]
async fn logs_give_every_line_and_follow_to_the_end_of_all_containers() {
    let _docker = engine_or_skip!();
    let folder = folder(
        "
services:
  many:
    image: gym-sandbox/busybox:test
    command: [sh, -c, 'seq 1 500; exec sleep 300']
  two:
    image: gym-sandbox/busybox:test
    command: [sh, -c, 'echo error >&2; while test ! -f /end; do sleep 0.1; done; echo last; sleep 1']
    scale: 2
",
    );
    let name = name();
    let (code, _, stderr) = compose(&folder, &["up", "-d", "-p", &name]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let many = logged(&folder, &["logs", "-p", &name, "many"], 500).await;
    let expected = (1..=500).fold(String::new(), |lines, number| format!("{lines}many | {number}\n"));
    assert_eq!(many, expected);
    let (code, stdout, _) = compose(&folder, &["logs", "-p", &name, "--tail", "2", "many"]).await;
    assert_eq!((code, stdout.as_str()), (Some(0), "many | 499\nmany | 500\n"));
    // The one that is killed below has said its line.
    logged(&folder, &["logs", "-p", &name, "two"], 2).await;
    let arguments = ["logs", "-f", "-p", &name, "two"];
    let following = compose(&folder, &arguments);
    let ending = async {
        // Of both containers the command makes the file in the first one; the other is ended by a stop of its process.
        compose(&folder, &["exec", "-p", &name, "two", "--", "touch", "/end"]).await;
        let engine = bollard::Docker::connect_with_defaults().unwrap();
        let second = format!("{name}-two-2");
        let options = None::<bollard::query_parameters::KillContainerOptions>;
        engine.kill_container(&second, options).await.unwrap();
    };
    let ((code, stdout, _), ()) = tokio::join!(following, ending);
    assert_eq!(code, Some(0));
    let mut lines: Vec<&str> = stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["two-1 | error", "two-1 | last", "two-2 | error"]);
    let (code, _, stderr) = compose(&folder, &["logs", "-p", &name, "nobody"]).await;
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("no service `nobody`; it has many, two\n"),
        "{stderr}"
    );
    compose(&folder, &["down", "-p", &name]).await;
}

#[tokio::test]
async fn a_service_whose_log_cannot_be_read_does_not_hide_those_of_the_others() {
    let _docker = engine_or_skip!();
    let folder = folder(
        "
services:
  first: {image: 'gym-sandbox/busybox:test', command: [sh, -c, 'seq 1 200; exec sleep 300']}
  mute: {image: 'gym-sandbox/busybox:test', command: sleep 300, logging: {driver: none}}
  third: {image: 'gym-sandbox/busybox:test', command: [sh, -c, 'echo third; exec sleep 300']}
",
    );
    let name = name();
    let (code, _, stderr) = compose(&folder, &["up", "-d", "-p", &name]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let lines = (1..=200).fold(String::new(), |lines, number| {
        format!("{lines}first | {number}\n")
    });
    logged(&folder, &["logs", "-p", &name, "first"], 200).await;
    logged(&folder, &["logs", "-p", &name, "third"], 1).await;
    let (code, stdout, stderr) = compose(&folder, &["logs", "-p", &name]).await;
    assert_eq!((code, stdout), (Some(0), format!("{lines}third | third\n")));
    assert!(
        stderr.contains(&format!("{name}-mute-1")) && stderr.contains("log driver"),
        "{stderr}"
    );
    let (code, stdout, stderr) = compose(&folder, &["logs", "-p", &name, "mute"]).await;
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("log driver"), "{stderr}");
    compose(&folder, &["down", "-p", &name]).await;
}
