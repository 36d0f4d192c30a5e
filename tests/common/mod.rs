//! What tests with a real engine share: a provider or a visible skip, and a guard that nothing is left.
#![allow(dead_code, reason = "every test program uses another part of it")]
#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::query_parameters::{ListContainersOptionsBuilder, RemoveContainerOptionsBuilder};
use gym_sandbox::docker::{DockerConfig, DockerProvider, ExecPathPolicy};
use gym_sandbox::{ErrorKind, SandboxProvider, SandboxSpec};

/// The test images, see `docs/development.md`.
pub(crate) const BUSYBOX: &str = "gym-sandbox/busybox:test";
pub(crate) const DEBIAN: &str = "gym-sandbox/debian:test";
pub(crate) const STATIC: &str = "gym-sandbox/static:test";

/// The label that every sandbox of a test carries; its value says which test process and which of its tests.
pub(crate) const TEST_LABEL: &str = "test-run";

/// How long a removed sandbox may take to go, and a cancelled create to be cleaned up.
const SETTLE: Duration = Duration::from_secs(120);

/// The same for what is removed in the background, a build among it.
const CLEANED_UP: Duration = Duration::from_secs(300);

/// How long the lease of the process may take to go.
const RELEASE: Duration = Duration::from_secs(30);

/// Names this test process. Give it to child processes as `GYM_SANDBOX_RUN`.
pub(crate) fn run_label() -> &'static str {
    static RUN: OnceLock<String> = OnceLock::new();
    RUN.get_or_init(|| format!("test-{}-{}", std::process::id(), uuid::Uuid::new_v4().simple()))
}

/// A spec of the busybox image.
pub(crate) fn busybox() -> SandboxSpec {
    SandboxSpec::new(BUSYBOX)
}

/// Says whether a test without an engine is a failed one.
pub(crate) fn engine_is_required() -> bool {
    std::env::var("SANDBOX_REQUIRE_DOCKER").is_ok_and(|value| value == "1")
}

/// Says whether the tests that take long are to be run, too.
pub(crate) fn long_tests_are_wanted() -> bool {
    std::env::var("GYM_SANDBOX_LONG").is_ok_and(|value| value == "1")
}

/// A provider of its own for one test. When it is dropped, nothing of the test may be left on the engine.
pub(crate) struct DockerTest {
    pub(crate) provider: Arc<DockerProvider>,
    label: String,
}

/// Connects, or says on the last line why the test is skipped.
///
/// # Panics
/// Where no engine answers and `SANDBOX_REQUIRE_DOCKER` is 1.
pub(crate) async fn docker() -> Option<DockerTest> {
    docker_with(config()).await
}

/// The default configuration; `GYM_SANDBOX_TEST_EXEC_PATH` names another way than the default to run commands.
///
/// # Panics
/// Where that is not `auto`, `engine` or `agent`.
pub(crate) fn config() -> DockerConfig {
    let mut config = DockerConfig::default();
    match std::env::var("GYM_SANDBOX_TEST_EXEC_PATH").as_deref() {
        Ok("auto") => config.exec.exec_path = ExecPathPolicy::Auto,
        Ok("engine") => config.exec.exec_path = ExecPathPolicy::Engine,
        Ok("agent") => config.exec.exec_path = ExecPathPolicy::Agent,
        Ok(other) => panic!("`{other}` is no way to run commands"),
        Err(_) => {}
    }
    config
}

/// The same with a configuration.
///
/// # Panics
/// As [`docker`].
pub(crate) async fn docker_with(config: DockerConfig) -> Option<DockerTest> {
    match DockerTest::connect(config).await {
        Ok(test) => Some(test),
        Err(reason) if engine_is_required() => panic!("SANDBOX_REQUIRE_DOCKER=1 and {reason}"),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

impl DockerTest {
    /// Connects, or says why not.
    pub(crate) async fn connect(mut config: DockerConfig) -> Result<Self, String> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let label = format!("{}-{}", run_label(), NUMBER.fetch_add(1, Ordering::Relaxed));
        config
            .default_metadata
            .insert(TEST_LABEL.to_owned(), label.clone());
        let provider = DockerProvider::connect(config)
            .await
            .map_err(|error| format!("no engine answers: {}", error.report()))?;
        Ok(Self {
            provider: Arc::new(provider),
            label,
        })
    }

    /// A spec of the busybox image.
    #[allow(
        clippy::unused_self,
        reason = "a test's spec is asked of the test, which is at hand everywhere"
    )]
    pub(crate) fn spec(&self) -> SandboxSpec {
        SandboxSpec::new(BUSYBOX)
    }

    /// The value of [`TEST_LABEL`] on every sandbox of this test.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// The containers of this test that exist now.
    pub(crate) async fn containers(&self) -> Vec<String> {
        containers_with(TEST_LABEL, &self.label)
            .await
            .expect("the engine lists its containers")
    }
}

impl Drop for DockerTest {
    /// Fails the test when something is left, and removes it so that it disturbs nobody.
    fn drop(&mut self) {
        let label = self.label.clone();
        let provider = Arc::clone(&self.provider);
        // A thread of its own: a drop may happen inside a runtime, which must not be blocked on from within.
        let left = std::thread::spawn(move || {
            blocking(async {
                let left = remove_leftovers(TEST_LABEL, &label).await;
                // The lease of this process goes with the last sandbox of all tests. One that can't be removed, as
                // behind a proxy that is down, ends by itself.
                let _released = tokio::time::timeout(RELEASE, provider.aclose()).await;
                left
            })
        })
        .join();
        let problem = match left {
            Ok(Ok(left)) if left.is_empty() => return,
            Ok(Ok(left)) => format!("left on the engine: {}", left.join(", ")),
            Ok(Err(error)) => format!("what is left on the engine is not known: {error}"),
            Err(_) => "looking for what is left on the engine panicked".to_owned(),
        };
        assert!(std::thread::panicking(), "{problem}");
        eprintln!("{problem}");
    }
}

/// Runs something on a runtime of its own.
fn blocking<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made")
        .block_on(future)
}

/// Waits for the clean-up of a provider in the background, however long a busy engine takes for it.
pub(crate) async fn cleaned_up(provider: &DockerProvider) {
    let deadline = Instant::now() + CLEANED_UP;
    while let Err(error) = provider.aclose().await {
        assert_eq!(error.kind(), ErrorKind::Timeout, "{}", error.report());
        assert!(Instant::now() < deadline, "{}", error.report());
    }
}

/// Waits until nothing with a label is left. What is left after a while is removed, and named.
pub(crate) async fn remove_leftovers(key: &str, value: &str) -> Result<Vec<String>, bollard::errors::Error> {
    let deadline = Instant::now() + SETTLE;
    loop {
        let left = containers_with(key, value).await?;
        if left.is_empty() {
            return Ok(left);
        }
        if Instant::now() >= deadline {
            let client = client().await?;
            for name in &left {
                let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
                // It may go by itself in this moment; the test fails in any case.
                let _removed = client.remove_container(name, Some(options)).await;
            }
            return Ok(left);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The names of all containers with a label, asked for beside the library.
pub(crate) async fn containers_with(key: &str, value: &str) -> Result<Vec<String>, bollard::errors::Error> {
    let filters = HashMap::from([("label", vec![format!("{key}={value}")])]);
    let options = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    let containers = client().await?.list_containers(Some(options)).await?;
    Ok(containers
        .into_iter()
        .filter_map(|container| container.names?.into_iter().next().or(container.id))
        .map(|name| name.trim_start_matches('/').to_owned())
        .collect())
}

/// A client of the engine of `DOCKER_HOST`, else of the default one.
pub(crate) async fn client() -> Result<Docker, bollard::errors::Error> {
    Docker::connect_with_defaults()?.negotiate_version().await
}
