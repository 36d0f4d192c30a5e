//! The synchronous facade over the scripted provider, and its runner by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::error::{Error, ErrorKind, Operation};
use crate::provider::tests::scripted::{Call, Scripted, Step};
use crate::provider::{OnExisting, SandboxProvider, register_provider};
use crate::spec::{SandboxSpec, SandboxStatus};

use super::runner::LoopRunner;
use super::{SYNC_LOOP_CLOSE_TIMEOUT, SYNC_OPERATION_TIMEOUT, Sandbox};

/// No test waits longer than this for what should come.
const SOON: Duration = Duration::from_secs(60);

fn pair() -> (Arc<Scripted>, Sandbox) {
    let provider = Scripted::new();
    let shared = Arc::clone(&provider) as Arc<dyn SandboxProvider>;
    let mut sandbox = Sandbox::owning(shared)
        .unwrap()
        .with_spec(SandboxSpec::new("image"));
    // Its thread may get no turn for longer than the usual time.
    sandbox.runner.set_close_timeout(SOON);
    (provider, sandbox)
}

fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("gym-sandbox-syn")).count()
}

#[test]
fn v01_every_call_in_a_runtime_is_an_error_and_no_panic() {
    let (provider, sandbox) = pair();
    let refused = |sandbox: &Sandbox| {
        let file = tempfile::NamedTempFile::new().unwrap();
        let outcomes: Vec<Result<(), Error>> = vec![
            sandbox.start().map(|_| ()),
            sandbox.start_with(&SandboxSpec::default()).map(|_| ()),
            sandbox.exec("true").map(|_| ()),
            sandbox.status().map(|_| ()),
            sandbox.inspect().map(|_| ()),
            sandbox.upload(file.path(), "/a"),
            sandbox.download("/a", file.path()),
            sandbox.read_file("/a").map(|_| ()),
            sandbox.stat("/a").map(|_| ()),
            sandbox.endpoint(80).map(|_| ()),
            sandbox.stop(),
        ];
        for outcome in outcomes {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BlockingInAsync);
            assert!(
                error.to_string().contains("is blocking; use AsyncSandbox"),
                "{error}"
            );
        }
        assert!(Sandbox::scope(Scripted::new(), SandboxSpec::default(), |_| Ok::<_, Error>(())).is_err());
    };
    let current = tokio::runtime::Builder::new_current_thread().build().unwrap();
    current.block_on(async { refused(&sandbox) });
    let many = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    let sandbox = Arc::new(sandbox);
    let shared = Arc::clone(&sandbox);
    many.block_on(async {
        refused(&shared);
        let in_a_task = Arc::clone(&shared);
        tokio::spawn(async move { refused(&in_a_task) }).await.unwrap();
        let on_a_blocking_thread = Arc::clone(&shared);
        tokio::task::spawn_blocking(move || refused(&on_a_blocking_thread))
            .await
            .unwrap();
    });
    {
        let _entered = many.enter();
        refused(&sandbox);
    }
    assert_eq!(provider.calls(), [], "nothing was done");
    // And outside it works: the refused calls have changed nothing.
    sandbox.start().unwrap();
    sandbox.stop().unwrap();
    assert_eq!(provider.closes(), 1);
}

#[test]
fn d29_where_it_is_allowed_calls_work_everywhere() {
    let life = |sandbox: &Sandbox| {
        sandbox.start().unwrap();
        assert!(sandbox.exec("true").unwrap().is_success());
        assert_eq!(sandbox.status().unwrap(), SandboxStatus::Paused);
        sandbox.stop().unwrap();
        assert_eq!(sandbox.status().unwrap(), SandboxStatus::Stopped);
    };
    let allowed = || pair().1.allow_in_runtime();
    life(&pair().1);
    life(&allowed());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        life(&allowed());
        tokio::spawn(async move { life(&allowed()) }).await.unwrap();
        tokio::task::spawn_blocking(move || life(&allowed()))
            .await
            .unwrap();
    });
    let _entered = runtime.enter();
    life(&allowed());
}

#[test]
fn v01_a_sandbox_is_dropped_in_a_runtime_without_a_panic() {
    let (provider, sandbox) = pair();
    sandbox.start().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let watched = Arc::clone(&provider);
    runtime.block_on(async move {
        drop(sandbox);
        // The clean-up thread removes what could not be waited for here.
        watched.reached(|call| matches!(call, Call::Close(_))).await;
    });
    assert_eq!(provider.closes(), 1);
}

#[test]
fn v02_a_call_that_takes_too_long_is_dropped_and_an_error() {
    assert_eq!(SYNC_OPERATION_TIMEOUT, Duration::from_secs(3600));
    let (provider, mut sandbox) = pair();
    let (step, gate) = Step::blocked();
    provider.script(Operation::Create, vec![step; 10]);
    // The thread of the sandbox may get no turn in the first of these times: then there is no call that could be dropped.
    let mut timeout = Duration::from_millis(100);
    while provider.count(|call| matches!(call, Call::Create(_))) == 0 {
        sandbox = sandbox.with_operation_timeout(timeout);
        let error = sandbox.start().unwrap_err();
        assert_eq!(
            (error.kind(), error.operation()),
            (ErrorKind::Timeout, Operation::Start)
        );
        timeout *= 2;
    }
    let started = Instant::now();
    while provider.count(|call| *call == Call::CreateUndone) == 0 {
        assert!(started.elapsed() < SOON, "the call was not dropped");
        std::thread::yield_now();
    }
    gate.add_permits(10);
    // The sandbox is usable afterwards.
    let sandbox = sandbox.with_operation_timeout(SOON);
    sandbox.start().unwrap();
    sandbox.stop().unwrap();
}

#[test]
fn v03_after_stop_the_status_is_stopped_and_all_else_an_error() {
    let (provider, sandbox) = pair();
    sandbox.start().unwrap();
    sandbox.stop().unwrap();
    let calls = provider.calls();
    assert_eq!(sandbox.status().unwrap(), SandboxStatus::Stopped);
    for error in [
        sandbox.exec("true").unwrap_err(),
        sandbox.start().unwrap_err(),
        sandbox.read_file("/a").unwrap_err(),
        sandbox.endpoint(80).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Stopped);
        assert!(error.to_string().contains("sync loop is closed"), "{error}");
    }
    assert_eq!(provider.calls(), calls);
}

#[test]
fn v04_stop_is_idempotent_and_ends_the_thread_also_when_it_fails() {
    let (provider, sandbox) = pair();
    sandbox.stop().unwrap();
    sandbox.stop().unwrap();
    assert_eq!((provider.closes(), provider.acloses()), (0, 1));
    let (provider, sandbox) = pair();
    provider.script(Operation::Close, [Step::Fail(ErrorKind::Unavailable)]);
    sandbox.start().unwrap();
    assert_eq!(sandbox.stop().unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(sandbox.runner.is_closed());
    sandbox.stop().unwrap();
    assert_eq!(provider.closes(), 1);
    // What is left is removed in the background (L10).
    drop(sandbox);
    let started = Instant::now();
    while provider.closes() < 2 {
        assert!(started.elapsed() < SOON, "the sandbox was not removed");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn v05_closing_the_runner_is_idempotent_and_bounded() {
    assert_eq!(SYNC_LOOP_CLOSE_TIMEOUT, Duration::from_secs(5));
    let runner = Arc::new(LoopRunner::start(SOON, Duration::from_millis(100)).unwrap());
    let (begun, begins) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    // A call that blocks the thread itself can't be dropped.
    let closing = Arc::clone(&runner);
    let closer = std::thread::spawn(move || {
        begins.recv_timeout(SOON).unwrap();
        let started = Instant::now();
        closing.close();
        closing.close();
        assert!(started.elapsed() < SOON);
        assert!(closing.is_closed());
        release.send(()).unwrap();
    });
    let blocked = runner.run(Operation::Exec, async move {
        begun.send(()).unwrap();
        let released = released.recv_timeout(SOON).is_ok();
        Ok(released)
    });
    closer.join().unwrap();
    assert!(blocked.unwrap());
    let error = runner.run(Operation::Exec, async { Ok(()) }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stopped);
}

#[test]
fn v06_dropping_stops() {
    let (provider, sandbox) = pair();
    sandbox.start().unwrap();
    drop(sandbox);
    assert_eq!((provider.closes(), provider.acloses()), (1, 1));
    // One that never started has nothing to stop.
    let (provider, sandbox) = pair();
    drop(sandbox);
    assert_eq!(provider.closes(), 0);
}

#[test]
fn v06_dropping_waits_for_a_bounded_time_only() {
    let (provider, mut sandbox) = pair();
    sandbox.runner.set_close_timeout(SYNC_LOOP_CLOSE_TIMEOUT);
    sandbox.start().unwrap();
    let (step, gate) = Step::blocked();
    provider.script(Operation::Close, [step]);
    let started = Instant::now();
    // The gate is closed until after this: without a bound it would last for ever.
    drop(sandbox);
    assert!(started.elapsed() >= SYNC_LOOP_CLOSE_TIMEOUT && started.elapsed() < 2 * SOON);
    gate.add_permits(10);
}

#[test]
fn v07_a_constructor_that_fails_ends_its_thread() {
    let factory = Arc::new(|_: &_| Err(Error::new(ErrorKind::Unavailable, Operation::Connect, "no")));
    register_provider("v07-failing", factory, OnExisting::Refuse).unwrap();
    for _ in 0..50 {
        let error = Sandbox::from_config(&json!({"v07-failing": {}})).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    // Other tests have threads, too, but not that many.
    let started = Instant::now();
    while threads() >= 40 {
        assert!(started.elapsed() < SOON, "{} threads are left", threads());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_call_that_panics_is_an_error() {
    let runner = LoopRunner::start(SOON, SOON).unwrap();
    let ready = AtomicBool::new(true);
    let error = runner
        .run::<()>(Operation::Exec, async move {
            assert!(!ready.load(Ordering::Relaxed), "on purpose");
            Ok(())
        })
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(
        runner
            .run(Operation::Exec, async { Ok(7) })
            .is_ok_and(|seven| seven == 7)
    );
}

#[test]
fn d33_a_scope_stops_on_every_way_out() {
    let spec = || SandboxSpec::new("image");
    let provider = Scripted::new();
    let code = Sandbox::scope(Arc::clone(&provider) as _, spec(), |sandbox| {
        sandbox.exec("true").map(|result| result.return_code)
    });
    assert_eq!((code.unwrap(), provider.closes(), provider.acloses()), (0, 1, 0));
    let provider = Scripted::new();
    provider.script(Operation::Close, [Step::Fail(ErrorKind::Unavailable)]);
    let failed = Sandbox::scope(Arc::clone(&provider) as _, spec(), |_| {
        Err::<(), _>(Error::new(ErrorKind::Conflict, Operation::Exec, "from the body"))
    });
    assert_eq!(
        failed.unwrap_err().kind(),
        ErrorKind::Conflict,
        "the body's error stays the first"
    );
    let provider = Scripted::new();
    let shared = Arc::clone(&provider);
    let panicked = std::thread::spawn(move || {
        Sandbox::scope(shared as _, spec(), |_| -> Result<(), Error> {
            panic!("on purpose")
        })
    });
    assert!(panicked.join().is_err());
    // Where the thread of the sandbox had no turn in time, it is removed in the background.
    let started = Instant::now();
    while provider.closes() == 0 {
        assert!(started.elapsed() < SOON, "the sandbox was not removed");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(provider.closes(), 1);
}
