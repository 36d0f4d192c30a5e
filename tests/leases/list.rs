//! Lists: what is there, and whose it is.

use gym_sandbox::provider::ListProvider;
use gym_sandbox::{OwnerState, SandboxFilter, SandboxProvider, SandboxStatus};

use crate::client::{Client, Machine, Role};
use crate::common::{BUSYBOX, docker};
use crate::support::{SHORT, run_with_grace};

#[tokio::test(flavor = "multi_thread")]
async fn d35_sandboxes_are_listed_with_their_owners() {
    let Some(test) = docker().await else { return };
    let mine = SandboxFilter::default().with_label(crate::common::TEST_LABEL, test.label());
    assert_eq!(test.provider.list_sandboxes(&mine).await.unwrap(), []);
    let first = test
        .provider
        .create(
            &test
                .spec()
                .with_metadata("k", "v")
                .with_provider_option("project", "shop"),
        )
        .await
        .unwrap();
    let second = test.provider.create(&test.spec()).await.unwrap();
    let listed = test.provider.list_sandboxes(&mine).await.unwrap();
    let ids: Vec<&str> = listed.iter().map(|sandbox| sandbox.sandbox_id.as_str()).collect();
    assert_eq!(
        ids,
        [first.sandbox_id().as_str(), second.sandbox_id().as_str()],
        "oldest first"
    );
    let sandbox = &listed[0];
    assert_eq!(sandbox.image.as_deref(), Some(BUSYBOX));
    assert_eq!(
        (sandbox.status, sandbox.owner_state),
        (SandboxStatus::Running, OwnerState::Own)
    );
    assert_eq!(sandbox.project.as_deref(), Some("shop"));
    assert_eq!(sandbox.labels["k"], "v");
    assert_eq!(sandbox.labels["gym-sandbox.project"], "shop");
    assert_eq!(sandbox.owner, listed[1].owner);
    assert!(sandbox.age_s.unwrap() < 600, "{sandbox:?}");
    assert!(
        sandbox.expires.is_none()
            && sandbox.labels["gym-sandbox.lease"] > sandbox.labels["gym-sandbox.created"]
    );
    let shop = mine.clone().with_project("shop");
    assert_eq!(test.provider.list_sandboxes(&shop).await.unwrap().len(), 1);
    let nobody = mine.clone().with_owner("nobody");
    assert_eq!(test.provider.list_sandboxes(&nobody).await.unwrap(), []);
    test.provider.close(&first).await.unwrap();
    test.provider.close(&second).await.unwrap();
    assert_eq!(test.provider.list_sandboxes(&mine).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_a_list_says_who_lives() {
    let Some(run) = run_with_grace(0.5).await else {
        return;
    };
    let mut client = Client::start(Role::Holder, &run.name, Machine::This, SHORT);
    client.make("").await;
    let state = async || {
        let listed = run.provider.list_sandboxes(&run.filter()).await.unwrap();
        assert_eq!(listed.len(), 1, "{listed:?}");
        assert_eq!(listed[0].run.as_deref(), Some(run.name.as_str()));
        listed[0].owner_state
    };
    assert_eq!(state().await, OwnerState::Alive);
    client.kill().await;
    assert_eq!(state().await, OwnerState::Dead);
    crate::support::swept_down_to(&run, 0).await;
}
