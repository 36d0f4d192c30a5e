//! The cases on a real engine whose containers are hidden, and on wrappers with a fault, on which they must fail.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gym_sandbox::compose::VolumeSource;
use gym_sandbox::docker::DockerConfig;
use gym_sandbox::{ErrorKind, FileOwner, SandboxProvider, SandboxReason};

use crate::cases::{self, Outcome, project, told};
use crate::common::{DockerTest, config, docker, docker_with};
use crate::plain::{Fault, Plain};

fn plain(test: &DockerTest, fault: Fault, spawns: bool) -> Arc<Plain> {
    Plain::with(
        Arc::clone(&test.provider) as Arc<dyn SandboxProvider>,
        fault,
        spawns,
    )
}

fn right(test: &DockerTest) -> Arc<Plain> {
    plain(test, Fault::None, true)
}

/// A provider with a folder of this machine as its storage.
async fn with_storage() -> Option<(DockerTest, tempfile::TempDir)> {
    let folder = tempfile::tempdir().unwrap();
    let mut config: DockerConfig = config();
    config.shared_storage.host_path = Some(folder.path().to_str().unwrap().to_owned());
    Some((docker_with(config).await?, folder))
}

#[track_caller]
fn passes(outcome: Outcome) {
    if let Err(problem) = outcome {
        panic!("{problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn m6_services_find_each_other_and_run_beside_what_keeps_them_alive() {
    let Some(test) = docker().await else { return };
    passes(cases::names(right(&test)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn m5_m6_the_program_is_run_as_the_file_says() {
    let Some(test) = docker().await else { return };
    for spawns in [true, false] {
        passes(cases::program(plain(&test, Fault::None, spawns)).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn m7_who_has_to_end_first_is_waited_for_and_a_failure_is_told_with_its_output() {
    let Some(test) = docker().await else { return };
    passes(cases::one_shots(right(&test)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn m6_m7_what_ends_a_start_is_told_and_leaves_nothing() {
    let Some(test) = docker().await else { return };
    passes(cases::failures(right(&test)).await);
    assert_eq!(test.containers().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn m6_a_relay_stands_in_for_the_network_of_another_service() {
    let Some(test) = docker().await else { return };
    passes(cases::relays(right(&test)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn m8_volumes_are_made_filled_shared_and_removed() {
    let Some((test, folder)) = with_storage().await else {
        return;
    };
    passes(cases::volumes(right(&test), folder.path()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn m5_m10_hooks_run_as_the_service_and_only_beside_its_program() {
    let Some((test, folder)) = with_storage().await else {
        return;
    };
    passes(cases::hooks(right(&test), folder.path()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn m10_a_stop_ends_programs_and_removes_sandboxes_in_reverse() {
    let Some(test) = docker().await else { return };
    passes(cases::stops(right(&test)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn m6_runtime_requirements_are_there_before_the_program_is() {
    let Some(test) = docker().await else { return };
    let yaml = "
services:
  a:
    image: BUSYBOX
    command: [sh, -c, 'df -k /dev/shm | tail -n1 >/tmp/shm; exec sleep 600']
    shm_size: 16m
    healthcheck: {test: 'grep -q 16384 /tmp/shm', interval: 1s, retries: 300}
";
    let project = project(&right(&test), yaml);
    project.start().await.unwrap();
    project.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn m10_a_start_that_is_dropped_at_any_point_leaves_nothing() {
    let Some((test, folder)) = with_storage().await else {
        return;
    };
    let yaml = "
services:
  a: {image: BUSYBOX, command: sleep 600, volumes: ['data:/data']}
  b: {image: BUSYBOX, command: sleep 600, depends_on: [a], healthcheck: {test: 'false', interval: 60s, start_period: 600s}}
volumes: {data: }
";
    for milliseconds in [0, 50, 200, 500, 1000, 2000, 4000] {
        let provider = right(&test);
        let project = project(&provider, yaml);
        let started = tokio::time::timeout(Duration::from_millis(milliseconds), project.start()).await;
        assert!(started.is_err(), "{milliseconds}: it never gets healthy");
        project.stop().await.unwrap();
        let deadline = Instant::now() + Duration::from_secs(180);
        loop {
            let left = test.containers().await;
            let folders = std::fs::read_dir(folder.path()).unwrap().count();
            if left.is_empty() && folders == 0 {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "{milliseconds}: {left:?}, {folders} folders"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn m8_what_fills_a_volume_and_is_killed_is_told_with_volume_and_service_and_leaves_nothing() {
    let Some((test, folder)) = with_storage().await else {
        return;
    };
    let yaml = "
services:
  web: {image: BUSYBOX, command: sleep 600, volumes: ['data:/etc', 'own:/own']}
  db: {image: BUSYBOX, command: sleep 600, volumes: ['more:/etc']}
volumes: {data: , own: , more: }
";
    let all = ["volume `data` of service `web`", "volume `more` of service `db`"];
    for (word, told) in [
        ("mkdir", &all[..]),
        ("chown", &["volume `own` of service `web`"]),
        ("/tmp/compose-seed", &["volume `more` of service `db`"]),
    ] {
        let provider = plain(&test, Fault::KillsAt(word), true);
        let project =
            project(&provider, yaml).with_volume_source("own", VolumeSource::owned_by(FileOwner::new(7, 8)));
        let error = project.start().await.unwrap_err();
        let (kind, story) = (error.kind(), error.report().to_string());
        assert_eq!(
            kind,
            ErrorKind::Sandbox(SandboxReason::Removed),
            "{word}: {story}"
        );
        for part in told {
            assert!(story.contains(part), "{word}: {story}");
        }
        assert!(error.cleanup_errors().is_empty(), "{word}: {story}");
        assert_eq!(test.containers().await, Vec::<String>::new(), "{word}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{word}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn m8_a_folder_that_is_there_already_is_somebody_elses() {
    let Some((test, folder)) = with_storage().await else {
        return;
    };
    std::fs::create_dir_all(folder.path().join("taken/data")).unwrap();
    let yaml = "
services: {a: {image: BUSYBOX, command: sleep 600, volumes: ['data:/data']}}
volumes: {data: }
";
    let project = project(&right(&test), yaml).with_project_name("taken");
    let error = project.start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{}", told(error));
    assert!(folder.path().join("taken/data").is_dir());
}

/// The faults, each with a case that must find it.
#[tokio::test(flavor = "multi_thread")]
async fn the_cases_fail_on_a_provider_with_a_fault() {
    let Some(test) = docker().await else { return };
    let on = |fault| plain(&test, fault, false);
    for (fault, outcome) in [
        (
            Fault::ForgetsNames,
            quick(cases::names(on(Fault::ForgetsNames))).await,
        ),
        (
            Fault::LosesVariables,
            quick(cases::names(on(Fault::LosesVariables))).await,
        ),
        (
            Fault::LosesTheUser,
            quick(cases::program(on(Fault::LosesTheUser))).await,
        ),
        (
            Fault::LosesTheExitCode,
            quick(cases::one_shots(on(Fault::LosesTheExitCode))).await,
        ),
        (
            Fault::RelaysNothing,
            quick(cases::relays(on(Fault::RelaysNothing))).await,
        ),
        (
            Fault::KeepsSandboxes,
            quick(cases::stops(on(Fault::KeepsSandboxes))).await,
        ),
    ] {
        assert!(outcome.is_err(), "{fault:?} was not found");
    }
    drop(test);
    let Some((test, folder)) = with_storage().await else {
        return;
    };
    let provider = plain(&test, Fault::SharesForWriting, false);
    let outcome = quick(cases::volumes(provider, folder.path())).await;
    assert!(outcome.is_err(), "SharesForWriting was not found");
    let provider = plain(&test, Fault::LosesTheUser, false);
    let outcome = quick(cases::hooks(provider, folder.path())).await;
    assert!(outcome.is_err(), "LosesTheUser was not found with hooks");
}

/// What a fault keeps from ending has failed, too; what it had started is removed in the background.
async fn quick(case: impl Future<Output = Outcome>) -> Outcome {
    tokio::time::timeout(Duration::from_secs(40), case)
        .await
        .unwrap_or_else(|_| Err("it did not end".to_owned()))
}
