//! An engine that stops answering, or goes away, in the middle of a call: seen through a proxy of the test's own.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gym_sandbox::docker::{DockerConfig, ExecPathPolicy};
use gym_sandbox::{
    AsyncSandbox, ExecErrorType, ExecOptions, ExecReason, ExecTimeout, SandboxReason, SandboxSpec,
    SandboxStatus,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use super::{LIMIT, common};

/// What the proxy does with what it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    Passes,
    /// Everything is accepted and nothing answered.
    Hangs,
    /// All connections are cut and new ones refused.
    Gone,
}

pub(super) struct Proxy {
    path: PathBuf,
    pub(super) mood: watch::Sender<Mood>,
    task: tokio::task::JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Proxy {
    fn start() -> Option<Self> {
        let engine = std::env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".into());
        let engine = engine.strip_prefix("unix://")?.to_owned();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let (mood, moods) = watch::channel(Mood::Passes);
        let task = tokio::spawn(async move {
            loop {
                let Ok((client, _)) = listener.accept().await else {
                    return;
                };
                let engine = engine.clone();
                let mut moods = moods.clone();
                tokio::spawn(async move {
                    if *moods.borrow() == Mood::Gone {
                        return;
                    }
                    let Ok(engine) = UnixStream::connect(engine).await else {
                        return;
                    };
                    let hangs = Arc::new(AtomicBool::new(false));
                    let (client_in, client_out) = client.into_split();
                    let (engine_in, engine_out) = engine.into_split();
                    let there = tokio::spawn(pass(client_in, engine_out, Arc::clone(&hangs)));
                    let back = tokio::spawn(pass(engine_in, client_out, Arc::clone(&hangs)));
                    loop {
                        let mood = *moods.borrow_and_update();
                        hangs.store(mood == Mood::Hangs, Ordering::SeqCst);
                        if mood == Mood::Gone {
                            there.abort();
                            back.abort();
                            return;
                        }
                        if moods.changed().await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Some(Self {
            path,
            mood,
            task,
            _folder: folder,
        })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(
    from: tokio::net::unix::OwnedReadHalf,
    mut to: tokio::net::unix::OwnedWriteHalf,
    hangs: Arc<AtomicBool>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if from.readable().await.is_err() {
            return;
        }
        while hangs.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        match from.try_read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                if to.write_all(&buffer[..read]).await.is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
    let _closed = to.shutdown().await;
}

pub(super) struct Behind {
    pub(super) proxy: Proxy,
    pub(super) sandbox: Arc<AsyncSandbox>,
    pub(super) test: common::DockerTest,
}

pub(super) async fn behind_a_proxy() -> Option<Behind> {
    let Some(proxy) = Proxy::start() else {
        eprintln!("skipped: the engine is not on a unix socket");
        return None;
    };
    let mut config = DockerConfig::default();
    // Commands of the agent need no engine.
    config.exec.exec_path = ExecPathPolicy::Engine;
    config.host = Some(format!("unix://{}", proxy.path.display()));
    let test = common::docker_with(config).await?;
    let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(SandboxSpec::new(common::BUSYBOX));
    sandbox.start().await.unwrap();
    Some(Behind {
        proxy,
        sandbox: Arc::new(sandbox),
        test,
    })
}

impl Behind {
    pub(super) async fn close(self) {
        self.proxy.mood.send_replace(Mood::Passes);
        self.sandbox.stop().await.unwrap();
        drop(self.test);
    }
}

// The clean-up at the end blocks its thread, and needs the proxy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d03_a_timeout_is_in_time_when_the_engine_hangs() {
    let Some(behind) = behind_a_proxy().await else {
        return;
    };
    let mut limit = Duration::from_secs(3);
    let (result, took) = loop {
        let began = Instant::now();
        let options = ExecOptions::new("echo begun; sleep 987654").with_timeout(limit);
        let mut command = behind.sandbox.spawn(options).await.unwrap();
        let mut lines = BufReader::new(command.take_stdout().unwrap()).lines();
        let first = lines.next_line().await.unwrap();
        behind.proxy.mood.send_replace(Mood::Hangs);
        let was_in_time = first.is_some() && began.elapsed() < limit;
        let hung = Instant::now();
        let result = command.wait().await.unwrap();
        // The command has to begin before the engine hangs, which takes a busy one seconds: then it gets more.
        if was_in_time || limit > LIMIT / 4 {
            break (result, hung.elapsed());
        }
        behind.proxy.mood.send_replace(Mood::Passes);
        limit *= 4;
    };
    assert_eq!(result.error_type, Some(ExecErrorType::Timeout), "{result:?}");
    assert_eq!(result.survivors, None, "nothing is known: {result:?}");
    assert!(took < limit + Duration::from_secs(90), "{took:?}");
    behind.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d06_an_engine_that_goes_away_under_a_command_is_no_result_of_it() {
    let Some(behind) = behind_a_proxy().await else {
        return;
    };
    for line in ["touch /tmp/begun; sleep 987654", "touch /tmp/begun; yes"] {
        let call = {
            let sandbox = Arc::clone(&behind.sandbox);
            let options = ExecOptions::new(line).with_timeout(ExecTimeout::Never);
            tokio::spawn(async move { sandbox.exec_with(options).await.unwrap() })
        };
        let there = "until test -e /tmp/begun; do sleep 0.1; done; rm /tmp/begun";
        assert!(behind.sandbox.exec(there).await.unwrap().is_success());
        behind.proxy.mood.send_replace(Mood::Gone);
        let began = Instant::now();
        let result = call.await.unwrap();
        assert_eq!(
            (result.return_code, result.reason),
            (125, Some(ExecReason::Sandbox(SandboxReason::DaemonUnreachable))),
            "{line} {result:?}"
        );
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
        assert_eq!(behind.sandbox.status().await.unwrap(), SandboxStatus::Unknown);
        let next = behind.sandbox.exec("true").await.unwrap();
        assert_eq!(
            next.reason,
            Some(ExecReason::Sandbox(SandboxReason::DaemonUnreachable)),
            "{next:?}"
        );
        behind.proxy.mood.send_replace(Mood::Passes);
        assert!(
            behind.sandbox.exec("true").await.unwrap().is_success(),
            "it is back"
        );
    }
    behind.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d06_an_engine_that_was_away_for_a_moment_is_no_result_either() {
    let Some(proxy) = crate::proxy::Proxy::start().await else {
        return;
    };
    let mut config = DockerConfig::default();
    config.exec.exec_path = ExecPathPolicy::Engine;
    config.host = Some(proxy.address());
    let Some(test) = common::docker_with(config).await else {
        return;
    };
    let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(SandboxSpec::new(common::BUSYBOX));
    sandbox.start().await.unwrap();
    let mut command = sandbox
        .spawn(ExecOptions::new("echo started; sleep 987654"))
        .await
        .unwrap();
    let mut lines = BufReader::new(command.take_stdout().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("started"));
    proxy.go_down();
    proxy.until_execs_are_sought(1).await;
    proxy.come_up();
    // What it prints from here on is lost, although it runs and the engine says so.
    let began = Instant::now();
    let result = command.wait().await.unwrap();
    assert_eq!(
        (result.return_code, result.reason),
        (125, Some(ExecReason::Sandbox(SandboxReason::DaemonUnreachable))),
        "{result:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert!(sandbox.exec("true").await.unwrap().is_success(), "it is back");
    sandbox.stop().await.unwrap();
}
