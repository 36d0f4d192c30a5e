//! Copies of one project side by side, each on a bridge of its own, or all on one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{join_all, try_join_all};
use gym_sandbox::compose::{AsyncSandboxCompose, PlanOptions, ProjectNetworks, Source};
use gym_sandbox::container::NetworkSpec;
use gym_sandbox::provider::ContainersProvider;
use gym_sandbox::{ErrorKind, SandboxProvider};

use crate::common::{DockerTest, docker};
use crate::support::{behind_proxy, left_of, printed, project, story, unique};

/// How long an engine may take to let go of a network.
const FREE: Duration = Duration::from_secs(120);

/// What of a project there can be once on an engine, and how each copy says which it is.
const COPY: &str = "
services:
  db:
    image: gym-sandbox/busybox:test
    container_name: the-database
    command: [sh, -c, 'mkdir /www; echo ${COMPOSE_PROJECT_NAME} >/www/index.html; exec httpd -f -p 8080 -h /www']
    healthcheck: {test: 'wget -qO- http://127.0.0.1:8080/', interval: 1s, timeout: 60s, retries: 300}
    ports: ['127.0.0.1:18763:8080']
    networks: {default: {aliases: [store]}}
  web:
    image: gym-sandbox/busybox:test
    command: sleep 300
    depends_on: {db: {condition: service_healthy}}
";

fn copies(test: &DockerTest, count: usize, networks: &ProjectNetworks) -> Vec<AsyncSandboxCompose> {
    let copy = || {
        let mut options = PlanOptions::default();
        options.networks = networks.clone();
        project(test, COPY).with_plan_options(options)
    };
    (0..count).map(|_| copy()).collect()
}

/// Whose page each of the names leads to, asked from a service.
async fn pages(project: &AsyncSandboxCompose, names: &[&str]) -> Vec<String> {
    let fetch = |name: &str| format!("wget -qO- http://{name}:8080/");
    let lines: Vec<String> = names.iter().map(|name| fetch(name)).collect();
    let printed = printed(project, "web", &lines.join(" && ")).await;
    printed.lines().map(str::to_owned).collect()
}

async fn stop_all(projects: &[AsyncSandboxCompose]) {
    try_join_all(projects.iter().map(AsyncSandboxCompose::stop))
        .await
        .unwrap();
    for project in projects {
        assert_eq!(left_of(&project.project().unwrap()).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn b33_copies_with_a_container_name_and_a_fixed_port_reach_their_own_services() {
    let Some(test) = docker().await else { return };
    let projects = copies(&test, 3, &ProjectNetworks::Own);
    for started in join_all(projects.iter().map(AsyncSandboxCompose::start)).await {
        started.unwrap_or_else(|error| panic!("{}", story(&error)));
    }
    let mut ports = BTreeSet::new();
    for project in &projects {
        let own = project.project().unwrap();
        let asked = ["db", "store", "the-database"];
        assert_eq!(pages(project, &asked).await, vec![own; 3]);
        let endpoint = project.service("db").unwrap().endpoint(8080).await.unwrap();
        ports.insert(endpoint.endpoint().to_owned());
    }
    assert_eq!(ports.len(), 3, "{ports:?}");
    stop_all(&projects).await;
}

#[tokio::test]
async fn b33_on_one_bridge_names_lead_to_the_own_project_and_long_ones_to_others() {
    let Some(test) = docker().await else { return };
    let bridge = test
        .provider
        .create_network(&NetworkSpec::new(unique()))
        .await
        .unwrap();
    let inspected = crate::support::engine()
        .inspect_network(&bridge, None)
        .await
        .unwrap();
    let name = inspected.name.unwrap();
    let projects = copies(&test, 2, &ProjectNetworks::Shared(name.clone()));
    for started in join_all(projects.iter().map(AsyncSandboxCompose::start)).await {
        started.unwrap_or_else(|error| panic!("{}", story(&error)));
    }
    let names: Vec<String> = projects
        .iter()
        .map(|project| project.project().unwrap())
        .collect();
    for (project, own) in projects.iter().zip(&names) {
        for _ in 0..5 {
            let asked = ["db", "store", "the-database"];
            assert_eq!(pages(project, &asked).await, vec![own.clone(); 3]);
        }
        // Projects on one bridge reach each other, as the documentation says.
        let long: Vec<String> = names.iter().map(|name| format!("db.{name}")).collect();
        let long: Vec<&str> = long.iter().map(String::as_str).collect();
        assert_eq!(pages(project, &long).await, names);
        // Nothing but two containers is the project's own.
        assert_eq!(left_of(own).await.len(), 2);
    }
    stop_all(&projects).await;
    // A busy engine lets go of the endpoints of a container that is gone a moment later.
    let deadline = Instant::now() + FREE;
    while let Err(error) = test.provider.remove_network(&bridge).await {
        assert_eq!(error.kind(), ErrorKind::Conflict, "{}", story(&error));
        assert!(Instant::now() < deadline, "{}", story(&error));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    let missing = &copies(&test, 1, &ProjectNetworks::Shared(name.clone()))[0];
    let error = missing.start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{}", story(&error));
    assert!(story(&error).contains(&name), "{}", story(&error));
}

/// The most calls of the engine that a copy of two services may cost, up and down. 13 are needed on engines before API
/// 1.44: three for each container (a create, a start, a removal), and seven for the project (its containers, its
/// image, its network, which is looked for twice, and its events). A removal that a busy engine has to be asked for again
/// counts once.
const CALLS: usize = 17;

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_copies_at_once_cost_few_calls_each_and_leave_nothing() {
    let Some(test) = docker().await else { return };
    let Some((proxy, provider)) = behind_proxy(&test).await else {
        return;
    };
    let copy = || {
        let yaml = "
services:
  web: {image: 'gym-sandbox/busybox:test', init: true, command: sleep 600}
  worker: {image: 'gym-sandbox/busybox:test', init: true, command: sleep 600, depends_on: [web]}
";
        AsyncSandboxCompose::new(Arc::clone(&provider) as Arc<dyn SandboxProvider>)
            .with_source(Source::text("compose.yaml", yaml))
    };
    // The first one pays for what all share: the lease, the shell of the image.
    let first = copy();
    first.start().await.unwrap();
    let before = proxy.lines().len();
    let copies: Vec<AsyncSandboxCompose> = (0..16).map(|_| copy()).collect();
    try_join_all(copies.iter().map(AsyncSandboxCompose::start))
        .await
        .unwrap();
    let names: Vec<String> = copies.iter().map(|copy| copy.project().unwrap()).collect();
    stop_all(&copies).await;
    let mut calls = proxy.lines().split_off(before);
    // A lease is renewed, and containers are looked at, the more often the longer it takes.
    let is_look = |line: &str| {
        line.contains("GET ") && line.contains("/containers/") && !line.contains("/containers/json")
    };
    let mut removals = BTreeSet::new();
    calls.retain(|line| {
        let is_repeated = line.starts_with("DELETE ") && !removals.insert(line.clone());
        !line.contains("/volumes") && !is_look(line) && !is_repeated
    });
    first.stop().await.unwrap();
    for name in &names {
        assert_eq!(left_of(name).await, Vec::<String>::new());
    }
    provider.aclose().await.unwrap();
    let each = calls.len().div_ceil(copies.len());
    calls.sort();
    assert!(each <= CALLS, "{each} calls a copy:\n{}", calls.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn b33_of_several_starts_of_one_name_at_once_one_goes_on_whatever_each_has_made() {
    let Some(test) = docker().await else { return };
    let service = |name: char| {
        format!(
            "  {name}: {{image: 'gym-sandbox/busybox:test', command: sleep 300, network_mode: none, \
             volumes: ['data-{name}:/data']}}\n"
        )
    };
    let (names, volumes): (String, String) = ('a'..='f')
        .map(|name| (service(name), format!("  data-{name}: {{}}\n")))
        .unzip();
    let yaml = format!("services:\n{names}volumes:\n{volumes}");
    for round in 0..3 {
        let name = unique();
        let projects: Vec<_> = (0..4)
            .map(|_| project(&test, &yaml).with_project_name(name.as_str()))
            .collect();
        let started = join_all(projects.iter().map(AsyncSandboxCompose::start)).await;
        let lost: Vec<_> = started
            .iter()
            .filter_map(|started| started.as_ref().err())
            .collect();
        assert_eq!(lost.len(), 3, "{round}: {lost:?}");
        for error in lost {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{round}: {error:?}");
        }
        // Nothing stands for the name but the project itself.
        let left = left_of(&name).await;
        assert_eq!(left.len(), 12, "{round}: {left:?}");
        for project in projects {
            project.stop().await.unwrap();
        }
        assert_eq!(left_of(&name).await, Vec::<String>::new());
    }
}
