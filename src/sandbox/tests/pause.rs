//! L18: pausing and resuming through the facade.

use std::time::Duration;

use crate::error::{ErrorKind, Operation};
use crate::provider::tests::scripted::{Call, Capabilities, Scripted, Step};

use super::{kind, shared, spec};

#[tokio::test]
async fn l18_a_provider_that_can_not_is_named_before_the_state_is_checked() {
    let sandbox = shared(&Scripted::with(Capabilities::None));
    for outcome in [sandbox.pause().await, sandbox.resume().await] {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("`scripted`"), "{error}");
    }
}

#[tokio::test]
async fn l12_l18_pausing_before_start_and_after_stop_is_refused_without_a_call() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    assert_eq!(kind(sandbox.pause().await), ErrorKind::NotStarted);
    assert_eq!(kind(sandbox.resume().await), ErrorKind::NotStarted);
    sandbox.start().await.unwrap();
    sandbox.stop().await.unwrap();
    assert_eq!(kind(sandbox.pause().await), ErrorKind::Stopped);
    assert_eq!(kind(sandbox.resume().await), ErrorKind::Stopped);
    assert_eq!(
        provider.count(|call| matches!(call, Call::Pause | Call::Resume(_))),
        0
    );
}

#[tokio::test]
async fn l18_resume_waits_for_the_specs_time_and_takes_the_new_handle() {
    let provider = Scripted::new();
    let sandbox = shared(&provider).with_spec(spec().with_ready_timeout(Duration::from_secs(7)));
    sandbox.start().await.unwrap();
    assert_eq!(sandbox.handle().unwrap().raw::<&str>(), None);
    sandbox.pause().await.unwrap();
    sandbox.resume().await.unwrap();
    assert_eq!(
        provider.calls()[1..],
        [Call::Pause, Call::Resume(Some(Duration::from_secs(7)))]
    );
    let handle = sandbox.handle().unwrap();
    assert_eq!(handle.raw::<&str>(), Some(&"resumed"));
    assert!(handle.ports().contains(8000), "the rest of the handle stays");
}

#[tokio::test]
async fn l18_a_resume_that_is_not_ready_in_time_leaves_the_sandbox_started() {
    let provider = Scripted::new();
    provider.script(Operation::Resume, [Step::Fail(ErrorKind::Timeout)]);
    let sandbox = shared(&provider);
    sandbox.start().await.unwrap();
    assert_eq!(kind(sandbox.resume().await), ErrorKind::Timeout);
    sandbox.status().await.unwrap();
    sandbox.stop().await.unwrap();
    assert_eq!(provider.closes(), 1);
}

#[tokio::test]
async fn l18_stop_does_not_wait_for_a_resume_that_hangs() {
    let provider = Scripted::new();
    let (step, gate) = Step::blocked();
    provider.script(Operation::Resume, [step]);
    let sandbox = std::sync::Arc::new(shared(&provider));
    sandbox.start().await.unwrap();
    let resuming = {
        let sandbox = std::sync::Arc::clone(&sandbox);
        tokio::spawn(async move { sandbox.resume().await })
    };
    provider.reached(|call| matches!(call, Call::Resume(_))).await;
    sandbox.stop().await.unwrap();
    gate.add_permits(1);
    resuming.await.unwrap().unwrap();
    assert!(sandbox.handle().is_none(), "a late resume does not bring it back");
}
