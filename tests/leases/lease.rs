//! Live owners lose nothing, whatever keeps them from being heard.

use std::time::Duration;

use gym_sandbox::{OwnerState, SecondLook};

use crate::client::{Client, Machine, Role};
use crate::proxy::Proxy;
use crate::support::{BEYOND_STEADY, SHORT, STEADY, objects_of, run_with_grace, swept_down_to, until};

#[tokio::test(flavor = "multi_thread")]
async fn d17_a_lease_is_there_while_there_are_sandboxes_and_is_renewed() {
    let Some(run) = run_with_grace(1.0).await else {
        return;
    };
    let mut client = Client::start(Role::Holder, &run.name, Machine::Other, STEADY);
    assert_eq!(run.objects().await, Vec::<String>::new());
    let id = client.make("").await;
    until("there is a lease", || async { !run.leases().await.is_empty() }).await;
    let first = run.leases().await.pop().unwrap();
    until("the lease is renewed", || async {
        let leases = run.leases().await;
        !leases.is_empty() && !leases.contains(&first)
    })
    .await;
    // Beyond the first lease, of which the sandbox's label tells.
    tokio::time::sleep(BEYOND_STEADY).await;
    let report = run.sweep(SecondLook::Never).await;
    assert_eq!((report.removed, report.unsure), (vec![], vec![]));
    assert!(run.objects().await.contains(&id));
    client.works(1).await;
    client.end().await;
    assert_eq!(run.objects().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_a_sweep_takes_from_the_dead_run_and_not_from_the_live_one() {
    let Some(run) = run_with_grace(0.5).await else {
        return;
    };
    let mut alive = Client::start(Role::Holder, &run.name, Machine::This, SHORT);
    let mut dead = Client::start(Role::Holder, &run.name, Machine::This, SHORT);
    let mut far = Client::start(Role::Holder, &run.name, Machine::Other, STEADY);
    let mine = alive.make("").await;
    dead.make("").await;
    dead.make("project=p").await;
    far.make("").await;
    let before = run.sweep(SecondLook::Never).await;
    assert_eq!(before.removed, [], "all three live");
    dead.kill().await;
    far.kill().await;
    // The one on this machine is seen dead at once, whatever its lease says; the other by its lease.
    let report = run.sweep(SecondLook::Never).await;
    assert!(report.removed.len() >= 2, "{report:?}");
    assert!(
        report
            .removed
            .iter()
            .all(|object| object.why == "its process has ended")
    );
    swept_down_to(&run, 2).await;
    let left = run.objects().await;
    assert!(left.contains(&mine), "{left:?}");
    alive.works(1).await;
    alive.end().await;
    assert_eq!(run.objects().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_a_stopped_owner_keeps_what_it_has_within_its_grace() {
    let Some(run) = run_with_grace(300.0).await else {
        return;
    };
    let mut here = Client::start(Role::Holder, &run.name, Machine::This, SHORT);
    let mut far = Client::start(Role::Holder, &run.name, Machine::Other, SHORT);
    here.make("").await;
    far.make("").await;
    until("both have leases", || async { run.leases().await.len() >= 2 }).await;
    here.signal("STOP").await;
    far.signal("STOP").await;
    // Longer than the leases.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let report = run.sweep(SecondLook::Never).await;
    assert_eq!(report.removed, [], "{report:?}");
    assert!(!report.unsure.is_empty(), "the lease of the far one has ended");
    // Even without patience the one on this machine is seen to live: it holds its file.
    let hasty = run_with_grace(0.0).await.unwrap();
    let sandboxes = list_states(&hasty.provider, &run).await;
    assert!(
        sandboxes.contains(&OwnerState::Alive) && sandboxes.contains(&OwnerState::Dead),
        "{sandboxes:?}"
    );
    for client in [&mut here, &mut far] {
        client.signal("CONT").await;
        client.works(1).await;
    }
    here.end().await;
    far.end().await;
    assert_eq!(run.objects().await, Vec::<String>::new());
}

async fn list_states(
    provider: &gym_sandbox::docker::DockerProvider,
    run: &crate::support::Run,
) -> Vec<OwnerState> {
    use gym_sandbox::provider::ListProvider;
    let sandboxes = provider.list_sandboxes(&run.filter()).await.unwrap();
    sandboxes.into_iter().map(|sandbox| sandbox.owner_state).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_a_pruned_lease_proves_nothing_until_it_is_missing_twice() {
    const GRACE: Duration = Duration::from_secs(10);
    let Some(run) = run_with_grace(GRACE.as_secs_f64()).await else {
        return;
    };
    let Some(proxy) = Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    // Another look comes after one renewal and the grace: one renewal may be that late.
    let mut client = Client::behind(&proxy, Role::Holder, &run.name, Machine::Other, (4.0, 2.0));
    let id = client.make("").await;
    until("there is a lease", || async { !run.leases().await.is_empty() }).await;
    // Beyond the first lease and its grace.
    tokio::time::sleep(Duration::from_secs(4) + GRACE).await;
    run.prune_leases().await;
    let report = run.sweep(SecondLook::Wait).await;
    assert_eq!(report.removed, [], "{report:?}");
    client.works(1).await;
    // The same with a dead owner: it makes no new one.
    client.kill().await;
    proxy.until_made().await;
    run.prune_leases().await;
    let report = run.sweep(SecondLook::Never).await;
    assert_eq!(report.removed, [], "one look proves nothing: {report:?}");
    let report = run.sweep(SecondLook::Wait).await;
    let removed: Vec<&str> = report.removed.iter().map(|object| object.name.as_str()).collect();
    assert_eq!(removed, [id.as_str()], "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_a_client_in_another_network_namespace_is_judged_by_its_lease() {
    let Some(run) = run_with_grace(1.0).await else {
        return;
    };
    let able = std::process::Command::new("unshare")
        .args(["--net", "ip", "link", "set", "lo", "up"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !able {
        eprintln!("skipped: no network namespace can be made here");
        return;
    }
    let mut client = Client::start(Role::Elsewhere, &run.name, Machine::Other, STEADY);
    let id = client.make("").await;
    until("there is a lease", || async { !run.leases().await.is_empty() }).await;
    tokio::time::sleep(BEYOND_STEADY).await;
    let report = run.sweep(SecondLook::Wait).await;
    assert_eq!((report.removed, report.unsure), (vec![], vec![]));
    client.works(1).await;
    client.kill().await;
    swept_down_to(&run, 0).await;
    assert_eq!(objects_of("run", &run.name).await, Vec::<String>::new(), "{id}");
}
