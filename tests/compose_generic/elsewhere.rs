//! A running project in the hands of another process (contract 4.8): one that uses it and goes away, one that stops it,
//! and one that keeps it when its creator was killed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gym_sandbox::compose::{AsyncSandboxCompose, ComposeDescriptor, Source};
use gym_sandbox::docker::DockerProvider;
use gym_sandbox::provider::{ContainersProvider, SweepProvider};
use gym_sandbox::{SandboxFilter, SandboxProvider, SecondLook, SweepOptions};
use serde_json::json;

use crate::child::{self, Player};
use crate::common::{DockerTest, TEST_LABEL, config, containers_with, docker};
use crate::plain::Plain;

/// What a child is told: its part, the provider's way, the label of the test that removes what it leaves, and what it
/// works with.
const PART: &str = "GYM_SANDBOX_TEST_PART";
const WAY: &str = "GYM_SANDBOX_TEST_WAY";
const LABEL: &str = "GYM_SANDBOX_TEST_LABEL";
const GIVEN: &str = "GYM_SANDBOX_TEST_GIVEN";

/// How long anything may take that is waited for.
const LIMIT: Duration = Duration::from_secs(180);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Native,
    /// Without containers.
    Plain,
}

fn over(way: Way, provider: &Arc<DockerProvider>) -> Arc<dyn SandboxProvider> {
    let provider = Arc::clone(provider) as Arc<dyn SandboxProvider>;
    match way {
        Way::Native => provider,
        Way::Plain => Plain::new(provider),
    }
}

fn project(way: Way, provider: &Arc<DockerProvider>, name: &str) -> AsyncSandboxCompose {
    let yaml = "
services:
  db: {image: BUSYBOX, command: [sh, -c, 'echo $$TOKEN >/tmp/token; exec sleep 600'], environment: {TOKEN: hunter2}, healthcheck: {test: 'test -s /tmp/token', interval: 1s, retries: 300}}
  web: {image: BUSYBOX, command: sleep 600, working_dir: /work, depends_on: [db], ports: ['8080']}
";
    AsyncSandboxCompose::new(over(way, provider))
        .with_source(Source::text(
            "compose.yaml",
            yaml.replace("BUSYBOX", crate::common::BUSYBOX),
        ))
        .with_project_name(name)
}

fn player(part: &str, way: Way, test: &DockerTest, run: &str, given: &str) -> Player {
    let mut command = child::command("elsewhere::other_process");
    command
        .env(PART, part)
        .env(WAY, format!("{way:?}"))
        .env(LABEL, test.label())
        .env("GYM_SANDBOX_RUN", run)
        .env(GIVEN, given);
    Player::start(command)
}

/// What the tests run as another process; a test that does nothing by itself.
#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::print_stdout, reason = "it is what the parent reads")]
async fn other_process() {
    let Ok(part) = std::env::var(PART) else { return };
    let variable = |name| std::env::var(name).unwrap();
    let mut config = config();
    config
        .default_metadata
        .insert(TEST_LABEL.to_owned(), variable(LABEL));
    let provider = Arc::new(DockerProvider::connect(config).await.unwrap());
    let way = match variable(WAY).as_str() {
        "Native" => Way::Native,
        "Plain" => Way::Plain,
        other => panic!("{other}"),
    };
    if part == "starts" {
        let project = project(way, &provider, &variable(GIVEN));
        project.start().await.unwrap();
        println!(
            "client-descriptor {}",
            project.serialize(None).await.unwrap().to_value()
        );
        // Until it is killed.
        std::future::pending::<()>().await;
    }
    let descriptor = ComposeDescriptor::from_value(serde_json::from_str(&variable(GIVEN)).unwrap()).unwrap();
    let connected = AsyncSandboxCompose::connect(over(way, &provider), &descriptor)
        .await
        .unwrap();
    println!("client-seen {}", seen(&connected).await);
    assert_eq!(connected.serialize(None).await.unwrap(), descriptor);
    if part == "stops" {
        connected.stop().await.unwrap();
    }
    drop(connected);
    provider.aclose().await.unwrap();
}

/// What there is to see of a project from anywhere: a variable that no descriptor holds, a working directory, an address.
async fn seen(project: &AsyncSandboxCompose) -> serde_json::Value {
    let said = async |service: &str, line: &str| {
        let result = project.service(service).unwrap().exec(line).await.unwrap();
        result.stdout().unwrap_or_default()
    };
    let endpoint = project.service("web").unwrap().endpoint(8080).await.unwrap();
    json!([
        said("db", "cat /tmp/token; echo $TOKEN").await,
        said("web", "pwd").await,
        endpoint.endpoint()
    ])
}

async fn used_and_stopped(way: Way) {
    let Some(test) = docker().await else { return };
    let name = format!("t-{}", uuid::Uuid::new_v4().simple());
    let project = project(way, &test.provider, &name);
    project.start().await.unwrap();
    let descriptor = project.serialize(None).await.unwrap().to_value().to_string();
    assert!(!descriptor.contains("hunter2"), "{descriptor}");
    let expected = seen(&project).await;
    assert_eq!(expected[0], "hunter2\nhunter2\n");
    for part in ["uses", "stops"] {
        // Each was used by a process that has ended.
        assert_eq!(seen(&project).await, expected, "before it {part} it");
        let mut other = player(part, way, &test, &name, &descriptor);
        let said: serde_json::Value = serde_json::from_str(&other.says("seen").await).unwrap();
        assert_eq!(said, expected, "the process that {part} it");
        assert!(other.ended().await.success(), "the process that {part} it");
    }
    assert_eq!(test.containers().await, Vec::<String>::new(), "it was stopped");
    // The rest is its creator's.
    project.stop().await.unwrap();
    let network = format!("{name}_default");
    assert_eq!(test.provider.find_networks(&network).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn m9_another_process_uses_a_native_project_and_one_stops_it() {
    used_and_stopped(Way::Native).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn m9_another_process_uses_a_project_without_containers_and_one_stops_it() {
    used_and_stopped(Way::Plain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn m9_d23_a_project_whose_creator_was_killed_is_kept_by_who_has_connected() {
    let Some(test) = docker().await else { return };
    let name = format!("t-{}", uuid::Uuid::new_v4().simple());
    let mut creator = player("starts", Way::Native, &test, &name, &name);
    let descriptor = serde_json::from_str(&creator.says("descriptor").await).unwrap();
    let descriptor = ComposeDescriptor::from_value(descriptor).unwrap();
    let connected = AsyncSandboxCompose::connect(over(Way::Native, &test.provider), &descriptor)
        .await
        .unwrap();
    creator.kill().await;
    let sweep = async || {
        let options = SweepOptions::default()
            .with_second_look(SecondLook::Never)
            .with_filter(SandboxFilter::default().with_run(name.as_str()));
        test.provider.sweep(&options).await.unwrap()
    };
    // Its creator is seen dead, and somebody has it.
    let report = sweep().await;
    assert!(
        !report.removed.iter().any(|object| object.name.contains("-1")),
        "{report:?}"
    );
    assert_eq!(seen(&connected).await[0], "hunter2\nhunter2\n");
    connected.stop().await.unwrap();
    assert_eq!(test.containers().await, Vec::<String>::new());
    // Networks have no other owner than their creator.
    let deadline = Instant::now() + LIMIT;
    while !test
        .provider
        .find_networks(&format!("{name}_default"))
        .await
        .unwrap()
        .is_empty()
    {
        assert!(Instant::now() < deadline, "a sweep takes its network");
        sweep().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(
        containers_with("gym-sandbox.run", &name).await.unwrap(),
        Vec::<String>::new()
    );
}
