//! Close, status and inspect wait behind nothing: not behind commands that hang, not behind creates that do (design,
//! "Lanes"; bugs B20).

#![allow(clippy::unwrap_used, reason = "what can't be done fails the test")]
#![allow(clippy::print_stderr, reason = "a skipped test says why")]
#![allow(
    clippy::similar_names,
    reason = "`test` and `text` stand beside each other everywhere"
)]

mod common;
#[path = "common/proxy.rs"]
mod proxy;

use std::time::{Duration, Instant};

use gym_sandbox::docker::{DockerConfig, ExecPathPolicy};
use gym_sandbox::provider::InspectProvider;
use gym_sandbox::{ExecOptions, ExecTimeout, SandboxHandle, SandboxProvider, SandboxStatus};
use tokio::task::JoinHandle;

use common::{DockerTest, docker_with, engine_is_required};
use proxy::{Cut, Proxy};

const EXECS: usize = 4;
const CREATES: usize = 2;

/// How long a call may take that waits behind nothing, on a machine that is busy with other work. What is full in these
/// tests stays full for longer than this: whoever waits behind it has no answer in time.
const SOON: Duration = Duration::from_secs(60);

async fn soon<T>(what: &str, call: impl Future<Output = gym_sandbox::Result<T>>) -> T {
    tokio::time::timeout(SOON, call)
        .await
        .unwrap_or_else(|_| panic!("{what} waits"))
        .unwrap()
}

async fn sandboxes(test: &DockerTest, number: usize) -> Vec<SandboxHandle> {
    let mut handles = Vec::new();
    for _ in 0..number {
        handles.push(test.provider.create(&common::busybox()).await.unwrap());
    }
    handles
}

async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let deadline = Instant::now() + 2 * SOON;
    while !holds().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Ends its tasks, also when the test fails.
struct Tasks(Vec<JoinHandle<()>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn close_status_and_inspect_wait_behind_no_full_lane() {
    let Some(proxy) = Proxy::start().await else {
        assert!(
            !engine_is_required(),
            "SANDBOX_REQUIRE_DOCKER=1 and the engine has no local socket"
        );
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    let mut config = DockerConfig::default();
    config.host = Some(proxy.address());
    // Only there a command takes a slot.
    config.exec.exec_path = ExecPathPolicy::Engine;
    config.exec.concurrency = EXECS;
    config.lanes.create = Some(CREATES);
    let Some(test) = docker_with(config).await else {
        return;
    };
    let handles = sandboxes(&test, 2).await;

    // Twice as many commands as there are slots, and none of them ends.
    let mut tasks = Tasks(Vec::new());
    for _ in 0..2 * EXECS {
        let (provider, handle) = (test.provider.clone(), handles[0].clone());
        tasks.0.push(tokio::spawn(async move {
            let command = ExecOptions::new("sleep 1000").with_timeout(ExecTimeout::Never);
            let _ended = provider.exec(&handle, command).await;
        }));
    }
    let begun = || {
        let is_start = |line: &&String| line.contains("/exec/") && line.contains("/start ");
        proxy.lines().iter().filter(is_start).count()
    };
    until("the exec lane is full", || async { begun() >= EXECS }).await;
    // Twice as many creates as there are slots, and the engine answers none of those that got one.
    let creates = proxy.requests("/containers/create");
    for _ in 0..CREATES {
        proxy.cut("/containers/create", Cut::Hold);
    }
    for _ in 0..2 * CREATES {
        let (provider, spec) = (test.provider.clone(), common::busybox());
        tasks.0.push(tokio::spawn(async move {
            let _created = provider.create(&spec).await;
        }));
    }
    until("the create lane is full", || async {
        proxy.requests("/containers/create") >= creates + CREATES
    })
    .await;

    // The second is the sandbox whose commands hang: it closes as well, and ends them.
    for handle in [&handles[1], &handles[0]] {
        let status = soon("status", test.provider.status(handle)).await;
        assert_eq!(status, SandboxStatus::Running);
        soon("inspect", test.provider.inspect(handle)).await;
        soon("close", test.provider.close(handle)).await;
    }
    assert!(
        proxy.requests("/containers/create") == creates + CREATES,
        "more creates were sent than have a slot"
    );
    drop(tasks);
    proxy.go_down();
    proxy.come_up();
    test.provider.aclose().await.unwrap();
    assert_eq!(test.containers().await, Vec::<String>::new());
}

/// A slot is given back however its holder ends.
#[tokio::test(flavor = "multi_thread")]
async fn slots_come_back_after_a_cancellation_a_timeout_and_an_error() {
    let mut config = DockerConfig::default();
    config.exec.exec_path = ExecPathPolicy::Engine;
    config.exec.concurrency = 1;
    config.lanes.create = Some(1);
    let Some(test) = docker_with(config).await else {
        return;
    };
    let handle = test.provider.create(&common::busybox()).await.unwrap();
    for _ in 0..2 {
        let hanging = test.provider.exec(
            &handle,
            ExecOptions::new("sleep 1000").with_timeout(ExecTimeout::Never),
        );
        assert!(
            tokio::time::timeout(Duration::from_millis(200), hanging)
                .await
                .is_err()
        );
        let timed = ExecOptions::new("sleep 1000").with_timeout(Duration::from_millis(300));
        assert_eq!(test.provider.exec(&handle, timed).await.unwrap().return_code, 125);
        let spec = common::busybox();
        let create = test.provider.create(&spec);
        if let Ok(made) = tokio::time::timeout(Duration::from_millis(30), create).await {
            test.provider.close(&made.unwrap()).await.unwrap();
        }
        let refused = common::busybox().with_entrypoint(["/no/such/program"]);
        test.provider.create(&refused).await.unwrap_err();
    }
    let work = async {
        let result = test
            .provider
            .exec(&handle, ExecOptions::new("echo free"))
            .await
            .unwrap();
        assert_eq!(result.stdout().as_deref(), Some("free\n"));
        let made = test.provider.create(&common::busybox()).await.unwrap();
        test.provider.close(&made).await.unwrap();
    };
    tokio::time::timeout(5 * SOON, work)
        .await
        .expect("the slots are free");
    test.provider.close(&handle).await.unwrap();
    test.provider.aclose().await.unwrap();
}
