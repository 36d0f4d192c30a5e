//! A registry on 127.0.0.1, the real one of Debian's package `docker-registry`, and one that answers what it is told.
#![allow(dead_code, reason = "every test program uses another part of it")]
#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// Who may pull from a registry with a password, and the password. It holds what base64 spells differently in URLs.
pub(crate) const USER: &str = "tester";
pub(crate) const PASSWORD: &str = "se?cr>et~~?>";

/// The same as `htpasswd -B` writes it.
const HTPASSWD: &str = "tester:$2y$04$s/nvBvRQO8xJdYMAWGO5i.ZLJHoB/zmYyP7HEA2isOMnSFOjM0q6G";

/// A registry process. Dropping it ends it.
pub(crate) struct Registry {
    process: Child,
    folder: tempfile::TempDir,
    port: u16,
}

/// Who is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Everybody,
    /// [`USER`] with [`PASSWORD`].
    Password,
}

impl Registry {
    /// Starts one, or says why the test is skipped.
    ///
    /// # Panics
    /// Where the package is missing and `SANDBOX_REQUIRE_DOCKER` is 1, and where it does not start.
    pub(crate) async fn start(access: Access) -> Option<Self> {
        let program = ["/usr/bin/docker-registry", "/usr/bin/registry"]
            .into_iter()
            .find(|path| std::path::Path::new(path).exists());
        let Some(program) = program else {
            assert!(
                !crate::common::engine_is_required(),
                "SANDBOX_REQUIRE_DOCKER=1 and docker-registry is not installed; scripts/engine.sh up does that"
            );
            eprintln!("skipped: docker-registry is not installed");
            return None;
        };
        for _ in 0..5 {
            let mut registry = Self::spawn(program, access).await;
            if registry.answers().await {
                return Some(registry);
            }
        }
        panic!("docker-registry does not answer");
    }

    async fn spawn(program: &str, access: Access) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        // Somebody else may take it before the registry does; then another one is tried.
        let port = TcpListener::bind("127.0.0.1:0")
            .await
            .and_then(|listener| listener.local_addr())
            .expect("a port is free")
            .port();
        let root = folder.path().display();
        let auth = match access {
            Access::Everybody => String::new(),
            Access::Password => format!("auth: {{htpasswd: {{realm: test, path: {root}/htpasswd}}}}\n"),
        };
        let config = format!(
            "version: 0.1\nlog: {{level: warn}}\nstorage: {{filesystem: {{rootdirectory: {root}/data}}}}\n\
             http: {{addr: \"127.0.0.1:{port}\"}}\n{auth}"
        );
        std::fs::write(folder.path().join("config.yml"), config).expect("the folder is writable");
        std::fs::write(folder.path().join("htpasswd"), format!("{HTPASSWD}\n"))
            .expect("the folder is writable");
        let log = File::create(folder.path().join("log")).expect("the folder is writable");
        let process = Command::new(program)
            .arg("serve")
            .arg(folder.path().join("config.yml"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be opened twice"))
            .stderr(log)
            .spawn()
            .expect("docker-registry can be started");
        Self {
            process,
            folder,
            port,
        }
    }

    async fn answers(&mut self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            if matches!(self.process.try_wait(), Ok(Some(_))) {
                return false;
            }
            // Whoever has taken the port instead answers, too.
            if self.listens() && TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }

    /// Says whether it is this process that listens at the port.
    fn listens(&self) -> bool {
        const LISTENING: &str = "0A";
        let port = format!(":{:04X}", self.port);
        let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
        let at_the_port = sockets.lines().filter_map(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let (address, state, inode) = (columns.get(1)?, columns.get(3)?, columns.get(9)?);
            (address.ends_with(&port) && *state == LISTENING).then(|| format!("socket:[{inode}]"))
        });
        let listening: Vec<PathBuf> = at_the_port.map(PathBuf::from).collect();
        let own = std::fs::read_dir(format!("/proc/{}/fd", self.process.id()));
        own.into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .any(|target| listening.contains(&target))
    }

    /// As in `127.0.0.1:5000`.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).expect("the log can be read")
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// How often each blob was asked for, by its digest; a part of one counts, too.
    pub(crate) fn downloads(&self) -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        for line in self.log().lines() {
            let Some((_, request)) = line.split_once("\"GET /v2/") else {
                continue;
            };
            let path = request.split(' ').next().unwrap_or_default();
            if let Some((_, digest)) = path.split_once("/blobs/") {
                *counts.entry(digest.to_owned()).or_default() += 1;
            }
        }
        counts
    }

    /// How many requests hold this text.
    pub(crate) fn requests(&self, part: &str) -> usize {
        self.log().lines().filter(|line| line.contains(part)).count()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // One that has ended already can't be killed.
        let _ended = self.process.kill();
        let _waited = self.process.wait();
    }
}

/// What a made-up registry answers: status, content type, body.
pub(crate) type Answer = (u16, &'static str, String);

type Answers = dyn Fn(&str) -> Answer + Send + Sync;

/// A registry that answers each path of a GET or HEAD with what a function says. Dropping it ends it.
pub(crate) struct FakeRegistry {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
    server: JoinHandle<()>,
}

impl FakeRegistry {
    pub(crate) async fn start(answers: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let answers: Arc<Answers> = Arc::new(answers);
        let server = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (answers, seen) = (Arc::clone(&answers), Arc::clone(&seen));
                // A client that tries TLS first goes away again.
                connections.spawn(async move { answer(client, &*answers, &seen).await.unwrap_or_default() });
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            address,
            requests,
            server,
        }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// How many requests hold this text.
    pub(crate) fn requests(&self, part: &str) -> usize {
        let requests = self.requests.lock().expect("no holder panics");
        requests.iter().filter(|request| request.contains(part)).count()
    }
}

impl Drop for FakeRegistry {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(mut client: TcpStream, answers: &Answers, seen: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut request = Vec::new();
    loop {
        if client.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
        if request.first() == Some(&0x16) {
            // A TLS hello; this is a plain server.
            return Ok(());
        }
        let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&request[..end]).into_owned();
        request.drain(..end + 4);
        let line = head.lines().next().unwrap_or_default().to_owned();
        seen.lock().expect("no holder panics").push(line.clone());
        let mut words = line.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (status, kind, body) = answers(path);
        let head = format!(
            "HTTP/1.1 {status} -\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
             Docker-Distribution-API-Version: registry/2.0\r\n\r\n",
            body.len()
        );
        client.write_all(head.as_bytes()).await?;
        if method != "HEAD" {
            client.write_all(body.as_bytes()).await?;
        }
    }
}

/// A TCP proxy before a registry that ends a connection once it has passed so many bytes on, a number of times.
pub(crate) struct CuttingProxy {
    address: String,
    left: Arc<Mutex<u32>>,
    server: JoinHandle<()>,
}

/// A TCP proxy before a registry that goes away for good once it has passed so many bytes on.
pub(crate) struct VanishingProxy {
    address: String,
    server: JoinHandle<()>,
}

/// How a registry goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vanish {
    /// Nobody listens any more.
    Refuse,
    /// Every connection is taken and ended.
    Close,
    /// Every connection is taken and nothing ever comes.
    Silence,
}

impl VanishingProxy {
    pub(crate) async fn start(port: u16, after_bytes: usize, how: Vanish) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let server = tokio::spawn(async move {
            let gone = Arc::new(tokio::sync::Notify::new());
            let passed = Arc::new(Mutex::new(0));
            let mut connections = JoinSet::new();
            loop {
                let client = tokio::select! {
                    accepted = listener.accept() => accepted.expect("it listens").0,
                    () = gone.notified() => break,
                };
                let (gone, passed) = (Arc::clone(&gone), Arc::clone(&passed));
                connections.spawn(async move {
                    vanish(client, port, after_bytes, how, &passed, &gone)
                        .await
                        .unwrap_or_default();
                });
            }
            drop(listener);
            connections.shutdown().await;
        });
        Self { address, server }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for VanishingProxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn vanish(
    mut client: TcpStream,
    port: u16,
    after_bytes: usize,
    how: Vanish,
    passed: &Mutex<usize>,
    gone: &tokio::sync::Notify,
) -> std::io::Result<()> {
    let mut registry = TcpStream::connect(("127.0.0.1", port)).await?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_registry, mut to_registry) = registry.split();
    let is_over = || *passed.lock().expect("no holder panics") > after_bytes;
    let backward = async {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            if is_over() {
                match how {
                    Vanish::Refuse => gone.notify_one(),
                    Vanish::Close => {}
                    Vanish::Silence => std::future::pending().await,
                }
                return Ok(());
            }
            let read = from_registry.read(&mut buffer).await?;
            if read == 0 {
                return Ok(());
            }
            to_client.write_all(&buffer[..read]).await?;
            *passed.lock().expect("no holder panics") += read;
        }
    };
    tokio::select! {
        ended = tokio::io::copy(&mut from_client, &mut to_registry) => ended.map(drop),
        ended = backward => ended,
    }
}

impl CuttingProxy {
    pub(crate) async fn start(port: u16, after_bytes: usize, times: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let left = Arc::new(Mutex::new(times));
        let cuts = Arc::clone(&left);
        let server = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let cuts = Arc::clone(&cuts);
                connections.spawn(async move {
                    pass(client, port, after_bytes, &cuts).await.unwrap_or_default();
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            address,
            left,
            server,
        }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// How many cuts are left.
    pub(crate) fn left(&self) -> u32 {
        *self.left.lock().expect("no holder panics")
    }
}

impl Drop for CuttingProxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn pass(
    mut client: TcpStream,
    port: u16,
    after_bytes: usize,
    cuts: &Mutex<u32>,
) -> std::io::Result<()> {
    let mut registry = TcpStream::connect(("127.0.0.1", port)).await?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_registry, mut to_registry) = registry.split();
    let backward = async {
        let mut passed = 0;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = from_registry.read(&mut buffer).await?;
            if read == 0 {
                return Ok(());
            }
            passed += read;
            if passed > after_bytes {
                let mut left = cuts.lock().expect("no holder panics");
                if *left > 0 {
                    *left -= 1;
                    return Ok(());
                }
            }
            to_client.write_all(&buffer[..read]).await?;
        }
    };
    tokio::select! {
        ended = tokio::io::copy(&mut from_client, &mut to_registry) => ended.map(drop),
        ended = backward => ended,
    }
}
