//! A project of a test: its text, its provider, and a look at what is left of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListNetworksOptionsBuilder, ListVolumesOptionsBuilder,
};
use gym_sandbox::compose::{AsyncSandboxCompose, ComposeEvent, ProgressCallback, ProjectName, Source};
use gym_sandbox::docker::DockerProvider;
use gym_sandbox::{Error, ErrorKind, SandboxProvider};

use crate::common::{DockerTest, TEST_LABEL};
use crate::proxy::Proxy;

/// The label that docker compose finds projects by.
const PROJECT: &str = "com.docker.compose.project";

/// How long clean-up in the background may take on a loaded machine.
const SETTLE: Duration = Duration::from_secs(180);

/// A provider for the facade.
pub(crate) fn provider(test: &DockerTest) -> Arc<dyn SandboxProvider> {
    Arc::clone(&test.provider) as Arc<dyn SandboxProvider>
}

/// A provider behind a proxy, for the same test. None, with a word about it, where the engine has no local socket.
pub(crate) async fn behind_proxy(test: &DockerTest) -> Option<(Proxy, Arc<DockerProvider>)> {
    let Some(proxy) = Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return None;
    };
    let mut config = crate::common::config();
    config.host = Some(proxy.address());
    config
        .default_metadata
        .insert(TEST_LABEL.to_owned(), test.label().to_owned());
    Some((proxy, Arc::new(DockerProvider::connect(config).await.unwrap())))
}

/// A project of a text, with a name of its own.
pub(crate) fn project(test: &DockerTest, yaml: &str) -> AsyncSandboxCompose {
    AsyncSandboxCompose::new(provider(test))
        .with_source(Source::text("compose.yaml", yaml))
        .with_project_name(ProjectName::Given(unique()))
}

pub(crate) fn unique() -> String {
    format!("t-{}", uuid::Uuid::new_v4().simple())
}

pub(crate) fn engine() -> Docker {
    Docker::connect_with_defaults().unwrap()
}

/// Everything on the engine that has a project's label.
pub(crate) async fn left_of(project: &str) -> Vec<String> {
    let engine = engine();
    let filter = HashMap::from([("label".to_owned(), vec![format!("{PROJECT}={project}")])]);
    let mut left = Vec::new();
    let containers = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filter)
        .build();
    for container in engine.list_containers(Some(containers)).await.unwrap() {
        left.push(format!("container {:?}", container.names.unwrap_or_default()));
    }
    let networks = ListNetworksOptionsBuilder::new().filters(&filter).build();
    for network in engine.list_networks(Some(networks)).await.unwrap() {
        left.push(format!("network {}", network.name.unwrap_or_default()));
    }
    let volumes = ListVolumesOptionsBuilder::new().filters(&filter).build();
    let volumes = engine.list_volumes(Some(volumes)).await.unwrap();
    for volume in volumes.volumes.unwrap_or_default() {
        left.push(format!("volume {}", volume.name));
    }
    left
}

/// Waits until nothing is left of a project.
#[track_caller]
pub(crate) fn assert_gone(project: &str) -> impl Future<Output = ()> + use<> {
    let place = std::panic::Location::caller();
    let project = project.to_owned();
    async move {
        let deadline = Instant::now() + SETTLE;
        loop {
            let left = left_of(&project).await;
            if left.is_empty() {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{place}: left of `{project}`: {left:?}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Everything that an error says.
pub(crate) fn story(error: &Error) -> String {
    error.report().to_string()
}

/// What a shell line prints in a service.
pub(crate) async fn printed(project: &AsyncSandboxCompose, service: &str, line: &str) -> String {
    let result = project.service(service).unwrap().exec(line).await.unwrap();
    assert!(result.is_success(), "{line}: {result:?}");
    result.stdout().unwrap_or_default().trim_end().to_owned()
}

/// What a service's main process is, once its program is that: a shell gives way to it a moment after the start.
pub(crate) async fn main_process(project: &AsyncSandboxCompose, service: &str, program: &str) -> String {
    let line = format!("until grep -qx {program} /proc/1/comm; do sleep 0.1; done; cat /proc/1/comm");
    printed(project, service, &line).await
}

/// Does something beside the library, in a thread of its own: who calls is in the middle of a start.
pub(crate) fn beside<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let done = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(work)
    });
    done.join().unwrap()
}

/// A start whose time was up.
pub(crate) struct OutOfTime {
    pub(crate) error: Error,
    /// The progress of its services.
    pub(crate) told: Vec<String>,
}

/// Starts a project that never gets ready, for as long as it takes until it has come to this progress in half of its
/// time: a slow machine gets more of it.
pub(crate) async fn out_of_time(test: &DockerTest, yaml: &str, progress: &str) -> OutOfTime {
    let mut limit = Duration::from_secs(10);
    loop {
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&told);
        let began = Instant::now();
        let late = project(test, yaml)
            .with_progress(ProgressCallback::new(move |event| {
                if let ComposeEvent::Service { service, progress } = event {
                    sink.lock()
                        .unwrap()
                        .push((format!("{service} {progress}"), began.elapsed()));
                }
            }))
            .with_timeout(limit)
            .unwrap();
        let error = late.start().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{}", story(&error));
        assert_gone(&late.project().unwrap()).await;
        let told = told.lock().unwrap().clone();
        if told
            .iter()
            .any(|(what, when)| what == progress && *when <= limit / 2)
        {
            let told = told.into_iter().map(|(what, _)| what).collect();
            return OutOfTime { error, told };
        }
        assert!(
            limit < SETTLE,
            "no word of `{progress}` in half of {limit:?}: {told:?}"
        );
        limit *= 2;
    }
}

/// The lines that services and hooks have written to the volume `data` of a project, which was kept.
pub(crate) async fn lines_of(test: &DockerTest, name: &str) -> String {
    let look = format!(
        "services: {{a: {{image: 'gym-sandbox/busybox:test', command: sleep 300, volumes: ['kept:/data']}}}}\n\
         volumes: {{kept: {{external: true, name: {name}_data}}}}"
    );
    let look = project(test, &look);
    look.start().await.unwrap();
    let lines = look.service("a").unwrap().read_file("/data/lines").await.unwrap();
    look.stop().await.unwrap();
    String::from_utf8_lossy(&lines).into_owned()
}
