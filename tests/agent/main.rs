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
use std::time::Duration;

use common::DockerTest;
use gym_sandbox::docker::{DockerRaw, ExecPathPolicy};
use gym_sandbox::{ExecOptions, ExecPath, ExecResult, SandboxHandle, SandboxProvider, SandboxSpec};

/// No test command takes so long.
const LIMIT: Duration = Duration::from_secs(60);

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
