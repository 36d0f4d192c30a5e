//! Sandboxes and callers that mean no good: what they do must not be believed, must not hang and must not leak.

#![allow(
    clippy::unwrap_used,
    clippy::similar_names,
    clippy::print_stderr,
    reason = "what can't be done fails the test"
)]

#[path = "../common/mod.rs"]
mod common;

mod calls;
mod engine;
mod killing;

use gym_sandbox::{AsyncSandbox, ExecOptions, ExecResult, SandboxSpec};

use common::DockerTest;

/// A started sandbox of one test, removed by [`Started::close`].
struct Started {
    sandbox: AsyncSandbox,
    test: DockerTest,
}

async fn start(spec: SandboxSpec) -> Option<Started> {
    let test = common::docker().await?;
    let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(spec);
    sandbox.start().await.unwrap();
    Some(Started { sandbox, test })
}

impl Started {
    async fn exec(&self, options: impl Into<ExecOptions>) -> ExecResult {
        self.sandbox.exec_with(options.into()).await.unwrap()
    }

    async fn close(self) {
        self.sandbox.stop().await.unwrap();
        drop(self.test);
    }
}
