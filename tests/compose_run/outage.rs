//! The engine goes away in each phase of a start and of a stop, or its answer is lost: the call ends with a word about
//! it, and nothing is left once the engine is back.

use std::time::Duration;

use bollard::models::ExecConfig;
use bollard::query_parameters::KillContainerOptions;
use gym_sandbox::compose::{AsyncSandboxCompose, PlanOptions, Source, VolumeSource};
use gym_sandbox::{ErrorKind, SandboxProvider};

use crate::common::{cleaned_up, docker};
use crate::proxy::Cut;
use crate::support::{assert_gone, behind_proxy, engine, left_of, story, unique};

/// Tells an answer from a call that hangs.
const BOUNDED: Duration = Duration::from_secs(180);

const YAML: &str = "
services:
  db:
    image: gym-sandbox/busybox:test
    command: sleep 300
    healthcheck: {test: 'test -d /data', interval: 5s}
    volumes: ['data:/data', 'plain:/plain']
  web:
    image: gym-sandbox/busybox:test
    command: sleep 300
    depends_on: {db: {condition: service_healthy}}
    pre_stop: [{command: ['true']}]
volumes: {data: , plain: }
";

/// The requests that phases of a start are known by.
const PHASES: [&str; 9] = [
    "/containers/json",
    "/images/",
    "/volumes/create",
    "/networks/create",
    "-init-",
    "/archive",
    "-db-1",
    "-web-1",
    "/start",
];

fn project(provider: std::sync::Arc<dyn SandboxProvider>) -> (AsyncSandboxCompose, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let seed = folder.path().join("seed");
    std::fs::write(&seed, "seeded").unwrap();
    let mut options = PlanOptions::default();
    options
        .volume_sources
        .insert("data".to_owned(), VolumeSource::new(&seed));
    let project = AsyncSandboxCompose::new(provider)
        .with_source(Source::text("compose.yaml", YAML))
        .with_plan_options(options)
        .with_project_name(unique());
    (project, folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_goes_away_in_any_phase_of_a_start_leaves_nothing_when_it_is_back() {
    let Some(test) = docker().await else { return };
    for phase in PHASES {
        let Some((proxy, provider)) = behind_proxy(&test).await else {
            return;
        };
        let (project, _folder) = project(provider.clone());
        proxy.cut(phase, Cut::GoDown);
        let started = tokio::time::timeout(BOUNDED, project.start()).await;
        let error = started.expect(phase).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{phase}: {}", story(&error));
        proxy.come_up();
        assert_gone(&project.project().unwrap()).await;
        cleaned_up(&provider).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_lost_in_any_phase_of_a_start_leaves_nothing() {
    let Some(test) = docker().await else { return };
    for phase in PHASES {
        let Some((proxy, provider)) = behind_proxy(&test).await else {
            return;
        };
        let (project, _folder) = project(provider.clone());
        proxy.cut(phase, Cut::AfterAnswer);
        let started = tokio::time::timeout(BOUNDED, project.start()).await;
        let name = project.project().unwrap();
        match started.expect(phase) {
            // What only asks is asked again.
            Ok(_) => project.stop().await.unwrap(),
            Err(error) => assert!(
                matches!(error.kind(), ErrorKind::Unavailable),
                "{phase}: {}",
                story(&error)
            ),
        }
        assert_gone(&name).await;
        cleaned_up(&provider).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_goes_away_in_any_phase_of_a_stop_has_it_repeated() {
    let Some(test) = docker().await else { return };
    for phase in ["/json", "/exec", "DELETE /", "/networks/", "/volumes/"] {
        let Some((proxy, provider)) = behind_proxy(&test).await else {
            return;
        };
        let (project, _folder) = project(provider.clone());
        project.start().await.unwrap();
        let name = project.project().unwrap();
        proxy.cut(phase, Cut::GoDown);
        let stopped = tokio::time::timeout(BOUNDED, project.stop()).await;
        let error = stopped.expect(phase).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{phase}: {}", story(&error));
        proxy.come_up();
        // A hook may have had its only run.
        project.stop().await.unwrap();
        assert_eq!(left_of(&name).await, Vec::<String>::new(), "{phase}");
        cleaned_up(&provider).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_while_the_engine_is_away_is_seen_when_it_is_back() {
    let Some(test) = docker().await else { return };
    for ends_well in [true, false] {
        let Some((proxy, provider)) = behind_proxy(&test).await else {
            return;
        };
        let name = unique();
        let yaml = "
services:
  db:
    image: gym-sandbox/busybox:test
    command: [sh, -c, 'until test -f /go; do sleep 0.1; done; touch /ok; exec sleep 300']
    healthcheck: {test: 'test -f /ok', interval: 1s, retries: 600}
  web:
    image: gym-sandbox/busybox:test
    command: sleep 300
    depends_on: {db: {condition: service_healthy}}
";
        let project = AsyncSandboxCompose::new(provider.clone())
            .with_source(Source::text("compose.yaml", yaml))
            .with_project_name(name.as_str());
        let away = async {
            // It is waited for, by probes.
            while proxy.requests("/exec") == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            proxy.go_down();
            let db = format!("{name}-db-1");
            if ends_well {
                let touch = ExecConfig {
                    cmd: Some(vec!["touch".to_owned(), "/go".to_owned()]),
                    ..ExecConfig::default()
                };
                let exec = engine().create_exec(&db, touch).await.unwrap();
                engine().start_exec(&exec.id, None).await.unwrap();
            } else {
                engine()
                    .kill_container(&db, None::<KillContainerOptions>)
                    .await
                    .unwrap();
            }
            proxy.come_up();
        };
        let (started, ()) = tokio::join!(tokio::time::timeout(BOUNDED, project.start()), away);
        match started.expect("it ends") {
            Ok(_) => assert!(ends_well),
            Err(error) => {
                let said = story(&error);
                assert!(!ends_well, "{said}");
                assert!(said.contains("service `db` exited with 137"), "{said}");
            }
        }
        project.stop().await.unwrap();
        assert_eq!(left_of(&name).await, Vec::<String>::new());
        cleaned_up(&provider).await;
    }
}
