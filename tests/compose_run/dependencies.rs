//! Waiting for other services, and what becomes of those that fail.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gym_sandbox::ErrorKind;
use gym_sandbox::compose::{ComposeEvent, ProgressCallback, ServiceProgress};

use crate::common::docker;
use crate::support::{
    assert_gone, beside, engine, left_of, main_process, out_of_time, printed, project, story, unique,
};

/// Tells "at once" on a loaded machine from the time that a start may take, or that a check takes to give up.
const SOON: Duration = Duration::from_secs(240);

fn chain(first: &str, first_more: &str, condition_more: &str) -> String {
    format!(
        "
services:
  s1: {{image: 'gym-sandbox/busybox:test', command: {first}{first_more}}}
  s2:
    image: gym-sandbox/busybox:test
    command: 'true'
    depends_on: {{s1: {{condition: service_completed_successfully{condition_more}}}}}
  s3:
    image: gym-sandbox/busybox:test
    command: sleep 300
    depends_on: {{s2: {{condition: service_completed_successfully}}}}
"
    )
}

#[tokio::test]
async fn b38_a_one_shot_that_fails_ends_the_start_with_its_name_code_and_output() {
    let Some(test) = docker().await else { return };
    let project = project(&test, &chain("[sh, -c, 'echo boom >&2; exit 3']", "", ""));
    let began = Instant::now();
    let error = project.start().await.unwrap_err();
    assert!(began.elapsed() < SOON);
    assert_eq!(error.kind(), ErrorKind::NotReady);
    let story = story(&error);
    for part in ["`s1`", "exited with 3", "boom"] {
        assert!(story.contains(part), "{part}: {story}");
    }
    assert!(error.cleanup_errors().is_empty(), "{story}");
    assert_eq!(left_of(&project.project().unwrap()).await, Vec::<String>::new());
    assert_eq!(project.start().await.unwrap_err().kind(), ErrorKind::Stopped);
}

#[tokio::test]
async fn b38_d22_a_chain_of_one_shots_runs_in_order_and_their_files_stay_readable() {
    let Some(test) = docker().await else { return };
    let project = project(&test, &chain("[sh, -c, 'sleep 0.5; echo done >/result']", "", ""));
    project.start().await.unwrap();
    assert_eq!(main_process(&project, "s3", "sleep").await, "sleep");
    // It has ended, and is no failure; what it wrote can be had.
    let file = project.service("s1").unwrap().read_file("/result").await.unwrap();
    assert_eq!(&file[..], b"done\n");
    project.stop().await.unwrap();
}

#[tokio::test]
async fn b38_a_service_that_ran_out_of_memory_says_so() {
    let Some(test) = docker().await else { return };
    let project = project(
        &test,
        // That memory ran out comes on another way than the end of a process: its shell ends later than that.
        "
services:
  greedy:
    image: gym-sandbox/busybox:test
    command: [sh, -c, 'tail /dev/zero; code=$$?; sleep 3; exit $$code']
    mem_limit: 32m
  after:
    image: gym-sandbox/busybox:test
    depends_on: {greedy: {condition: service_completed_successfully}}
",
    );
    let error = project.start().await.unwrap_err();
    let said = story(&error);
    assert!(said.contains("`greedy`") && said.contains("137"), "{said}");
    assert!(
        said.contains("ran out of memory; raise its `mem_limit`"),
        "{said}"
    );
    assert_gone(&project.project().unwrap()).await;
}

#[tokio::test]
async fn b38_what_is_not_required_costs_a_warning() {
    let Some(test) = docker().await else { return };
    let project = project(&test, &chain("[sh, -c, 'exit 3']", "", ", required: false"));
    project.start().await.unwrap();
    assert_eq!(main_process(&project, "s3", "sleep").await, "sleep");
    project.stop().await.unwrap();
}

#[tokio::test]
async fn b38_a_warning_about_what_is_not_required_says_why_it_failed() {
    let Some(test) = docker().await else { return };
    let yaml = "
services:
  s1: {image: 'gym-sandbox/busybox:test', command: /nope}
  s2:
    image: gym-sandbox/busybox:test
    command: sleep 300
    depends_on: {s1: {condition: service_started, required: false}}
";
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&warnings);
    let project = project(&test, yaml).with_progress(ProgressCallback::new(move |event| {
        if let ComposeEvent::Warning(text) = event {
            sink.lock().unwrap().push(text.clone());
        }
    }));
    project.start().await.unwrap();
    project.stop().await.unwrap();
    let warnings = warnings.lock().unwrap();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].contains("service `s1` failed") && warnings[0].contains("/nope"),
        "{warnings:?}"
    );
    assert_eq!(warnings[1], "service `s2` goes on without `s1`, which failed");
}

#[tokio::test]
async fn b38_a_one_shot_that_never_ends_is_a_typed_time_out_that_says_who_waits() {
    let Some(test) = docker().await else { return };
    let yaml = chain("[sh, -c, 'echo at it; exec sleep 300']", "", "");
    let error = out_of_time(&test, &yaml, "s1 started").await.error;
    assert!(story(&error).contains("`s2` waits for `s1`"), "{}", story(&error));
    let words = "the last output of `s1` was:\nat it";
    assert!(error.to_string().contains(words), "{}", story(&error));
}

#[tokio::test]
async fn b38_a_time_out_tells_the_last_probe_of_who_is_not_healthy() {
    let Some(test) = docker().await else { return };
    let yaml = "
services:
  a:
    image: gym-sandbox/busybox:test
    command: sleep 300
    healthcheck: {test: 'echo no luck; exit 3', interval: 60s, start_period: 600s}
  b: {image: 'gym-sandbox/busybox:test', command: sleep 300, depends_on: {a: {condition: service_healthy}}}
";
    let error = out_of_time(&test, yaml, "a started").await.error;
    let message = error.to_string();
    for part in [
        "`a` is not healthy (its health check ended with 3 and said:\nno luck)",
        "`b` waits for `a`",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[tokio::test]
async fn b38_a_one_shot_killed_by_a_signal_and_one_without_its_program_fail_the_start() {
    let Some(test) = docker().await else { return };
    for (command, more, part) in [
        ("[sh, -c, 'kill -9 $$$$']", ", init: true", "137"),
        ("[/nope]", "", "could not be started"),
    ] {
        let project = project(&test, &chain(command, more, ""));
        let began = Instant::now();
        let error = project.start().await.unwrap_err();
        assert!(began.elapsed() < SOON);
        let story = story(&error);
        assert!(story.contains(part) && story.contains("`s1`"), "{story}");
        if command == "[/nope]" {
            let container = format!("container `{}-s1-1` could not", project.project().unwrap());
            assert!(story.contains(&container), "{story}");
        }
        assert_eq!(
            left_of(&project.project().unwrap()).await,
            Vec::<String>::new(),
            "{command}"
        );
    }
}

#[tokio::test]
async fn d21_b40_a_dependency_is_seen_healthy_long_before_its_first_native_probe() {
    let Some(test) = docker().await else { return };
    let project = project(
        &test,
        "
services:
  a:
    image: gym-sandbox/busybox:test
    command: [sh, -c, 'sleep 1; touch /ok; exec sleep 300']
    healthcheck: {test: 'test -f /ok', interval: 600s, timeout: 60s, retries: 3, start_period: 600s}
  b:
    image: gym-sandbox/busybox:test
    command: sleep 300
    depends_on: {a: {condition: service_healthy}}
",
    );
    let began = Instant::now();
    project.start().await.unwrap();
    // The engine's own first probe comes after 600 s.
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert!(printed(&project, "a", "ls /ok").await.contains("/ok"));
    project.stop().await.unwrap();
}

#[tokio::test]
async fn b40_an_image_that_becomes_unhealthy_fails_the_start_and_disable_switches_its_check_off() {
    let Some(test) = docker().await else { return };
    // A busy engine gets its time to say so; what is probed, and how often, is the image's.
    let unhealthy = "services: {a: {image: 'gym-sandbox/unhealthy:test', healthcheck: {timeout: 60s}}}";
    let project_a = project(&test, unhealthy);
    let error = project_a.start().await.unwrap_err();
    assert!(story(&error).contains("`a` is unhealthy"), "{}", story(&error));
    assert_eq!(left_of(&project_a.project().unwrap()).await, Vec::<String>::new());
    let off = "services: {a: {image: 'gym-sandbox/unhealthy:test', healthcheck: {disable: true}}}";
    let project_b = project(&test, off);
    project_b.start().await.unwrap();
    project_b.stop().await.unwrap();
}

#[tokio::test]
async fn a_service_without_a_check_that_others_want_healthy_is_refused_with_a_word_about_it() {
    let Some(test) = docker().await else { return };
    let project = project(
        &test,
        "
services:
  a: {image: 'gym-sandbox/busybox:test', command: sleep 300}
  b: {image: 'gym-sandbox/busybox:test', command: sleep 300, depends_on: {a: {condition: service_healthy}}}
",
    );
    let error = project.start().await.unwrap_err();
    assert!(story(&error).contains("health check"), "{}", story(&error));
    assert_eq!(left_of(&project.project().unwrap()).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_service_that_exits_while_others_wait_for_its_health_fails_the_start_at_once() {
    let Some(test) = docker().await else { return };
    for code in [0, 5] {
        let yaml = format!(
            "
services:
  a:
    image: gym-sandbox/busybox:test
    command: [sh, -c, 'echo last words; sleep 0.3; exit {code}']
    healthcheck: {{test: 'false', interval: 60s, start_period: 900s}}
  b: {{image: 'gym-sandbox/busybox:test', command: sleep 300, depends_on: {{a: {{condition: service_healthy}}}}}}
"
        );
        let project = project(&test, &yaml);
        let began = Instant::now();
        let error = project.start().await.unwrap_err();
        assert!(began.elapsed() < SOON);
        let story = story(&error);
        assert!(
            story.contains(&format!("exited with {code}")) && story.contains("last words"),
            "{story}"
        );
        assert_eq!(left_of(&project.project().unwrap()).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn b22_a_restart_loop_is_reported_and_not_waited_out() {
    let Some(test) = docker().await else { return };
    // The other one keeps the start from ending before a busy engine has started the first one again often enough.
    let project = project(
        &test,
        "
services:
  a: {image: 'gym-sandbox/exit:test', restart: always}
  b:
    image: gym-sandbox/busybox:test
    command: sleep 900
    healthcheck: {test: 'false', interval: 60s, start_period: 900s}
",
    );
    let began = Instant::now();
    let error = project.start().await.unwrap_err();
    assert!(began.elapsed() < SOON);
    let story = story(&error);
    assert!(
        story.contains("again and again") && story.contains("boom"),
        "{story}"
    );
    assert_eq!(left_of(&project.project().unwrap()).await, Vec::<String>::new());
}

/// Holds a start up from the start of a service until its container has ended, however long that takes a busy engine: it
/// has ended then when the start looks at it first.
fn until_ended(container: String) -> ProgressCallback {
    ProgressCallback::new(move |event| {
        if let ComposeEvent::Service { progress, .. } = event
            && *progress == ServiceProgress::Started
        {
            let container = container.clone();
            beside(async move {
                let deadline = Instant::now() + SOON;
                let runs = async || {
                    let inspected = engine().inspect_container(&container, None).await.unwrap();
                    inspected.state.unwrap().running == Some(true)
                };
                while runs().await {
                    assert!(Instant::now() < deadline, "it does not end");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
        }
    })
}

#[tokio::test]
async fn b22_a_main_process_that_ends_at_once_fails_the_start_unless_it_ends_well() {
    let Some(test) = docker().await else { return };
    let name = unique();
    let failing = project(&test, "services: {a: {image: 'gym-sandbox/exit:test'}}")
        .with_project_name(name.as_str())
        .with_progress(until_ended(format!("{name}-a-1")));
    let error = failing.start().await.unwrap_err();
    let story = story(&error);
    assert!(
        story.contains("exited with 3") && story.contains("boom"),
        "{story}"
    );
    let ending = project(
        &test,
        "services: {a: {image: 'gym-sandbox/busybox:test', command: 'true'}}",
    );
    ending.start().await.unwrap();
    ending.stop().await.unwrap();
}

#[tokio::test]
async fn independent_services_start_side_by_side() {
    let Some(test) = docker().await else { return };
    // Neither gets healthy before the other one has begun.
    let service = |own: &str, others: &str| {
        format!(
            "
  {own}:
    image: gym-sandbox/busybox:test
    command: [sh, -c, 'touch /data/{own}; exec sleep 300']
    healthcheck: {{test: 'test -f /data/{others}', interval: 1s, retries: 600}}
    volumes: ['data:/data']"
        )
    };
    let yaml = format!(
        "services:{}{}\nvolumes: {{data: }}\n",
        service("one", "other"),
        service("other", "one")
    );
    let project = project(&test, &yaml);
    project.start().await.unwrap();
    project.stop().await.unwrap();
}
