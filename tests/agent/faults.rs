//! Sandboxes that are restarted, paused, used by several clients, or that turn on their agent: the library goes on by
//! the agent, or by the engine in time, or says that the agent is lost.

use std::time::{Duration, Instant};

use bollard::query_parameters::RestartContainerOptionsBuilder;
use gym_sandbox::docker::{DockerProvider, ExecPathPolicy};
use gym_sandbox::{
    ExecErrorType, ExecOptions, ExecPath, ExecReason, SandboxProvider, SandboxReason, SandboxSpec,
};

use super::{Kept, common, docker, proxy};

#[tokio::test]
async fn a_restarted_sandbox_has_its_agent_again() {
    let Some(test) = docker(ExecPathPolicy::Agent).await else {
        return;
    };
    let sandbox = Kept::new(&test, common::busybox()).await;
    let running = sandbox.exec(ExecOptions::new("touch /tmp/begun; sleep 993"));
    let restart = async {
        sandbox.until("test -e /tmp/begun").await;
        let client = common::client().await.unwrap();
        let options = RestartContainerOptionsBuilder::new().t(5).build();
        let container = &sandbox.raw().container_id;
        client.restart_container(container, Some(options)).await.unwrap();
    };
    let (cut, ()) = tokio::join!(running, restart);
    assert_eq!(
        (cut.return_code, cut.error_type),
        (125, Some(ExecErrorType::Sandbox)),
        "{cut:?}"
    );
    assert_eq!(sandbox.line("echo again").await, "again\n");
    sandbox.assert_by(ExecPath::Agent);
    assert_eq!(sandbox.line("ps | grep -c '[s]leep 993'; true").await, "0\n");
    sandbox.close().await;
}

#[tokio::test]
async fn d08_a_paused_sandbox_runs_nothing_and_goes_on_afterwards() {
    let Some(test) = docker(ExecPathPolicy::Agent).await else {
        return;
    };
    let client = common::client().await.unwrap();
    let sandbox = Kept::new(&test, common::busybox()).await;
    let container = sandbox.raw().container_id.clone();
    let mut limit = Duration::from_secs(2);
    // The engine has to be quicker than the command's time: where it was not, there is more of that.
    let late = loop {
        let began = Instant::now();
        let timed = ExecOptions::new("echo begun; touch /tmp/begun; sleep 992").with_timeout(limit);
        let running = sandbox.exec(timed);
        let pause = async {
            sandbox.until("test -e /tmp/begun").await;
            client.pause_container(&container).await.unwrap();
            let was_in_time = began.elapsed() < limit;
            let refused = sandbox.exec(ExecOptions::new("echo no")).await;
            assert_eq!(
                refused.reason,
                Some(ExecReason::Sandbox(SandboxReason::Paused)),
                "{refused:?}"
            );
            was_in_time
        };
        let (late, was_in_time) = tokio::join!(running, pause);
        client.unpause_container(&container).await.unwrap();
        if was_in_time || limit > super::LIMIT / 4 {
            break late;
        }
        limit *= 2;
        sandbox.line("rm -f /tmp/begun").await;
    };
    // Its time ran on, and nobody can say what was killed.
    assert_eq!(late.error_type, Some(ExecErrorType::Timeout), "{late:?}");
    assert_eq!(late.partial_stdout().as_deref(), Some("begun\n"), "{late:?}");
    assert_eq!(late.survivors, None, "{late:?}");
    assert_eq!(sandbox.line("echo on").await, "on\n");
    let why = "it is not killed when the sandbox goes on";
    sandbox.until_no_sleep(992, why).await;
    sandbox.close().await;
}

/// Who did not make it has no socket: it is reached by an exec of the engine, once.
#[tokio::test]
async fn k07_a_kept_sandbox_is_used_by_several_clients() {
    let Some(test) = docker(ExecPathPolicy::Agent).await else {
        return;
    };
    let sandbox = Kept::new(&test, common::busybox()).await;
    let other = DockerProvider::connect(common::config()).await.unwrap();
    let id = sandbox.handle.sandbox_id().as_str();
    let mut handles = Vec::new();
    for _ in 0..3 {
        handles.push(other.attach(id).await.unwrap());
    }
    for round in 0..3 {
        for handle in &handles {
            let result = other
                .exec(handle, ExecOptions::new(format!("echo {round}")))
                .await
                .unwrap();
            assert_eq!(result.stdout(), Some(format!("{round}\n")), "{result:?}");
            assert_eq!(result.exec_path, ExecPath::Agent);
        }
        assert_eq!(sandbox.line("echo creator").await, "creator\n");
    }
    // One that goes away with its command takes nothing from the others.
    let hung = other.exec(&handles[0], ExecOptions::new("sleep 991"));
    assert!(
        tokio::time::timeout(Duration::from_millis(300), hung)
            .await
            .is_err()
    );
    drop(handles);
    other.aclose().await.unwrap();
    let why = "the command of a client that is gone lives on";
    sandbox.until_no_sleep(991, why).await;
    sandbox.close().await;
}

/// The connection that goes through the engine is cut under a command: its fate is not known, and it is not run again.
#[tokio::test(flavor = "multi_thread")]
async fn d06_a_connection_that_breaks_under_a_command_is_told() {
    let Some(proxy) = proxy::Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    let Some(test) = docker(ExecPathPolicy::Agent).await else {
        return;
    };
    let sandbox = Kept::new(&test, common::busybox()).await;
    let mut config = common::config();
    config.host = Some(proxy.address());
    let other = DockerProvider::connect(config).await.unwrap();
    // The first exec is that which connects.
    proxy.cut("/start HTTP", proxy::Cut::AtOutput("printed"));
    let handle = other.attach(sandbox.handle.sandbox_id().as_str()).await.unwrap();
    let command = ExecOptions::new("echo run >> /tmp/runs; echo print''ed; sleep 990");
    let result = other.exec(&handle, command).await;
    let result = result.unwrap();
    assert_eq!(
        result.reason,
        Some(ExecReason::Sandbox(SandboxReason::AgentLost)),
        "{result:?}"
    );
    assert_eq!(result.partial_stdout().as_deref(), Some("printed\n"));
    let next = other
        .exec(&handle, ExecOptions::new("cat /tmp/runs"))
        .await
        .unwrap();
    assert_eq!(next.stdout().as_deref(), Some("run\n"), "{next:?}");
    assert_eq!(next.exec_path, ExecPath::Agent, "{next:?}");
    let why = "the command lives on without its client";
    sandbox.until_no_sleep(990, why).await;
    other.aclose().await.unwrap();
    sandbox.close().await;
}

/// An engine may hand out the streams of `connect` before it runs, which takes a busy one longer than an agent for its hello.
#[tokio::test(flavor = "multi_thread")]
async fn d06_an_agent_that_a_busy_engine_reaches_late_is_waited_for() {
    let Some(proxy) = proxy::Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    let Some(test) = docker(ExecPathPolicy::Agent).await else {
        return;
    };
    let sandbox = Kept::new(&test, common::busybox()).await;
    let mut config = common::config();
    config.exec.exec_path = ExecPathPolicy::Agent;
    config.host = Some(proxy.address());
    let other = DockerProvider::connect(config).await.unwrap();
    proxy.cut("/start HTTP", proxy::Cut::StreamFirst);
    let starting = async {
        // Longer than the 5 s for a hello of what runs.
        tokio::time::sleep(Duration::from_secs(8)).await;
        proxy.release();
    };
    let used = async {
        let handle = other.attach(sandbox.handle.sandbox_id().as_str()).await.unwrap();
        other.exec(&handle, ExecOptions::new("echo late")).await.unwrap()
    };
    let (result, ()) = tokio::join!(used, starting);
    assert_eq!(result.stdout().as_deref(), Some("late\n"), "{result:?}");
    assert_eq!(result.exec_path, ExecPath::Agent, "{result:?}");
    assert_eq!(proxy.requests("/start HTTP"), 1, "it was not tried again");
    other.aclose().await.unwrap();
    sandbox.close().await;
}

/// An agent that is slow to answer, as on a busy machine, is not given up because the engine can't be asked about its sandbox.
#[tokio::test(flavor = "multi_thread")]
async fn d06_an_engine_that_is_away_says_nothing_against_an_agent_that_is_slow() {
    let Some(proxy) = proxy::Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    let mut config = common::config();
    config.exec.exec_path = ExecPathPolicy::Agent;
    config.host = Some(proxy.address());
    let Some(test) = common::docker_with(config).await else {
        return;
    };
    let sandbox = Kept::new(&test, common::busybox()).await;
    sandbox.line("true").await;
    let client = common::client().await.unwrap();
    let inspected = client.inspect_container(&sandbox.raw().container_id, None).await;
    let pid = inspected.unwrap().state.unwrap().pid.unwrap();
    let signal = |signal: &str| {
        let sent = std::process::Command::new("kill")
            .args(["-s", signal, &pid.to_string()])
            .status();
        sent.is_ok_and(|status| status.success())
    };
    if !signal("CONT") {
        eprintln!("skipped: the engine's processes can't be reached from here");
        return sandbox.close().await;
    }
    proxy.go_down();
    loop {
        let began = Instant::now();
        signal("STOP");
        let waking = async {
            tokio::time::sleep(Duration::from_millis(800)).await;
            signal("CONT");
            began.elapsed()
        };
        let (result, woken) = tokio::join!(sandbox.exec(ExecOptions::new("echo slow")), waking);
        // It is not waited for longer than 5 s.
        if woken < Duration::from_secs(2) {
            assert_eq!(result.stdout().as_deref(), Some("slow\n"), "{result:?}");
            break;
        }
    }
    proxy.come_up();
    sandbox.close().await;
}

/// Kills the agent and takes its name.
const IMITATE: &str = r#"
import os, signal, socket, sys, time
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        line = open(f"/proc/{pid}/cmdline").read().split("\0")
    except OSError:
        continue
    if line[0].endswith("gym-sandbox-agent") and "serve" in line:
        name = line[line.index("--name") + 1]
        victim = int(pid)
listener = socket.socket(socket.AF_UNIX)
os.kill(victim, signal.SIGKILL)
for _ in range(10000):
    try:
        listener.bind("\0" + name)
        break
    except OSError:
        time.sleep(0.01)
listener.listen(64)
open("/bound", "w").close()
kept = []
while True:
    client, _ = listener.accept()
    kept.append(client)
    _, descriptors, _, _ = socket.recv_fds(client, 4096, 16)
    if sys.argv[1] == "garbage":
        for descriptor in descriptors:
            try:
                os.write(descriptor, b"garbage" * 1000)
            except OSError:
                pass
"#;

/// Starts the imitation and waits for it, by the engine: the agent takes its own commands with it.
async fn imitate(sandbox: &Kept, manner: &str) {
    let mut config = common::config();
    config.exec.exec_path = ExecPathPolicy::Engine;
    let engine = DockerProvider::connect(config).await.unwrap();
    let handle = engine.attach(sandbox.handle.sandbox_id().as_str()).await.unwrap();
    let line = format!("setsid python3 /imitate.py {manner} </dev/null >/tmp/said 2>&1 &");
    let started = engine.exec(&handle, ExecOptions::new(line)).await.unwrap();
    assert!(started.is_success(), "{started:?}");
    let deadline = Instant::now() + super::LIMIT;
    loop {
        let look = ExecOptions::new("test -e /bound && echo bound; cat /tmp/said");
        let said = engine.exec(&handle, look).await.unwrap().stdout().unwrap();
        if said.starts_with("bound") {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "the imitation does not take the name: {said}"
        );
    }
    engine.aclose().await.unwrap();
}

/// Root inside can put another program in the agent's place: its commands go by the engine then.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_was_replaced_is_seen_through() {
    for manner in ["garbage", "silence"] {
        let Some(test) = docker(ExecPathPolicy::Auto).await else {
            return;
        };
        let spec = SandboxSpec::new(common::DEBIAN).with_entrypoint(["sleep", "1000"]);
        let sandbox = Kept::new(&test, spec).await;
        let files = test.provider.as_files().unwrap();
        let imitation = gym_sandbox::UploadSource::Bytes(IMITATE.into());
        files
            .upload(
                &sandbox.handle,
                imitation,
                "/imitate.py",
                &gym_sandbox::UploadOptions::default(),
            )
            .await
            .unwrap();
        assert_eq!(sandbox.line("echo by the agent").await, "by the agent\n");
        sandbox.assert_by(ExecPath::Agent);
        imitate(&sandbox, manner).await;
        assert_eq!(sandbox.line("echo by the engine").await, "by the engine\n");
        sandbox.assert_by(ExecPath::Engine);
        let why = sandbox.raw().engine_reason().unwrap();
        assert!(!why.is_empty());
        sandbox.close().await;
    }
}
