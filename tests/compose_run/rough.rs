//! Projects under rough conditions: many services, checks that never end or never pass.

use std::time::{Duration, Instant};

use crate::common::docker;
use crate::support::{left_of, project, story};

/// Tells "bounded" from "for ever" on a loaded machine.
const BOUNDED: Duration = Duration::from_secs(120);

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
