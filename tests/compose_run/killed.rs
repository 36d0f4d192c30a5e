//! kill -9 of the client in each phase of a start: a later sweep removes exactly that project, and another one of the
//! same run loses nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use gym_sandbox::compose::{
    AsyncSandboxCompose, ComposeEvent, PlanOptions, ProgressCallback, ProjectName, ServiceProgress,
    VolumeSource,
};
use gym_sandbox::docker::{DockerConfig, DockerProvider};
use gym_sandbox::provider::SweepProvider;
use gym_sandbox::{SandboxFilter, SecondLook, SweepOptions};

use crate::child::{self, Player};
use crate::common::{docker, long_tests_are_wanted};
use crate::proxy::{Cut, Proxy};
use crate::support::{assert_gone, left_of, unique};

const PROJECT: &str = "GYM_SANDBOX_TEST_PROJECT";
const FOLDER: &str = "GYM_SANDBOX_TEST_FOLDER";
const HOST: &str = "GYM_SANDBOX_TEST_HOST";

/// How long anything may take that is waited for.
const LIMIT: Duration = Duration::from_secs(180);

/// How a client says that it is so far.
enum Sign {
    /// This request has come, and gets no answer. Whether the engine got it is the other.
    Request(&'static str, Cut),
    /// It says so itself.
    Line(&'static str),
}

/// A phase of a start, and the service that is in the way of the next one.
const PHASES: [(&str, Sign, &str); 14] = [
    (
        "building",
        Sign::Request("/build?", Cut::HoldAnswer),
        "build: {context: ., dockerfile: endless}",
    ),
    (
        "a network, before",
        Sign::Request("/networks/create", Cut::Hold),
        "",
    ),
    (
        "a network, after",
        Sign::Request("/networks/create", Cut::HoldAnswer),
        "",
    ),
    (
        "a volume, after",
        Sign::Request("/volumes/create", Cut::HoldAnswer),
        "",
    ),
    ("a helper, after", Sign::Request("-init-", Cut::HoldAnswer), ""),
    ("filling a volume", Sign::Request("/archive", Cut::HoldAnswer), ""),
    ("creating, before", Sign::Request("-db-1", Cut::Hold), ""),
    ("creating, after", Sign::Request("-db-1", Cut::HoldAnswer), ""),
    (
        "creating the second one",
        Sign::Request("-web-1", Cut::HoldAnswer),
        "",
    ),
    ("starting, before", Sign::Request("/start", Cut::Hold), ""),
    ("starting, after", Sign::Request("/start", Cut::HoldAnswer), ""),
    ("a probe", Sign::Request("/exec", Cut::HoldAnswer), ""),
    (
        "waiting for health",
        Sign::Line("waiting"),
        "image: gym-sandbox/busybox:test\n    healthcheck: {test: 'false', interval: 60s, start_period: 600s}",
    ),
    ("up", Sign::Line("up"), ""),
];

/// `db` is in place of its image and its health check.
fn compose_file(db: &str) -> String {
    let db = match db {
        "" => "image: gym-sandbox/busybox:test\n    healthcheck: {test: 'test -d /data', interval: 5s}",
        other => other,
    };
    format!(
        "
services:
  db:
    {db}
    command: sleep 7200
    volumes: ['data:/data', 'more:/more']
  web:
    image: gym-sandbox/busybox:test
    command: sleep 7200
    depends_on: {{db: {{condition: service_healthy}}}}
    networks: [default, other]
networks: {{other: }}
volumes: {{data: , more: }}
"
    )
}

/// A folder with the files of a project.
fn folder(db: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("compose.yaml", &compose_file(db));
    write("endless", "FROM gym-sandbox/busybox:test\nRUN sleep 600\n");
    write("seed", "seeded");
    folder
}

/// This program, run again to start a project and hold it.
fn start_client(run: &str, project: &str, folder: &Path, host: Option<&str>) -> Player {
    let mut command = child::command("killed::child");
    command
        .env("GYM_SANDBOX_RUN", run)
        .env(PROJECT, project)
        .env(FOLDER, folder)
        .env(HOST, host.unwrap_or_default());
    Player::start(command)
}

/// What the tests run as a client; a test that does nothing by itself.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    let Ok(name) = std::env::var(PROJECT) else { return };
    let folder = std::env::var(FOLDER).unwrap();
    let mut config = DockerConfig::default();
    config.host = std::env::var(HOST).ok().filter(|host| !host.is_empty());
    let provider = std::sync::Arc::new(DockerProvider::connect(config).await.unwrap());
    let mut options = PlanOptions::default();
    options.volume_sources.insert(
        "data".to_owned(),
        VolumeSource::new(Path::new(&folder).join("seed")),
    );
    let project = AsyncSandboxCompose::new(provider)
        .with_compose_file(Path::new(&folder).join("compose.yaml"))
        .with_project_name(ProjectName::Given(name))
        .with_plan_options(options)
        .with_progress(ProgressCallback::new(|event| {
            if matches!(event, ComposeEvent::Service { service, progress: ServiceProgress::Started } if service == "db") {
                println!("client-waiting");
            }
        }));
    project.start().await.unwrap();
    println!("client-up");
    // This thread has nothing else to do: the lease is renewed on others.
    for line in std::io::stdin().lines() {
        if line.unwrap() == "end" {
            project.stop().await.unwrap();
            return;
        }
        let read = project
            .service("db")
            .unwrap()
            .exec("cat /data/seed")
            .await
            .unwrap();
        println!("client-read {}", read.stdout().unwrap_or_default());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_d17_a_client_killed_in_any_phase_of_a_start_is_swept_and_another_project_loses_nothing() {
    let Some(test) = docker().await else { return };
    if Proxy::start().await.is_none() {
        eprintln!("skipped: the engine has no local socket");
        return;
    }
    let run = unique();
    let (live_name, live_folder) = (unique(), folder(""));
    let mut live = start_client(&run, &live_name, live_folder.path(), None);
    live.says("up").await;
    let before = all_of(&live_name).await;
    let rounds = if long_tests_are_wanted() { 4 } else { 1 };
    let (mut swept, mut names) = (0, Vec::new());
    for (phase, sign, db) in PHASES.iter().cycle().take(PHASES.len() * rounds) {
        let proxy = Proxy::start().await.unwrap();
        let (name, folder) = (unique(), folder(db));
        if let Sign::Request(part, cut) = sign {
            proxy.cut(part, *cut);
        }
        let mut client = start_client(&run, &name, folder.path(), Some(&proxy.address()));
        match sign {
            Sign::Request(part, _) => {
                let deadline = Instant::now() + LIMIT;
                while proxy.requests(part) == 0 {
                    assert!(
                        Instant::now() < deadline,
                        "{phase}: no request with `{part}` came"
                    );
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            Sign::Line(word) => drop(client.says(word).await),
        }
        client.kill().await;
        // Its connections end with it.
        drop(proxy);
        let deadline = Instant::now() + LIMIT;
        loop {
            // What the engine was still at comes after a sweep that was too early.
            swept += sweep(&test, &run, &live_name).await;
            let left = left_of(&name).await;
            if left.is_empty() {
                break;
            }
            assert!(Instant::now() < deadline, "{phase}: left of `{name}`: {left:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(all_of(&live_name).await, before, "{phase}");
        live.tell("read").await;
        assert_eq!(live.says("read").await, "seeded", "{phase}");
        names.push(name);
    }
    for name in &names {
        assert_eq!(
            left_of(name).await,
            Vec::<String>::new(),
            "it came after the sweep"
        );
    }
    assert!(swept >= PHASES.len() * 2, "the rounds left {swept} things only");
    live.tell("end").await;
    assert!(live.ended().await.success());
    assert_gone(&live_name).await;
    sweep(&test, &run, &live_name).await;
    let left = crate::common::containers_with("gym-sandbox.run", &run)
        .await
        .unwrap();
    assert_eq!(left, Vec::<String>::new());
}

/// What the engine has of a project, in an order of its own.
async fn all_of(project: &str) -> Vec<String> {
    let mut all = left_of(project).await;
    all.sort();
    all
}

/// Sweeps what belongs to this test, and says how much that was: others use the engine, too.
async fn sweep(test: &crate::common::DockerTest, run: &str, live: &str) -> usize {
    let options = SweepOptions::default()
        .with_second_look(SecondLook::Never)
        .with_filter(SandboxFilter::default().with_run(run));
    let report = test.provider.sweep(&options).await.unwrap();
    // A container that the engine is still making has its volumes, and a busy engine lets go of the endpoints of one that
    // is gone a moment later: these are for the next sweep.
    let is_in_use = |object: &gym_sandbox::SweptObject| {
        object.why.contains("in use") || object.why.contains("has active endpoints")
    };
    assert!(report.failed.iter().all(is_in_use), "{report:?}");
    assert!(
        report.removed.iter().all(|object| !object.name.contains(live)),
        "{report:?}"
    );
    report.removed.len()
}
