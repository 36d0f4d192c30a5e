//! Commands by the resident agent, over a real engine: how it gets into sandboxes, how it is reached, that both ways to
//! run a command give the same, and what happens where it can't be or is killed.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what can't be done fails the test"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/proxy.rs"]
mod proxy;

mod damage;
mod dying;
mod equality;
mod faults;
mod files;
mod inject;
mod kill;
mod large;
mod offline;
mod user_namespaces;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::DockerTest;
use gym_sandbox::docker::{DockerRaw, ExecPathPolicy};
use gym_sandbox::{
    Command, ExecErrorType, ExecOptions, ExecPath, ExecResult, SandboxHandle, SandboxProvider, SandboxSpec,
};

/// No test command takes so long, several calls of a busy engine among it.
const LIMIT: Duration = Duration::from_secs(180);

/// A provider that runs commands this way.
async fn docker(policy: ExecPathPolicy) -> Option<DockerTest> {
    let mut config = common::config();
    config.exec.exec_path = policy;
    common::docker_with(config).await
}

/// A sandbox that is removed at the end of its test.
struct Kept {
    provider: Arc<dyn SandboxProvider>,
    handle: SandboxHandle,
}

impl Kept {
    async fn new(test: &DockerTest, spec: SandboxSpec) -> Self {
        let handle = test.provider.create(&spec).await.expect("the sandbox is created");
        Self {
            provider: Arc::clone(&test.provider) as _,
            handle,
        }
    }

    async fn exec(&self, options: ExecOptions) -> ExecResult {
        let running = self.provider.exec(&self.handle, options);
        let result = tokio::time::timeout(LIMIT, running)
            .await
            .expect("the command ends");
        result.expect("exec gives a result")
    }

    /// Runs a shell line and expects it to succeed.
    async fn line(&self, line: &str) -> String {
        let result = self.exec(ExecOptions::new(line)).await;
        assert!(result.is_success(), "{line}: {result:?}");
        result.stdout().expect("it ended by itself")
    }

    /// Waits until a shell line succeeds.
    async fn until(&self, line: &str) {
        let deadline = Instant::now() + LIMIT;
        while !self.exec(ExecOptions::new(line)).await.is_success() {
            assert!(Instant::now() < deadline, "never: {line}");
        }
    }

    /// Waits until nothing sleeps so long.
    async fn until_no_sleep(&self, seconds: u32, why: &str) {
        let count = format!("ps | grep -c '[s]leep {seconds}'; true");
        let deadline = Instant::now() + LIMIT;
        while self.line(&count).await != "0\n" {
            assert!(Instant::now() < deadline, "{why}");
        }
    }

    /// Lets a command run out of its time. Where that was over before so many processes were there to be killed, it gets
    /// twice as much: a busy machine takes seconds for what an idle one does at once.
    async fn out_of_time(&self, command: &Command, first: Duration, least: u32) -> ExecResult {
        let mut limit = first;
        loop {
            let result = self
                .exec(ExecOptions::new(command.clone()).with_timeout(limit))
                .await;
            assert_eq!(result.error_type, Some(ExecErrorType::Timeout), "{result:?}");
            let said = result.stderr().unwrap_or_default();
            let was_early = match result.killed {
                Some(killed) => killed < least && result.survivors == Some(0),
                // It was not given to the agent.
                None => !said.contains("did not say"),
            };
            if !was_early || limit > LIMIT / 4 {
                return result;
            }
            limit *= 2;
        }
    }

    fn raw(&self) -> &DockerRaw {
        self.handle.raw::<DockerRaw>().expect("a handle of Docker")
    }

    fn assert_by(&self, path: ExecPath) {
        assert_eq!(self.raw().exec_path(), path, "{:?}", self.raw().engine_reason());
    }

    async fn close(self) {
        self.provider
            .close(&self.handle)
            .await
            .expect("the sandbox is removed");
    }
}
