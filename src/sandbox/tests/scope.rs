//! L8, D33: a scope starts, runs and stops on every way out.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::SandboxProvider;
use crate::provider::tests::scripted::{Call, Scripted, Step};

use super::{AsyncSandbox, is_close, is_create, kind, spec};

fn provider_of(provider: &Arc<Scripted>) -> Arc<dyn SandboxProvider> {
    Arc::clone(provider) as Arc<dyn SandboxProvider>
}

#[tokio::test]
async fn d33_a_scope_starts_runs_and_stops() {
    let provider = Scripted::new();
    let code = AsyncSandbox::scope(provider_of(&provider), spec(), async |sandbox| {
        Ok::<_, Error>(sandbox.exec("true").await?.return_code)
    })
    .await
    .unwrap();
    assert_eq!(code, 0);
    let calls = provider.calls();
    assert!(
        matches!(calls.as_slice(), [Call::Create(_), Call::Exec(_), Call::Close(_)]),
        "{calls:?}"
    );
}

#[tokio::test]
async fn d33_the_closures_error_is_the_first_and_the_sandbox_is_stopped() {
    let provider = Scripted::new();
    let outcome = AsyncSandbox::scope(provider_of(&provider), spec(), async |_| {
        Err::<(), _>(Error::new(
            ErrorKind::Conflict,
            Operation::Exec,
            "from the closure",
        ))
    })
    .await;
    assert_eq!(kind(outcome), ErrorKind::Conflict);
    assert_eq!(provider.closes(), 1);
}

#[tokio::test]
async fn d33_the_closures_error_stays_the_first_when_the_stop_fails_too() {
    let provider = Scripted::new();
    provider.script(Operation::Close, [Step::Fail(ErrorKind::Unavailable)]);
    let outcome = AsyncSandbox::scope(provider_of(&provider), spec(), async |_| {
        Err::<(), _>(Error::new(
            ErrorKind::Conflict,
            Operation::Exec,
            "from the closure",
        ))
    })
    .await;
    assert_eq!(kind(outcome), ErrorKind::Conflict);
    provider.reached_times(is_close, 2).await;
}

#[tokio::test]
async fn d33_a_failed_stop_is_the_error_where_the_closure_had_none() {
    let provider = Scripted::new();
    provider.script(Operation::Close, [Step::Fail(ErrorKind::Unavailable)]);
    let outcome = AsyncSandbox::scope(provider_of(&provider), spec(), async |_| Ok::<_, Error>(())).await;
    assert_eq!(kind(outcome), ErrorKind::Unavailable);
    provider.reached_times(is_close, 2).await;
}

#[tokio::test]
async fn d33_the_closure_does_not_run_when_the_start_fails() {
    let provider = Scripted::new();
    provider.script(Operation::Create, [Step::Fail(ErrorKind::CreateFailed)]);
    let outcome: Result<()> =
        AsyncSandbox::scope(provider_of(&provider), spec(), async |_| panic!("must not run")).await;
    assert_eq!(kind(outcome), ErrorKind::CreateFailed);
    assert_eq!(provider.closes(), 0);
}

#[tokio::test]
async fn d33_the_callers_own_error_type_comes_through() {
    #[derive(Debug, PartialEq)]
    enum Mine {
        Reward(i32),
        Sandbox(ErrorKind),
    }
    impl From<Error> for Mine {
        fn from(error: Error) -> Self {
            Self::Sandbox(error.kind())
        }
    }
    let provider = Scripted::new();
    let outcome: Result<(), Mine> =
        AsyncSandbox::scope(provider_of(&provider), spec(), async |_| Err(Mine::Reward(7))).await;
    assert_eq!(outcome, Err(Mine::Reward(7)));
    provider.script(Operation::Create, [Step::Fail(ErrorKind::NotReady)]);
    let outcome: Result<(), Mine> =
        AsyncSandbox::scope(provider_of(&provider), spec(), async |_| Ok(())).await;
    assert_eq!(outcome, Err(Mine::Sandbox(ErrorKind::NotReady)));
}

#[tokio::test]
async fn d33_a_panic_of_the_closure_removes_the_sandbox_in_the_background() {
    let provider = Scripted::new();
    let task = tokio::spawn(AsyncSandbox::scope(
        provider_of(&provider),
        spec(),
        async |_| -> Result<()> { panic!("from the closure") },
    ));
    assert!(task.await.unwrap_err().is_panic());
    provider.reached(is_close).await;
    assert_eq!(provider.closes(), 1);
}

#[tokio::test]
async fn d33_a_cancelled_scope_removes_the_sandbox_in_the_background() {
    let provider = Scripted::new();
    provider.script(Operation::Exec, [Step::blocked().0]);
    let task = tokio::spawn(AsyncSandbox::scope(
        provider_of(&provider),
        spec(),
        async |sandbox| sandbox.exec("sleep 1000").await.map(|_| ()),
    ));
    provider.reached(|call| matches!(call, Call::Exec(_))).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    provider.reached(is_close).await;
    assert_eq!(provider.closes(), 1);
}

#[tokio::test]
async fn l08_a_scope_never_closes_the_provider() {
    let provider = Scripted::new();
    for _ in 0..2 {
        AsyncSandbox::scope(provider_of(&provider), spec(), async |_| Ok::<_, Error>(()))
            .await
            .unwrap();
    }
    assert_eq!(
        (provider.count(is_create), provider.closes(), provider.acloses()),
        (2, 2, 0)
    );
}
