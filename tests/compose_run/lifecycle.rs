//! Start, use, stop.

use gym_sandbox::compose::{DownOptions, VolumeFate, compose_down};
use gym_sandbox::{ErrorKind, SandboxProvider};

use crate::common::docker;
use crate::support::{assert_gone, left_of, lines_of, main_process, printed, project, provider, story};

const TWO: &str = "
services:
  db:
    image: gym-sandbox/busybox:test
    command: [sh, -c, 'touch /ok; exec sleep 300']
    healthcheck: {test: 'test -f /ok', interval: 2s, retries: 300}
    volumes: ['data:/data']
  web:
    image: gym-sandbox/busybox:test
    command: [sh, -c, 'mkdir /www; echo hello >/www/index.html; exec httpd -f -p 8080 -h /www']
    depends_on: {db: {condition: service_healthy}}
    ports: ['8080']
volumes:
  data:
";

#[tokio::test]
async fn d18_a_project_starts_serves_and_leaves_nothing() {
    let Some(test) = docker().await else { return };
    let project = project(&test, TWO);
    assert!(project.services().is_empty());
    assert_eq!(project.service("db").unwrap_err().kind(), ErrorKind::NotStarted);
    project.start().await.unwrap();
    let name = project.project().unwrap();
    assert_eq!(project.services().keys().collect::<Vec<_>>(), ["db", "web"]);
    // Services find each other by their names, on a network of their own.
    let page = printed(
        &project,
        "db",
        "until wget -qO- http://web:8080/; do sleep 0.3; done",
    )
    .await;
    assert_eq!(page, "hello");
    // The published port answers on this machine.
    let endpoint = project.service("web").unwrap().endpoint(8080).await.unwrap();
    assert!(
        endpoint.endpoint().starts_with("http://127.0.0.1:"),
        "{endpoint:?}"
    );
    // The service's process is the container's own (contract D18).
    assert_eq!(main_process(&project, "web", "httpd").await, "httpd");
    assert_eq!(
        project.start().await.unwrap_err().kind(),
        ErrorKind::AlreadyStarted
    );
    assert_eq!(left_of(&name).await.len(), 4);
    project.stop().await.unwrap();
    assert_eq!(left_of(&name).await, Vec::<String>::new());
    project.stop().await.unwrap();
    assert_eq!(project.start().await.unwrap_err().kind(), ErrorKind::Stopped);
    assert_eq!(project.service("db").unwrap_err().kind(), ErrorKind::Stopped);
}

#[tokio::test]
async fn d33_a_scope_stops_on_every_way_out() {
    let Some(test) = docker().await else { return };
    let project = project(
        &test,
        "services: {default: {image: 'gym-sandbox/busybox:test', command: sleep 300}}",
    );
    let mut name = None;
    let error = project
        .scope(async |project| {
            name = project.project();
            let result = project.default_service()?.exec("exit 7").await?;
            assert_eq!(result.return_code, 7);
            Err::<(), gym_sandbox::Error>(gym_sandbox::Error::invalid(gym_sandbox::Operation::Exec, "mine"))
        })
        .await
        .unwrap_err();
    assert!(story(&error).contains("mine"));
    assert_eq!(left_of(&name.unwrap()).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_dropped_project_is_removed_in_the_background() {
    let Some(test) = docker().await else { return };
    let project = project(&test, TWO);
    project.start().await.unwrap();
    let name = project.project().unwrap();
    let kept = project.service("web").unwrap();
    drop(project);
    assert_gone(&name).await;
    drop(kept);
}

#[tokio::test]
async fn closing_the_provider_waits_for_projects_and_sandboxes_that_were_dropped() {
    let Some(test) = docker().await else { return };
    let dropped = project(&test, TWO);
    dropped.start().await.unwrap();
    let name = dropped.project().unwrap();
    let sandbox = gym_sandbox::AsyncSandbox::new(provider(&test)).with_spec(test.spec());
    sandbox.start().await.unwrap();
    assert_eq!(test.containers().await.len(), 3);
    // Nothing else is to be waited for then, such as a probe that was cut off.
    test.provider.aclose().await.unwrap();
    drop(dropped);
    drop(sandbox);
    test.provider.aclose().await.unwrap();
    // At once, without another look.
    assert_eq!(left_of(&name).await, Vec::<String>::new());
    assert_eq!(test.containers().await, Vec::<String>::new());
    // It may be closed twice, and what is made afterwards counts as well.
    let again = gym_sandbox::AsyncSandbox::owning(provider(&test)).with_spec(test.spec());
    again.start().await.unwrap();
    drop(again);
    test.provider.aclose().await.unwrap();
    assert_eq!(test.containers().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_project_that_is_there_already_is_not_touched_by_a_second_start() {
    let Some(test) = docker().await else { return };
    let first = project(&test, TWO);
    first.start().await.unwrap();
    let name = first.project().unwrap();
    let second = project(&test, TWO).with_project_name(name.as_str());
    assert_eq!(second.start().await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(left_of(&name).await.len(), 4);
    assert_eq!(main_process(&first, "web", "httpd").await, "httpd");
    first.stop().await.unwrap();
    assert_eq!(left_of(&name).await, Vec::<String>::new());
}

#[tokio::test]
async fn b33_copies_of_a_project_keep_to_themselves() {
    let Some(test) = docker().await else { return };
    let copies: Vec<_> = (0..2)
        .map(|_| {
            project(
                &test,
                "
services:
  web: {image: 'gym-sandbox/busybox:test', command: sleep 300, container_name: fixed, ports: ['18080:80']}
  db: {image: 'gym-sandbox/busybox:test', command: [sh, -c, 'hostname >/tmp/i; exec httpd -f -p 80 -h /tmp']}
",
            )
        })
        .collect();
    for copy in &copies {
        copy.start().await.unwrap();
    }
    for copy in &copies {
        let own = printed(copy, "db", "hostname").await;
        for _ in 0..20 {
            let seen = printed(copy, "web", "until wget -qO- http://db/i; do sleep 0.2; done").await;
            assert_eq!(seen, own);
        }
        // `container_name` is a name in the project's networks only.
        assert_eq!(
            printed(
                copy,
                "db",
                "nslookup fixed >/dev/null 2>&1 || ping -c1 -W2 fixed >/dev/null; echo ok"
            )
            .await,
            "ok"
        );
    }
    for copy in &copies {
        let name = copy.project().unwrap();
        copy.stop().await.unwrap();
        assert_eq!(left_of(&name).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn d22_who_has_a_stop_signal_gets_it_also_by_name_and_the_others_are_killed() {
    let Some(test) = docker().await else { return };
    let yaml = "
services:
  asked:
    image: gym-sandbox/busybox:test
    command: [sh, -c, 'trap \"echo asked >>/data/lines; exit 0\" INT; touch /ok; while true; do sleep 0.1; done']
    healthcheck: {test: 'test -f /ok', interval: 1s, retries: 600}
    stop_signal: SIGINT
    volumes: ['data:/data']
  killed:
    image: gym-sandbox/busybox:test
    command: [sh, -c, 'trap \"echo killed >>/data/lines; exit 0\" TERM; touch /ok; while true; do sleep 0.1; done']
    healthcheck: {test: 'test -f /ok', interval: 1s, retries: 600}
    volumes: ['data:/data']
volumes: {data: }
";
    for by_name in [false, true] {
        let project = project(&test, yaml);
        project.start().await.unwrap();
        let name = project.project().unwrap();
        let keep = DownOptions::default().with_volumes(VolumeFate::Keep);
        if by_name {
            compose_down(&*provider(&test), &name, &keep).await.unwrap();
        }
        project.stop_with(&keep).await.unwrap();
        assert_eq!(lines_of(&test, &name).await, "asked\n", "by name: {by_name}");
        compose_down(&*provider(&test), &name, &DownOptions::default())
            .await
            .unwrap();
        assert_eq!(left_of(&name).await, Vec::<String>::new());
    }
}
