//! `pause`, `resume` and what else is done with a sandbox that is there.

use serde_json::json;

use crate::kept::{create, exec, remove};
use crate::support::{Call, engine_or_skip, expected};

#[tokio::test]
async fn d08_a_paused_sandbox_refuses_commands_until_it_is_resumed() {
    let _docker = engine_or_skip!();
    let kept = create(&[]).await;
    for _ in 0..2 {
        let answer = Call::new(&["pause", &kept.id]).answer().await.text();
        assert_eq!(answer, expected(0, &format!("{}\n", kept.id), ""));
    }
    let (code, stdout, stderr) = exec(&kept.id, &["--", "echo", "never"]).await;
    assert_eq!((code, stdout.as_str()), (Some(125), ""), "{stderr}");
    assert!(stderr.contains("paused"), "{stderr}");
    let answer = Call::new(&["resume", "--json", &kept.id]).answer().await;
    assert_eq!((answer.code, answer.stderr().as_str()), (Some(0), ""));
    assert_eq!(answer.json(), json!({"id": kept.id, "status": "running"}));
    assert_eq!(
        exec(&kept.id, &["--", "echo", "again"]).await,
        expected(0, "again\n", "")
    );
    remove(&kept).await;
    let (code, stdout, stderr) = Call::new(&["pause", &kept.id]).answer().await.text();
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("there is no such sandbox"), "{stderr}");
}

#[tokio::test]
async fn the_log_and_the_use_of_a_sandbox_are_printed() {
    let _docker = engine_or_skip!();
    let kept = create(&[]).await;
    let answer = Call::new(&["logs", &kept.id]).answer().await.text();
    assert_eq!(answer, expected(0, "", ""), "the keepalive prints nothing");
    let answer = Call::new(&["stats", "--json", &kept.id]).answer().await;
    assert_eq!((answer.code, answer.stderr().as_str()), (Some(0), ""));
    let stats = answer.json();
    assert!(stats["pids"].as_u64().unwrap() >= 1, "{stats}");
    assert!(
        stats["cpus_used"].is_number() && stats["memory_bytes"].is_u64(),
        "{stats}"
    );
    let (code, stdout, stderr) = Call::new(&["stats", &kept.id]).answer().await.text();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("CPUS"), "{stdout}");
    remove(&kept).await;
    let (code, _, stderr) = Call::new(&["logs", &kept.id]).answer().await.text();
    assert_eq!(code, Some(1), "{stderr}");
    let answer = Call::new(&["logs", "--since", "yesterday", &kept.id])
        .answer()
        .await;
    assert_eq!(answer.code, Some(2));
}
