//! L7: a start that is dropped half-way leaves nothing and removes what it made exactly once.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;

use crate::error::{ErrorKind, Operation};
use crate::provider::tests::scripted::{Call, DEADLINE, Scripted, Step};
use crate::spec::SandboxStatus;

use super::{AsyncSandbox, is_close, is_create, is_upload, kind, owning, shared, spec};

/// Runs a start until the provider has seen a call, and drops it there.
async fn cancel_start_at(
    sandbox: &AsyncSandbox,
    provider: &Scripted,
    at: impl Fn(&Call) -> bool + Send + Sync,
) {
    let spec = spec().with_file("/1", "one").with_file("/2", "two");
    tokio::select! {
        biased;
        outcome = sandbox.start_with(&spec) => panic!("the start ended: {:?}", outcome.err()),
        () = provider.reached(at) => {}
    }
}

/// Waits until the clean-up thread has nothing left to do for the sandbox.
async fn settled(sandbox: &AsyncSandbox) {
    sandbox.reaper.wait_idle(DEADLINE).await.unwrap();
}

#[tokio::test]
async fn l07_cancelled_start_during_upload_closes_exactly_once() {
    let provider = Scripted::new();
    provider.script(Operation::Upload, [Step::blocked().0]);
    let sandbox = shared(&provider);
    cancel_start_at(&sandbox, &provider, is_upload).await;
    settled(&sandbox).await;
    assert_eq!(provider.closes(), 1);
    sandbox.stop().await.unwrap();
    drop(sandbox);
    assert_eq!(provider.closes(), 1, "a later stop adds none");
    assert_eq!(provider.count(is_upload), 1);
}

#[tokio::test]
async fn l07_cancelled_start_during_the_second_upload_closes_exactly_once() {
    let provider = Scripted::new();
    provider.script(Operation::Upload, [Step::Succeed, Step::blocked().0]);
    let sandbox = shared(&provider);
    cancel_start_at(
        &sandbox,
        &provider,
        |call| matches!(call, Call::Upload(path, _) if path == "/2"),
    )
    .await;
    sandbox.stop().await.unwrap();
    assert_eq!(
        provider.closes(),
        1,
        "stop waits for the clean-up in the background and adds none"
    );
}

#[tokio::test]
async fn l07_cancelled_start_during_upload_leaves_a_stopped_sandbox() {
    let provider = Scripted::new();
    provider.script(Operation::Upload, [Step::blocked().0]);
    let sandbox = shared(&provider);
    cancel_start_at(&sandbox, &provider, is_upload).await;
    assert_eq!(kind(sandbox.start().await), ErrorKind::Stopped);
    assert_eq!(sandbox.status().await.unwrap(), SandboxStatus::Stopped);
    assert_eq!(provider.count(is_create), 1);
}

#[tokio::test]
async fn l07_cancelled_start_closes_an_owned_provider_once() {
    let provider = Scripted::new();
    provider.script(Operation::Upload, [Step::blocked().0]);
    let sandbox = owning(&provider);
    cancel_start_at(&sandbox, &provider, is_upload).await;
    sandbox.stop().await.unwrap();
    settled(&sandbox).await;
    assert_eq!((provider.closes(), provider.acloses()), (1, 1));
}

#[tokio::test]
async fn l07_cancelled_start_during_create_is_undone_by_the_provider_alone() {
    let provider = Scripted::new();
    provider.script(Operation::Create, [Step::blocked().0]);
    let sandbox = shared(&provider);
    cancel_start_at(&sandbox, &provider, is_create).await;
    assert_eq!(provider.calls()[1..], [Call::CreateUndone]);
    sandbox.stop().await.unwrap();
    drop(sandbox);
    assert_eq!(provider.closes(), 0, "the facade has nothing to remove");
}

#[tokio::test]
async fn l07_cancelled_start_during_create_can_be_repeated() {
    let provider = Scripted::new();
    provider.script(Operation::Create, [Step::blocked().0]);
    let sandbox = shared(&provider);
    cancel_start_at(&sandbox, &provider, is_create).await;
    assert_eq!(sandbox.status().await.unwrap(), SandboxStatus::Unknown);
    sandbox.start().await.unwrap();
    sandbox.stop().await.unwrap();
    assert_eq!(provider.closes(), 1);
}

#[tokio::test]
async fn l07_cancelled_clean_up_of_a_failed_start_goes_on_in_the_background() {
    let provider = Scripted::new();
    provider.script(Operation::Upload, [Step::Fail(ErrorKind::Io)]);
    provider.script(Operation::Close, [Step::blocked().0]);
    let sandbox = shared(&provider);
    cancel_start_at(&sandbox, &provider, is_close).await;
    settled(&sandbox).await;
    assert_eq!(provider.closes(), 2, "the close that was dropped is made again");
    sandbox.stop().await.unwrap();
    assert_eq!(provider.closes(), 2);
}

#[tokio::test]
async fn l07_a_start_that_waits_its_turn_can_be_cancelled() {
    let provider = Scripted::new();
    let (step, gate) = Step::blocked();
    provider.script(Operation::Create, [step]);
    let sandbox = Arc::new(shared(&provider));
    let first = {
        let sandbox = Arc::clone(&sandbox);
        tokio::spawn(async move { sandbox.start().await.map(|_| ()) })
    };
    provider.reached(is_create).await;
    assert!(sandbox.start().now_or_never().is_none());
    gate.add_permits(1);
    first.await.unwrap().unwrap();
    sandbox.exec("true").await.unwrap();
}

#[test]
fn l07_cancelled_start_is_cleaned_up_also_when_its_runtime_ends() {
    let provider = Scripted::new();
    provider.script(Operation::Upload, [Step::blocked().0]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let sandbox = shared(&provider);
    runtime.block_on(cancel_start_at(&sandbox, &provider, is_upload));
    runtime.shutdown_timeout(Duration::from_secs(1));
    drop(sandbox);
    let other = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    other.block_on(provider.reached(is_close));
    assert_eq!(provider.closes(), 1);
}

#[tokio::test]
async fn a_dropped_sandbox_is_removed_in_the_background() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    sandbox.start().await.unwrap();
    let reaper = sandbox.reaper.clone();
    drop(sandbox);
    reaper.wait_idle(DEADLINE).await.unwrap();
    assert_eq!(provider.calls()[1..], [Call::Close("box-1".to_owned())]);
}

#[tokio::test]
async fn a_dropped_sandbox_that_never_started_or_was_stopped_removes_nothing() {
    let provider = Scripted::new();
    drop(shared(&provider));
    let sandbox = shared(&provider);
    sandbox.start().await.unwrap();
    sandbox.stop().await.unwrap();
    let reaper = sandbox.reaper.clone();
    drop(sandbox);
    assert_eq!(reaper.pending(), 0);
    assert_eq!(provider.closes(), 1);
}
