//! Ctrl-C in each phase of `compose up` and `compose run`: everything is taken down, and the exit code is the signal's.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};

use crate::example::left_of_run;
use crate::proxy::Proxy;
use crate::support::{Call, DEADLINE, ended, engine_or_skip, send, until};

/// A phase, the request by which it is known (none when the project is up), and what `db` is in it.
const PHASES: [(&str, Option<&str>, &str); 8] = [
    ("looking around", Some("/containers/json"), GOOD),
    (
        "building",
        Some("/build?"),
        "build: {context: ., dockerfile: endless}",
    ),
    ("making a network", Some("/networks/create"), GOOD),
    ("making a volume", Some("/volumes/create"), GOOD),
    ("creating", Some("-db-1"), GOOD),
    ("starting", Some("/start"), GOOD),
    ("waiting for health", Some("/exec/"), NEVER_HEALTHY),
    ("up", None, GOOD),
];

const GOOD: &str = "image: gym-sandbox/busybox:test\n    healthcheck: {test: 'test -d /data', interval: 5s}";
const NEVER_HEALTHY: &str =
    "image: gym-sandbox/busybox:test\n    healthcheck: {test: 'false', interval: 60s, start_period: 600s}";

fn folder(db: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("endless", "FROM gym-sandbox/busybox:test\nRUN sleep 600\n");
    write(
        "compose.yaml",
        &format!(
            "
services:
  db:
    {db}
    command: sleep 300
    volumes: ['data:/data']
  web:
    image: gym-sandbox/busybox:test
    command: sleep 300
    depends_on: {{db: {{condition: service_healthy}}}}
volumes: {{data: }}
"
        ),
    );
    folder
}

#[tokio::test]
async fn d35_a_signal_in_any_phase_of_a_project_takes_everything_down() {
    let docker = engine_or_skip!();
    if Proxy::start().await.is_none() {
        eprintln!("skipped: the engine has no local socket");
        return;
    }
    let commands: [(&[&str], &str, i32); 2] = [
        (&["up"], "INT", 130),
        (
            &["run", "web", "--", "sh", "-c", "echo is ready >&2; sleep 300"],
            "TERM",
            143,
        ),
    ];
    for (phase, request, db) in PHASES {
        for (command, signal, code) in commands {
            let proxy = Proxy::start().await.unwrap();
            let folder = folder(db);
            let mut call = Call::new(&[&["compose"], command].concat()).env("DOCKER_HOST", &proxy.address());
            call.command.current_dir(folder.path()).stdin(Stdio::null());
            if command[0] == "up" {
                call.command.arg("--project-name").arg(&call.run);
            }
            let mut child = call.command.spawn().unwrap();
            let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
            if let Some(part) = request {
                until(&format!("{phase}: {part}"), async || {
                    (proxy.requests(part) > 0).then_some(())
                })
                .await;
            } else {
                let ready = async {
                    while let Some(line) = errors.next_line().await.unwrap() {
                        if line.contains("is ready") {
                            return;
                        }
                    }
                    panic!("{phase}: it ended");
                };
                tokio::time::timeout(DEADLINE, ready).await.unwrap();
            }
            send(&child, signal).await;
            let told = ended(&mut child).await;
            let mut said = Vec::new();
            while let Some(line) = errors.next_line().await.unwrap() {
                said.push(line);
            }
            assert_eq!(told.code(), Some(code), "{phase}, {command:?}: {said:?}");
            let left = left_of_run(&docker, &call.run).await;
            assert!(left.is_empty(), "{phase}, {command:?}: {left:?}, {said:?}");
        }
    }
}

#[tokio::test]
async fn a_hook_that_hangs_holds_ctrl_c_no_longer_than_its_service_may_take() {
    let docker = engine_or_skip!();
    let folder = tempfile::tempdir().unwrap();
    let text = "
services:
  main:
    image: gym-sandbox/busybox:test
    command: sleep 300
    stop_grace_period: 1s
    pre_stop: [{command: [sleep, '600']}]
";
    std::fs::write(folder.path().join("compose.yaml"), text).unwrap();
    let mut call = Call::new(&["compose", "up"]);
    call.command.current_dir(folder.path()).stdin(Stdio::null());
    call.command.arg("--project-name").arg(&call.run);
    let mut child = call.command.spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    let ready = async {
        while let Some(line) = errors.next_line().await.unwrap() {
            if line.contains("is ready") {
                return;
            }
        }
        panic!("it ended");
    };
    tokio::time::timeout(DEADLINE, ready).await.unwrap();
    send(&child, "INT").await;
    assert_eq!(ended(&mut child).await.code(), Some(130));
    let mut said = String::new();
    while let Some(line) = errors.next_line().await.unwrap() {
        said.push_str(&line);
    }
    assert!(
        said.contains("pre_stop hook `sleep 600` of service `main` did not end within 1s"),
        "{said}"
    );
    let left = left_of_run(&docker, &call.run).await;
    assert!(left.is_empty(), "{left:?}");
}
