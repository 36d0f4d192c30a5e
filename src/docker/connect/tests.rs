//! The search against small servers: what is fixed by the answers of an engine that a test cannot have for real.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::*;

/// A server of a test, or a real engine, may get no turn for longer than an engine has for its first answer.
const LONG: Duration = Duration::from_secs(60);

thread_local! {
    /// How long a local engine has for its first answer. The runtime of a test is one thread.
    pub(super) static PATIENCE: std::cell::Cell<Duration> = const { std::cell::Cell::new(LONG) };
}

/// Answers `/version` and `/info` on a unix socket and keeps the request lines. Ends when dropped.
struct FakeEngine {
    directory: tempfile::TempDir,
    requests: Arc<Mutex<Vec<String>>>,
    server: tokio::task::JoinHandle<()>,
}

impl FakeEngine {
    fn start(version: &'static str, info: &'static str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("engine.sock")).unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A failed exchange is a closed connection, as the look at the socket before the first call is.
                let _ = answer(stream, version, info, &seen).await;
            }
        });
        Self {
            directory,
            requests,
            server,
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("engine.sock")
    }

    fn host(&self) -> String {
        format!("unix://{}", self.path().display())
    }
}

impl Drop for FakeEngine {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(
    mut stream: UnixStream,
    version: &str,
    info: &str,
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let line = String::from_utf8_lossy(&request)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    let body = if line.contains("/version") { version } else { info };
    seen.lock().unwrap().push(line);
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await
}

async fn reach(host: &str) -> Result<Engine> {
    connect_with(Some(host), &Environment::default()).await
}

/// What a person sees of an error.
fn story(error: &Error) -> String {
    error.report().to_string()
}

#[tokio::test]
async fn an_engine_older_than_the_oldest_supported_api_is_refused_with_both_versions() {
    let engine = FakeEngine::start(r#"{"ApiVersion": "1.40", "MinAPIVersion": "1.12"}"#, "{}");
    let error = reach(&engine.host()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        story(&error).contains("API is 1.40 and the oldest that is supported is 1.41"),
        "{}",
        story(&error)
    );
}

#[tokio::test]
async fn with_an_engine_newer_than_the_client_the_clients_newest_version_is_in_every_path() {
    let engine = FakeEngine::start(
        r#"{"ApiVersion": "1.99", "MinAPIVersion": "1.24"}"#,
        r#"{"SystemTime": "2001-02-03T04:05:06.7+01:00", "NCPU": 3, "MemTotal": 1024, "OSType": "linux", "Architecture": "riscv64"}"#,
    );
    let reached = reach(&engine.host()).await.unwrap();
    let newest = bollard::API_DEFAULT_VERSION.to_string();
    assert_eq!(reached.api_version.to_string(), newest);
    assert!(reached.client.info().await.is_ok());
    let expected = [
        "GET /version HTTP/1.1".to_owned(),
        format!("GET /v{newest}/info HTTP/1.1"),
        format!("GET /v{newest}/info HTTP/1.1"),
    ];
    assert_eq!(*engine.requests.lock().unwrap(), expected);

    assert_eq!((reached.cpus, reached.memory_bytes), (Some(3), Some(1024)));
    assert_eq!((&*reached.os_type, &*reached.architecture), ("linux", "riscv64"));
    assert_eq!(
        (reached.flavor, reached.is_local, &*reached.how),
        (Flavor::Docker, true, "the configured host")
    );
    assert!(
        reached.engine_now().to_rfc3339().starts_with("2001-02-03T03:0"),
        "{}",
        reached.engine_now()
    );
    assert!(reached.clock_offset_ms() < 0);
}

#[tokio::test]
async fn the_negotiated_version_is_in_the_path_of_an_older_engine() {
    let engine = FakeEngine::start(
        r#"{"ApiVersion": "1.41", "Components": [{"Name": "Podman Engine", "Version": "4.9.3"}]}"#,
        r#"{"SystemTime": "yesterday"}"#,
    );
    let reached = reach(&engine.host()).await.unwrap();
    assert_eq!(reached.flavor, Flavor::Podman);
    assert_eq!(engine.requests.lock().unwrap()[1], "GET /v1.41/info HTTP/1.1");
    // A time that can't be read is replaced by this machine's.
    assert!(
        reached.clock_offset_ms().abs() < 60_000,
        "{}",
        reached.clock_offset_ms()
    );
    let error = reached
        .api_version
        .require(ApiVersion::new(1, 44), Operation::Create, "x")
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn what_answers_but_is_no_engine_is_told_apart() {
    for (version, text) in [
        ("[]", "can't be read"),
        ("{}", "no API version"),
        ("<html>", "can't be read"),
    ] {
        let engine = FakeEngine::start(version, "{}");
        let error = reach(&engine.host()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{version}");
        assert!(story(&error).contains(text), "{version}: {}", story(&error));
    }
}

#[tokio::test]
async fn a_socket_that_accepts_and_never_answers_is_given_up_after_the_deadline() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("silent.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    let started = Instant::now();
    PATIENCE.set(dial::LOCAL);
    let error = reach(&format!("unix://{}", path.display())).await.unwrap_err();
    PATIENCE.set(LONG);
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        story(&error).contains("did not answer in 5s"),
        "{}",
        story(&error)
    );
    assert!(started.elapsed() < LONG, "{:?}", started.elapsed());
}

#[tokio::test]
async fn each_thing_that_can_be_wrong_with_a_socket_has_its_own_reason() {
    let directory = tempfile::tempdir().unwrap();
    let dead = directory.path().join("dead.sock");
    // Never listened on: a listener that is closed may still be open in a child that another test starts.
    let bound = tokio::net::UnixSocket::new_stream().unwrap();
    bound.bind(&dead).unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let below = file.join("engine.sock");
    for (path, kind, text) in [
        (
            directory.path(),
            ErrorKind::InvalidArgument,
            "it is a directory, not a socket",
        ),
        (&file, ErrorKind::InvalidArgument, "it is a file, not a socket"),
        (&dead, ErrorKind::Unavailable, "nothing listens on it"),
        (
            &directory.path().join("missing.sock"),
            ErrorKind::Unavailable,
            "it does not exist",
        ),
        (&below, ErrorKind::Unavailable, "Not a directory"),
    ] as [(&Path, ErrorKind, &str); 5]
    {
        let error = reach(&format!("unix://{}", path.display())).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{}", story(&error));
        assert!(story(&error).contains(text), "{}", story(&error));
        assert!(
            story(&error).contains(&path.display().to_string()),
            "{}",
            story(&error)
        );
    }
    let denied = dial::socket_failure(&std::io::Error::from(std::io::ErrorKind::PermissionDenied));
    assert!(
        denied.hint.is_some_and(|hint| hint.contains("group")),
        "{denied:?}"
    );
}

#[tokio::test]
async fn a_named_engine_that_fails_is_not_replaced_by_another() {
    let directory = tempfile::tempdir().unwrap();
    let missing = format!("unix://{}", directory.path().join("missing.sock").display());
    let environment = Environment::default().with("DOCKER_HOST", &missing);
    let error = connect_with(None, &environment).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let line = format!("the engine at `{missing}` (DOCKER_HOST) can't be used");
    assert!(error.to_string().ends_with(&line), "{error}");
}

#[tokio::test]
async fn a_search_goes_on_past_what_fails_and_names_what_it_found() {
    let home = tempfile::tempdir().unwrap();
    let engine = FakeEngine::start(
        r#"{"ApiVersion": "1.43"}"#,
        r#"{"SystemTime": "2001-02-03T04:05:06Z"}"#,
    );
    let runtime = home.path().join("runtime");
    std::fs::create_dir_all(runtime.join("podman")).unwrap();
    std::fs::create_dir_all(runtime.join("docker.sock")).unwrap();
    std::os::unix::fs::symlink(engine.path(), runtime.join("podman/podman.sock")).unwrap();
    let environment = Environment::default()
        .with_home(home.path())
        .with("XDG_RUNTIME_DIR", runtime.to_str().unwrap());

    // Without the default socket, which a machine that runs tests may have.
    let mut plan = discovery::plan(None, &environment).unwrap();
    plan.candidates.retain(|candidate| {
        candidate
            .address
            .to_string()
            .contains(home.path().to_str().unwrap())
    });
    let (mut reasons, mut found) = (Vec::new(), None);
    for candidate in &plan.candidates {
        match dial::reach(candidate).await {
            Ok(engine) => {
                found = Some(engine);
                break;
            }
            Err(failure) => reasons.push(failure.reason),
        }
    }
    assert_eq!(
        reasons,
        [
            "it is a directory, not a socket",
            "it does not exist",
            "it does not exist"
        ]
    );
    assert_eq!(&*found.unwrap().how, "podman socket, XDG_RUNTIME_DIR");
}

#[tokio::test]
async fn an_unreachable_port_is_named_with_its_reason() {
    // Taken, so that nobody else gets it, and not listened on.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = reach(&format!("tcp://127.0.0.1:{port}")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        story(&error).contains("refused") && story(&error).contains(&port.to_string()),
        "{}",
        story(&error)
    );
}

#[cfg(not(feature = "tls"))]
#[tokio::test]
async fn without_the_feature_tls_is_unsupported() {
    let error = reach("https://127.0.0.1:1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(story(&error).contains("feature `tls`"), "{}", story(&error));
}

#[cfg(not(feature = "ssh"))]
#[tokio::test]
async fn without_the_feature_ssh_is_unsupported() {
    let error = reach("ssh://127.0.0.1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(story(&error).contains("feature `ssh`"), "{}", story(&error));
}
