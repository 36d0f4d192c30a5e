use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::error::{Error, ErrorKind, Operation};
use crate::provider::tests::scripted::{Call, Scripted, Step};
use crate::provider::{OnExisting, ProviderFactory, SandboxProvider, register_provider};
use crate::spec::{SandboxSpec, SandboxStatus};

use super::{AsyncSandbox, is_create, is_upload, kind, owning, shared, spec};

#[tokio::test]
async fn l01_a_configuration_makes_the_provider_at_once_and_starts_nothing() {
    let made = Arc::new(AtomicUsize::new(0));
    let provider = Scripted::new();
    let (counted, given) = (Arc::clone(&made), Arc::clone(&provider));
    let factory: ProviderFactory = Arc::new(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::clone(&given) as Arc<dyn SandboxProvider>)
    });
    register_provider("l01", factory, OnExisting::Refuse).unwrap();
    let sandbox = AsyncSandbox::from_config(&json!({"l01": {}})).unwrap();
    assert_eq!(made.load(Ordering::Relaxed), 1);
    assert_eq!(provider.calls(), []);
    assert_eq!(sandbox.status().await.unwrap(), SandboxStatus::Unknown);
    sandbox.stop().await.unwrap();
    assert_eq!(
        provider.acloses(),
        1,
        "a provider made from a configuration is owned"
    );
}

#[test]
fn l01_an_error_of_the_configuration_comes_at_once() {
    let factory: ProviderFactory =
        Arc::new(|_| Err(Error::invalid(Operation::Configure, "from the factory")));
    register_provider("l01-failing", factory, OnExisting::Refuse).unwrap();
    assert_eq!(
        kind(AsyncSandbox::from_config(&json!({"l01-failing": {}}))),
        ErrorKind::InvalidArgument
    );
}

#[tokio::test]
async fn l02_start_needs_a_spec() {
    let provider = Scripted::new();
    let sandbox = AsyncSandbox::new(Arc::clone(&provider) as Arc<dyn SandboxProvider>);
    let error = sandbox.start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("requires a SandboxSpec"), "{error}");
    assert_eq!(provider.calls(), []);
    sandbox.start_with(&spec()).await.unwrap();
}

#[tokio::test]
async fn l02_the_spec_of_start_beats_that_of_the_constructor() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    sandbox.start_with(&SandboxSpec::new("other")).await.unwrap();
    assert_eq!(provider.calls(), [Call::Create(Some("other".to_owned()))]);
}

#[tokio::test]
async fn l03_start_while_started_is_refused() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    sandbox.start().await.unwrap();
    let error = sandbox.start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyStarted);
    assert!(error.to_string().contains("already started"), "{error}");
    assert_eq!(provider.count(is_create), 1);
    sandbox.exec("true").await.unwrap();
}

#[tokio::test]
async fn l03_two_starts_at_once_make_one_sandbox() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    let (first, second) = tokio::join!(sandbox.start(), sandbox.start());
    assert!(first.is_ok());
    assert_eq!(kind(second), ErrorKind::AlreadyStarted);
    assert_eq!(provider.count(is_create), 1);
}

#[tokio::test]
async fn l03_start_after_stop_is_refused() {
    let provider = Scripted::new();
    for started in [true, false] {
        let sandbox = shared(&provider);
        if started {
            sandbox.start().await.unwrap();
        }
        sandbox.stop().await.unwrap();
        let creates = provider.count(is_create);
        let error = sandbox.start().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Stopped);
        assert!(error.to_string().contains("has been stopped"), "{error}");
        assert_eq!(provider.count(is_create), creates);
    }
}

#[tokio::test]
async fn l04_files_are_written_in_order_before_the_sandbox_is_published() {
    let provider = Scripted::new();
    let (step, gate) = Step::blocked();
    provider.script(Operation::Upload, [Step::Succeed, step]);
    let sandbox = Arc::new(shared(&provider));
    let spec = spec()
        .with_file("/z", "zürich\n")
        .with_file("a", "")
        .with_file("/m", "m");
    let starting = {
        let (sandbox, spec) = (Arc::clone(&sandbox), spec.clone());
        tokio::spawn(async move { sandbox.start_with(&spec).await.map(|_| ()) })
    };
    provider
        .reached(|call| matches!(call, Call::Upload(path, _) if path == "/work/a"))
        .await;
    assert_eq!(kind(sandbox.exec("true").await), ErrorKind::NotStarted);
    assert!(sandbox.handle().is_none());
    gate.add_permits(1);
    starting.await.unwrap().unwrap();
    assert_eq!(
        provider.calls(),
        [
            Call::Create(Some("image".to_owned())),
            Call::Upload("/z".to_owned(), "zürich\n".to_owned()),
            Call::Upload("/work/a".to_owned(), String::new()),
            Call::Upload("/m".to_owned(), "m".to_owned()),
        ]
    );
    assert_eq!(sandbox.sandbox_id().unwrap().as_str(), "box-1");
}

#[tokio::test]
async fn l04_start_gives_the_sandbox() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    let started = sandbox.start().await.unwrap();
    assert!(std::ptr::eq(started, &raw const sandbox));
}

#[tokio::test]
async fn l05_a_failed_file_removes_the_sandbox_and_keeps_the_first_error() {
    let provider = Scripted::new();
    provider.script(Operation::Upload, [Step::Succeed, Step::Fail(ErrorKind::Io)]);
    let sandbox = owning(&provider);
    let spec = spec().with_file("/1", "").with_file("/2", "").with_file("/3", "");
    let error = sandbox.start_with(&spec).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.operation()),
        (ErrorKind::Io, Operation::Upload)
    );
    assert!(error.cleanup_errors().is_empty());
    assert_eq!(provider.count(is_upload), 2, "the third file is not tried");
    assert_eq!((provider.closes(), provider.acloses()), (1, 1));
    assert_eq!(kind(sandbox.start().await), ErrorKind::Stopped);
    assert_eq!(sandbox.status().await.unwrap(), SandboxStatus::Stopped);
    sandbox.stop().await.unwrap();
    drop(sandbox);
    assert_eq!((provider.closes(), provider.acloses()), (1, 1));
}

#[tokio::test]
async fn l05_a_clean_up_that_fails_too_is_attached_and_tried_again() {
    let provider = Scripted::new();
    provider.script(Operation::Upload, [Step::Fail(ErrorKind::Io)]);
    provider.script(Operation::Close, [Step::Fail(ErrorKind::Unavailable)]);
    let sandbox = shared(&provider);
    let error = sandbox.start_with(&spec().with_file("/1", "")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    let cleanup: Vec<ErrorKind> = error.cleanup_errors().iter().map(Error::kind).collect();
    assert_eq!(cleanup, [ErrorKind::Unavailable]);
    sandbox.stop().await.unwrap();
    assert_eq!(provider.closes(), 2, "{:?}", provider.calls());
}

#[tokio::test]
async fn l06_a_failed_create_leaves_the_object_as_it_was() {
    let provider = Scripted::new();
    provider.script(Operation::Create, [Step::Fail(ErrorKind::CreateFailed)]);
    let sandbox = owning(&provider);
    assert_eq!(kind(sandbox.start().await), ErrorKind::CreateFailed);
    assert_eq!((provider.closes(), provider.acloses()), (0, 0));
    assert_eq!(sandbox.status().await.unwrap(), SandboxStatus::Unknown);
    assert_eq!(kind(sandbox.exec("true").await), ErrorKind::NotStarted);
    sandbox.start().await.unwrap();
    sandbox.exec("true").await.unwrap();
    sandbox.stop().await.unwrap();
    assert_eq!((provider.closes(), provider.acloses()), (1, 1));
}

#[tokio::test]
async fn l06_after_a_failed_create_stop_only_closes_the_provider() {
    let provider = Scripted::new();
    provider.script(Operation::Create, [Step::Fail(ErrorKind::CreateFailed)]);
    let sandbox = owning(&provider);
    sandbox.start().await.unwrap_err();
    sandbox.stop().await.unwrap();
    assert_eq!((provider.closes(), provider.acloses()), (0, 1));
}
