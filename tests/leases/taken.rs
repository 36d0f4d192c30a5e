//! A sandbox that another process than its maker has taken over goes with that one.

use std::time::Duration;

use gym_sandbox::provider::{ListProvider, SweepProvider};
use gym_sandbox::{OwnerState, SecondLook, SweepOptions};

use crate::client::{Client, Machine, Role};
use crate::support::{Run, SHORT, STEADY, run_with_grace, swept_down_to, until};

async fn owner_state(run: &Run, id: &str) -> (OwnerState, bool) {
    let sandboxes = run.provider.list_sandboxes(&run.filter()).await.unwrap();
    let found = sandboxes.iter().find(|sandbox| sandbox.sandbox_id.as_str() == id);
    let found = found.unwrap_or_else(|| panic!("{id} is not in {sandboxes:?}"));
    (found.owner_state, found.holder.is_some())
}

/// Waits until others can see that it was taken over: an attach waits for that, too, but not for ever.
async fn until_held(run: &Run, id: &str) {
    until("it is held", || async { owner_state(run, id).await.1 }).await;
}

async fn is_held_until_its_taker_ends(machine: Machine) {
    let Some(run) = run_with_grace(0.5).await else {
        return;
    };
    let mut maker = Client::start(Role::Holder, &run.name, machine, SHORT);
    let taken = maker.make("").await;
    let left = maker.make("").await;
    let mut taker = Client::start(Role::Holder, &run.name, machine, STEADY);
    taker.attach(&taken).await;
    until_held(&run, &taken).await;
    maker.kill().await;
    // What nobody has taken over goes; the rest stays, however often it is swept.
    until("the sweep takes what is the dead one's alone", || async {
        run.sweep(SecondLook::Never).await;
        !run.objects().await.contains(&left)
    })
    .await;
    for _ in 0..3 {
        let report = run.sweep(SecondLook::Wait).await;
        assert_eq!(report.removed, [], "{report:?}");
        // Longer than a few renewals in all.
        tokio::time::sleep(Duration::from_millis(1500)).await;
    }
    assert_eq!(owner_state(&run, &taken).await, (OwnerState::Alive, true));
    taker.works(1).await;
    taker.kill().await;
    swept_down_to(&run, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_k07_what_was_taken_over_here_stays_until_its_taker_ends() {
    is_held_until_its_taker_ends(Machine::This).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_k07_what_was_taken_over_elsewhere_stays_until_its_taker_ends() {
    is_held_until_its_taker_ends(Machine::Other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_k07_a_taker_that_lets_go_leaves_the_sandbox_to_its_maker() {
    let Some(run) = run_with_grace(0.5).await else {
        return;
    };
    let mut maker = Client::start(Role::Holder, &run.name, Machine::This, SHORT);
    let id = maker.make("").await;
    let mut taker = Client::start(Role::Holder, &run.name, Machine::This, SHORT);
    taker.attach(&id).await;
    until_held(&run, &id).await;
    taker.forget().await;
    until("nobody holds it", || async {
        owner_state(&run, &id).await == (OwnerState::Alive, false)
    })
    .await;
    assert_eq!(run.sweep(SecondLook::Never).await.removed, []);
    maker.works(1).await;
    maker.kill().await;
    let report = run.sweep(SecondLook::Never).await;
    assert!(
        report.removed.iter().any(|object| object.name == id),
        "{report:?}"
    );
    taker.end().await;
    swept_down_to(&run, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_k07_a_process_does_not_sweep_what_it_has_taken_over_itself() {
    let Some(run) = run_with_grace(0.0).await else {
        return;
    };
    let mut maker = Client::start(Role::Holder, &run.name, Machine::This, SHORT);
    let id = maker.make("").await;
    let handle = run.provider.attach(&id).await.unwrap();
    until_held(&run, &id).await;
    maker.kill().await;
    let options = SweepOptions::default().with_filter(run.filter());
    let report = run.provider.sweep(&options).await.unwrap();
    assert!(
        report.removed.iter().all(|object| object.name != id),
        "{report:?}"
    );
    assert_eq!(owner_state(&run, &id).await, (OwnerState::Own, true));
    drop(handle);
    swept_down_to(&run, 0).await;
}
