//! Running projects in other hands (contract 4.8, D23): on the engine's own containers and without them, and in memory.

use std::sync::Arc;
use std::time::Duration;

use gym_sandbox::compose::{AsyncSandboxCompose, ComposeDescriptor, Source};
use gym_sandbox::testing::MemoryProvider;
use gym_sandbox::{ConnectOptions, ErrorKind, Operation, SandboxProvider};
use serde_json::json;

use crate::common::{DockerTest, docker};
use crate::plain::Plain;

const SECRET: &str = "hunter2";

const TWO: &str = "
services:
  db: {image: BUSYBOX, command: [sh, -c, 'echo $$TOKEN >/tmp/token; exec sleep 600'], environment: {TOKEN: hunter2}, healthcheck: {test: 'test -s /tmp/token', interval: 1s, retries: 300}}
  web: {image: BUSYBOX, command: sleep 600, working_dir: /work, depends_on: [db], ports: ['8080']}
";

fn native(test: &DockerTest) -> Arc<dyn SandboxProvider> {
    Arc::clone(&test.provider) as Arc<dyn SandboxProvider>
}

fn project(provider: Arc<dyn SandboxProvider>, yaml: &str) -> AsyncSandboxCompose {
    let yaml = yaml.replace("BUSYBOX", crate::common::BUSYBOX);
    AsyncSandboxCompose::new(provider).with_source(Source::text("compose.yaml", yaml))
}

/// Hands a project over as text, uses it, and lets the other side stop it.
async fn handed_over(provider: Arc<dyn SandboxProvider>, other: Arc<dyn SandboxProvider>) {
    let project = project(provider, TWO);
    assert_eq!(
        project.serialize(None).await.unwrap_err().kind(),
        ErrorKind::NotStarted
    );
    project.start().await.unwrap();
    let text = serde_json::to_string(&project.serialize(None).await.unwrap()).unwrap();
    assert!(!text.contains(SECRET), "{text}");
    let descriptor = ComposeDescriptor::from_value(serde_json::from_str(&text).unwrap()).unwrap();
    let names: Vec<&str> = descriptor.services().map(|(name, _)| name).collect();
    assert_eq!(names, ["db", "web"]);

    let connected = AsyncSandboxCompose::connect(Arc::clone(&other), &descriptor)
        .await
        .unwrap();
    assert_eq!(
        connected.start().await.unwrap_err().kind(),
        ErrorKind::AlreadyStarted
    );
    let seen = connected
        .service("db")
        .unwrap()
        .exec("cat /tmp/token")
        .await
        .unwrap();
    assert_eq!(seen.stdout().as_deref(), Some("hunter2\n"), "{seen:?}");
    let web = connected.service("web").unwrap();
    assert_eq!(
        web.exec("pwd").await.unwrap().stdout().as_deref(),
        Some("/work\n")
    );
    assert_eq!(
        web.endpoint(8080).await.unwrap(),
        project.service("web").unwrap().endpoint(8080).await.unwrap()
    );
    assert_eq!(connected.serialize(None).await.unwrap(), descriptor);
    drop(web);
    // Who only goes away leaves it as it is.
    drop(connected);
    assert!(
        project
            .service("db")
            .unwrap()
            .exec("true")
            .await
            .unwrap()
            .is_success()
    );

    let connected = AsyncSandboxCompose::connect(other, &descriptor).await.unwrap();
    connected.stop().await.unwrap();
    connected.stop().await.unwrap();
    assert_eq!(
        connected.serialize(None).await.unwrap_err().kind(),
        ErrorKind::Stopped
    );
    assert!(
        !project
            .service("db")
            .unwrap()
            .exec("true")
            .await
            .unwrap()
            .is_success()
    );
    // The rest is its creator's.
    project.stop().await.unwrap();
    assert_eq!(
        project.serialize(None).await.unwrap_err().kind(),
        ErrorKind::Stopped
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn m9_d23_a_native_project_is_used_and_stopped_by_others() {
    let Some(test) = docker().await else { return };
    handed_over(native(&test), native(&test)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn m9_d23_a_project_without_containers_is_used_and_stopped_by_others() {
    let Some(test) = docker().await else { return };
    let plain = || Plain::new(native(&test)) as Arc<dyn SandboxProvider>;
    handed_over(plain(), plain()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn m9_copies_and_what_has_ended_are_handed_over_too() {
    let Some(test) = docker().await else { return };
    let yaml = "
services:
  once: {image: BUSYBOX, command: [sh, -c, 'echo kept >/result']}
  many: {image: BUSYBOX, command: sleep 600, scale: 2, depends_on: {once: {condition: service_completed_successfully}}}
";
    let project = project(native(&test), yaml);
    project.start().await.unwrap();
    let descriptor = project.serialize(None).await.unwrap();
    let names: Vec<&str> = descriptor.services().map(|(name, _)| name).collect();
    assert_eq!(names, ["once", "many", "many#2"]);
    let connected = AsyncSandboxCompose::connect(native(&test), &descriptor)
        .await
        .unwrap();
    let result = connected
        .service("once")
        .unwrap()
        .read_file("/result")
        .await
        .unwrap();
    assert_eq!(&result[..], b"kept\n");
    let id = |number| connected.replica("many", number).unwrap().sandbox_id().unwrap();
    assert_ne!(id(1), id(2));
    connected.stop().await.unwrap();
    project.stop().await.unwrap();
}

fn memory() -> Arc<MemoryProvider> {
    let provider = MemoryProvider::new();
    provider.run_endlessly("sleep 600");
    // No program has ended.
    provider.answer_with(|seen| {
        seen.text()
            .ends_with("/exit")
            .then(|| MemoryProvider::printed(1, "", ""))
    });
    provider.answer("sh ", MemoryProvider::printed(0, "", ""));
    provider
}

const THREE: &str = "
services:
  a: {image: i, command: sleep 600}
  b: {image: i, command: sleep 600, depends_on: [a]}
  c: {image: i, command: sleep 600, depends_on: [b]}
";

#[tokio::test]
async fn m9_a_partial_or_dropped_attach_destroys_nothing_and_closes_what_it_owns() {
    let memory = memory();
    let project = project(Arc::clone(&memory) as Arc<dyn SandboxProvider>, THREE);
    project.start().await.unwrap();
    let descriptor = project.serialize(Some(&json!("for you"))).await.unwrap();
    let options = ConnectOptions::new().with_owned_provider();
    let over = || Plain::new(Arc::clone(&memory) as Arc<dyn SandboxProvider>);

    // One of them is gone.
    let mut wrong = descriptor.to_value();
    wrong["services"]["c"]["sandbox_id"] = json!("gone");
    let wrong = ComposeDescriptor::from_value(wrong).unwrap();
    let plain = over();
    let shared = Arc::clone(&plain) as Arc<dyn SandboxProvider>;
    let error = AsyncSandboxCompose::connect_with(shared, &wrong, &options)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{}", error.report());
    assert!(error.report().to_string().contains("`c`"), "{}", error.report());
    assert_eq!(plain.notes(), ["aclose"], "closed once, and nothing was removed");

    // One of them never answers.
    let plain = over();
    memory.hang_next(Operation::Attach);
    let shared = Arc::clone(&plain) as Arc<dyn SandboxProvider>;
    let attach = AsyncSandboxCompose::connect_with(shared, &descriptor, &options);
    assert!(
        tokio::time::timeout(Duration::from_millis(50), attach)
            .await
            .is_err()
    );
    assert_eq!(plain.notes(), Vec::<String>::new());
    assert_eq!(memory.living(), 3);

    // A connected stop removes the last one first, and closes what it owns once.
    let plain = over();
    let shared = Arc::clone(&plain) as Arc<dyn SandboxProvider>;
    let connected = AsyncSandboxCompose::connect_with(shared, &descriptor, &options)
        .await
        .unwrap();
    connected.stop().await.unwrap();
    assert_eq!(
        plain.notes(),
        ["close memory-3", "close memory-2", "close memory-1", "aclose"]
    );
    project.stop().await.unwrap();
}

#[tokio::test]
async fn m9_a_project_that_is_not_ready_or_a_provider_that_cannot_is_no_descriptor() {
    let memory = memory();
    let project = Arc::new(project(Arc::clone(&memory) as Arc<dyn SandboxProvider>, THREE));
    memory.hang_next(Operation::Create);
    let starting = Arc::clone(&project);
    let start = tokio::spawn(async move { starting.start().await.map(drop) });
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while memory.living() < 2 {
        assert!(tokio::time::Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(
        project.serialize(None).await.unwrap_err().kind(),
        ErrorKind::NotStarted
    );
    start.abort();
    let _aborted = start.await;
    project.stop().await.unwrap();
    assert_eq!(
        project.serialize(None).await.unwrap_err().kind(),
        ErrorKind::Stopped
    );
    assert_eq!(memory.living(), 0);

    let local = gym_sandbox::provider::create_provider(&json!({"local": {"shell": "/bin/sh"}})).unwrap();
    let on_local = AsyncSandboxCompose::new(Arc::clone(&local));
    assert_eq!(
        on_local.serialize(None).await.unwrap_err().kind(),
        ErrorKind::Unsupported
    );
    let descriptor = ComposeDescriptor::from_value(json!({"services": {"a": {"sandbox_id": "x"}}})).unwrap();
    let error = AsyncSandboxCompose::connect(local, &descriptor)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{}", error.report());
}
