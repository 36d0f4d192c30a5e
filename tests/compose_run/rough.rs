//! Projects under rough conditions: twice at once, many services, checks that never end, an engine that hangs.

use std::time::{Duration, Instant};

use gym_sandbox::ErrorKind;

use crate::common::{config, docker, docker_with};
use crate::proxy::{Cut, Proxy};
use crate::support::{assert_gone, left_of, printed, project, story};

/// Tells "bounded" from "for ever" on a loaded machine.
const BOUNDED: Duration = Duration::from_secs(120);

const WITH_VOLUME: &str = "
services:
  a: {image: 'gym-sandbox/busybox:test', command: [sh, -c, 'echo kept >/data/file; exec sleep 300'], volumes: ['data:/data']}
  b: {image: 'gym-sandbox/busybox:test', command: sleep 300, volumes: ['data:/data']}
volumes: {data: }
";

#[tokio::test]
async fn b33_two_starts_of_one_name_at_once_do_not_take_from_each_other() {
    let Some(test) = docker().await else { return };
    for _ in 0..4 {
        let first = project(&test, WITH_VOLUME);
        let name = crate::support::unique();
        let first = first.with_project_name(name.as_str());
        let second = project(&test, WITH_VOLUME).with_project_name(name.as_str());
        let (one, other) = tokio::join!(first.start(), second.start());
        let mut up = 0;
        for (started, project) in [(one.map(|_| ()), &first), (other.map(|_| ()), &second)] {
            match started {
                Ok(()) => {
                    up += 1;
                    let line = "for i in 1 2 3 4 5 6 7 8 9; do test -s /data/file && break; sleep 0.2; done; cat /data/file";
                    assert_eq!(printed(project, "b", line).await, "kept");
                    // One network, one volume, two containers: nothing of the other start.
                    assert_eq!(left_of(&name).await.len(), 4);
                    project.stop().await.unwrap();
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{}", story(&error)),
            }
        }
        assert!(up <= 1, "{name} was started twice");
        assert_gone(&name).await;
    }
}

#[tokio::test]
async fn thirty_services_come_up_and_go() {
    let Some(test) = docker().await else { return };
    let mut yaml = "services:\n".to_owned();
    for number in 0..30 {
        yaml.push_str(&format!(
            "  s{number}: {{image: 'gym-sandbox/busybox:test', command: sleep 300, network_mode: none}}\n"
        ));
    }
    let project = project(&test, &yaml);
    project.start().await.unwrap();
    assert_eq!(project.services().len(), 30);
    let name = project.project().unwrap();
    project.stop().await.unwrap();
    assert_eq!(left_of(&name).await, Vec::<String>::new());
}

#[tokio::test]
async fn b40_a_health_check_that_never_ends_or_never_passes_fails_the_start() {
    let Some(test) = docker().await else { return };
    for check in ["sleep 1000", "false"] {
        let yaml = format!(
            "services: {{a: {{image: 'gym-sandbox/busybox:test', command: sleep 300, \
             healthcheck: {{test: '{check}', interval: 1s, timeout: 1s, retries: 2}}}}}}"
        );
        let project = project(&test, &yaml);
        let began = Instant::now();
        let error = project.start().await.unwrap_err();
        assert!(began.elapsed() < BOUNDED, "{:?}", began.elapsed());
        assert!(story(&error).contains("`a` is unhealthy"), "{}", story(&error));
        assert_eq!(left_of(&project.project().unwrap()).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn an_engine_that_hangs_ends_the_start_in_time_and_leaves_nothing() {
    let Some(proxy) = Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    for request in ["/networks/create", "/volumes/create", "-b-1", "/start"] {
        for cut in [Cut::Hold, Cut::HoldAnswer] {
            let mut config = config();
            config.host = Some(proxy.address());
            let Some(test) = docker_with(config).await else {
                return;
            };
            proxy.cut(request, cut);
            let project = project(&test, WITH_VOLUME)
                .with_timeout(Duration::from_secs(3))
                .unwrap();
            let began = Instant::now();
            let error = project.start().await.unwrap_err();
            assert!(
                began.elapsed() < BOUNDED,
                "{request} {cut:?}: {:?}",
                began.elapsed()
            );
            assert_eq!(
                error.kind(),
                ErrorKind::Timeout,
                "{request} {cut:?}: {}",
                story(&error)
            );
            assert_gone(&project.project().unwrap()).await;
        }
    }
}
