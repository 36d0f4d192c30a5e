//! L15: starting with a setup.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Operation};
use crate::provider::tests::scripted::{Call, Scripted, Step};
use crate::spec::SandboxStatus;

use super::{is_close, kind, owning, shared, spec};

fn setup_failed() -> Error {
    Error::new(ErrorKind::Conflict, Operation::Configure, "the setup went wrong")
}

#[tokio::test]
async fn l15_setup_runs_in_the_started_sandbox_and_the_sandbox_stays() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    let started = sandbox
        .start_with_setup(&spec(), async |sandbox| {
            sandbox.exec("make").await?;
            Ok(())
        })
        .await
        .unwrap();
    assert!(std::ptr::eq(started, &raw const sandbox));
    assert!(matches!(provider.calls()[..], [Call::Create(_), Call::Exec(_)]));
    sandbox.exec("true").await.unwrap();
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn l15_a_failed_setup_stops_the_sandbox_and_is_the_error() {
    let provider = Scripted::new();
    let sandbox = owning(&provider);
    let error = sandbox
        .start_with_setup(&spec(), async |_| Err(setup_failed()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.cleanup_errors().is_empty());
    assert_eq!((provider.closes(), provider.acloses()), (1, 1));
    assert_eq!(sandbox.status().await.unwrap(), SandboxStatus::Stopped);
    assert_eq!(kind(sandbox.start().await), ErrorKind::Stopped);
}

#[tokio::test]
async fn l15_a_stop_that_fails_too_is_attached_and_can_be_repeated() {
    let provider = Scripted::new();
    provider.script(Operation::Close, [Step::Fail(ErrorKind::Unavailable)]);
    let sandbox = shared(&provider);
    let error = sandbox
        .start_with_setup(&spec(), async |_| Err(setup_failed()))
        .await
        .unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Conflict,
        "the setup's error is the first"
    );
    let cleanup: Vec<ErrorKind> = error.cleanup_errors().iter().map(Error::kind).collect();
    assert_eq!(cleanup, [ErrorKind::Unavailable]);
    sandbox.stop().await.unwrap();
    assert_eq!(provider.closes(), 2);
}

#[tokio::test]
async fn l15_a_cancelled_setup_removes_the_sandbox_once() {
    let provider = Scripted::new();
    let (step, _gate) = Step::blocked();
    provider.script(Operation::Exec, [step]);
    let sandbox = shared(&provider);
    let spec = spec();
    let starting = sandbox.start_with_setup(&spec, async |sandbox| {
        sandbox.exec("hangs").await?;
        Ok(())
    });
    tokio::select! {
        _ = starting => panic!("the setup must hang"),
        () = provider.reached(|call| matches!(call, Call::Exec(_))) => {}
    }
    provider.reached(is_close).await;
    assert_eq!(kind(sandbox.exec("true").await), ErrorKind::Stopped);
    sandbox.stop().await.unwrap();
    assert_eq!(provider.closes(), 1);
}

#[tokio::test]
async fn l15_a_setup_that_panics_removes_the_sandbox() {
    let provider = Scripted::new();
    let sandbox = Arc::new(shared(&provider));
    let starting = {
        let sandbox = Arc::clone(&sandbox);
        tokio::spawn(async move {
            sandbox
                .start_with_setup(&spec(), async |_| panic!("on purpose"))
                .await
                .map(drop)
        })
    };
    assert!(starting.await.unwrap_err().is_panic());
    provider.reached(is_close).await;
    assert_eq!(sandbox.status().await.unwrap(), SandboxStatus::Stopped);
}

#[tokio::test]
async fn l15_a_start_that_fails_runs_no_setup() {
    let provider = Scripted::new();
    provider.script(Operation::Create, [Step::Fail(ErrorKind::CreateFailed)]);
    let sandbox = shared(&provider);
    let outcome = sandbox
        .start_with_setup(&spec(), async |_| panic!("it must not run"))
        .await;
    assert_eq!(kind(outcome), ErrorKind::CreateFailed);
    assert_eq!(provider.closes(), 0);
}
