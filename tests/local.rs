//! The local provider: processes and files of this machine (contract 2.16). No engine is needed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gym_sandbox::local::{LocalConfig, LocalProvider, LocalRaw};
use gym_sandbox::provider::{FilesProvider, create_provider};
use gym_sandbox::{
    AsyncSandbox, ErrorKind, ExecErrorType, ExecOptions, ExecPath, ExecReason, ExecTimeout, PathProblem,
    RemoveMode, SandboxHandle, SandboxProvider, SandboxReason, SandboxSpec, SandboxStatus,
};
use serde_json::json;
use tempfile::TempDir;

/// No test waits longer than this for something that should come.
const SOON: Duration = Duration::from_secs(30);

fn provider() -> LocalProvider {
    LocalProvider::new(LocalConfig::default().with_shell("/bin/sh")).unwrap()
}

/// A provider whose folders are made below a folder of the test.
fn below(root: &TempDir) -> LocalProvider {
    let config = LocalConfig::default()
        .with_shell("/bin/sh")
        .with_workspace_root(root.path());
    LocalProvider::new(config).unwrap()
}

fn workspace(handle: &SandboxHandle) -> PathBuf {
    handle.raw::<LocalRaw>().unwrap().workspace.clone()
}

async fn stdout(provider: &LocalProvider, handle: &SandboxHandle, options: impl Into<ExecOptions>) -> String {
    let result = provider.exec(handle, options.into()).await.unwrap();
    assert!(result.is_success(), "{result:?}");
    result.stdout().unwrap()
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not come");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The number that a command has written to a file, when it is there.
fn number_in(file: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(file).ok()?;
    text.strip_suffix('\n')?.trim().parse().ok()
}

fn lives(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    !stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .trim_start()
        .starts_with('Z')
}

#[tokio::test]
async fn o01_a_given_workdir_is_made_and_kept() {
    let root = tempfile::tempdir().unwrap();
    let provider = provider();
    let given = root.path().join("made/for this");
    let spec = SandboxSpec::default().with_workdir(given.to_str().unwrap());
    let handle = provider.create(&spec).await.unwrap();
    assert_eq!(
        stdout(&provider, &handle, "pwd; echo kept > file").await,
        format!("{}\n", given.display())
    );
    provider.close(&handle).await.unwrap();
    assert_eq!(std::fs::read_to_string(given.join("file")).unwrap(), "kept\n");
    assert_eq!(provider.status(&handle).await.unwrap(), SandboxStatus::Stopped);
}

#[tokio::test]
async fn o01_without_a_workdir_a_folder_is_made_and_removed() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    let folder = workspace(&handle);
    let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
    let digits = name.strip_prefix("local-").unwrap();
    assert!(
        digits.len() == 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{name}"
    );
    assert_eq!(folder.parent().unwrap(), root.path().canonicalize().unwrap());
    stdout(&provider, &handle, "mkdir -p a/b; touch a/b/c").await;
    provider.close(&handle).await.unwrap();
    provider.close(&handle).await.unwrap();
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    // Without a root it is below the folder for temporary files.
    let elsewhere = self::provider();
    let handle = elsewhere.create(&SandboxSpec::default()).await.unwrap();
    assert_eq!(
        workspace(&handle).parent().unwrap(),
        std::env::temp_dir().canonicalize().unwrap()
    );
    elsewhere.close(&handle).await.unwrap();
    assert!(!workspace(&handle).exists());
}

#[tokio::test]
async fn o01_a_dropped_create_leaves_no_folder() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    for _ in 0..20 {
        let spec = SandboxSpec::default();
        let create = provider.create(&spec);
        if let Ok(made) = tokio::time::timeout(Duration::ZERO, create).await {
            provider.close(&made.unwrap()).await.unwrap();
        }
    }
    let made = || std::fs::read_dir(root.path()).map_or(0, Iterator::count);
    until("an empty root", || made() == 0).await;
    provider.aclose().await.unwrap();
    assert_eq!(made(), 0);
}

#[tokio::test]
async fn a_wrong_spec_is_refused_before_a_folder_is_made() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    for (spec, kind, word) in [
        (
            SandboxSpec::default().with_workdir("relative"),
            ErrorKind::InvalidArgument,
            "relative",
        ),
        (
            SandboxSpec::default().with_env("A=B", "x"),
            ErrorKind::InvalidArgument,
            "A=B",
        ),
        (
            SandboxSpec::default().with_provider_option("colour", 1),
            ErrorKind::InvalidArgument,
            "colour",
        ),
        (
            SandboxSpec::default().with_entrypoint(["true"]),
            ErrorKind::Unsupported,
            "entrypoint",
        ),
    ] {
        let error = provider.create(&spec).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    let file = root.path().join("file");
    std::fs::write(&file, "").unwrap();
    let spec = SandboxSpec::default().with_workdir(file.join("below").to_str().unwrap());
    assert_eq!(
        provider.create(&spec).await.unwrap_err().kind(),
        ErrorKind::CreateFailed
    );
}

/// What is logged while the closure runs, on this thread.
#[cfg(feature = "cli")]
async fn logged(work: impl Future<Output = ()>) -> String {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    work.await;
    drop(guard);
    let bytes = log.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[cfg(feature = "cli")]
#[tokio::test]
async fn o02_what_has_no_effect_is_warned_of_at_every_create() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    let spec = SandboxSpec::new("image")
        .with_ttl(Duration::from_secs(1))
        .with_ready_timeout(Duration::from_secs(1))
        .with_ports([80])
        .unwrap();
    for _ in 0..2 {
        let log = logged(async {
            provider.create(&spec).await.unwrap();
        })
        .await;
        let lines: Vec<&str> = log.lines().filter(|line| line.contains("ignores")).collect();
        assert_eq!(lines.len(), 1, "{log}");
        for word in [
            "WARN",
            "image",
            "ttl_s",
            "ready_timeout_s",
            "ports",
            "resource limits",
        ] {
            assert!(lines[0].contains(word), "{word} is not in {log}");
        }
    }
    let silent = logged(async {
        let handle = provider
            .create(&SandboxSpec::default().with_env("A", "b"))
            .await
            .unwrap();
        assert_eq!(stdout(&provider, &handle, "echo $A").await, "b\n");
    });
    assert!(!silent.await.contains("WARN"));
}

#[cfg(feature = "cli")]
#[tokio::test]
async fn d30_it_says_once_for_each_provider_that_it_does_not_isolate() {
    let root = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let provider = below(&root);
        let log = logged(async {
            for _ in 0..3 {
                provider.create(&SandboxSpec::default()).await.unwrap();
            }
        })
        .await;
        assert_eq!(log.matches("does not isolate").count(), 1, "{log}");
        assert!(log.contains("WARN"), "{log}");
    }
}

#[tokio::test]
async fn o03_a_user_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    for user in ["root", "nobody", "0"] {
        let options = || ExecOptions::new("touch made").with_user(user);
        let error = provider.exec(&handle, options()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{user}");
        let error = provider
            .as_spawn()
            .unwrap()
            .spawn(&handle, options())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{user}");
    }
    assert!(!workspace(&handle).join("made").exists());
}

#[tokio::test]
async fn o04_variables_of_the_host_the_spec_and_the_call_lie_over_each_other() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    // One that every test process has.
    let host = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    let spec = SandboxSpec::default()
        .with_env("BOTH", "spec")
        .with_env("SPEC", "spec");
    let handle = provider.create(&spec).await.unwrap();
    let options = ExecOptions::new("echo \"$CARGO_MANIFEST_DIR $SPEC $BOTH $CALL\"")
        .with_env("BOTH", "call")
        .with_env("CALL", "call");
    assert_eq!(
        stdout(&provider, &handle, options).await,
        format!("{host} spec call call\n")
    );
    let over = ExecOptions::new("echo $CARGO_MANIFEST_DIR").with_env("CARGO_MANIFEST_DIR", "mine");
    assert_eq!(stdout(&provider, &handle, over).await, "mine\n");
}

#[tokio::test]
async fn o05_relative_directories_and_paths_are_below_the_workspace() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    let folder = workspace(&handle);
    stdout(&provider, &handle, "mkdir -p sub/deep").await;
    let relative = ExecOptions::new("pwd").with_cwd("sub/deep");
    assert_eq!(
        stdout(&provider, &handle, relative).await,
        format!("{}\n", folder.join("sub/deep").display())
    );
    assert_eq!(
        stdout(&provider, &handle, ExecOptions::new("pwd").with_cwd("/")).await,
        "/\n"
    );
    let local = root.path().join("local");
    std::fs::write(&local, "content").unwrap();
    provider.upload_file(&handle, &local, "new/file").await.unwrap();
    assert_eq!(
        std::fs::read_to_string(folder.join("new/file")).unwrap(),
        "content"
    );
    let back = root.path().join("back/file");
    provider.download_file(&handle, "new/file", &back).await.unwrap();
    assert_eq!(std::fs::read_to_string(back).unwrap(), "content");
}

/// Starts a command that leaves the number of a process in a file, and gives that number.
async fn pid_of(handle: &SandboxHandle, name: &str) -> u32 {
    let file = workspace(handle).join(name);
    until("the child", || number_in(&file).is_some()).await;
    number_in(&file).unwrap()
}

#[tokio::test]
async fn o06_a_timeout_kills_the_tree_and_says_so() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    let line = "echo printed; sh -c 'echo $$ > child; exec sleep 1000' & \
                sh -c 'setsid sh -c \"echo \\$\\$ > escaped; exec sleep 1000\" >/dev/null 2>&1 </dev/null &' ; \
                echo $$ > main; wait; sleep 1000";
    let options = ExecOptions::new(line).with_timeout(Duration::from_secs(2));
    let started = Instant::now();
    let result = provider.exec(&handle, options).await.unwrap();
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    assert_eq!(
        (result.return_code, result.error_type),
        (125, Some(ExecErrorType::Timeout))
    );
    assert_eq!(result.stdout(), None);
    assert_eq!(result.partial_stdout().as_deref(), Some("printed\n"));
    assert_eq!(
        result.stderr().as_deref(),
        Some("local command timed out after 2s")
    );
    assert_eq!(result.survivors, Some(0));
    assert!(result.killed.is_some_and(|killed| killed >= 3), "{result:?}");
    for name in ["main", "child", "escaped"] {
        let pid = number_in(&workspace(&handle).join(name)).unwrap();
        assert!(!lives(pid), "{name} ({pid}) lives on");
    }
    assert_eq!(stdout(&provider, &handle, "echo usable").await, "usable\n");
}

#[tokio::test]
async fn o06_the_text_of_a_timeout_has_its_fraction() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    let options = ExecOptions::new("sleep 1000").with_timeout(Duration::from_millis(200));
    let result = provider.exec(&handle, options).await.unwrap();
    assert_eq!(
        result.stderr().as_deref(),
        Some("local command timed out after 0.2s")
    );
    assert_eq!(result.exec_path, ExecPath::Host);
}

#[tokio::test]
async fn o06_a_dropped_call_kills_the_tree_whether_the_shell_waits_or_not() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    for (name, line) in [
        ("waits", "sh -c 'echo $$ > waits; exec sleep 1000'; true"),
        (
            "waits_for_a_group",
            "setsid sh -c 'echo $$ > waits_for_a_group; exec sleep 1000' & wait",
        ),
        // The child holds the output, so that the call is still there when it is dropped.
        (
            "has_gone",
            "(echo > has_gone.begun; echo $(sh -c 'echo $PPID') > has_gone; sleep 1000) & exit 0",
        ),
    ] {
        let handle = provider.create(&SandboxSpec::default()).await.unwrap();
        let call = provider.exec(&handle, ExecOptions::new(line).with_timeout(ExecTimeout::Never));
        let pid = {
            tokio::pin!(call);
            tokio::select! {
                biased;
                pid = pid_of(&handle, name) => pid,
                _result = &mut call => pid_of(&handle, name).await,
            }
        };
        if name == "has_gone" {
            // A call that has ended leaves its background children (D4); closing ends them.
            provider.close(&handle).await.unwrap();
        }
        until(name, || !lives(pid)).await;
        provider.close(&handle).await.unwrap();
    }
    provider.aclose().await.unwrap();
}

#[tokio::test]
async fn o06_a_child_that_holds_the_output_does_not_hold_the_call() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    let started = Instant::now();
    let line = "setsid sleep 1000 & echo $! > child; echo done";
    let result = provider.exec(&handle, ExecOptions::new(line)).await.unwrap();
    assert!(started.elapsed() < SOON);
    assert_eq!(result.stdout().as_deref(), Some("done\n"));
    assert!(result.background_output_open);
    let pid = pid_of(&handle, "child").await;
    assert!(lives(pid), "a background service lives on (D4)");
    provider.close(&handle).await.unwrap();
    assert!(!lives(pid), "closing ends it");
}

#[tokio::test]
async fn o06_even_a_child_that_escaped_does_not_hold_a_timeout() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    // It has left its parents, its group and its session, and has no mark: only the pipe tells.
    let line = "(setsid env -i sh -c 'echo $$ > escaped; exec sleep 1000' &); sleep 1000";
    let options = ExecOptions::new(line).with_timeout(Duration::from_secs(1));
    let started = Instant::now();
    let result = provider.exec(&handle, options).await.unwrap();
    assert!(started.elapsed() < SOON);
    assert_eq!(result.error_type, Some(ExecErrorType::Timeout));
    let pid = pid_of(&handle, "escaped").await;
    assert!(!lives(pid), "the pipe gives it away");
}

#[tokio::test]
async fn other_commands_are_left_alone_by_a_kill() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    let other = provider.exec(
        &handle,
        ExecOptions::new("until test -e go; do sleep 0.1; done; echo fine"),
    );
    let killed = async {
        let options = ExecOptions::new("exec sleep 1000").with_timeout(Duration::from_millis(500));
        let result = provider.exec(&handle, options).await.unwrap();
        assert_eq!(result.killed, Some(1), "{result:?}");
        std::fs::write(workspace(&handle).join("go"), "").unwrap();
    };
    let (other, ()) = tokio::join!(other, killed);
    assert_eq!(other.unwrap().stdout().as_deref(), Some("fine\n"));
}

#[tokio::test]
async fn o07_the_status_follows_the_folder() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    assert_eq!(provider.status(&handle).await.unwrap(), SandboxStatus::Running);
    std::fs::remove_dir_all(workspace(&handle)).unwrap();
    assert_eq!(provider.status(&handle).await.unwrap(), SandboxStatus::Stopped);
    let result = provider.exec(&handle, ExecOptions::new("true")).await.unwrap();
    assert_eq!(result.reason, Some(ExecReason::Sandbox(SandboxReason::Removed)));
    provider.close(&handle).await.unwrap();
}

#[tokio::test]
async fn o08_providers_with_one_number_share_one_limit() {
    // Numbers that no other test has.
    let root = tempfile::tempdir().unwrap();
    let with = |concurrency| {
        let config = LocalConfig::default()
            .with_shell("/bin/sh")
            .with_workspace_root(root.path());
        LocalProvider::new(config.with_concurrency(concurrency)).unwrap()
    };
    let (first, second, other) = (with(1), with(1), with(2));
    let handle = first.create(&SandboxSpec::default()).await.unwrap();
    let folder = workspace(&handle);
    let second_handle = second.create(&SandboxSpec::default()).await.unwrap();
    let holding = first.exec(
        &handle,
        ExecOptions::new("touch begun; until test -e go; do sleep 0.1; done"),
    );
    let rest = async {
        until("the first command", || folder.join("begun").exists()).await;
        let line = format!("touch {}", folder.join("second").display());
        // The clock starts with the slot: waiting for it is no timeout.
        let waiting = second.exec(
            &second_handle,
            ExecOptions::new(line).with_timeout(Duration::from_secs(20)),
        );
        tokio::pin!(waiting);
        let early = tokio::time::timeout(Duration::from_millis(500), &mut waiting).await;
        assert!(
            early.is_err() && !folder.join("second").exists(),
            "the limit is not shared"
        );
        let other_handle = other.create(&SandboxSpec::default()).await.unwrap();
        assert_eq!(stdout(&other, &other_handle, "echo free").await, "free\n");
        std::fs::write(folder.join("go"), "").unwrap();
        assert!(waiting.await.unwrap().is_success());
    };
    let (held, ()) = tokio::join!(holding, rest);
    assert!(held.unwrap().is_success());
}

#[tokio::test]
async fn o09_files_of_the_spec_land_below_the_workspace() {
    let root = tempfile::tempdir().unwrap();
    let spec = SandboxSpec::default()
        .with_file("a/one", "1")
        .with_file("two", "2");
    let sandbox = AsyncSandbox::new(Arc::new(below(&root))).with_spec(spec);
    sandbox.start().await.unwrap();
    let folder = workspace(&sandbox.handle().unwrap());
    assert_eq!(std::fs::read_to_string(folder.join("a/one")).unwrap(), "1");
    let result = sandbox.exec("cat two").await.unwrap();
    assert_eq!(result.stdout().as_deref(), Some("2"));
    assert_eq!(sandbox.read_file("a/one").await.unwrap(), "1");
    sandbox.stop().await.unwrap();
    assert!(!folder.exists());
}

#[tokio::test]
async fn o10_the_default_timeout_is_180_s_unless_configured() {
    assert_eq!(LocalConfig::default().default_timeout, Duration::from_secs(180));
    assert_eq!(
        (
            LocalConfig::default().concurrency,
            LocalConfig::default().shell.as_str()
        ),
        (8, "/bin/bash")
    );
    let root = tempfile::tempdir().unwrap();
    let config = LocalConfig::default()
        .with_shell("/bin/sh")
        .with_workspace_root(root.path())
        .with_default_timeout(Duration::from_millis(300));
    let provider = LocalProvider::new(config).unwrap();
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    let result = provider
        .exec(&handle, ExecOptions::new("sleep 1000"))
        .await
        .unwrap();
    assert_eq!(
        result.stderr().as_deref(),
        Some("local command timed out after 0.3s")
    );
    let never = ExecOptions::new("sleep 1; echo done").with_timeout(ExecTimeout::Never);
    assert_eq!(stdout(&provider, &handle, never).await, "done\n");
}

#[tokio::test]
async fn transfers_do_not_follow_links_out_of_the_workspace() {
    let root = tempfile::tempdir().unwrap();
    let outside = root.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), "secret").unwrap();
    let provider = below(&root);
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    let line = format!(
        "ln -s {0} out; ln -s {0}/secret file; ln -s out twice; mkdir in; ln -s ../.. in/up",
        outside.display()
    );
    stdout(&provider, &handle, line).await;
    let local = root.path().join("local");
    std::fs::write(&local, "new").unwrap();
    let refused = ErrorKind::Path(PathProblem::Permission);
    for remote in [
        "out/made",
        "twice/made",
        "in/up/made",
        "../made",
        "/etc/made",
        "out/",
    ] {
        let error = provider.upload_file(&handle, &local, remote).await.unwrap_err();
        assert_eq!(error.kind(), refused, "{remote}: {error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("workspace")));
    }
    for remote in ["out/secret", "file", "twice/secret", "/etc/passwd"] {
        let back = root.path().join("back");
        let error = provider.download_file(&handle, remote, &back).await.unwrap_err();
        assert_eq!(error.kind(), refused, "{remote}: {error}");
        assert!(!back.exists());
    }
    for remote in ["out/secret", "../outside"] {
        assert_eq!(provider.stat(&handle, remote).await.unwrap_err().kind(), refused);
        let removed = provider.remove(&handle, remote, RemoveMode::Recursive).await;
        assert_eq!(removed.unwrap_err().kind(), refused);
    }
    // A link that is the target itself is replaced, and what it leads to stays.
    provider.upload_file(&handle, &local, "file").await.unwrap();
    assert_eq!(
        std::fs::read_to_string(workspace(&handle).join("file")).unwrap(),
        "new"
    );
    assert_eq!(std::fs::read_to_string(outside.join("secret")).unwrap(), "secret");
    let mut inside: Vec<_> = std::fs::read_dir(&outside)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    inside.sort();
    assert_eq!(inside, ["secret"]);
}

#[tokio::test]
async fn the_workspace_itself_is_not_removed() {
    let root = tempfile::tempdir().unwrap();
    let provider = below(&root);
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    for remote in [".", "./", "a/.."] {
        provider
            .remove(&handle, remote, RemoveMode::Recursive)
            .await
            .unwrap_err();
    }
    assert!(workspace(&handle).is_dir());
}

#[test]
fn d10_settings_of_the_local_provider_are_checked() {
    let made = create_provider(
        &json!({"local": {"shell": "/bin/sh", "default_timeout_s": 1.5, "concurrency": 2, "workspace_root": null}}),
    );
    assert_eq!(made.unwrap().name(), "local");
    for (settings, word) in [
        (json!({"colour": "blue"}), "colour"),
        (json!({"shell": ""}), "shell"),
        (json!({"default_timeout_s": 0}), "default_timeout_s"),
        (json!({"default_timeout_s": -1}), "seconds"),
        (json!({"concurrency": 0}), "concurrency"),
        (json!({"concurrency": "many"}), "type"),
    ] {
        let error = create_provider(&json!({"local": settings})).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.report().to_string().contains(word), "{error}");
    }
}
