//! The local provider: processes and files of this machine (contract 2.16). No engine is needed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod processes;
mod terminals;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gym_sandbox::local::{LocalConfig, LocalProvider, LocalRaw};
use gym_sandbox::provider::{FilesProvider, create_provider};
use gym_sandbox::{
    AsyncSandbox, ErrorKind, ExecOptions, ExecReason, ExecTimeout, PathProblem, RemoveMode, SandboxHandle,
    SandboxProvider, SandboxReason, SandboxSpec, SandboxStatus,
};
use serde_json::json;
use tempfile::TempDir;

/// No test waits longer than this for something that should come.
const SOON: Duration = Duration::from_secs(120);

/// Timeouts that a command is given one after the other until it has come as far as it must before it is killed: a busy
/// machine may let it do nothing during the first.
const TIMEOUTS_S: [u64; 4] = [2, 8, 30, 90];

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
    // Also what those that were dropped have only made by then.
    provider.aclose().await.unwrap();
    assert_eq!(std::fs::read_dir(root.path()).map_or(0, Iterator::count), 0);
}

#[tokio::test]
async fn closing_the_provider_waits_for_sandboxes_that_were_dropped() {
    let root = tempfile::tempdir().unwrap();
    let provider: Arc<dyn SandboxProvider> = Arc::new(below(&root));
    let made = || std::fs::read_dir(root.path()).map_or(0, Iterator::count);
    for ownership in [AsyncSandbox::new, AsyncSandbox::owning] {
        // More than are removed at once: none of them may keep the others from their places.
        let sandboxes: Vec<_> = (0..40)
            .map(|_| ownership(Arc::clone(&provider)).with_spec(SandboxSpec::default()))
            .collect();
        for sandbox in &sandboxes {
            sandbox.start().await.unwrap();
        }
        assert_eq!(made(), 40);
        drop(sandboxes);
        let began = Instant::now();
        provider.aclose().await.unwrap();
        assert_eq!(made(), 0);
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    }
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
        let waiting = second.exec(&second_handle, ExecOptions::new(line).with_timeout(SOON));
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
