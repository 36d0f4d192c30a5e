//! `create`, `exec` and `rm`: a sandbox that outlives the call that made it.

use std::fs;

use serde_json::json;

use crate::support::{
    BUSYBOX, Call, assert_nothing_left, containers, ended, engine_or_skip, expected, send, until,
};

/// A sandbox of `create`, removed by `rm` when the test has gone well and by the check for leftovers when not.
pub(crate) struct Kept {
    pub(crate) id: String,
    pub(crate) run: String,
}

pub(crate) async fn create(arguments: &[&str]) -> Kept {
    let call = Call::new(&[&["create", "--image", BUSYBOX], arguments].concat());
    let run = call.run.clone();
    let (code, stdout, stderr) = call.answer().await.text();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let id = stdout.strip_suffix('\n').unwrap().to_owned();
    assert!(id.starts_with("gym-sandbox-") && id.len() == 44, "{id}");
    Kept { id, run }
}

pub(crate) async fn exec(id: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    Call::new(&[&["exec", id], arguments].concat())
        .answer()
        .await
        .text()
}

pub(crate) async fn remove(kept: &Kept) {
    let answer = Call::new(&["rm", &kept.id]).answer().await.text();
    assert_eq!(answer, expected(0, &format!("{}\n", kept.id), ""));
    assert_nothing_left(&kept.run).await;
}

#[tokio::test]
async fn a_created_sandbox_is_used_by_its_id_and_removed() {
    let docker = engine_or_skip!();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("task"), "count\n").unwrap();
    let upload = format!("{}:/work/", folder.path().join("task").display());
    let kept = create(&["--workdir", "/work", "--env", "A=1", "--upload", &upload]).await;
    assert_eq!(containers(&docker, &kept.run).await.len(), 1);

    let line = "cat task; echo \"$A $B $(pwd) $(id -u)\" >&2; echo made > made; exit 5";
    assert_eq!(
        exec(&kept.id, &["--env", "B=2", "--shell", line]).await,
        expected(5, "count\n", "1 2 /work 0\n")
    );
    assert_eq!(
        exec(&kept.id, &["--", "cat", "made"]).await,
        expected(0, "made\n", "")
    );
    let other = ["--workdir", "/tmp", "--user", "nobody", "--shell", "pwd; id -un"];
    assert_eq!(exec(&kept.id, &other).await, expected(0, "/tmp\nnobody\n", ""));

    let input = Call::new(&["exec", &kept.id, "--stdin", "--", "wc", "-c"]).input(b"four");
    assert_eq!(input.answer().await.text(), expected(0, "4\n", ""));
    let json = Call::new(&["exec", &kept.id, "--json", "--", "no-such-program"])
        .answer()
        .await;
    assert_eq!(json.code, Some(127));
    assert_eq!(
        (
            &json.json()["error_type"],
            &json.json()["reason"],
            &json.json()["stdout"]
        ),
        (&json!("start"), &json!("not_found"), &json!(""))
    );
    let late = exec(&kept.id, &["--timeout", "1s", "--", "sleep", "4860"]).await;
    assert_eq!((late.0, late.1.as_str()), (Some(124), ""));
    assert_eq!(
        exec(&kept.id, &["--shell", "ps | grep -c '[s]leep 4860'"]).await,
        expected(1, "0\n", "")
    );
    remove(&kept).await;
}

#[tokio::test]
async fn create_can_say_its_id_and_ports_as_json() {
    let _docker = engine_or_skip!();
    let call = Call::new(&["create", "--json", "--image", BUSYBOX, "--port", "8080"]);
    let run = call.run.clone();
    let answer = call.answer().await;
    let value = answer.json();
    let id = value["id"].as_str().unwrap().to_owned();
    remove(&Kept { id: id.clone(), run }).await;
    assert_eq!((answer.code, answer.stderr().as_str()), (Some(0), ""));
    assert_eq!(value.as_object().unwrap().len(), 2);
    assert!(
        value["endpoints"]["8080"]
            .as_str()
            .unwrap()
            .starts_with("http://"),
        "{value}"
    );
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let _docker = engine_or_skip!();
    let missing = "gym-sandbox-00000000000000000000000000000000";
    let (code, stdout, stderr) = exec(missing, &["--", "true"]).await;
    assert_eq!((code, stdout.as_str()), (Some(125), ""));
    assert!(
        stderr.starts_with(&format!("error: attach to sandbox `{missing}`: ")),
        "{stderr}"
    );

    let kept = create(&[]).await;
    let answer = Call::new(&["rm", "--json", missing, &kept.id]).answer().await;
    assert_eq!(answer.code, Some(1));
    assert_eq!(answer.json(), json!({"removed": [kept.id], "failed": [missing]}));
    assert_eq!(
        answer.stderr(),
        format!("error: remove sandbox: there is no sandbox `{missing}`\n")
    );
    assert_nothing_left(&kept.run).await;
}

#[tokio::test]
async fn a_create_that_fails_leaves_nothing() {
    let _docker = engine_or_skip!();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x"), "x").unwrap();
    let upload = format!("{}:/etc/passwd/x", folder.path().join("x").display());
    let (code, stdout, stderr) = Call::new(&["create", "--image", BUSYBOX, "--upload", &upload])
        .clean_answer()
        .await
        .text();
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.starts_with("error: upload "), "{stderr}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_sandbox_whose_id_can_t_be_told_is_removed() {
    let _docker = engine_or_skip!();
    let mut call = Call::new(&["create", "--image", BUSYBOX]);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    call.command.stdout(full);
    let answer = call.clean_answer().await;
    assert_eq!(answer.code, Some(1));
    assert!(
        answer
            .stderr()
            .contains("the output could not be written\n  caused by: No space left on device"),
        "{:?}",
        answer.text()
    );
}

#[tokio::test]
async fn a_signal_kills_the_command_and_leaves_the_sandbox() {
    let docker = engine_or_skip!();
    let kept = create(&[]).await;
    let mut call = Call::new(&["exec", &kept.id, "--", "sleep", "4861"]);
    let mut child = call.command.spawn().unwrap();
    until("the command runs in the sandbox", async || {
        let container = docker.inspect_container(&kept.id, None).await.ok()?;
        container.exec_ids.filter(|ids| !ids.is_empty())
    })
    .await;
    send(&child, "INT").await;
    assert_eq!(ended(&mut child).await.code(), Some(130));
    assert_eq!(
        exec(&kept.id, &["--shell", "ps | grep -c '[s]leep 4861'"]).await,
        expected(1, "0\n", "")
    );
    remove(&kept).await;
}
