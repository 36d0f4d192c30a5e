//! The synchronous facade against the asynchronous one: the same methods in the same order, read from the sources; and
//! a whole life on the local provider.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use gym_sandbox::{ErrorKind, RemoveMode, Sandbox, SandboxSpec, SandboxStatus};
use serde_json::json;

/// Methods that only the asynchronous facade has, and why.
const ONLY_ASYNC: [(&str, &str); 3] = [
    ("spawn", "a session is asynchronous itself"),
    ("upload_reader", "readers are asynchronous"),
    ("download_writer", "writers are asynchronous"),
];

/// Files whose methods are only asynchronous: the synchronous facade of the reference has none of them (contract 1.4).
/// Streams, relays and services run beside their caller, and a fork is many asynchronous sandboxes.
const ONLY_ASYNC_FILES: [&str; 7] = [
    "connect.rs",
    "fork.rs",
    "forward.rs",
    "network.rs",
    "observe.rs",
    "services.rs",
    "setup.rs",
];

/// Methods that only the synchronous facade has.
const ONLY_SYNC: [&str; 2] = ["allow_in_runtime", "with_operation_timeout"];

/// The public methods of a source, in their order.
fn methods(file: &Path) -> Vec<String> {
    let source = std::fs::read_to_string(file).unwrap();
    source
        .lines()
        .filter_map(|line| {
            let line = line.strip_prefix("    pub ")?;
            let name = line
                .strip_prefix("async fn ")
                .or_else(|| line.strip_prefix("fn "))?;
            Some(name.split(['(', '<']).next()?.to_owned())
        })
        .collect()
}

#[test]
fn both_facades_have_the_same_methods_in_the_same_order() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = 0;
    for entry in std::fs::read_dir(root.join("sandbox")).unwrap() {
        let name = entry.unwrap().file_name();
        if Path::new(&name)
            .extension()
            .is_none_or(|extension| extension != "rs")
            || name == "tests.rs"
            || ONLY_ASYNC_FILES.iter().any(|only| name == *only)
        {
            continue;
        }
        let asynchronous: Vec<String> = methods(&root.join("sandbox").join(&name))
            .into_iter()
            .filter(|method| !ONLY_ASYNC.iter().any(|(only, _)| only == method))
            .collect();
        if asynchronous.is_empty() {
            continue;
        }
        let synchronous: Vec<String> = methods(&root.join("blocking").join(&name))
            .into_iter()
            .filter(|method| !ONLY_SYNC.contains(&method.as_str()))
            .collect();
        assert_eq!(synchronous, asynchronous, "{}", name.display());
        seen += asynchronous.len();
    }
    assert!(seen > 20, "the methods were not found: {seen}");
}

#[test]
fn a_whole_life_without_a_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let config = json!({"local": {"shell": "/bin/sh", "workspace_root": folder.path().join("root")}});
    let sandbox = Sandbox::from_config(&config)
        .unwrap()
        .with_spec(SandboxSpec::default().with_file("seed", "seed\n"));
    assert_eq!(sandbox.exec("true").unwrap_err().kind(), ErrorKind::NotStarted);
    assert_eq!(sandbox.status().unwrap(), SandboxStatus::Unknown);
    sandbox.start().unwrap();
    assert_eq!(sandbox.status().unwrap(), SandboxStatus::Running);
    assert_eq!(
        sandbox.exec("cat seed").unwrap().stdout().as_deref(),
        Some("seed\n")
    );
    let local = folder.path().join("local");
    std::fs::write(&local, "text").unwrap();
    sandbox.upload(&local, "sub/up").unwrap();
    sandbox.write_file("sub/written", "bytes").unwrap();
    assert_eq!(sandbox.read_file("sub/up").unwrap(), "text");
    let names: Vec<_> = sandbox
        .list("sub")
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["up", "written"]);
    assert!(sandbox.exists("sub/up").unwrap() && sandbox.stat("sub/none").unwrap().is_none());
    sandbox.make_directory("made").unwrap();
    assert!(sandbox.remove("made", RemoveMode::One).unwrap());
    sandbox.download("sub", folder.path().join("back")).unwrap();
    assert_eq!(
        std::fs::read_to_string(folder.path().join("back/written")).unwrap(),
        "bytes"
    );
    assert_eq!(sandbox.inspect().unwrap().provider, "local");
    assert_eq!(
        sandbox.endpoint(80).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    sandbox.stop().unwrap();
    assert_eq!(std::fs::read_dir(folder.path().join("root")).unwrap().count(), 0);
}
