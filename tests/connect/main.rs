//! Reaching a real engine by every kind of address. What a real engine cannot show is tested in the module.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers of tests are not seen as tests"
)]

#[path = "../../src/docker/executable.rs"]
mod executable;
mod proxies;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gym_sandbox::docker::{DockerConfig, DockerProvider, EngineReport, ExecPathPolicy};
use gym_sandbox::{AsyncSandbox, Error, ErrorKind, ExecOptions, ExecResult, SandboxProvider, SandboxSpec};
use serde_json::Value;
use tokio::process::Command;

/// A small image with a shell.
const IMAGE: &str = "gym-sandbox/busybox:test";

/// Every test ends within this.
const LIMIT: Duration = Duration::from_secs(300);

/// The socket of the local engine. None, with a line that says so, where there is none.
fn engine_socket() -> Option<PathBuf> {
    let path = std::env::var("DOCKER_HOST")
        .ok()
        .and_then(|host| host.strip_prefix("unix://").map(PathBuf::from))
        .unwrap_or_else(|| PathBuf::from("/var/run/docker.sock"));
    if path.exists() {
        return Some(path);
    }
    skip(&format!("no engine's socket at {}", path.display()));
    None
}

fn skip(reason: &str) {
    assert_ne!(
        std::env::var("SANDBOX_REQUIRE_DOCKER").as_deref(),
        Ok("1"),
        "a test would be skipped: {reason}"
    );
    eprintln!("skipped: {reason}");
}

fn config(host: &str) -> DockerConfig {
    let mut config = DockerConfig::default();
    config.host = Some(host.to_owned());
    config
}

async fn reach(host: &str) -> Result<EngineReport, Error> {
    let provider = DockerProvider::connect(config(host)).await?;
    provider.diagnose().await
}

fn story(error: &Error) -> String {
    error.report().to_string()
}

fn assert_usable(report: &EngineReport) {
    assert!(report.problems.is_empty(), "{report:?}");
    assert!(report.cpus.is_some_and(|cpus| cpus > 0), "{report:?}");
    assert!(report.memory_bytes.is_some_and(|bytes| bytes > 0), "{report:?}");
    assert_eq!(report.os_type, "linux", "{report:?}");
    assert!(report.api_version.starts_with("1."), "{report:?}");
    assert!(
        report.engine_version.is_some() && report.kernel.is_some(),
        "{report:?}"
    );
    assert!(
        report.storage_driver.is_some() && !report.runtimes.is_empty(),
        "{report:?}"
    );
    assert!(report.networks >= 1, "{report:?}");
    assert_eq!(
        report.networks_free,
        report.address_pools_total - report.networks_in_use,
        "{report:?}"
    );
    assert!(report.clock_offset_ms.abs() < 60_000, "{report:?}");
    assert_eq!(report.exec_path, "agent", "{}", report.exec_path_reason);
}

/// Runs [`report_of_this_process`] in a process of its own.
async fn report_with(variables: &[(&str, &str)]) -> Result<Value, String> {
    run_with("report_of_this_process", variables).await
}

/// Runs a test in a process of its own with these variables and no other that concern engines, and reads its answer.
async fn run_with(test: &str, variables: &[(&str, &str)]) -> Result<Value, String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", test, "--nocapture"]);
    for name in [
        "DOCKER_HOST",
        "DOCKER_TLS_VERIFY",
        "DOCKER_CERT_PATH",
        "DOCKER_CONTEXT",
        "DOCKER_CONFIG",
        "XDG_RUNTIME_DIR",
    ] {
        command.env_remove(name);
    }
    command
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(LIMIT, command.output())
        .await
        .expect("in time")
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    if let Some((_, report)) = stdout.split_once("REPORT ") {
        return Ok(serde_json::from_str(report.lines().next().unwrap()).unwrap());
    }
    match stdout.split_once("FAILED ") {
        Some((_, failure)) => Err(failure.to_owned()),
        None => panic!("no answer: {stdout} {}", String::from_utf8_lossy(&output.stderr)),
    }
}

#[tokio::test]
#[ignore = "run by the other tests in a process of its own, whose environment they choose"]
async fn report_of_this_process() {
    let found = async {
        DockerProvider::connect(DockerConfig::default())
            .await?
            .diagnose()
            .await
    }
    .await;
    match found {
        Ok(report) => println!("REPORT {}", serde_json::to_string(&report).unwrap()),
        Err(error) => println!("FAILED {:?} {}", error.kind(), story(&error)),
    }
}

/// Runs a command that reads its input to the end, in a sandbox on whatever engine the environment names: by an exec of
/// the engine, by the agent of the sandbox, and by the agent of one that was found, which is reached by an exec.
#[tokio::test]
#[ignore = "run by the other tests in a process of its own, whose environment they choose"]
async fn commands_of_this_process() {
    let found = async {
        let mut results = Vec::new();
        for path in [ExecPathPolicy::Engine, ExecPathPolicy::Agent] {
            let mut config = DockerConfig::default();
            config.exec.exec_path = path;
            let provider = Arc::new(DockerProvider::connect(config.clone()).await?);
            let sandbox = AsyncSandbox::owning(provider).with_spec(SandboxSpec::new(IMAGE));
            sandbox.start().await?;
            results.push(sandbox.exec_with(counts_its_input()).await?);
            if path == ExecPathPolicy::Agent {
                let other = DockerProvider::connect(config).await?;
                let id = sandbox.sandbox_id().expect("it is started");
                let handle = other.attach(id.as_str()).await?;
                results.push(other.exec(&handle, counts_its_input()).await?);
                other.aclose().await?;
            }
            sandbox.stop().await?;
        }
        Ok::<_, gym_sandbox::Error>(results)
    }
    .await;
    let told = |result: &ExecResult| {
        serde_json::json!([
            result.return_code,
            result.stdout().as_deref(),
            format!("{:?}", result.exec_path)
        ])
    };
    match found {
        Ok(results) => println!("REPORT {}", results.iter().map(told).collect::<Value>()),
        Err(error) => println!("FAILED {:?} {}", error.kind(), story(&error)),
    }
}

fn counts_its_input() -> ExecOptions {
    ExecOptions::new(["wc", "-c"])
        .with_stdin(vec![b'x'; 1_000_000])
        .with_timeout(LIMIT / 2)
}

async fn assert_commands_read_their_input_to_the_end(variables: &[(&str, &str)]) {
    match run_with("commands_of_this_process", variables).await {
        Ok(results) => {
            let of = |path: &str| serde_json::json!([0, "1000000\n", path]);
            assert_eq!(results, Value::from(vec![of("Engine"), of("Agent"), of("Agent")]));
        }
        Err(failure) if failure.starts_with("Image") => {
            skip(&format!("no image {IMAGE}; `scripts/engine.sh up` builds it"));
        }
        Err(failure) => panic!("{failure}"),
    }
}

#[tokio::test]
async fn an_engine_is_found_without_any_configuration() {
    let Some(socket) = engine_socket() else {
        return;
    };
    let report = DockerProvider::connect(DockerConfig::default())
        .await
        .unwrap()
        .diagnose()
        .await
        .unwrap();
    assert_usable(&report);
    if socket == Path::new("/var/run/docker.sock") {
        let found = report_with(&[("HOME", "/nowhere")]).await.unwrap();
        assert_eq!(found["found_by"], "default socket");
        assert_eq!(found["address"], "unix:///var/run/docker.sock");
    }
}

#[tokio::test]
async fn an_engine_is_reached_by_the_path_of_its_socket() {
    let Some(socket) = engine_socket() else {
        return;
    };
    let report = reach(&format!("unix://{}", socket.display())).await.unwrap();
    assert_usable(&report);
    assert_eq!(report.found_by, "the configured host");
}

#[tokio::test]
async fn an_engine_is_reached_by_tcp() {
    let Some(socket) = engine_socket() else {
        return;
    };
    let proxy = proxies::plain(socket).await;
    for scheme in ["tcp", "http"] {
        let report = reach(&format!("{scheme}://127.0.0.1:{}", proxy.port))
            .await
            .unwrap();
        assert_usable(&report);
        assert_eq!(report.address, format!("tcp://127.0.0.1:{}", proxy.port));
    }
}

#[tokio::test]
async fn docker_host_and_contexts_name_the_engine() {
    let Some(socket) = engine_socket() else {
        return;
    };
    let proxy = proxies::plain(socket).await;
    let host = format!("tcp://127.0.0.1:{}", proxy.port);
    let report = report_with(&[("DOCKER_HOST", &host)]).await.unwrap();
    assert_eq!(
        (&report["found_by"], &report["address"]),
        (&"DOCKER_HOST".into(), &host.as_str().into())
    );

    let home = tempfile::tempdir().unwrap();
    let meta = home.path().join(".docker/contexts/meta/01");
    std::fs::create_dir_all(&meta).unwrap();
    let text = format!(
        r#"{{"Name": "lab", "Endpoints": {{"docker": {{"Host": "{host}", "SkipTLSVerify": false}}}}}}"#
    );
    std::fs::write(meta.join("meta.json"), text).unwrap();
    let home_path = home.path().to_str().unwrap();
    let report = report_with(&[("HOME", home_path), ("DOCKER_CONTEXT", "lab")])
        .await
        .unwrap();
    assert_eq!(report["found_by"], "docker context `lab`, DOCKER_CONTEXT");
    assert_eq!(report["address"], host);

    std::fs::write(
        home.path().join(".docker/config.json"),
        r#"{"currentContext": "lab"}"#,
    )
    .unwrap();
    let report = report_with(&[("HOME", home_path)]).await.unwrap();
    assert!(
        report["found_by"]
            .as_str()
            .unwrap()
            .starts_with("docker context `lab`, currentContext of"),
        "{report}"
    );

    let failure = report_with(&[("HOME", home_path), ("DOCKER_CONTEXT", "zork")])
        .await
        .unwrap_err();
    assert!(
        failure.starts_with("InvalidArgument") && failure.contains("`zork` (DOCKER_CONTEXT)"),
        "{failure}"
    );
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn an_engine_is_reached_by_mutual_tls() {
    let Some(socket) = engine_socket() else {
        return;
    };
    let Some(folder) = proxies::certificates().await else {
        return;
    };
    let proxy = proxies::mutual_tls(socket, folder.path()).await;
    let (host, path) = (
        format!("tcp://127.0.0.1:{}", proxy.port),
        folder.path().to_str().unwrap(),
    );
    let verified = [
        ("DOCKER_HOST", host.as_str()),
        ("DOCKER_TLS_VERIFY", "1"),
        ("DOCKER_CERT_PATH", path),
    ];

    let report = report_with(&verified).await.unwrap();
    assert_eq!(report["address"], format!("https://127.0.0.1:{}", proxy.port));
    assert_eq!(report["problems"], Value::Array(Vec::new()));

    assert_commands_read_their_input_to_the_end(&verified).await;

    // In the clear, to a port that speaks TLS.
    let failure = report_with(&verified[..1]).await.unwrap_err();
    assert!(failure.starts_with("Unavailable"), "{failure}");

    // An authority that did not sign the server's certificate.
    let other = proxies::certificates().await.unwrap();
    let path = other.path().to_str().unwrap();
    let failure = report_with(&[verified[0], verified[1], ("DOCKER_CERT_PATH", path)])
        .await
        .unwrap_err();
    assert!(
        failure.starts_with("Unavailable") && failure.contains("certificate"),
        "{failure}"
    );

    std::fs::remove_file(other.path().join("key.pem")).unwrap();
    let failure = report_with(&[verified[0], verified[1], ("DOCKER_CERT_PATH", path)])
        .await
        .unwrap_err();
    assert!(
        failure.starts_with("InvalidArgument") && failure.contains("key.pem"),
        "{failure}"
    );
}

/// The part of `ssh` in the next test: passes connections on from one socket to another until its input ends.
#[tokio::test]
#[ignore = "run by another test in a process of its own"]
async fn forward_as_ssh() {
    let (Ok(from), Ok(to)) = (std::env::var("FORWARD_FROM"), std::env::var("FORWARD_TO")) else {
        return;
    };
    let listener = tokio::net::UnixListener::bind(from).unwrap();
    println!("\ngym-sandbox-forwarding");
    let forward = async {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut engine = tokio::net::UnixStream::connect(&to).await.unwrap();
            tokio::spawn(async move {
                let _either_side_ended = tokio::io::copy_bidirectional(&mut client, &mut engine).await;
            });
        }
    };
    tokio::select! {
        () = forward => {}
        _ = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())) => {}
    }
}

#[cfg(feature = "ssh")]
#[tokio::test]
async fn an_engine_is_reached_by_ssh() {
    let Some(socket) = engine_socket() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("ssh");
    let script = "while [ $# -gt 0 ]; do [ \"$1\" = -L ] && spec=$2; shift; done\n\
        FORWARD_FROM=${spec%%:*} FORWARD_TO=${spec#*:} exec \"$TEST_PROGRAM\" --ignored --exact forward_as_ssh --nocapture\n";
    executable::write_script(&program, script);
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let test_program = std::env::current_exe().unwrap();
    let variables = [
        ("PATH", path.as_str()),
        ("TEST_PROGRAM", test_program.to_str().unwrap()),
    ];

    let host = format!("ssh://me@engine.invalid:2222{}", socket.display());
    let report = report_with(&[variables[0], variables[1], ("DOCKER_HOST", &host)])
        .await
        .unwrap();
    assert_eq!(report["problems"], Value::Array(Vec::new()));
    assert!(
        report["address"]
            .as_str()
            .unwrap()
            .starts_with("ssh://me@engine.invalid:2222"),
        "{report}"
    );

    assert_commands_read_their_input_to_the_end(&[variables[0], variables[1], ("DOCKER_HOST", &host)]).await;

    let host = "ssh://me@engine.invalid/nowhere.sock";
    let failure = report_with(&[variables[0], variables[1], ("DOCKER_HOST", host)])
        .await
        .unwrap_err();
    assert!(failure.starts_with("Unavailable"), "{failure}");
}

#[tokio::test]
async fn what_is_no_engine_is_an_error_in_bounded_time() {
    let folder = tempfile::tempdir().unwrap();
    let silent = folder.path().join("silent.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&silent).unwrap();
    for (path, kind, text) in [
        (silent.as_path(), ErrorKind::Unavailable, "did not answer in"),
        (folder.path(), ErrorKind::InvalidArgument, "it is a directory"),
        (
            &folder.path().join("missing.sock"),
            ErrorKind::Unavailable,
            "it does not exist",
        ),
    ] as [(&Path, ErrorKind, &str); 3]
    {
        let started = Instant::now();
        let error = reach(&format!("unix://{}", path.display())).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{}", story(&error));
        assert!(
            story(&error).contains(text) && error.hint().is_some(),
            "{}",
            story(&error)
        );
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{:?}",
            started.elapsed()
        );
    }
}

#[tokio::test]
async fn a_failed_connection_is_tried_again_by_the_next_call() {
    let Some(socket) = engine_socket() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("engine.sock");
    let provider = DockerProvider::new(config(&format!("unix://{}", link.display()))).unwrap();
    let error = provider.diagnose().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.is_retryable());
    std::os::unix::fs::symlink(socket, &link).unwrap();
    assert_usable(&provider.diagnose().await.unwrap());
}
