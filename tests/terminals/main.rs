//! Terminal sessions on a real engine, over its exec and over the agent: contract 2.13, 2.14, bugs B26, B34, B36.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what can't be done fails the test"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/proxy.rs"]
mod proxy;

mod attach;
mod commands;
mod ends;
mod flow;
mod keys;
mod many;
mod paused;
mod screen;
mod size;

use std::sync::Arc;
use std::time::Duration;

use common::DockerTest;
use gym_sandbox::docker::{DockerConfig, ExecPathPolicy};
use gym_sandbox::{AsyncSandbox, SandboxPtySession, SandboxPtySpec, SandboxSpec};

/// No step of a test takes so long, several calls of a busy engine among it.
const LIMIT: Duration = Duration::from_secs(180);

/// Makes a test of each path out of a function that takes a [`Subject`].
macro_rules! on_both_paths {
    ($($name:ident),+ $(,)?) => {
        mod engine {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(subject) = crate::Subject::start(gym_sandbox::docker::ExecPathPolicy::Engine).await {
                    super::$name(&subject).await;
                    subject.close().await;
                }
            })+
        }
        mod agent {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(subject) = crate::Subject::start(gym_sandbox::docker::ExecPathPolicy::Agent).await {
                    super::$name(&subject).await;
                    subject.close().await;
                }
            })+
        }
    };
}
pub(crate) use on_both_paths;

/// A sandbox whose commands go one way.
pub(crate) struct Subject {
    pub(crate) sandbox: Arc<AsyncSandbox>,
    pub(crate) test: DockerTest,
    pub(crate) path: ExecPathPolicy,
}

impl Subject {
    pub(crate) async fn start(path: ExecPathPolicy) -> Option<Self> {
        Self::start_with(path, common::busybox()).await
    }

    pub(crate) async fn start_with(path: ExecPathPolicy, spec: SandboxSpec) -> Option<Self> {
        let mut config = common::config();
        config.exec.exec_path = path;
        Self::start_of(config, path, spec).await
    }

    pub(crate) async fn start_configured(config: DockerConfig, path: ExecPathPolicy) -> Option<Self> {
        Self::start_of(config, path, common::busybox()).await
    }

    async fn start_of(config: DockerConfig, path: ExecPathPolicy, spec: SandboxSpec) -> Option<Self> {
        let test = common::docker_with(config).await?;
        let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(spec);
        sandbox.start().await.unwrap();
        Some(Self {
            sandbox: Arc::new(sandbox),
            test,
            path,
        })
    }

    /// The same sandbox in the hands of another provider, whose connections can be cut: all it knows of it comes by the
    /// engine's, as those to the agent. A provider that makes a sandbox has a socket to it which nothing cuts.
    pub(crate) async fn seen_from_afar(&self) -> Option<Afar> {
        let proxy = proxy::Proxy::start().await?;
        let mut config = common::config();
        config.exec.exec_path = self.path;
        config.host = Some(proxy.address());
        let test = common::docker_with(config).await?;
        let descriptor = self.sandbox.serialize(None).await.unwrap();
        let sandbox = AsyncSandbox::connect(test.provider.clone(), &descriptor)
            .await
            .unwrap();
        Some(Afar { sandbox, test, proxy })
    }

    pub(crate) async fn close(self) {
        self.sandbox.stop().await.unwrap();
    }

    pub(crate) async fn create(&self, spec: impl Into<SandboxPtySpec> + Send) -> SandboxPtySession {
        within(self.sandbox.pty().create(spec)).await.unwrap()
    }

    /// Runs a session to its end and gives all that it printed, and its code.
    pub(crate) async fn run(&self, spec: impl Into<SandboxPtySpec> + Send) -> (String, i32) {
        let session = self.create(spec).await;
        let text = to_end(&session).await;
        let code = within(session.wait_exit()).await.unwrap();
        session.close().await.unwrap();
        (text, code)
    }

    /// Runs a shell line beside all sessions.
    pub(crate) async fn line(&self, line: &str) -> String {
        let result = self.sandbox.exec(line).await.unwrap();
        result.stdout().unwrap_or_else(|| panic!("{line}: {result:?}"))
    }

    /// How many processes have a word in their command line.
    pub(crate) async fn processes_with(&self, word: &str) -> usize {
        let line = format!(
            "for d in /proc/[0-9]*; do c=$(tr '\\000' ' ' <$d/cmdline 2>/dev/null); \
             case $c in *'for d in'*) ;; *{word}*) echo x ;; esac; done | wc -l"
        );
        self.line(&line).await.trim().parse().unwrap()
    }

    /// Waits until a process has a word in its command line.
    pub(crate) async fn until_there(&self, word: &str) {
        let deadline = tokio::time::Instant::now() + LIMIT;
        while self.processes_with(word).await == 0 {
            assert!(
                tokio::time::Instant::now() < deadline,
                "no process with `{word}` comes"
            );
        }
    }

    /// Gives a command up when a process with this word in its command line runs.
    pub(crate) async fn give_up<T: std::fmt::Debug>(&self, command: impl Future<Output = T>, word: &str) {
        tokio::select! {
            ended = command => panic!("it ended: {ended:?}"),
            () = self.until_there(word) => {}
        }
    }

    /// Waits until no process has a word in its command line.
    pub(crate) async fn until_gone(&self, word: &str) {
        let deadline = tokio::time::Instant::now() + LIMIT;
        loop {
            let left = self.processes_with(word).await;
            if left == 0 {
                return;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "{left} processes with `{word}` are left"
            );
        }
    }
}

/// A sandbox behind connections that can be cut.
pub(crate) struct Afar {
    pub(crate) sandbox: AsyncSandbox,
    pub(crate) test: DockerTest,
    pub(crate) proxy: proxy::Proxy,
}

impl Afar {
    pub(crate) async fn create(&self, spec: impl Into<SandboxPtySpec> + Send) -> SandboxPtySession {
        within(self.sandbox.pty().create(spec)).await.unwrap()
    }
}

/// Fails the test instead of hanging.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future)
        .await
        .expect("it ends in time")
}

/// Reads to the end.
pub(crate) async fn to_end(session: &SandboxPtySession) -> String {
    let mut bytes = Vec::new();
    loop {
        let chunk = within(session.read()).await.unwrap();
        if chunk.is_empty() {
            return String::from_utf8_lossy(&bytes).into_owned();
        }
        bytes.extend_from_slice(&chunk);
    }
}

/// Reads until a text has come, and gives all that came.
pub(crate) async fn until(session: &SandboxPtySession, text: &str) -> String {
    let mut seen = String::new();
    let reading = async {
        while !seen.contains(text) {
            let chunk = session.read().await.unwrap();
            assert!(!chunk.is_empty(), "it ended before `{text}` came");
            seen.push_str(&String::from_utf8_lossy(&chunk));
        }
    };
    let in_time = tokio::time::timeout(LIMIT, reading).await.is_ok();
    assert!(in_time, "`{text}` did not come, but: {seen:?}");
    seen
}
