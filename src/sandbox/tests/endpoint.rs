//! E1-E4: the port, the declaration, the capability and the state are checked in this order.

use crate::error::ErrorKind;
use crate::provider::tests::scripted::{Call, Capabilities, Scripted};
use crate::spec::SandboxSpec;

use super::{kind, shared};

#[tokio::test]
async fn e01_a_port_out_of_range_is_the_first_check() {
    // The provider lacks the capability and the sandbox is not started: both come later.
    let sandbox = shared(&Scripted::with(Capabilities::None));
    let error = sandbox.endpoint(0).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("1..=65535"), "{error}");
}

#[tokio::test]
async fn e02_an_undeclared_port_is_refused_with_the_declared_ones() {
    let sandbox = shared(&Scripted::with(Capabilities::None));
    let error = sandbox.endpoint(9000).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let text = error.to_string();
    assert!(
        text.contains("9000") && text.contains("8000") && text.contains("8001"),
        "{text}"
    );
}

#[tokio::test]
async fn e03_a_provider_without_endpoints_is_named_before_the_state_is_checked() {
    let sandbox = shared(&Scripted::with(Capabilities::None));
    let error = sandbox.endpoint(8000).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("`scripted`"), "{error}");
}

#[tokio::test]
async fn e04_the_state_is_checked_last() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    assert_eq!(kind(sandbox.endpoint(8000).await), ErrorKind::NotStarted);
    sandbox.start().await.unwrap();
    assert_eq!(
        sandbox.endpoint(8001).await.unwrap().endpoint(),
        "http://127.0.0.1:8001"
    );
    sandbox.stop().await.unwrap();
    assert_eq!(kind(sandbox.endpoint(8000).await), ErrorKind::Stopped);
    assert_eq!(provider.count(|call| matches!(call, Call::Endpoint(_))), 1);
}

#[tokio::test]
async fn e02_the_ports_of_the_spec_that_was_started_count() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    sandbox
        .start_with(&SandboxSpec::new("image").with_ports([7000]).unwrap())
        .await
        .unwrap();
    assert_eq!(kind(sandbox.endpoint(8000).await), ErrorKind::InvalidArgument);
    sandbox.endpoint(7000).await.unwrap();
}
