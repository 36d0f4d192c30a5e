use std::time::Duration;

use crate::error::{Error, ErrorKind, Operation, PathProblem};
use crate::provider::SandboxProvider;
use crate::spec::{ExecErrorType, ExecOptions, SandboxSpec};

use super::MemoryProvider;

#[tokio::test]
async fn rules_are_asked_in_their_order_and_a_forgotten_one_shows() {
    let provider = MemoryProvider::new();
    provider.answer("test", MemoryProvider::printed(0, "first", ""));
    provider.answer("make test", MemoryProvider::printed(1, "never", ""));
    provider
        .answer_with(|seen| (seen.cwd.as_deref() == Some("/w")).then(|| MemoryProvider::printed(7, "", "w")));
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    let run = async |options: ExecOptions| provider.exec(&handle, options).await.unwrap();
    assert_eq!(
        run(ExecOptions::new("make test")).await.stdout().as_deref(),
        Some("first")
    );
    let by_directory = run(ExecOptions::new(["ls", "-l"])
        .with_cwd("/w")
        .with_user("me")
        .with_env("A", "b"))
    .await;
    assert_eq!(
        (by_directory.return_code, by_directory.stderr().as_deref()),
        (7, Some("w"))
    );
    let forgotten = run(ExecOptions::new("else")).await;
    assert_eq!(
        (forgotten.return_code, forgotten.error_type),
        (127, Some(ExecErrorType::Start))
    );
    let seen = provider.commands();
    assert_eq!(seen.len(), 3);
    assert_eq!(
        (
            seen[1].text().as_str(),
            seen[1].user.as_deref(),
            seen[1].env["A"].as_str()
        ),
        ("ls -l", Some("me"), "b")
    );
}

#[tokio::test]
async fn failures_come_one_after_the_other_and_then_no_more() {
    let provider = MemoryProvider::new();
    for kind in [ErrorKind::Unavailable, ErrorKind::Conflict] {
        provider.fail_next(Operation::Create, Error::new(kind, Operation::Create, "injected"));
    }
    let spec = SandboxSpec::default();
    assert_eq!(
        provider.create(&spec).await.unwrap_err().kind(),
        ErrorKind::Unavailable
    );
    assert_eq!(
        provider.create(&spec).await.unwrap_err().kind(),
        ErrorKind::Conflict
    );
    assert_eq!(provider.living(), 0);
    let handle = provider.create(&spec).await.unwrap();
    provider.hang_next(Operation::Exec);
    let hanging = provider.exec(&handle, ExecOptions::new("true"));
    assert!(
        tokio::time::timeout(Duration::from_millis(20), hanging)
            .await
            .is_err()
    );
    assert_eq!(provider.commands(), [], "a call that was dropped has run nothing");
    assert_eq!(provider.living(), 1);
    provider.close(&handle).await.unwrap();
    assert_eq!(provider.living(), 0);
}

#[tokio::test]
async fn files_stay_in_memory() {
    let provider = MemoryProvider::new();
    let handle = provider
        .create(&SandboxSpec::default().with_workdir("/w"))
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (local, back) = (folder.path().join("local"), folder.path().join("new/back"));
    std::fs::write(&local, "content").unwrap();
    provider.upload_file(&handle, &local, "sub/file").await.unwrap();
    assert_eq!(
        provider.file(handle.sandbox_id(), "/w/sub/file").unwrap(),
        "content"
    );
    assert!(provider.put_file(handle.sandbox_id(), "/made", "by a command"));
    provider.download_file(&handle, "/made", &back).await.unwrap();
    assert_eq!(std::fs::read_to_string(&back).unwrap(), "by a command");
    let missing = provider.download_file(&handle, "none", &back).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Path(PathProblem::NotFound));
    assert_eq!(std::fs::read_to_string(&back).unwrap(), "by a command");
}

/// A facade that is dropped hands its sandbox over like this.
#[tokio::test]
async fn closing_waits_for_what_is_removed_in_the_background() {
    let provider = MemoryProvider::new();
    for _ in 0..64 {
        let handle = provider.create(&SandboxSpec::default()).await.unwrap();
        let removing = provider.clone();
        provider.cleanup().unwrap().submit("test", async move {
            removing.close(&handle).await.unwrap();
        });
    }
    provider.aclose().await.unwrap();
    assert_eq!(provider.living(), 0);
}
