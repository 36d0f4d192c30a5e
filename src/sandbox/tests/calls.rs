use std::time::Duration;

use crate::error::{ErrorKind, Operation};
use crate::provider::Capability;
use crate::provider::tests::scripted::{Call, Capabilities, Scripted, Seen, Step};
use crate::spec::{ExecOptions, ExecTimeout, SandboxSpec, SandboxStatus};

use super::{AsyncSandbox, kind, shared};

/// The kind of the error of every operation that needs a started sandbox.
async fn kinds(sandbox: &AsyncSandbox) -> Vec<ErrorKind> {
    vec![
        kind(sandbox.exec("true").await),
        kind(sandbox.exec_with(ExecOptions::new("true")).await),
        kind(sandbox.spawn(ExecOptions::new("true")).await),
        kind(sandbox.upload("local", "/remote").await),
        kind(sandbox.download("/remote", "local").await),
        kind(sandbox.inspect().await),
        kind(sandbox.endpoint(8000).await),
    ]
}

#[tokio::test]
async fn l12_operations_before_start_and_after_stop_are_refused_without_a_call() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    assert_eq!(kinds(&sandbox).await, [ErrorKind::NotStarted; 7]);
    let error = sandbox.exec("true").await.unwrap_err();
    assert!(error.to_string().contains("has not been started"), "{error}");
    assert_eq!(provider.calls(), []);
    sandbox.start().await.unwrap();
    sandbox.stop().await.unwrap();
    let calls = provider.calls();
    assert_eq!(kinds(&sandbox).await, [ErrorKind::Stopped; 7]);
    assert_eq!(provider.calls(), calls);
    assert_eq!((sandbox.sandbox_id(), sandbox.handle().map(|_| ())), (None, None));
}

#[tokio::test]
async fn l13_status_asks_the_provider_only_between_start_and_stop() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    assert_eq!(sandbox.status().await.unwrap(), SandboxStatus::Unknown);
    assert_eq!(provider.calls(), []);
    sandbox.start().await.unwrap();
    assert_eq!(sandbox.status().await.unwrap(), SandboxStatus::Paused);
    assert_eq!(provider.count(|call| *call == Call::Status), 1);
    sandbox.stop().await.unwrap();
    assert_eq!(sandbox.status().await.unwrap(), SandboxStatus::Stopped);
    assert_eq!(provider.count(|call| *call == Call::Status), 1);
}

#[tokio::test]
async fn l14_exec_runs_in_the_specs_directory_for_at_most_180_seconds() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    sandbox.start().await.unwrap();
    sandbox.exec("pwd").await.unwrap();
    let seen = Seen {
        cwd: Some("/work".to_owned()),
        env: Vec::new(),
        user: None,
        timeout: ExecTimeout::After(Duration::from_secs(180)),
    };
    assert_eq!(provider.calls()[1..], [Call::Exec(seen)]);
}

#[tokio::test]
async fn l14_options_reach_the_provider_unchanged() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    sandbox.start().await.unwrap();
    let options = || {
        ExecOptions::new("id")
            .with_cwd("/else")
            .with_env("B", "2")
            .with_env("A", "1")
            .with_user("alice")
    };
    sandbox.exec_with(options()).await.unwrap();
    sandbox
        .exec_with(options().with_timeout(ExecTimeout::Never))
        .await
        .unwrap();
    sandbox.spawn(options()).await.unwrap_err();
    let seen = |timeout| Seen {
        cwd: Some("/else".to_owned()),
        env: vec![("A".to_owned(), "1".to_owned()), ("B".to_owned(), "2".to_owned())],
        user: Some("alice".to_owned()),
        timeout,
    };
    assert_eq!(
        provider.calls()[1..],
        [
            Call::Exec(seen(ExecTimeout::Default)),
            Call::Exec(seen(ExecTimeout::Never)),
            Call::Spawn(seen(ExecTimeout::Default)),
        ]
    );
}

#[tokio::test]
async fn l14_without_a_directory_in_the_spec_none_is_given() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    sandbox.start_with(&SandboxSpec::new("image")).await.unwrap();
    sandbox.exec("pwd").await.unwrap();
    assert!(matches!(&provider.calls()[1], Call::Exec(seen) if seen.cwd.is_none()));
}

#[tokio::test]
async fn l14_a_wrong_argument_is_refused_before_the_provider_is_called() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    sandbox.start().await.unwrap();
    for wrong in [
        ExecOptions::new(Vec::<String>::new()),
        ExecOptions::new("a\0"),
        ExecOptions::new("a").with_env("=", ""),
    ] {
        assert_eq!(kind(sandbox.exec_with(wrong).await), ErrorKind::InvalidArgument);
    }
    assert_eq!(
        kind(sandbox.spawn(ExecOptions::new("a\0")).await),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        kind(sandbox.upload("local", "").await),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        kind(sandbox.download("a\0", "local").await),
        ErrorKind::InvalidArgument
    );
    assert_eq!(provider.calls().len(), 1);
}

#[tokio::test]
async fn d13_relative_remote_paths_are_relative_to_the_specs_directory_else_to_the_root() {
    for (workdir, given, told) in [
        (Some("/work"), "a", "/work/a"),
        (Some("/work/"), "a/b/", "/work/a/b/"),
        (Some("/"), "a", "/a"),
        (Some("/work"), "/a", "/a"),
        (None, "a", "a"),
        (None, "../a", "../a"),
    ] {
        let provider = Scripted::new();
        let mut spec = SandboxSpec::new("image");
        if let Some(workdir) = workdir {
            spec = spec.with_workdir(workdir);
        }
        let sandbox = shared(&provider);
        sandbox.start_with(&spec).await.unwrap();
        sandbox.upload("local", given).await.unwrap();
        sandbox.download(given, "local").await.unwrap();
        assert_eq!(
            provider.calls()[1..],
            [
                Call::Upload(told.to_owned(), "local".to_owned()),
                Call::Download(told.to_owned())
            ],
            "{workdir:?} {given}"
        );
    }
}

#[tokio::test]
async fn d13_without_the_capability_files_go_one_by_one() {
    let provider = Scripted::with(Capabilities::None);
    let sandbox = shared(&provider);
    sandbox.start().await.unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "text").unwrap();
    sandbox.upload(file.path(), "a").await.unwrap();
    sandbox.download("a", "local").await.unwrap();
    assert_eq!(
        provider.calls()[1..],
        [
            Call::Upload("/work/a".to_owned(), "text".to_owned()),
            Call::Download("/work/a".to_owned())
        ]
    );
}

#[tokio::test]
async fn a_missing_capability_is_told_before_anything_is_started() {
    let provider = Scripted::with(Capabilities::None);
    let sandbox = shared(&provider);
    assert!(!sandbox.supports(Capability::Inspect));
    assert!(sandbox.capabilities().is_empty());
    assert_eq!(kind(sandbox.inspect().await), ErrorKind::Unsupported);
    assert_eq!(
        kind(sandbox.spawn(ExecOptions::new("true")).await),
        ErrorKind::Unsupported
    );
    assert!(shared(&Scripted::new()).supports(Capability::Inspect));
}

#[tokio::test]
async fn errors_of_the_provider_come_through() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    sandbox.start().await.unwrap();
    for operation in [
        Operation::Exec,
        Operation::Upload,
        Operation::Download,
        Operation::Inspect,
    ] {
        provider.script(operation, [Step::Fail(ErrorKind::Conflict)]);
    }
    assert_eq!(kind(sandbox.exec("true").await), ErrorKind::Conflict);
    assert_eq!(kind(sandbox.upload("local", "/a").await), ErrorKind::Conflict);
    assert_eq!(kind(sandbox.download("/a", "local").await), ErrorKind::Conflict);
    assert_eq!(kind(sandbox.inspect().await), ErrorKind::Conflict);
}
