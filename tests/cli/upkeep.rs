//! `ps`, `inspect` and `gc`: what there is, whose it is, and what is left of the dead.

use std::collections::HashMap;

use bollard::Docker;
use bollard::models::{ContainerCreateBody, HostConfig, VolumeCreateRequest};
use bollard::query_parameters::{CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder};
use gym_sandbox::docker::{DockerConfig, DockerProvider};
use gym_sandbox::provider::ListProvider;
use gym_sandbox::{SandboxFilter, SandboxProvider, SandboxResources, SandboxSpec};
use serde_json::{Value, json};

use crate::kept::{create, remove};
use crate::support::{BUSYBOX, Call, assert_nothing_left, containers, engine_or_skip, expected, send, until};

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

#[tokio::test(flavor = "multi_thread")]
async fn d27_creates_that_wait_for_memory_are_listed_as_queued() {
    let _docker = engine_or_skip!();
    // More than half of what all may have together: the second one waits.
    let mut config = DockerConfig::default();
    config.admission.memory_fraction = Some(0.01);
    let provider = DockerProvider::connect(config).await.unwrap();
    let memory = provider.diagnose().await.unwrap().memory_bytes.unwrap();
    let mebibytes = (memory / 100 * 6 / 10) >> 20;
    let spec =
        SandboxSpec::new(BUSYBOX).with_resources(SandboxResources::default().with_memory_mib(mebibytes));
    let first = provider.create(&spec).await.unwrap();
    let (waiting, of_second) = (provider.clone(), spec.clone());
    let second = tokio::spawn(async move { waiting.create(&of_second).await });
    let found = provider.list_sandboxes(&SandboxFilter::default()).await.unwrap();
    let run = found
        .into_iter()
        .find(|sandbox| sandbox.sandbox_id == *first.sandbox_id())
        .and_then(|sandbox| sandbox.run)
        .unwrap();
    let queued = until("the second one is queued", async || {
        listed(&run)
            .await
            .into_iter()
            .find(|entry| entry["status"] == "queued")
    })
    .await;
    assert_eq!(
        (
            &queued["position"],
            &queued["memory_bytes"],
            &queued["owner_state"],
            &queued["run"]
        ),
        (&json!(1), &json!(mebibytes << 20), &json!("alive"), &json!(run))
    );
    let text = Call::new(&["ps", "--run", &run]).answer().await.stdout();
    let id = queued["sandbox_id"].as_str().unwrap();
    assert!(
        text.lines()
            .any(|line| line.starts_with(id) && line.contains("queued 1")),
        "{text}"
    );
    provider.close(&first).await.unwrap();
    let second = second.await.unwrap().unwrap();
    assert_eq!(second.sandbox_id().as_str(), id, "the id was fixed before");
    assert!(listed(&run).await.iter().all(|entry| entry["status"] != "queued"));
    provider.close(&second).await.unwrap();
    provider.aclose().await.unwrap();
}

/// Makes a volume as another version of this library makes for its agent.
async fn volume_of_another_version(docker: &Docker, mark: char) -> String {
    let digits = gym_sandbox_agent::FINGERPRINT.len();
    let name = format!("gym-sandbox-agent-{}", mark.to_string().repeat(digits));
    let labels = [("gym-sandbox", "1"), ("gym-sandbox.kind", "shared")];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let request = VolumeCreateRequest {
        name: Some(name.clone()),
        labels: Some(HashMap::from(labels)),
        ..VolumeCreateRequest::default()
    };
    docker.create_volume(request).await.unwrap();
    name
}

#[tokio::test]
async fn d35_shared_volumes_of_other_versions_go_when_asked_for_and_nothing_uses_them() {
    let docker = engine_or_skip!();
    let unused = volume_of_another_version(&docker, 'd').await;
    let used = volume_of_another_version(&docker, 'e').await;
    let name = format!("gym-sandbox-user-{}", uuid::Uuid::new_v4().simple());
    let body = ContainerCreateBody {
        image: Some(BUSYBOX.to_owned()),
        host_config: Some(HostConfig {
            binds: Some(vec![format!("{used}:/.gym-sandbox:ro")]),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let options = CreateContainerOptionsBuilder::new().name(&name).build();
    docker.create_container(Some(options), body).await.unwrap();
    // The run of nobody: only what is shared can go.
    let gc = async |options: &[&str]| {
        let nobody = ["gc", "--json", "--run", &name];
        let answer = Call::new(&[&nobody, options].concat()).answer().await;
        assert_eq!(answer.code, Some(0), "{}", answer.stdout());
        let removed = answer.json()["removed"].as_array().unwrap().clone();
        let names = removed
            .iter()
            .map(|object| object["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<String>>()
    };
    let is_there = async |volume: &str| docker.inspect_volume(volume).await.is_ok();
    assert_eq!(gc(&[]).await, Vec::<String>::new());
    let dry = gc(&["--shared", "--dry-run"]).await;
    assert!(dry.contains(&unused) && !dry.contains(&used), "{dry:?}");
    assert!(is_there(&unused).await);
    let removed = gc(&["--shared"]).await;
    assert!(
        removed.contains(&unused) && !removed.contains(&used),
        "{removed:?}"
    );
    assert!(!is_there(&unused).await && is_there(&used).await);
    let gone = RemoveContainerOptionsBuilder::new().force(true).build();
    docker.remove_container(&name, Some(gone)).await.unwrap();
    assert!(gc(&["--shared"]).await.contains(&used));
    assert!(!is_there(&used).await);
}
