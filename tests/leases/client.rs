//! The clients: this program, run again with a role.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gym_sandbox::docker::{DockerConfig, DockerProvider, SweepWhen};
use gym_sandbox::provider::FilesProvider;
use gym_sandbox::{ExecOptions, SandboxHandle, SandboxProvider, UploadOptions, UploadSource};
use tokio::process::Command;

use crate::child::{self, Player};
use crate::common::busybox;
use crate::proxy::Proxy;

/// The test below that is run as a client.
const PLAYED_BY: &str = "client::child";

const ROLE: &str = "GYM_SANDBOX_TEST_ROLE";
const LEASE: &str = "GYM_SANDBOX_TEST_LEASE";
/// How patient it is with others, in seconds.
pub(crate) const GRACE: &str = "GYM_SANDBOX_TEST_GRACE";

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Makes one sandbox a line of input; "exec" runs a command in each; "end" removes all and ends.
    Holder,
    /// Makes, uses and removes sandboxes until it is killed.
    Worker,
    /// Makes sandboxes without end and asks for their removal on signals.
    Signalled,
    /// As the holder, behind a proxy of its own in a network namespace of its own.
    Elsewhere,
    /// Reaches the engine, sweeps by itself when the first line of input says so, and ends.
    Connecting,
}

/// Where a client seems to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Machine {
    /// Here: its owner file is seen.
    This,
    /// On another: only the engine shows anything of it.
    Other,
}

/// How long its leases are, in seconds: length and renewal.
pub(crate) type Lease = (f64, f64);

/// A running client. It is killed when dropped.
pub(crate) struct Client {
    player: Player,
    /// Its `TMPDIR`, where that is not everybody's.
    _folder: Option<tempfile::TempDir>,
}

impl Client {
    pub(crate) fn start(role: Role, run: &str, machine: Machine, lease: Lease) -> Self {
        Self::start_with(role, run, machine, lease, |_| {})
    }

    /// One whose engine is behind a proxy, which sees when the engine is at nothing any more that it was asked for.
    pub(crate) fn behind(proxy: &Proxy, role: Role, run: &str, machine: Machine, lease: Lease) -> Self {
        Self::start_with(role, run, machine, lease, |command| {
            command.env("DOCKER_HOST", proxy.address());
        })
    }

    pub(crate) fn start_with(
        role: Role,
        run: &str,
        machine: Machine,
        lease: Lease,
        change: impl FnOnce(&mut Command),
    ) -> Self {
        let mut command = if role == Role::Elsewhere {
            let mut command = Command::new("unshare");
            command
                .args(["--net", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""])
                .arg(std::env::current_exe().unwrap())
                .args(child::arguments(PLAYED_BY));
            command
        } else {
            child::command(PLAYED_BY)
        };
        command
            .env(ROLE, format!("{role:?}"))
            .env(LEASE, format!("{} {}", lease.0, lease.1))
            .env("GYM_SANDBOX_RUN", run);
        let folder = (machine == Machine::Other).then(|| tempfile::tempdir().unwrap());
        if let Some(folder) = &folder {
            command
                .env("TMPDIR", folder.path())
                .env("XDG_RUNTIME_DIR", folder.path());
        }
        change(&mut command);
        Self {
            player: Player::start(command),
            _folder: folder,
        }
    }

    /// The rest of the next line that begins with this word.
    pub(crate) async fn says(&mut self, word: &str) -> String {
        self.player.says(word).await
    }

    pub(crate) async fn tell(&mut self, line: &str) {
        self.player.tell(line).await;
    }

    /// Has a holder make a sandbox, and gives its id.
    pub(crate) async fn make(&mut self, options: &str) -> String {
        self.tell(&format!("make {options}")).await;
        self.says("made").await
    }

    /// Has a holder take over a sandbox of another one.
    pub(crate) async fn attach(&mut self, id: &str) {
        self.tell(&format!("attach {id}")).await;
        assert_eq!(self.says("attached").await, id);
    }

    /// Has a holder drop what it has, without a word to the engine.
    pub(crate) async fn forget(&mut self) {
        self.tell("forget").await;
        self.says("forgot").await;
    }

    /// Has a holder run a command in each of its sandboxes, and looks that all went well.
    pub(crate) async fn works(&mut self, sandboxes: usize) {
        self.tell("exec").await;
        assert_eq!(self.says("ran").await, format!("{sandboxes} of {sandboxes}"));
    }

    /// Has a holder remove everything and end.
    pub(crate) async fn end(mut self) {
        self.tell("end").await;
        let status = self.player.ended().await;
        assert!(status.success(), "{status}");
    }

    /// Has a holder end and leave what it has made.
    pub(crate) async fn end_without_closing(mut self) {
        self.tell("leave").await;
        assert_eq!(self.exit_code().await, Some(0));
    }

    pub(crate) async fn signal(&self, signal: &str) {
        let pid = self.player.pid().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status().await;
        assert!(sent.unwrap().success());
    }

    pub(crate) async fn kill(&mut self) {
        self.player.kill().await;
    }

    pub(crate) async fn exit_code(&mut self) -> Option<i32> {
        self.player.ended().await.code()
    }
}

fn config() -> DockerConfig {
    let mut config = crate::common::config();
    let lease = std::env::var(LEASE).unwrap();
    let (length, renewal) = lease.split_once(' ').unwrap();
    config.lease.length = Duration::from_secs_f64(length.parse().unwrap());
    config.lease.renewal = Duration::from_secs_f64(renewal.parse().unwrap());
    if let Ok(grace) = std::env::var(GRACE) {
        config.lease.grace = Duration::from_secs_f64(grace.parse().unwrap());
    }
    config
}

/// What the other tests run as a client; a test that does nothing by itself.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        match role.as_str() {
            "Holder" => hold(config()).await,
            "Worker" => work().await,
            "Signalled" => work_until_signalled().await,
            "Elsewhere" => {
                let proxy = crate::proxy::Proxy::start().await.unwrap();
                let mut config = config();
                config.host = Some(proxy.address());
                hold(config).await;
            }
            "Connecting" => {
                let mut config = config();
                if lines_of_input().recv().await.as_deref() == Some("sweep") {
                    config.lease.sweep = SweepWhen::Connect;
                }
                DockerProvider::connect(config)
                    .await
                    .unwrap()
                    .aclose()
                    .await
                    .unwrap();
            }
            other => panic!("{other}"),
        }
    });
}

fn lines_of_input() -> tokio::sync::mpsc::Receiver<String> {
    let (sender, receiver) = tokio::sync::mpsc::channel(8);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            if sender.blocking_send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    receiver
}

async fn hold(config: DockerConfig) {
    let provider = DockerProvider::connect(config).await.unwrap();
    let mut held: Vec<SandboxHandle> = Vec::new();
    let mut input = lines_of_input();
    while let Some(line) = input.recv().await {
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("make", options) => {
                let mut spec = busybox();
                for option in options.split_whitespace() {
                    spec = match option.split_once('=').unwrap() {
                        ("ttl", seconds) => spec.with_ttl(Duration::from_secs_f64(seconds.parse().unwrap())),
                        ("idle", seconds) => {
                            spec.with_idle_timeout(Duration::from_secs_f64(seconds.parse().unwrap()))
                        }
                        ("exec_path", path) => spec.with_provider_option("exec_path", path),
                        ("project", project) => spec.with_provider_option("project", project),
                        ("keep", _) => spec.with_provider_option("keep", true),
                        other => panic!("{other:?}"),
                    };
                }
                let handle = provider.create(&spec).await.unwrap();
                println!("client-made {}", handle.sandbox_id());
                held.push(handle);
            }
            ("exec", _) => {
                let mut well = 0;
                for handle in &held {
                    let result = provider
                        .exec(handle, ExecOptions::new("echo well"))
                        .await
                        .unwrap();
                    well += usize::from(result.is_success());
                }
                println!("client-ran {well} of {}", held.len());
            }
            ("attach", id) => {
                let handle = provider.attach(id).await.unwrap();
                println!("client-attached {}", handle.sandbox_id());
                held.push(handle);
            }
            ("forget", _) => {
                held.clear();
                println!("client-forgot all");
            }
            ("end", _) => break,
            ("leave", _) => return,
            other => panic!("{other:?}"),
        }
    }
    for handle in &held {
        provider.close(handle).await.unwrap();
    }
    provider.aclose().await.unwrap();
}

async fn work() {
    let provider = DockerProvider::connect(config()).await.unwrap();
    println!("client-works 0");
    for turn in 1.. {
        turn_of_work(&provider, Path::new("/proc/self/exe")).await;
        println!("client-works {turn}");
    }
}

/// Everything that a client may be killed in.
async fn turn_of_work(provider: &DockerProvider, file: &Path) {
    let handle = provider.create(&busybox()).await.unwrap();
    let run = |line: &'static str| provider.exec(&handle, ExecOptions::new(line));
    run("sleep 0.05; echo x > /x").await.unwrap();
    let source = UploadSource::Path(file);
    provider
        .upload(&handle, source, "/program", &UploadOptions::default())
        .await
        .unwrap();
    run("wc -c /program").await.unwrap();
    provider.close(&handle).await.unwrap();
}

async fn work_until_signalled() {
    gym_sandbox::remove_on_signals().unwrap();
    let provider = Arc::new(DockerProvider::connect(config()).await.unwrap());
    for number in 0..3 {
        let handle = provider.create(&busybox()).await.unwrap();
        println!("client-made {number} {}", handle.sandbox_id());
    }
    let more: Vec<_> = (0..3)
        .map(|_| {
            let provider = Arc::clone(&provider);
            tokio::spawn(async move {
                loop {
                    // After the signal what it makes is removed under its hands.
                    let _made = provider.create(&busybox()).await;
                    tokio::time::sleep(Duration::from_millis(300)).await;
                }
            })
        })
        .collect();
    println!("client-busy now");
    // They never end: the signal does.
    futures::future::join_all(more).await;
}
