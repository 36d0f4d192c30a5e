//! kill -9 at random points: after the lease and one sweep the engine is as before, in every round, while another run
//! loses nothing.

use std::time::Duration;

use gym_sandbox::SecondLook;

use crate::client::{Client, Machine, Role};
use crate::common::long_tests_are_wanted;
use crate::proxy::Proxy;
use crate::support::{Run, SHORT, run_with_grace, until};

/// From one turn of work to the next; what is random falls into it.
const TURN_MS: u64 = 1500;

#[tokio::test(flavor = "multi_thread")]
async fn d35_killed_clients_leave_nothing_after_their_lease_and_one_sweep() {
    let Some(run) = run_with_grace(0.5).await else {
        return;
    };
    rounds(&run, Machine::This, if long_tests_are_wanted() { 20 } else { 4 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_the_same_of_clients_on_another_machine() {
    let Some(run) = run_with_grace(0.5).await else {
        return;
    };
    rounds(&run, Machine::Other, if long_tests_are_wanted() { 20 } else { 3 }).await;
}

async fn rounds(run: &Run, machine: Machine, number: u32) {
    let Some(proxy) = Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    // On this machine, so that it lives however slow the engine is at its leases.
    let mut live = Client::start(Role::Holder, &run.name, Machine::This, SHORT);
    live.make("").await;
    live.make("").await;
    let its_owner = owner_of(run).await;
    let mut swept = 0;
    let mut round = 0;
    // One round at least has to leave something; a worker of a busy machine may come to nothing in its time.
    while round < number || (swept == 0 && round < 10 * number) {
        let mut worker = Client::behind(&proxy, Role::Worker, &run.name, machine, SHORT);
        worker.says("works").await;
        let [low, high, ..] = *uuid::Uuid::new_v4().as_bytes();
        let delay = u64::from(low) * 256 + u64::from(high);
        let delay = Duration::from_millis(delay % TURN_MS);
        tokio::time::sleep(delay).await;
        worker.kill().await;
        // What the engine was still at, the lease and its grace.
        proxy.until_made().await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let report = run.sweep(SecondLook::Wait).await;
        let left = others(run, &its_owner).await;
        assert_eq!(
            left,
            Vec::<String>::new(),
            "left in round {round}, killed after {delay:?}; {report:?}"
        );
        assert!(
            report
                .removed
                .iter()
                .all(|object| object.owner.as_ref() != Some(&its_owner)),
            "{report:?}"
        );
        swept += report.removed.len();
        live.works(2).await;
        round += 1;
    }
    // Killed at random points, not always between two sandboxes.
    assert!(swept > 0, "no round has left anything to sweep");
    live.end().await;
    assert_eq!(run.objects().await, Vec::<String>::new());
}

async fn owner_of(run: &Run) -> String {
    use gym_sandbox::provider::ListProvider;
    until("the sandboxes are listed", || async {
        run.provider
            .list_sandboxes(&run.filter())
            .await
            .is_ok_and(|sandboxes| sandboxes.len() == 2)
    })
    .await;
    let sandboxes = run.provider.list_sandboxes(&run.filter()).await.unwrap();
    sandboxes[0].owner.clone().unwrap()
}

/// What there is of others than this owner.
async fn others(run: &Run, owner: &str) -> Vec<String> {
    let own = crate::support::objects_of("owner", owner).await;
    let mut objects = run.objects().await;
    // A lease may have been renewed between the two lists.
    objects.retain(|name| !own.contains(name) && !name.contains(owner));
    objects
}
