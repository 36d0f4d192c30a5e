use std::sync::Arc;

use crate::error::{Error, ErrorKind, Operation};
use crate::provider::tests::scripted::{Call, DEADLINE, Scripted, Step};
use crate::spec::SandboxStatus;

use super::{is_close, is_create, kind, owning, shared};

#[tokio::test]
async fn l09_stop_removes_the_sandbox_and_then_closes_the_provider() {
    let provider = Scripted::new();
    let sandbox = owning(&provider);
    sandbox.start().await.unwrap();
    sandbox.stop().await.unwrap();
    assert_eq!(
        provider.calls()[1..],
        [Call::Close("box-1".to_owned()), Call::Aclose]
    );
}

#[tokio::test]
async fn l09_stop_again_does_nothing() {
    let provider = Scripted::new();
    let sandbox = owning(&provider);
    sandbox.start().await.unwrap();
    sandbox.stop().await.unwrap();
    let calls = provider.calls();
    sandbox.stop().await.unwrap();
    assert_eq!(provider.calls(), calls);
}

#[tokio::test]
async fn l09_two_stops_at_once_close_once() {
    let provider = Scripted::new();
    let sandbox = owning(&provider);
    sandbox.start().await.unwrap();
    let (first, second) = tokio::join!(sandbox.stop(), sandbox.stop());
    first.unwrap();
    second.unwrap();
    assert_eq!((provider.closes(), provider.acloses()), (1, 1));
}

#[tokio::test]
async fn l09_stop_of_a_sandbox_that_never_started_only_closes_the_provider() {
    let provider = Scripted::new();
    let sandbox = owning(&provider);
    sandbox.stop().await.unwrap();
    assert_eq!(provider.calls(), [Call::Aclose]);
}

#[tokio::test]
async fn l09_the_provider_is_closed_also_when_the_removal_fails() {
    let provider = Scripted::new();
    provider.script(Operation::Close, [Step::Fail(ErrorKind::Unavailable)]);
    let sandbox = owning(&provider);
    sandbox.start().await.unwrap();
    assert_eq!(kind(sandbox.stop().await), ErrorKind::Unavailable);
    assert_eq!(
        provider.calls()[1..],
        [Call::Close("box-1".to_owned()), Call::Aclose]
    );
}

#[tokio::test]
async fn l09_stop_waits_for_a_start_and_removes_what_it_made() {
    let provider = Scripted::new();
    let (step, gate) = Step::blocked();
    provider.script(Operation::Create, [step]);
    let sandbox = Arc::new(shared(&provider));
    let starting = {
        let sandbox = Arc::clone(&sandbox);
        tokio::spawn(async move { sandbox.start().await.map(|_| ()) })
    };
    provider.reached(is_create).await;
    let stopping = {
        let sandbox = Arc::clone(&sandbox);
        tokio::spawn(async move { sandbox.stop().await })
    };
    gate.add_permits(1);
    starting.await.unwrap().unwrap();
    stopping.await.unwrap().unwrap();
    assert_eq!(provider.closes(), 1);
    assert_eq!(sandbox.status().await.unwrap(), SandboxStatus::Stopped);
}

#[tokio::test]
async fn l09_stop_does_not_wait_for_running_commands() {
    let provider = Scripted::new();
    let (step, gate) = Step::blocked();
    provider.script(Operation::Exec, [step]);
    let sandbox = Arc::new(shared(&provider));
    sandbox.start().await.unwrap();
    let running = {
        let sandbox = Arc::clone(&sandbox);
        tokio::spawn(async move { sandbox.exec("sleep 1000").await })
    };
    provider.reached(|call| matches!(call, Call::Exec(_))).await;
    tokio::time::timeout(DEADLINE, sandbox.stop())
        .await
        .expect("stop must not wait")
        .unwrap();
    assert!(!running.is_finished());
    gate.add_permits(1);
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn l10_a_failed_removal_is_raised_and_tried_again_by_the_next_stop() {
    let provider = Scripted::new();
    provider.script(
        Operation::Close,
        [Step::Fail(ErrorKind::Unavailable), Step::Fail(ErrorKind::Timeout)],
    );
    let sandbox = shared(&provider);
    sandbox.start().await.unwrap();
    assert_eq!(kind(sandbox.stop().await), ErrorKind::Unavailable);
    assert_eq!(kind(sandbox.exec("true").await), ErrorKind::Stopped);
    assert_eq!(kind(sandbox.start().await), ErrorKind::Stopped);
    assert_eq!(kind(sandbox.stop().await), ErrorKind::Timeout);
    sandbox.stop().await.unwrap();
    assert_eq!(provider.closes(), 3);
    sandbox.stop().await.unwrap();
    assert_eq!(provider.closes(), 3);
    assert_eq!(sandbox.status().await.unwrap(), SandboxStatus::Stopped);
}

#[tokio::test]
async fn l10_a_failed_removal_that_is_never_repeated_is_repeated_after_the_drop() {
    let provider = Scripted::new();
    provider.script(Operation::Close, [Step::Fail(ErrorKind::Unavailable)]);
    let sandbox = shared(&provider);
    sandbox.start().await.unwrap();
    sandbox.stop().await.unwrap_err();
    let reaper = sandbox.reaper.clone();
    drop(sandbox);
    reaper.wait_idle(DEADLINE).await.unwrap();
    assert_eq!(provider.closes(), 2);
}

#[tokio::test]
async fn l10_a_cancelled_stop_can_be_repeated() {
    let provider = Scripted::new();
    provider.script(Operation::Close, [Step::blocked().0]);
    let sandbox = shared(&provider);
    sandbox.start().await.unwrap();
    tokio::select! {
        biased;
        outcome = sandbox.stop() => panic!("the stop ended: {outcome:?}"),
        () = provider.reached(is_close) => {}
    }
    sandbox.stop().await.unwrap();
    assert_eq!(provider.closes(), 2);
}

#[tokio::test]
async fn l10_a_provider_that_could_not_be_closed_is_closed_by_the_next_stop() {
    let provider = Scripted::new();
    provider.script(Operation::Stop, [Step::Fail(ErrorKind::Timeout)]);
    let sandbox = owning(&provider);
    sandbox.start().await.unwrap();
    assert_eq!(kind(sandbox.stop().await), ErrorKind::Timeout);
    sandbox.stop().await.unwrap();
    assert_eq!((provider.closes(), provider.acloses()), (1, 2));
}

#[tokio::test]
async fn l10_both_errors_are_told_the_removal_first() {
    let provider = Scripted::new();
    provider.script(Operation::Close, [Step::Fail(ErrorKind::Unavailable)]);
    provider.script(Operation::Stop, [Step::Fail(ErrorKind::Timeout)]);
    let sandbox = owning(&provider);
    sandbox.start().await.unwrap();
    let error = sandbox.stop().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(
        error.cleanup_errors().iter().map(Error::kind).collect::<Vec<_>>(),
        [ErrorKind::Timeout]
    );
}

#[tokio::test]
async fn l11_a_shared_provider_is_never_closed() {
    let provider = Scripted::new();
    let first = shared(&provider);
    let second = shared(&provider);
    first.start().await.unwrap();
    second.start().await.unwrap();
    first.stop().await.unwrap();
    second.exec("true").await.unwrap();
    second.stop().await.unwrap();
    let never_started = shared(&provider);
    never_started.stop().await.unwrap();
    let failing = shared(&provider);
    provider.script(Operation::Upload, [Step::Fail(ErrorKind::Io)]);
    failing
        .start_with(&super::spec().with_file("/1", ""))
        .await
        .unwrap_err();
    assert_eq!((provider.closes(), provider.acloses()), (3, 0));
}
