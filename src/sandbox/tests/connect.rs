//! K1-K6, L17, D24, E6: handing over through the facade.

use std::sync::Arc;

use serde_json::json;

use crate::error::{ErrorKind, Operation};
use crate::provider::SandboxProvider;
use crate::provider::tests::scripted::{Call, Capabilities, DEADLINE, Scripted, Step};
use crate::spec::{SandboxDescriptor, SandboxSpec, SandboxStatus};

use super::{kind, owning, shared};
use crate::sandbox::{AsyncSandbox, ConnectOptions};

fn arc(provider: &Arc<Scripted>) -> Arc<dyn SandboxProvider> {
    Arc::clone(provider) as Arc<dyn SandboxProvider>
}

fn descriptor() -> SandboxDescriptor {
    SandboxDescriptor::from_value(json!({"sandbox_id": "box-7", "ports": [8000], "workdir": "/there"}))
        .unwrap()
}

#[tokio::test]
async fn k01_serialize_needs_a_provider_that_can_and_a_started_sandbox() {
    let error = shared(&Scripted::with(Capabilities::None))
        .serialize(None)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = error.to_string();
    assert!(text.contains("serialize") && text.contains("connect"), "{text}");
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    assert_eq!(kind(sandbox.serialize(None).await), ErrorKind::NotStarted);
    sandbox.start().await.unwrap();
    sandbox.stop().await.unwrap();
    assert_eq!(kind(sandbox.serialize(None).await), ErrorKind::Stopped);
}

#[tokio::test]
async fn k02_k03_the_workdir_is_added_and_the_scope_handed_on() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    sandbox.start().await.unwrap();
    let scope = json!({"for": ["a", 1]});
    let descriptor = sandbox.serialize(Some(&scope)).await.unwrap();
    assert_eq!(
        descriptor.to_value(),
        json!({"sandbox_id": "box-1", "ports": [8000, 8001], "workdir": "/work"})
    );
    assert_eq!(provider.calls()[1..], [Call::Serialize(Some(scope))]);
    let bare = shared(&provider).with_spec(SandboxSpec::new("image"));
    bare.start().await.unwrap();
    assert_eq!(bare.serialize(None).await.unwrap().workdir, None);
}

#[tokio::test]
async fn k05_k06_a_connected_sandbox_is_started_and_describes_itself_the_same() {
    let provider = Scripted::new();
    let sandbox = AsyncSandbox::connect(arc(&provider), &descriptor())
        .await
        .unwrap();
    assert_eq!(sandbox.sandbox_id().unwrap().as_str(), "box-7");
    assert_eq!(sandbox.serialize(None).await.unwrap(), descriptor());
    sandbox.exec("true").await.unwrap();
    let cwd = provider.calls().into_iter().find_map(|call| match call {
        Call::Exec(seen) => Some(seen.cwd),
        _ => None,
    });
    assert_eq!(cwd, Some(Some("/there".to_owned())));
    assert_eq!(
        kind(sandbox.start_with(&SandboxSpec::new("image")).await),
        ErrorKind::AlreadyStarted
    );
    // K7: stopping removes it.
    sandbox.stop().await.unwrap();
    assert_eq!(provider.closes(), 1);
}

#[tokio::test]
async fn k05_connecting_needs_a_provider_that_can_and_closes_an_owned_one_when_it_fails() {
    let unable = Scripted::with(Capabilities::None);
    let owned = ConnectOptions::new().with_owned_provider();
    let error = AsyncSandbox::connect_with(arc(&unable), &descriptor(), &owned)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(unable.acloses(), 1);
    let provider = Scripted::new();
    provider.script(
        Operation::Attach,
        [Step::Fail(ErrorKind::NotFound), Step::Fail(ErrorKind::NotFound)],
    );
    assert_eq!(
        kind(AsyncSandbox::connect(arc(&provider), &descriptor()).await),
        ErrorKind::NotFound
    );
    assert_eq!(provider.acloses(), 0);
    assert_eq!(
        kind(AsyncSandbox::connect_with(arc(&provider), &descriptor(), &owned).await),
        ErrorKind::NotFound
    );
    assert_eq!((provider.acloses(), provider.closes()), (1, 0));
}

#[tokio::test]
async fn e06_declared_ports_are_known_after_connecting() {
    let provider = Scripted::new();
    let sandbox = AsyncSandbox::connect(arc(&provider), &descriptor())
        .await
        .unwrap();
    assert_eq!(
        sandbox.endpoint(8000).await.unwrap().endpoint(),
        "http://127.0.0.1:8000"
    );
    let error = sandbox.endpoint(8001).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("8000"), "{error}");
}

#[tokio::test]
async fn l17_d24_disconnect_lets_go_and_never_removes() {
    let provider = Scripted::new();
    let owned = ConnectOptions::new().with_owned_provider();
    let sandbox = AsyncSandbox::connect_with(arc(&provider), &descriptor(), &owned)
        .await
        .unwrap();
    sandbox.disconnect().await.unwrap();
    sandbox.disconnect().await.unwrap();
    assert_eq!((provider.closes(), provider.acloses()), (0, 1));
    assert_eq!(sandbox.status().await.unwrap(), SandboxStatus::Unknown);
    assert_eq!(kind(sandbox.exec("true").await), ErrorKind::NotStarted);
    assert_eq!(kind(sandbox.serialize(None).await), ErrorKind::NotStarted);
    sandbox.stop().await.unwrap();
    drop(sandbox);
    assert_eq!((provider.closes(), provider.acloses()), (0, 1));
}

#[tokio::test]
async fn l17_d24_a_creator_can_not_disconnect() {
    let provider = Scripted::new();
    let sandbox = owning(&provider);
    assert_eq!(kind(sandbox.disconnect().await), ErrorKind::NotConnected);
    sandbox.start().await.unwrap();
    assert_eq!(kind(sandbox.disconnect().await), ErrorKind::NotConnected);
    sandbox.exec("true").await.unwrap();
    sandbox.stop().await.unwrap();
    assert_eq!(provider.closes(), 1);
}

#[tokio::test]
async fn l17_dropping_a_connected_sandbox_leaves_it() {
    let provider = Scripted::new();
    let sandbox = AsyncSandbox::connect(arc(&provider), &descriptor())
        .await
        .unwrap();
    let reaper = sandbox.reaper.clone();
    drop(sandbox);
    reaper.wait_idle(DEADLINE).await.unwrap();
    assert_eq!((provider.closes(), provider.acloses()), (0, 0));
    // A removal that was asked for is seen through.
    provider.script(Operation::Close, [Step::Fail(ErrorKind::Unavailable)]);
    let sandbox = AsyncSandbox::connect(arc(&provider), &descriptor())
        .await
        .unwrap();
    let reaper = sandbox.reaper.clone();
    sandbox.stop().await.unwrap_err();
    drop(sandbox);
    reaper.wait_idle(DEADLINE).await.unwrap();
    assert_eq!(provider.closes(), 2);
}
