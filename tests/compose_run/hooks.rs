//! Hooks that hang or fail, before a stop and after a start: bounded, named, and run once.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gym_sandbox::compose::{
    AsyncSandboxCompose, DownOptions, ProgressCallback, ServiceProgress, Source, VolumeFate, compose_down,
};
use gym_sandbox::{Error, ErrorKind};

use crate::common::{config, docker, docker_with};
use crate::proxy::{Cut, Proxy};
use crate::support::{
    assert_gone, behind_proxy, left_of, lines_of, out_of_time, project, provider, story, unique,
};

/// Tells the second that a hook gets from its ten minutes on a loaded machine.
const SOON: Duration = Duration::from_secs(240);

/// Who has a second to end, and a hook that wants ten minutes.
const HANGING: &str = "
services:
  a:
    image: gym-sandbox/busybox:test
    command: sleep 300
    stop_grace_period: 1s
    pre_stop: [{command: [sleep, '600']}]
  b: {image: 'gym-sandbox/busybox:test', command: sleep 300}
";

/// Collects what hooks are said to run.
fn listener() -> (ProgressCallback, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&told);
    let callback = ProgressCallback::new(move |event| {
        if let gym_sandbox::compose::ComposeEvent::Service { service, progress } = event
            && matches!(progress, ServiceProgress::Hook { .. })
        {
            sink.lock().unwrap().push(format!("{service} {progress}"));
        }
    });
    (callback, told)
}

fn assert_names_the_hanging_hook(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Hook);
    let text = error.to_string();
    for part in [
        "pre_stop hook `sleep 600`",
        "service `a`",
        "did not end within 1s",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn d22_a_pre_stop_hook_that_hangs_gets_the_grace_and_is_told_and_everything_goes() {
    let Some(test) = docker().await else { return };
    let (progress, told) = listener();
    let project = project(&test, HANGING).with_progress(progress);
    project.start().await.unwrap();
    let name = project.project().unwrap();
    let began = Instant::now();
    let error = project.stop().await.unwrap_err();
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_names_the_hanging_hook(&error);
    assert_eq!(*told.lock().unwrap(), ["a runs its pre_stop hook `sleep 600`"]);
    assert_eq!(left_of(&name).await, Vec::<String>::new());
    // Nothing is left to do.
    project.stop().await.unwrap();
    assert_eq!(told.lock().unwrap().len(), 1);
    assert_eq!(project.service("a").unwrap_err().kind(), ErrorKind::Stopped);
}

#[tokio::test]
async fn d22_down_by_name_bounds_the_hooks_too_and_the_callers_grace_goes_before() {
    let Some(test) = docker().await else { return };
    let patient = HANGING.replace("stop_grace_period: 1s", "stop_grace_period: 10m");
    for (yaml, grace) in [(HANGING, None), (patient.as_str(), Some(Duration::from_secs(1)))] {
        let project = project(&test, yaml);
        project.start().await.unwrap();
        let name = project.project().unwrap();
        let (progress, told) = listener();
        let mut options = DownOptions::default().with_progress(progress);
        options.grace = grace;
        let began = Instant::now();
        let error = compose_down(&*provider(&test), &name, &options)
            .await
            .unwrap_err();
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        assert_names_the_hanging_hook(&error);
        assert_eq!(*told.lock().unwrap(), ["a runs its pre_stop hook `sleep 600`"]);
        assert_eq!(left_of(&name).await, Vec::<String>::new());
        project.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_pre_stop_hook_that_fails_is_among_the_errors_and_does_not_run_where_nothing_runs() {
    let Some(test) = docker().await else { return };
    let yaml = "
services:
  a:
    image: gym-sandbox/busybox:test
    command: sleep 300
    pre_stop: [{command: [sh, -c, 'echo cannot >&2; exit 7']}, {command: [/nope]}]
";
    let failing = project(&test, yaml);
    failing.start().await.unwrap();
    let error = failing.stop().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Hook);
    let said = story(&error);
    assert!(said.contains("ended with 7: cannot"), "{said}");
    assert!(
        said.contains("pre_stop hook `/nope` of service `a` could not be run"),
        "{said}"
    );
    assert_gone(&failing.project().unwrap()).await;

    let ended = project(&test, yaml);
    ended.start().await.unwrap();
    let container = format!("{}-a-1", ended.project().unwrap());
    let kill = None::<bollard::query_parameters::KillContainerOptions>;
    crate::support::engine()
        .kill_container(&container, kill)
        .await
        .unwrap();
    ended.stop().await.unwrap();
}

#[tokio::test]
async fn a_hook_that_ends_its_service_itself_is_no_failure() {
    let Some(test) = docker().await else { return };
    let project = project(
        &test,
        "
services:
  a:
    image: gym-sandbox/busybox:test
    command: [sh, -c, 'trap \"exit 0\" TERM; touch /ready; while true; do sleep 0.1; done']
    healthcheck: {test: 'test -f /ready', interval: 1s, retries: 600}
    stop_grace_period: 5m
    pre_stop: [{command: [sh, -c, 'kill -TERM 1; sleep 600']}]
",
    );
    project.start().await.unwrap();
    let name = project.project().unwrap();
    project.stop().await.unwrap();
    assert_eq!(left_of(&name).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_stop_that_is_repeated_runs_no_hook_twice() {
    let Some(proxy) = Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    let mut behind = config();
    behind.host = Some(proxy.address());
    let Some(test) = docker_with(behind).await else {
        return;
    };
    let name = unique();
    let project = project(&test, NOTING).with_project_name(name.as_str());
    project.start().await.unwrap();
    let keep = DownOptions::default().with_volumes(VolumeFate::Keep);
    let id = project.service("a").unwrap().sandbox_id().unwrap();
    let container = crate::support::engine()
        .inspect_container(id.as_str(), None)
        .await
        .unwrap();
    // Of this container: the lease may be renewed at the same moment, and the last one removed.
    let removal = format!("/containers/{}?", container.id.unwrap());
    proxy.cut(String::leak(removal), Cut::Answer(500, "not now"));
    let error = project.stop_with(&keep).await.unwrap_err();
    assert!(story(&error).contains("not now"), "{}", story(&error));
    assert_ne!(error.kind(), ErrorKind::Hook, "something is left");
    project.stop_with(&keep).await.unwrap();
    assert_eq!(lines_of(&test, &name).await, "x\n");
    compose_down(&*provider(&test), &name, &DownOptions::default())
        .await
        .unwrap();
    assert_eq!(left_of(&name).await, Vec::<String>::new());
}

fn with_hook(command: &str, hook: &str) -> String {
    format!(
        "
services:
  a:
    image: gym-sandbox/busybox:test
    command: {command}
    post_start: [{{command: {hook}}}]
  b: {{image: 'gym-sandbox/busybox:test', command: sleep 300, depends_on: [a]}}
"
    )
}

#[tokio::test]
async fn b38_a_post_start_hook_that_hangs_is_named_by_the_time_out() {
    let Some(test) = docker().await else { return };
    let hook = "a runs its post_start hook `sleep 600`";
    let late = out_of_time(&test, &with_hook("sleep 300", "[sleep, '600']"), hook).await;
    let message = late.error.to_string();
    assert!(
        message.contains("the post_start hook `sleep 600` of `a` has not ended"),
        "{message}"
    );
    assert!(!message.contains("`a` is not started"), "{message}");
    let hooks = late.told.iter().filter(|told| told.contains("hook"));
    assert_eq!(hooks.collect::<Vec<_>>(), [hook]);
}

#[tokio::test]
async fn b38_a_post_start_hook_that_fails_is_named_and_a_service_that_ended_under_it_says_why() {
    let Some(test) = docker().await else { return };
    let failing = project(
        &test,
        &with_hook("sleep 300", "[sh, -c, 'echo cannot >&2; exit 7']"),
    );
    let error = failing.start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotReady);
    let message = error.to_string();
    assert!(
        message.contains("post_start hook") && message.contains("service `a` ended with 7: cannot"),
        "{message}"
    );
    let ended = project(
        &test,
        &with_hook("[sh, -c, 'echo boom >&2; exit 3']", "[sleep, '600']"),
    );
    let began = Instant::now();
    let error = ended.start().await.unwrap_err();
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    let said = story(&error);
    assert!(
        said.contains("service `a` exited with 3") && said.contains("boom"),
        "{said}"
    );
    for project in [failing, ended] {
        assert_gone(&project.project().unwrap()).await;
    }
}

/// Who writes a line before it stops.
const NOTING: &str = "
services:
  a:
    image: gym-sandbox/busybox:test
    command: sleep 300
    volumes: ['data:/data']
    pre_stop: [{command: [sh, -c, 'echo x >>/data/lines']}]
volumes: {data: }
";

#[tokio::test]
async fn a_service_that_cannot_be_looked_at_before_its_stop_stays_for_another_one() {
    let Some(test) = docker().await else { return };
    let Some((proxy, behind)) = behind_proxy(&test).await else {
        return;
    };
    let name = unique();
    let project = AsyncSandboxCompose::new(behind)
        .with_source(Source::text("compose.yaml", NOTING))
        .with_project_name(name.as_str());
    project.start().await.unwrap();
    let id = project.service("a").unwrap().sandbox_id().unwrap();
    let container = crate::support::engine()
        .inspect_container(id.as_str(), None)
        .await
        .unwrap();
    let look = format!("/containers/{}/json", container.id.unwrap());
    proxy.cut(String::leak(look), Cut::Answer(500, "not now"));
    let keep = DownOptions::default().with_volumes(VolumeFate::Keep);
    let error = project.stop_with(&keep).await.unwrap_err();
    assert!(story(&error).contains("not now"), "{}", story(&error));
    assert_ne!(error.kind(), ErrorKind::Hook, "something is left");
    assert!(
        left_of(&name)
            .await
            .iter()
            .any(|left| left.starts_with("container"))
    );
    project.stop_with(&keep).await.unwrap();
    assert_eq!(lines_of(&test, &name).await, "x\n");
    compose_down(&*provider(&test), &name, &DownOptions::default())
        .await
        .unwrap();
    assert_eq!(left_of(&name).await, Vec::<String>::new());
}

#[tokio::test]
async fn down_by_name_says_that_hooks_could_not_be_run_where_their_container_cannot_be_had() {
    let Some(test) = docker().await else { return };
    let Some((proxy, behind)) = behind_proxy(&test).await else {
        return;
    };
    let project = project(&test, NOTING);
    project.start().await.unwrap();
    let name = project.project().unwrap();
    let id = project.service("a").unwrap().sandbox_id().unwrap();
    let container = crate::support::engine()
        .inspect_container(id.as_str(), None)
        .await
        .unwrap();
    let look: &str = String::leak(format!("/containers/{}/json", container.id.unwrap()));
    // The first look is the list's; the one for its hooks fails.
    proxy.release();
    proxy.cut(look, Cut::UntilReleased);
    proxy.cut(look, Cut::Answer(500, "not now"));
    let error = compose_down(&*behind, &name, &DownOptions::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Hook, "{}", story(&error));
    let said = story(&error);
    assert!(
        said.contains("the pre_stop hooks of service `a` could not be run") && said.contains("not now"),
        "{said}"
    );
    assert_eq!(left_of(&name).await, Vec::<String>::new());
    project.stop().await.unwrap();
}
