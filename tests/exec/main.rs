//! Commands on a real engine, to the letter: contract 2.8, D1-D6, D31, D32, and the kinds of bugs.md section 1.

#![expect(clippy::unwrap_used, reason = "what can't be done fails the test")]

#[path = "../common/mod.rs"]
mod common;

mod dead_sandbox;
mod kill;
mod memory;
mod results;
mod spawn;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use common::DockerTest;
use gym_sandbox::docker::{DockerConfig, ExecPathPolicy};
use gym_sandbox::{AsyncSandbox, ExecOptions, ExecResult, SandboxSpec};

/// A started sandbox of one test, removed by [`Started::close`].
pub(crate) struct Started {
    pub(crate) sandbox: Arc<AsyncSandbox>,
    pub(crate) test: DockerTest,
}

/// A configuration under which the engine runs the commands, for what is only so on that path.
pub(crate) fn engine_path() -> DockerConfig {
    let mut config = DockerConfig::default();
    config.exec.exec_path = ExecPathPolicy::Engine;
    config
}

/// Starts a sandbox, or skips the test visibly.
pub(crate) async fn start(spec: SandboxSpec) -> Option<Started> {
    let test = common::docker().await?;
    Some(start_with(test, spec).await)
}

pub(crate) async fn start_with(test: DockerTest, spec: SandboxSpec) -> Started {
    let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(spec);
    sandbox.start().await.unwrap();
    Started {
        sandbox: Arc::new(sandbox),
        test,
    }
}

impl Started {
    pub(crate) async fn exec(&self, options: impl Into<ExecOptions>) -> ExecResult {
        self.sandbox.exec_with(options.into()).await.unwrap()
    }

    pub(crate) async fn stdout(&self, options: impl Into<ExecOptions>) -> String {
        let result = self.exec(options).await;
        assert!(result.is_success(), "{result:?}");
        result.stdout().unwrap()
    }

    pub(crate) async fn close(self) {
        self.sandbox.stop().await.unwrap();
    }

    /// Runs a command until its output is the expected one; the last output when it never is.
    pub(crate) async fn until(&self, command: &str, expected: &str) -> String {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        loop {
            let output = self.exec(command).await.stdout().unwrap_or_default();
            if output == expected || tokio::time::Instant::now() > deadline {
                return output;
            }
        }
    }
}

/// A shell line that prints the command lines of all processes but those that are always there, one a line; the
/// agent's are left out as well.
pub(crate) const PROCESSES: &str = r#"for d in /proc/[0-9]*; do
  p=${d#/proc/}; [ $p = 1 ] || [ $p = $$ ] && continue
  read -r stat <$d/stat 2>/dev/null || continue
  case ${stat##*) } in Z*|X*) continue ;; esac
  c=; IFS= read -r c <$d/cmdline 2>/dev/null
  case $c in *sleep3600*|*"sleep 3600"*|/.gym-sandbox/agent*|"") continue ;; esac
  echo "$c"
done 2>/dev/null; true"#;

/// A shell line that counts the sleeping processes of commands; the keepalive's own is not one.
pub(crate) fn sleepers() -> String {
    format!("( {PROCESSES} ) | grep -c '^sleep'")
}
