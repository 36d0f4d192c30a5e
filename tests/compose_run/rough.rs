//! Projects under rough conditions: two starts of one name, many services, checks that never end
//! or never pass.

use std::time::{Duration, Instant};

use gym_sandbox::ErrorKind;

use crate::common::docker;
use crate::support::{assert_gone, left_of, printed, project, story, unique};

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
        let name = unique();
        let [first, second] = [(), ()].map(|()| project(&test, WITH_VOLUME).with_project_name(name.as_str()));
        let (one, other) = tokio::join!(first.start(), second.start());
        let mut up = 0;
        for (started, project) in [(one.map(|_| ()), &first), (other.map(|_| ()), &second)] {
            match started {
                Ok(()) => {
                    up += 1;
                    let line = "until test -s /data/file; do sleep 0.1; done; cat /data/file";
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
    let services: Vec<String> = (0..30)
        .map(|number| {
            format!(
                "  s{number}: {{image: 'gym-sandbox/busybox:test', command: sleep 300, network_mode: none}}"
            )
        })
        .collect();
    let project = project(&test, &format!("services:\n{}\n", services.join("\n")));
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
