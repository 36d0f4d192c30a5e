//! With its client dead, and nobody who sweeps, a sandbox with the resident agent ends by itself (D17).

use std::time::{Duration, Instant};

use gym_sandbox::docker::DockerProvider;
use gym_sandbox::provider::SweepProvider;
use gym_sandbox::{KeptSandboxes, SandboxProvider, SandboxStatus, SweepOptions};

use crate::client::{Client, GRACE, Lease, Machine, Role};
use crate::common::client;
use crate::proxy::{Cut, Proxy};
use crate::support::{Run, run_with_grace, swept_down_to, until};

/// Length and renewal of the clients, whose grace is nine seconds: what has an agent ends 12 s after the last word. A busy
/// machine may leave a client that long without a word.
const LEASE: Lease = (3.0, 0.5);
/// Longer than a lease, and so much less than the end that the last word may be seconds ago.
const LATE: Duration = Duration::from_secs(5);
/// What has had no word for so long has ended.
const BEYOND: Duration = Duration::from_secs(15);

fn start(run: &Run, role: Role, lease: Lease) -> Client {
    Client::start_with(role, &run.name, Machine::Other, lease, |command| {
        command.env(GRACE, "9");
    })
}

async fn status(provider: &DockerProvider, id: &str) -> SandboxStatus {
    provider.describe(id).await.unwrap().status
}

/// Makes a sandbox with the agent, or says why the test is skipped.
async fn with_agent(owner: &mut Client, run: &Run) -> Option<String> {
    let id = owner.make("").await;
    let inspected = client()
        .await
        .unwrap()
        .inspect_container(&id, None)
        .await
        .unwrap();
    let argv = inspected.config.unwrap().entrypoint.unwrap_or_default();
    if argv.iter().any(|argument| argument == "--lease-ms") {
        return Some(id);
    }
    eprintln!("skipped: no agent on this engine");
    assert!(run.provider.remove(&id).await.unwrap());
    None
}

/// A run with a client that holds a sandbox with the agent, or says why the test is skipped.
async fn holding(grace: f64, lease: Lease) -> Option<(Run, Client, String)> {
    let run = run_with_grace(grace).await?;
    let mut owner = start(&run, Role::Holder, lease);
    let id = with_agent(&mut owner, &run).await?;
    Some((run, owner, id))
}

#[tokio::test(flavor = "multi_thread")]
async fn d17_a_sandbox_of_a_dead_client_ends_by_itself() {
    let Some((run, mut owner, id)) = holding(0.0, LEASE).await else {
        return;
    };
    let kept = owner.make("keep=1").await;
    let by_engine = owner.make("exec_path=engine").await;
    // Its client lives and says nothing of its own for longer than the lease.
    tokio::time::sleep(BEYOND).await;
    assert_eq!(status(&run.provider, &id).await, SandboxStatus::Running);
    owner.works(3).await;
    owner.kill().await;
    let killed = Instant::now();
    until("it ends by itself", || async {
        status(&run.provider, &id).await == SandboxStatus::Stopped
    })
    .await;
    assert!(killed.elapsed() >= LATE, "{:?}", killed.elapsed());
    let detail = run.provider.describe(&id).await.unwrap();
    assert_eq!(
        detail.exit_code,
        Some(124),
        "the agent's own code for an end by its clock"
    );
    for id in [&kept, &by_engine] {
        assert_eq!(status(&run.provider, id).await, SandboxStatus::Running);
    }
    let all = SweepOptions::default()
        .with_kept(KeptSandboxes::Remove)
        .with_filter(run.filter());
    until("all is swept", || async {
        run.provider.sweep(&all).await.unwrap();
        run.objects().await.is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d16_d17_an_idle_timeout_ends_a_sandbox_of_the_dead_and_of_one_who_only_renews() {
    // Its renewals come more often than the idle time, which they do not touch.
    let Some((run, mut alive, used)) = holding(1.0, LEASE).await else {
        return;
    };
    let of_the_living = alive.make("idle=10").await;
    // Leases that last longer than this test: only the idle time can end anything.
    let mut dead = Client::start(Role::Holder, &run.name, Machine::Other, (300.0, 60.0));
    let of_the_dead = dead.make("idle=10").await;
    dead.kill().await;
    for id in [&of_the_living, &of_the_dead] {
        until("the idle time ends it", || async {
            status(&run.provider, id).await == SandboxStatus::Stopped
        })
        .await;
    }
    assert_eq!(status(&run.provider, &used).await, SandboxStatus::Running);
    assert!(run.provider.remove(&of_the_dead).await.unwrap());
    run.prune_leases().await;
    alive.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d17_a_client_that_is_stopped_within_its_grace_loses_nothing() {
    let Some((run, mut owner, id)) = holding(1.0, LEASE).await else {
        return;
    };
    owner.signal("STOP").await;
    // The last word may be a renewal ago.
    tokio::time::sleep(LATE).await;
    owner.signal("CONT").await;
    tokio::time::sleep(BEYOND).await;
    assert_eq!(status(&run.provider, &id).await, SandboxStatus::Running);
    owner.works(1).await;
    owner.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d17_a_pause_that_is_longer_than_the_lease_ends_nothing_of_the_living() {
    let Some((run, mut owner, id)) = holding(1.0, LEASE).await else {
        return;
    };
    let docker = client().await.unwrap();
    docker.pause_container(&id).await.unwrap();
    tokio::time::sleep(BEYOND).await;
    docker.unpause_container(&id).await.unwrap();
    tokio::time::sleep(BEYOND).await;
    assert_eq!(status(&run.provider, &id).await, SandboxStatus::Running);
    owner.works(1).await;
    owner.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d17_k07_who_has_taken_a_sandbox_over_keeps_it_from_ending() {
    let Some((run, mut maker, id)) = holding(1.0, LEASE).await else {
        return;
    };
    let mut taker = start(&run, Role::Holder, LEASE);
    taker.attach(&id).await;
    // So that it has a connection over which it says something.
    taker.works(1).await;
    maker.kill().await;
    tokio::time::sleep(BEYOND).await;
    assert_eq!(status(&run.provider, &id).await, SandboxStatus::Running);
    taker.works(1).await;
    taker.kill().await;
    until("it ends by itself", || async {
        status(&run.provider, &id).await == SandboxStatus::Stopped
    })
    .await;
    swept_down_to(&run, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d17_a_lost_connection_to_the_agent_is_made_again_before_the_lease_ends() {
    // A busy engine takes ten seconds and more for the other connection; with its grace that is half a minute.
    let longer = (21.0, 0.5);
    let Some((run, mut maker, id)) = holding(1.0, longer).await else {
        return;
    };
    // It reaches the agent by an exec of `connect`, whose end is the end of the connection.
    let mut taker = start(&run, Role::Holder, longer);
    taker.attach(&id).await;
    taker.works(1).await;
    maker.kill().await;
    let docker = client().await.unwrap();
    let inspected = docker.inspect_container(&id, None).await.unwrap();
    let mut killed = 0;
    for exec in inspected.exec_ids.unwrap_or_default() {
        let exec = docker.inspect_exec(&exec).await.unwrap();
        let pid = exec.pid.filter(|pid| *pid > 0 && exec.running == Some(true));
        if let Some(pid) = pid.map(|pid| pid.to_string()) {
            let sent = std::process::Command::new("kill")
                .args(["-s", "KILL", &pid])
                .status();
            killed += usize::from(sent.unwrap().success());
        }
    }
    if killed == 0 {
        eprintln!("the connection was not cut: the engine's processes can't be killed from here");
    }
    tokio::time::sleep(Duration::from_secs(33)).await;
    assert_eq!(status(&run.provider, &id).await, SandboxStatus::Running);
    taker.works(1).await;
    taker.kill().await;
    swept_down_to(&run, 0).await;
}

/// The agents are told over connections of their own: an engine that is slow to make the next lease ends nothing.
#[tokio::test(flavor = "multi_thread")]
async fn d17_an_engine_that_hangs_at_the_next_lease_ends_no_sandbox_of_the_living() {
    let Some(proxy) = Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    let mut config = crate::common::config();
    config.host = Some(proxy.address());
    config.lease.length = Duration::from_secs(10);
    config.lease.renewal = Duration::from_millis(500);
    config.lease.grace = Duration::from_secs(2);
    let Some(test) = crate::common::docker_with(config).await else {
        return;
    };
    let handle = test.provider.create(&test.spec()).await.unwrap();
    let leases = proxy.requests("/volumes/create");
    proxy.cut("/volumes/create", Cut::UntilReleased);
    until("the next lease is asked for", || async {
        proxy.requests("/volumes/create") > leases
    })
    .await;
    // Longer than the sandbox lives without a word.
    tokio::time::sleep(Duration::from_secs(18)).await;
    assert_eq!(
        test.provider.status(&handle).await.unwrap(),
        SandboxStatus::Running
    );
    proxy.release();
    test.provider.close(&handle).await.unwrap();
    test.provider.aclose().await.unwrap();
}
