//! Kinds of bugs that others had (bugs.md): files and their modes, joined networks, hosts.

use gym_sandbox::ErrorKind;

use crate::common::docker;
use crate::support::{left_of, printed, project, story};

const FILES: &str = r#"
services:
  a:
    image: gym-sandbox/busybox:test
    command: sleep 300
    user: "1000"
    secrets:
      - tok
      - {source: tok, target: plain, mode: 0440, uid: "1000", gid: "1000"}
      - {source: tok, target: /etc/app/yaml, mode: 0o440, uid: "1000"}
      - {source: tok, target: /etc/app/text, mode: "0440", gid: "1000"}
    configs:
      - {source: conf, target: /etc/app/conf, mode: 0600, uid: "1000", gid: "1000"}
secrets:
  tok: {environment: TOK}
configs:
  conf: {content: "level=$${LEVEL}"}
"#;

#[tokio::test]
async fn b47_files_have_their_modes_owners_and_places_and_are_in_no_environment() {
    let Some(test) = docker().await else { return };
    let project = project(&test, FILES).with_variable("TOK", "hush");
    project.start().await.unwrap();
    for (path, facts) in [
        ("/run/secrets/tok", "444 0 0"),
        ("/run/secrets/plain", "440 1000 1000"),
        ("/etc/app/yaml", "440 1000 0"),
        ("/etc/app/text", "440 0 1000"),
        ("/etc/app/conf", "600 1000 1000"),
    ] {
        let found = printed(&project, "a", &format!("stat -c '%a %u %g' {path}")).await;
        assert_eq!(found, facts, "{path}");
    }
    assert_eq!(
        printed(&project, "a", "cat /run/secrets/tok /etc/app/conf").await,
        "hushlevel=${LEVEL}"
    );
    assert_eq!(
        printed(
            &project,
            "a",
            "tr '\\0' '\\n' </proc/1/environ | grep -c hush || true"
        )
        .await,
        "0"
    );
    let id = project.service("a").unwrap().sandbox_id().unwrap();
    let inspected = crate::support::engine()
        .inspect_container(id.as_str(), None)
        .await
        .unwrap();
    assert!(!format!("{inspected:?}").contains("hush"));
    project.stop().await.unwrap();
}

#[tokio::test]
async fn b47_a_file_that_nobody_would_see_or_that_is_not_set_is_refused_before_anything_is_made() {
    let Some(test) = docker().await else { return };
    let service = |more: &str| {
        format!(
            "services: {{a: {{image: 'gym-sandbox/busybox:test', command: sleep 300, secrets: [tok], {more}}}}}\n\
             secrets: {{tok: {{environment: TOK}}}}"
        )
    };
    for (more, is_set, told) in [
        ("init: true", false, "`TOK`"),
        ("read_only: true", true, "read-only root"),
        ("tmpfs: ['/run:size=1m']", true, "tmpfs"),
        ("tmpfs: [/run/secrets]", true, "tmpfs"),
        ("volumes: [{type: tmpfs, target: /run/}]", true, "tmpfs"),
    ] {
        let mut project = project(&test, &service(more));
        if is_set {
            project = project.with_variable("TOK", "hush");
        }
        let error = project.start().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{more}: {}", story(&error));
        assert!(
            story(&error).contains(told) && story(&error).contains("services.a.secrets"),
            "{more}: {}",
            story(&error)
        );
        assert!(!story(&error).contains("hush"), "{more}");
        let name = project.project().unwrap_or_default();
        assert_eq!(left_of(&name).await, Vec::<String>::new(), "{more}");
    }
    // A volume below the memory holds it.
    let seen = service("tmpfs: [/run], volumes: ['kept:/run/secrets']") + "\nvolumes: {kept: }";
    let project = project(&test, &seen).with_variable("TOK", "hush");
    project.start().await.unwrap();
    assert_eq!(printed(&project, "a", "cat /run/secrets/tok").await, "hush");
    project.stop().await.unwrap();
}

#[tokio::test]
async fn b47_memory_mounts_have_their_options() {
    let Some(test) = docker().await else { return };
    let yaml = "
services:
  a:
    image: gym-sandbox/busybox:test
    command: sleep 300
    tmpfs: ['/one:mode=770,size=1m,uid=1000,gid=1000', /two]
    volumes: [{type: tmpfs, target: /three, tmpfs: {size: 64k, mode: 01777}}]
";
    let project = project(&test, yaml);
    project.start().await.unwrap();
    let stat = printed(&project, "a", "stat -c '%a %u %g' /one /two /three").await;
    assert_eq!(stat, "770 1000 1000\n1777 0 0\n1777 0 0");
    let size = "for place in /one /three; do df -k $place | tail -1 | awk '{print $2}'; done";
    assert_eq!(printed(&project, "a", size).await, "1024\n64");
    project.stop().await.unwrap();
}

#[tokio::test]
async fn b48_a_service_in_anothers_network_reaches_it_and_cannot_have_one_of_its_own() {
    let Some(test) = docker().await else { return };
    let yaml = |more: &str, mode: &str| {
        format!(
            "
services:
  web: {{image: 'gym-sandbox/busybox:test', command: sleep 300, network_mode: '{mode}'{more}}}
  base:
    image: gym-sandbox/busybox:test
    command: [sh, -c, 'mkdir /www; echo joined >/www/index.html; exec httpd -f -p 8000 -h /www']
    healthcheck: {{test: 'wget -qO- http://127.0.0.1:8000/', interval: 1s, timeout: 60s, retries: 300}}
"
        )
    };
    let joined = project(&test, &yaml("", "service:base"));
    joined.start().await.unwrap();
    let fetch = "until wget -qO- http://127.0.0.1:8000/; do sleep 0.3; done";
    assert_eq!(printed(&joined, "web", fetch).await, "joined");
    joined.stop().await.unwrap();
    for (more, mode, told) in [
        ("", "service:nope", "nope"),
        (", ports: ['80']", "service:base", "ports"),
        (", networks: [default]", "service:base", "networks"),
    ] {
        let refused = project(&test, &yaml(more, mode));
        let error = refused.start().await.unwrap_err();
        assert!(story(&error).contains(told), "{more} {mode}: {}", story(&error));
        let name = refused.project().unwrap_or_default();
        assert_eq!(left_of(&name).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn b48_who_shares_the_network_of_a_service_that_has_ended_is_told_which_one() {
    let Some(test) = docker().await else { return };
    for key in ["network_mode", "pid"] {
        let project = project(
            &test,
            &format!(
                "
services:
  web:
    image: gym-sandbox/busybox:test
    command: sleep 300
    {key}: service:base
    depends_on: {{base: {{condition: service_completed_successfully}}}}
  base: {{image: 'gym-sandbox/busybox:test', command: [sh, -c, 'echo nothing to do']}}
"
            ),
        );
        let error = project.start().await.unwrap_err();
        let what = key.split('_').next().unwrap_or_default();
        assert_eq!(error.kind(), ErrorKind::NotReady);
        let message = error.to_string();
        assert!(
            message.contains(&format!(
                "service `base` exited with 0, and service `web` was to share its {what}"
            )) && message.contains("nothing to do"),
            "{message}"
        );
        assert_eq!(left_of(&project.project().unwrap()).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn b48_hosts_of_every_form_are_in_the_hosts_file() {
    let Some(test) = docker().await else { return };
    for form in [
        "['a=10.0.0.1', 'b:10.0.0.2', 'c=[::1]', 'd:::1', 'h:host-gateway']",
        "{a: 10.0.0.1, b: [10.0.0.2], c: '[::1]', d: '::1', h: host-gateway}",
    ] {
        let yaml = format!(
            "services: {{x: {{image: 'gym-sandbox/busybox:test', command: sleep 300, extra_hosts: {form}}}}}"
        );
        let project = project(&test, &yaml);
        project.start().await.unwrap();
        let line = |name: &str| format!("awk '$2 == \"{name}\" {{print $1}}' /etc/hosts");
        for (name, address) in [("a", "10.0.0.1"), ("b", "10.0.0.2"), ("c", "::1"), ("d", "::1")] {
            assert_eq!(printed(&project, "x", &line(name)).await, address, "{form}");
        }
        let gateway = printed(&project, "x", &line("h")).await;
        assert!(gateway.parse::<std::net::IpAddr>().is_ok(), "{form}: {gateway}");
        project.stop().await.unwrap();
    }
    let bad = project(&test, "services: {x: {image: i, extra_hosts: [bad]}}");
    let error = bad.start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(story(&error).contains("extra_hosts"), "{}", story(&error));
}
