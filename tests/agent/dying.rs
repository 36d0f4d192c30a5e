//! Sandboxes that die while commands are given to their agents, by the socket of this machine and from afar, by an exec of
//! the engine: each command says what has become of the sandbox, and none goes another way (contract D6, bugs B08).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bollard::query_parameters::{
    KillContainerOptions, RemoveContainerOptionsBuilder, StopContainerOptionsBuilder,
};
use gym_sandbox::docker::{DockerProvider, DockerRaw, ExecPathPolicy};
use gym_sandbox::{
    ErrorKind, ExecErrorType, ExecOptions, ExecPath, ExecReason, ExecResult, SandboxHandle, SandboxProvider,
    SandboxPtySpec, SandboxReason, SandboxResources, SandboxSpec,
};

use super::{Kept, LIMIT, common, docker};

/// How many give commands at the same time, and what each has done before the end is brought about.
const AT_ONCE: usize = 4;
const BEFORE: usize = 2;

/// Takes all memory when it is told to.
const HUNGRY: &str =
    "import os, time\nwhile not os.path.exists('/tmp/go'): time.sleep(0.01)\nbytearray(10**9)";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    Killed,
    Removed,
    Stopped,
    OutOfMemory,
}

impl Death {
    fn spec(self, is_main: bool) -> SandboxSpec {
        match (self, is_main) {
            (Self::OutOfMemory, _) => SandboxSpec::new(common::DEBIAN)
                .with_entrypoint(["python3", "-c", HUNGRY])
                .with_resources(SandboxResources::default().with_memory_mib(64)),
            (_, true) => common::busybox(),
            (_, false) => common::busybox().with_entrypoint(["sleep", "1000"]),
        }
    }

    async fn bring_about(self, sandbox: &Kept) {
        let client = common::client().await.unwrap();
        let id = sandbox.handle.sandbox_id().as_str();
        match self {
            Self::Killed => client
                .kill_container(id, None::<KillContainerOptions>)
                .await
                .unwrap(),
            Self::Removed => {
                let options = RemoveContainerOptionsBuilder::new().force(true).build();
                client.remove_container(id, Some(options)).await.unwrap();
            }
            Self::Stopped => {
                let options = StopContainerOptionsBuilder::new().t(0).build();
                client.stop_container(id, Some(options)).await.unwrap();
            }
            Self::OutOfMemory => {
                let _killed_with_it = sandbox.exec(ExecOptions::new("touch /tmp/go")).await;
            }
        }
    }
}

fn is_end(kind: SandboxReason) -> bool {
    matches!(
        kind,
        SandboxReason::NotRunning | SandboxReason::Removed | SandboxReason::OomKilled
    )
}

/// Says whether a command was run. One that was not says why.
fn was_run(handle: &SandboxHandle, result: &ExecResult, path: ExecPath) -> bool {
    let why = handle.raw::<DockerRaw>().unwrap().engine_reason();
    assert_eq!(result.exec_path, path, "{why:?}: {result:?}");
    if result.is_success() {
        return true;
    }
    assert_eq!(result.error_type, Some(ExecErrorType::Sandbox), "{result:?}");
    let Some(ExecReason::Sandbox(reason)) = result.reason else {
        panic!("{result:?}");
    };
    assert!(is_end(reason), "{result:?}");
    false
}

/// Gives commands to one handle until the sandbox has ended.
async fn by_one_connection(
    provider: &dyn SandboxProvider,
    handle: &SandboxHandle,
    done: &AtomicUsize,
    path: ExecPath,
) {
    let until = Instant::now() + LIMIT;
    while Instant::now() < until {
        let result = provider.exec(handle, ExecOptions::new(["true"])).await.unwrap();
        if !was_run(handle, &result, path) {
            let raw = handle.raw::<DockerRaw>().unwrap();
            assert_eq!(raw.exec_path(), path, "{:?}", raw.engine_reason());
            return;
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
    panic!("the sandbox does not end");
}

/// The same with a connection of its own for each command.
async fn by_many_connections(provider: &DockerProvider, id: &str, done: &AtomicUsize) {
    let until = Instant::now() + LIMIT;
    while Instant::now() < until {
        let handle = match provider.attach(id).await {
            Ok(handle) => handle,
            Err(error) => {
                let kind = error.kind();
                let is_end = matches!(kind, ErrorKind::Sandbox(reason) if is_end(reason));
                assert!(is_end || kind == ErrorKind::NotFound, "{}", error.report());
                return;
            }
        };
        let result = provider.exec(&handle, ExecOptions::new(["true"])).await.unwrap();
        if !was_run(&handle, &result, ExecPath::Agent) {
            return;
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
    panic!("the sandbox does not end");
}

/// Opens terminals until the sandbox has ended.
async fn by_terminals(provider: &dyn SandboxProvider, handle: &SandboxHandle, done: &AtomicUsize) {
    let pty = provider.as_pty().unwrap();
    let until = Instant::now() + LIMIT;
    while Instant::now() < until {
        match pty.create_pty(handle, &SandboxPtySpec::new(["true"])).await {
            Ok(session) => {
                // It may end in the middle of any of them, which is no exit.
                if let Ok(code) = session.wait_exit().await {
                    assert_eq!(code, 0, "{:?}", session.read().await);
                }
            }
            Err(error) => {
                let is_end = matches!(error.kind(), ErrorKind::Sandbox(reason) if is_end(reason));
                assert!(is_end, "{}", error.report());
                return;
            }
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
    panic!("the sandbox does not end");
}

async fn until_all(done: &AtomicUsize, expected: usize) {
    let until = Instant::now() + LIMIT;
    while done.load(Ordering::Relaxed) < expected {
        assert!(Instant::now() < until, "commands are not run");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn die_under_commands(death: Death, is_main: bool) {
    let Some(test) = docker(ExecPathPolicy::Auto).await else {
        return;
    };
    let sandbox = Kept::new(&test, death.spec(is_main)).await;
    let afar = DockerProvider::connect(common::config()).await.unwrap();
    let id = sandbox.handle.sandbox_id().as_str();
    let done = Arc::new(AtomicUsize::new(0));
    let near = futures::future::join_all(
        (0..AT_ONCE).map(|_| by_one_connection(&*sandbox.provider, &sandbox.handle, &done, ExecPath::Agent)),
    );
    let far = futures::future::join_all((0..AT_ONCE).map(|_| by_many_connections(&afar, id, &done)));
    let terminals = by_terminals(&*sandbox.provider, &sandbox.handle, &done);
    let end = async {
        until_all(&done, 3 * AT_ONCE * BEFORE).await;
        death.bring_about(&sandbox).await;
    };
    tokio::join!(near, far, terminals, end);
    afar.aclose().await.unwrap();
    sandbox.close().await;
}

/// The engine writes why it can't start a command in a container that has just died to where the command would print.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b08_d05_d06_a_sandbox_that_dies_under_commands_of_the_engine_is_no_failed_start() {
    for death in [Death::Killed, Death::Removed, Death::Stopped, Death::OutOfMemory] {
        let Some(test) = docker(ExecPathPolicy::Engine).await else {
            return;
        };
        let sandbox = Kept::new(&test, death.spec(false)).await;
        let done = AtomicUsize::new(0);
        let (provider, handle) = (&*sandbox.provider, &sandbox.handle);
        let commands = futures::future::join_all(
            (0..2 * AT_ONCE).map(|_| by_one_connection(provider, handle, &done, ExecPath::Engine)),
        );
        let end = async {
            until_all(&done, 2 * AT_ONCE * BEFORE).await;
            death.bring_about(&sandbox).await;
        };
        tokio::join!(commands, by_terminals(provider, handle, &done), end);
        sandbox.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b08_d06_a_sandbox_that_is_killed_under_its_agent_is_not_running() {
    for is_main in [true, false] {
        die_under_commands(Death::Killed, is_main).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b08_d06_a_sandbox_that_is_removed_under_its_agent_is_gone() {
    for is_main in [true, false] {
        die_under_commands(Death::Removed, is_main).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b08_d06_a_sandbox_that_is_stopped_under_its_agent_is_not_running() {
    for is_main in [true, false] {
        die_under_commands(Death::Stopped, is_main).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b08_d06_a_main_process_that_runs_out_of_memory_takes_its_sandbox_along() {
    die_under_commands(Death::OutOfMemory, false).await;
}
