//! Sandboxes that were kept on purpose outlive their process.

use gym_sandbox::provider::{ListProvider, SweepProvider};
use gym_sandbox::{KeptSandboxes, OwnerState, SecondLook, SweepMode, SweepOptions};

use crate::client::{Client, Machine, Role};
use crate::support::{LASTING, SHORT, run_with_grace, until};

#[tokio::test(flavor = "multi_thread")]
async fn d35_a_kept_sandbox_outlives_its_process_and_is_said_to_be_kept() {
    let Some(run) = run_with_grace(0.0).await else {
        return;
    };
    let mut client = Client::start(Role::Holder, &run.name, Machine::This, LASTING);
    let kept = client.make("keep=1").await;
    let plain = client.make("").await;
    // None is on its way when it is killed.
    until("there is a lease", || async { !run.leases().await.is_empty() }).await;
    client.kill().await;
    until("the sweep removes the other", || async {
        run.sweep(SecondLook::Never).await;
        !run.objects().await.contains(&plain)
    })
    .await;
    let report = run.sweep(SecondLook::Wait).await;
    assert_eq!((report.removed, report.unsure), (vec![], vec![]));
    let listed = run.provider.list_sandboxes(&run.filter()).await.unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(
        (listed[0].sandbox_id.as_str(), listed[0].owner_state),
        (kept.as_str(), OwnerState::Kept)
    );
    let all = SweepOptions::default()
        .with_filter(run.filter())
        .with_kept(KeptSandboxes::Remove);
    // A dry run names it and leaves it.
    let dry = run
        .provider
        .sweep(&all.clone().with_mode(SweepMode::DryRun))
        .await
        .unwrap();
    assert_eq!(dry.removed.len(), 1, "{dry:?}");
    assert_eq!(run.objects().await, [kept.as_str()]);
    let report = run.provider.sweep(&all).await.unwrap();
    assert_eq!(report.removed[0].name, kept);
    assert_eq!(run.objects().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn d16_the_ttl_of_a_kept_sandbox_still_ends_it() {
    let Some(run) = run_with_grace(0.0).await else {
        return;
    };
    let mut client = Client::start(Role::Holder, &run.name, Machine::This, SHORT);
    let kept = client.make("keep=1 ttl=30").await;
    client.end_without_closing().await;
    assert!(run.objects().await.contains(&kept));
    until("the sweep removes it", || async {
        run.sweep(SecondLook::Never).await;
        run.objects().await.is_empty()
    })
    .await;
}
