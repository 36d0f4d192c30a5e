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
use std::time::{Duration, Instant};

use common::DockerTest;
use gym_sandbox::docker::{DockerConfig, ExecPathPolicy};
use gym_sandbox::{AsyncSandbox, ExecErrorType, ExecOptions, ExecResult, SandboxSpec};

/// No step of a test takes so long, several calls of a busy engine among it.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

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

    /// Lets a shell line run out of its time, as a user, and gives the result, which says as well what its time was. Where the
    /// line is not seen to have done what it does first before that, it gets more time: a busy machine takes seconds for
    /// what an idle one does at once. It has done it when it has made the file `/tmp/ready`.
    pub(crate) async fn out_of_time(&self, line: &str, user: Option<&str>) -> (ExecResult, Duration) {
        let mut limit = Duration::from_secs(1);
        loop {
            let began = Instant::now();
            let command = |line: &str| {
                let mut options = ExecOptions::new(["sh", "-c", line]);
                options.user = user.map(Into::into);
                options
            };
            let options = command(line).with_timeout(limit);
            let look = async {
                while began.elapsed() < limit {
                    if self.exec("test -e /tmp/ready").await.is_success() {
                        return began.elapsed() < limit;
                    }
                }
                false
            };
            let (result, was_ready) = tokio::join!(self.exec(options), look);
            assert_eq!(
                (result.return_code, result.error_type),
                (125, Some(ExecErrorType::Timeout)),
                "{result:?}"
            );
            if was_ready || limit > LIMIT / 4 {
                return (result, limit);
            }
            limit *= 4;
            self.exec(command("rm -f /tmp/ready")).await;
        }
    }

    /// Runs a command until its output is the expected one; the last output when it never is.
    pub(crate) async fn until(&self, command: &str, expected: &str) -> String {
        let deadline = tokio::time::Instant::now() + LIMIT;
        loop {
            let output = self.exec(command).await.stdout().unwrap_or_default();
            if output == expected || tokio::time::Instant::now() > deadline {
                return output;
            }
        }
    }
}

/// Says whether a command that ran out of its time had begun in it. What has not is not killed, and no word is lost about it.
pub(crate) fn was_started(result: &ExecResult) -> bool {
    let said = result.stderr().unwrap_or_default();
    result.killed.is_some() || said.contains("not known") || said.contains("did not say")
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
