//! What the library logs: spans of the calls (design, errors and security) and warnings of the local provider (O2, D30).
//!
//! A program of its own. `tracing` remembers for every place in the code whether anybody wants its lines, and a place that
//! is reached for the first time while a subscriber is installed may be remembered as wanted by nobody. So every test here
//! has the one subscriber installed before it calls the library, and no test of another kind may be added.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use gym_sandbox::local::{LocalConfig, LocalProvider};
use gym_sandbox::provider::Traced;
use gym_sandbox::testing::MemoryProvider;
use gym_sandbox::{Error, ErrorKind, ExecOptions, Operation, SandboxProvider, SandboxSpec};
use tempfile::TempDir;
use tracing_subscriber::fmt::format::FmtSpan;

/// The lines of one test.
type Lines = Arc<Mutex<Vec<u8>>>;

tokio::task_local! {
    static LINES: Lines;
}

/// Writes to the lines of the test that is running, else nowhere.
struct ToTheTest;

impl Write for ToTheTest {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _nobody_asked = LINES.try_with(|lines| lines.lock().unwrap().extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What is logged by `work`, at every level.
async fn logged(work: impl Future<Output = ()>) -> String {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_span_events(FmtSpan::FULL)
            .with_ansi(false)
            .with_writer(|| ToTheTest)
            .init();
    });
    let lines = Lines::default();
    LINES.scope(Arc::clone(&lines), work).await;
    let bytes = std::mem::take(&mut *lines.lock().unwrap());
    String::from_utf8(bytes).unwrap()
}

/// A provider whose folders are made below a folder of the test.
fn below(root: &TempDir) -> LocalProvider {
    let config = LocalConfig::default()
        .with_shell("/bin/sh")
        .with_workspace_root(root.path());
    LocalProvider::new(config).unwrap()
}

#[tokio::test]
async fn spans_name_the_call_and_hold_no_values() {
    let text = logged(async {
        let inner = MemoryProvider::new();
        inner.answer("login", MemoryProvider::printed(0, "hunter2", "hunter2"));
        inner.fail_next(
            Operation::Close,
            Error::new(ErrorKind::Timeout, Operation::Close, "the script says so"),
        );
        let outer = Traced::new(inner);
        let spec = SandboxSpec::new("image")
            .with_env("TOKEN", "hunter2")
            .with_file("/f", "hunter2");
        let handle = outer.create(&spec).await.unwrap();
        let options = ExecOptions::new(["login", "hunter2"])
            .with_env("TOKEN", "hunter2")
            .with_stdin("hunter2");
        outer.exec(&handle, options).await.unwrap();
        outer.close(&handle).await.unwrap_err();
    })
    .await;
    for told in [
        "sandbox.create",
        "image=\"image\"",
        "created",
        "sandbox.exec",
        "exit_code=0",
        "memory-1",
        "WARN",
        "Timeout",
    ] {
        assert!(text.contains(told), "{told} is not in\n{text}");
    }
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn o02_what_has_no_effect_is_warned_of_at_every_create() {
    let root = tempfile::tempdir().unwrap();
    let spec = SandboxSpec::new("image")
        .with_ttl(Duration::from_secs(1))
        .with_ready_timeout(Duration::from_secs(1))
        .with_ports([80])
        .unwrap();
    let log = logged(async {
        let provider = below(&root);
        for _ in 0..2 {
            provider.create(&spec).await.unwrap();
        }
    })
    .await;
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("ignores")).collect();
    assert_eq!(lines.len(), 2, "{log}");
    for line in lines {
        for word in [
            "WARN",
            "image",
            "ttl_s",
            "ready_timeout_s",
            "ports",
            "resource limits",
        ] {
            assert!(line.contains(word), "{word} is not in {log}");
        }
    }
}

#[tokio::test]
async fn o02_what_has_an_effect_is_not_warned_of() {
    let root = tempfile::tempdir().unwrap();
    let log = logged(async {
        let provider = below(&root);
        let spec = SandboxSpec::default().with_env("A", "b");
        let handle = provider.create(&spec).await.unwrap();
        let result = provider.exec(&handle, ExecOptions::new("echo $A")).await.unwrap();
        assert_eq!(result.stdout().unwrap(), "b\n");
    })
    .await;
    // The one is D30's.
    assert_eq!(log.matches("WARN").count(), 1, "{log}");
}

#[tokio::test]
async fn d30_it_says_once_for_each_provider_that_it_does_not_isolate() {
    let root = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let log = logged(async {
            let provider = below(&root);
            for _ in 0..3 {
                provider.create(&SandboxSpec::default()).await.unwrap();
            }
        })
        .await;
        assert_eq!(log.matches("does not isolate").count(), 1, "{log}");
        assert!(log.contains("WARN"), "{log}");
    }
}
