//! `ps`, `inspect` and `gc`: what there is, whose it is, and what is left of the dead.

use serde_json::{Value, json};

use crate::kept::{create, remove};
use crate::support::{Call, assert_nothing_left, containers, engine_or_skip, expected, send, until};

async fn listed(run: &str) -> Vec<Value> {
    let answer = Call::new(&["ps", "--json", "--run", run]).answer().await;
    assert_eq!(answer.code, Some(0));
    answer.json().as_array().unwrap().clone()
}

#[tokio::test]
async fn a_created_sandbox_is_listed_as_kept_and_described() {
    let _docker = engine_or_skip!();
    let kept = create(&["--env", "SECRET=hidden-value"]).await;
    let sandboxes = listed(&kept.run).await;
    assert_eq!(sandboxes.len(), 1, "{sandboxes:?}");
    let sandbox = &sandboxes[0];
    assert_eq!(
        (
            &sandbox["sandbox_id"],
            &sandbox["owner_state"],
            &sandbox["status"],
            &sandbox["run"]
        ),
        (
            &json!(kept.id),
            &json!("kept"),
            &json!("running"),
            &json!(kept.run)
        )
    );
    let (code, text, stderr) = Call::new(&["ps", "--run", &kept.run]).answer().await.text();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(
        lines[0].starts_with("ID ") && lines[1].starts_with(&kept.id),
        "{text}"
    );
    assert!(lines[1].contains(" kept"), "{text}");

    let detail = Call::new(&["inspect", &kept.id]).answer().await;
    assert_eq!(detail.code, Some(0));
    assert_eq!(detail.json()["sandbox_id"], json!(kept.id));
    assert_eq!(detail.json()["labels"]["gym-sandbox.kept"], json!("1"));
    assert!(!detail.stdout().contains("hidden-value"), "{}", detail.stdout());

    // Its process is long gone, and no sweep takes it.
    let swept = Call::new(&["gc", "--run", &kept.run]).answer().await.text();
    assert_eq!(swept, expected(0, "", ""));
    assert_eq!(listed(&kept.run).await.len(), 1);
    remove(&kept).await;
    let (code, stdout, stderr) = Call::new(&["inspect", &kept.id]).answer().await.text();
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("there is no such sandbox"), "{stderr}");
}

#[tokio::test]
async fn what_a_killed_run_leaves_is_named_and_removed() {
    let docker = engine_or_skip!();
    let mut call = Call::run(&["--", "sleep", "300"]);
    let mut child = call.command.spawn().unwrap();
    until("the container is made", async || {
        containers(&docker, &call.run).await.pop()
    })
    .await;
    // A live one's is not touched.
    let of_the_living = Call::new(&["gc", "--run", &call.run]).answer().await.text();
    assert_eq!(of_the_living, expected(0, "", ""));
    send(&child, "KILL").await;
    child.wait().await.unwrap();
    // What the engine was still at has appeared by then.
    let sandboxes = until("the sandbox is that of a dead owner", async || {
        let sandboxes = listed(&call.run).await;
        (sandboxes.len() == 1 && sandboxes[0]["owner_state"] == "dead").then_some(sandboxes)
    })
    .await;
    let id = sandboxes[0]["sandbox_id"].as_str().unwrap().to_owned();
    let line = format!("container {id} (its process has ended)\n");
    let dry = Call::new(&["gc", "--dry-run", "--run", &call.run]).answer().await;
    assert_eq!(dry.code, Some(0));
    assert!(dry.stdout().contains(&line), "{}", dry.stdout());
    assert_eq!(listed(&call.run).await.len(), 1, "a dry run removes nothing");
    let swept = Call::new(&["gc", "--json", "--run", &call.run]).answer().await;
    assert_eq!(swept.code, Some(0));
    let removed = swept.json()["removed"].as_array().unwrap().clone();
    let container = json!({
        "kind": "container",
        "name": id,
        "owner": sandboxes[0]["owner"],
        "why": "its process has ended",
    });
    assert!(removed.contains(&container), "{removed:?}");
    assert_eq!(swept.json()["failed"], json!([]));
    assert_nothing_left(&call.run).await;
}
