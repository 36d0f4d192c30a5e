//! Sandboxes and callers that mean no good: what they do must not be believed, must not hang and must not leak.

#![allow(
    clippy::unwrap_used,
    clippy::similar_names,
    clippy::print_stderr,
    reason = "what can't be done fails the test"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/proxy.rs"]
mod proxy;

mod calls;
mod engine;
mod killing;
mod terminals;

use gym_sandbox::docker::{DockerConfig, ExecPathPolicy};
use gym_sandbox::{AsyncSandbox, ExecOptions, ExecResult, SandboxSpec};

use common::DockerTest;

/// A started sandbox of one test, removed by [`Started::close`].
struct Started {
    sandbox: AsyncSandbox,
    test: DockerTest,
    /// How many processes it has without any command.
    at_rest: usize,
}

async fn start(spec: SandboxSpec) -> Option<Started> {
    start_with(DockerConfig::default(), spec).await
}

/// One sandbox for each way to run commands.
async fn start_both_ways(spec: SandboxSpec) -> Vec<Started> {
    let mut all = Vec::new();
    for path in [ExecPathPolicy::Engine, ExecPathPolicy::Agent] {
        let mut config = DockerConfig::default();
        config.exec.exec_path = path;
        all.extend(start_with(config, spec.clone()).await);
    }
    all
}

async fn start_with(config: DockerConfig, spec: SandboxSpec) -> Option<Started> {
    let test = common::docker_with(config).await?;
    let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(spec);
    sandbox.start().await.unwrap();
    let mut started = Started {
        sandbox,
        test,
        at_rest: 0,
    };
    started.at_rest = started.processes().await;
    Some(started)
}

impl Started {
    async fn exec(&self, options: impl Into<ExecOptions>) -> ExecResult {
        self.sandbox.exec_with(options.into()).await.unwrap()
    }

    /// Asks the engine, which no process can hide from.
    async fn processes(&self) -> usize {
        let client = common::client().await.unwrap();
        let id = self.sandbox.sandbox_id().unwrap();
        let top = client.top_processes(id.as_str(), None).await.unwrap();
        top.processes.unwrap().len()
    }

    async fn close(self) {
        self.sandbox.stop().await.unwrap();
        drop(self.test);
    }
}
