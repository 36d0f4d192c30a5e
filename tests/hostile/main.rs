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

use std::time::{Duration, Instant};

use gym_sandbox::docker::{DockerConfig, ExecPathPolicy};
use gym_sandbox::{AsyncSandbox, ExecOptions, ExecResult, SandboxSpec};

use common::DockerTest;

/// No step of a test takes so long, several calls of a busy engine among it.
const LIMIT: Duration = Duration::from_secs(120);

/// A started sandbox of one test, removed by [`Started::close`].
struct Started {
    sandbox: AsyncSandbox,
    test: DockerTest,
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
    Some(Started { sandbox, test })
}

impl Started {
    async fn exec(&self, options: impl Into<ExecOptions>) -> ExecResult {
        self.sandbox.exec_with(options.into()).await.unwrap()
    }

    /// The command lines of all processes but those that keep the sandbox alive. Asks the engine, which no process can
    /// hide from.
    async fn processes(&self) -> Vec<String> {
        let client = common::client().await.unwrap();
        let id = self.sandbox.sandbox_id().unwrap();
        let top = client.top_processes(id.as_str(), None).await.unwrap();
        let command = top
            .titles
            .unwrap()
            .iter()
            .position(|title| title == "CMD")
            .unwrap();
        let rows = top.processes.unwrap().into_iter();
        let commands = rows.map(|columns| columns[command].clone());
        commands
            .filter(|command| !KEEPS_ALIVE.iter().any(|own| command.contains(own)))
            .collect()
    }

    /// Waits until there are none of them.
    async fn until_at_rest(&self) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let left = self.processes().await;
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "they live on: {left:?}");
        }
    }

    async fn close(self) {
        self.sandbox.stop().await.unwrap();
        drop(self.test);
    }
}

/// In the command lines of what keeps a sandbox alive: of the agent and its runners, of an init and the keepalive, and of
/// that one's sleep.
const KEEPS_ALIVE: [&str; 3] = [
    "/.gym-sandbox/agent",
    "trap 'exit 0' TERM INT; while",
    "sleep 3600",
];
