//! The agent on an engine that maps users: the root of its sandboxes is an ordinary user of this machine. The engine is one
//! of this test's own.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::query_parameters::{ImportImageOptions, ListContainersOptionsBuilder};
use futures::StreamExt;
use gym_sandbox::docker::{DockerProvider, DockerRaw, ExecPathPolicy};
use gym_sandbox::{ExecErrorType, ExecOptions, ExecPath, SandboxProvider};
use rustix::process::{Pid, Signal, kill_process};

use super::common;

/// How long an engine may take to start or to end on a busy machine.
const ENGINE: Duration = Duration::from_secs(120);

/// Starts a dockerd that does not take the containerd of this machine, which has another mount namespace.
const ON_ITS_OWN: &str =
    r#"[ ! -d /run/containerd ] || mount -t tmpfs none /run/containerd; exec dockerd "$@""#;

/// An engine that ends with the test.
struct Engine {
    daemon: Child,
    host: String,
    folder: tempfile::TempDir,
}

/// Why no such engine can be started here; None where it can.
fn obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("starting an engine takes root".to_owned());
    }
    // An engine would make that user, and a test changes nothing of the machine.
    let ids = std::fs::read_to_string("/etc/subuid").unwrap_or_default();
    if !ids.lines().any(|line| line.starts_with("dockremap:")) {
        return Some("/etc/subuid has no range for `dockremap`".to_owned());
    }
    let found = Command::new("unshare")
        .args(["--net", "--mount", "dockerd", "--version"])
        .stdout(Stdio::null())
        .status();
    match found {
        Ok(status) if status.success() => None,
        Ok(_) => Some("dockerd can't be run in a network namespace of its own".to_owned()),
        Err(error) => Some(format!("`unshare` can't be run: {error}")),
    }
}

impl Engine {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let host = format!("unix://{}", path("socket"));
        // What this machine's own engine is told is not for this one.
        std::fs::write(folder.path().join("daemon.json"), "{}").unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        // Without a network namespace of its own it would take the first engine's bridge away.
        let daemon = Command::new("unshare")
            .args(["--net", "--mount", "sh", "-c", ON_ITS_OWN, "sh"])
            .args(["--config-file", &path("daemon.json")])
            .args([
                "--userns-remap=default",
                "--bridge=none",
                "--iptables=false",
                "--ip-forward=false",
            ])
            .args([
                "--host",
                &host,
                "--data-root",
                &path("data"),
                "--exec-root",
                &path("exec"),
            ])
            .args(["--pidfile", &path("pid")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut engine = Self { daemon, host, folder };
        let began = Instant::now();
        while !engine.answers().await {
            let ended = engine.daemon.try_wait().unwrap();
            assert!(
                ended.is_none() && began.elapsed() < ENGINE,
                "{ended:?}: {}",
                engine.log()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        engine
    }

    fn connection(&self) -> Result<Docker, bollard::errors::Error> {
        let path = self.host.trim_start_matches("unix://");
        Docker::connect_with_unix(path, 120, bollard::API_DEFAULT_VERSION)
    }

    async fn answers(&self) -> bool {
        match self.connection() {
            Ok(client) => client.ping().await.is_ok(),
            // The socket is not there yet.
            Err(_) => false,
        }
    }

    async fn client(&self) -> Docker {
        self.connection().unwrap().negotiate_version().await.unwrap()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Takes an image over from the engine of the tests.
    async fn take(&self, image: &str) {
        let from = common::client().await.unwrap();
        let archive: Vec<_> = from.export_image(image).collect().await;
        let archive: Vec<u8> = archive
            .into_iter()
            .flat_map(|piece| piece.unwrap().to_vec())
            .collect();
        let to = self.client().await;
        let options = ImportImageOptions::default();
        let mut said = to.import_image(options, bollard::body_full(archive.into()), None);
        while let Some(line) = said.next().await {
            line.unwrap();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let pid = Pid::from_child(&self.daemon);
        if kill_process(pid, Signal::TERM).is_ok() {
            let began = Instant::now();
            while matches!(self.daemon.try_wait(), Ok(None)) && began.elapsed() < ENGINE {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        // It has ended, or does not want to.
        let _killed = self.daemon.kill().is_ok();
        let _reaped = self.daemon.wait().is_ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d01_an_engine_with_user_namespaces_has_the_agent_too() {
    if let Some(why) = obstacle() {
        // Who has an engine of his own keeps the users of his machine; `scripts/engine.sh` makes it with the engine.
        assert!(std::env::var_os("CI").is_none(), "in CI, and {why}");
        eprintln!("skipped: {why}");
        return;
    }
    let engine = Engine::start().await;
    engine.take(common::BUSYBOX).await;
    let mut config = common::config();
    config.host = Some(engine.host.clone());
    config.exec.exec_path = ExecPathPolicy::Agent;
    let provider = DockerProvider::connect(config.clone()).await.unwrap();
    let spec = common::busybox().with_provider_option("network", "none");
    let sandbox = provider.create(&spec).await.unwrap();
    let raw = sandbox.raw::<DockerRaw>().unwrap();
    assert_eq!(raw.exec_path(), ExecPath::Agent, "{:?}", raw.engine_reason());

    let mapped = ExecOptions::new("id -u; awk '{print ($2 > 0)}' /proc/self/uid_map");
    let result = provider.exec(&sandbox, mapped).await.unwrap();
    assert_eq!(
        (result.stdout().as_deref(), result.exec_path),
        (Some("0\n1\n"), ExecPath::Agent)
    );
    let as_user = ExecOptions::new("id -u").with_user("1234");
    let result = provider.exec(&sandbox, as_user).await.unwrap();
    assert_eq!(
        (result.stdout().as_deref(), result.exec_path),
        (Some("1234\n"), ExecPath::Agent)
    );

    let mut limit = Duration::from_millis(300);
    let result = loop {
        let hung = ExecOptions::new("(sleep 999 &) ; sleep 998").with_timeout(limit);
        let result = provider.exec(&sandbox, hung).await.unwrap();
        // A busy machine may not have begun with it in its time.
        if result.killed >= Some(2) || limit > ENGINE / 4 {
            break result;
        }
        limit *= 2;
    };
    assert_eq!(
        (result.error_type, result.survivors),
        (Some(ExecErrorType::Timeout), Some(0)),
        "{result:?}"
    );

    // Another client has no socket of its own in the sandbox: it goes by an exec of the engine.
    let other = DockerProvider::connect(config).await.unwrap();
    let joined = other.attach(sandbox.sandbox_id().as_str()).await.unwrap();
    let result = other.exec(&joined, ExecOptions::new("echo there")).await.unwrap();
    assert_eq!(
        (result.stdout().as_deref(), result.exec_path),
        (Some("there\n"), ExecPath::Agent)
    );
    other.aclose().await.unwrap();

    provider.close(&sandbox).await.unwrap();
    provider.aclose().await.unwrap();
    let everything = ListContainersOptionsBuilder::new().all(true).build();
    let left = engine
        .client()
        .await
        .list_containers(Some(everything))
        .await
        .unwrap();
    assert!(left.is_empty(), "{left:?}");
}
