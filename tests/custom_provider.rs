//! The provider of `examples/custom_provider`, made by its name in a process of its own: what is registered here holds
//! for the whole process. The conformance suite runs over it in `tests/conformance.rs`.

#[path = "../examples/custom_provider/metered.rs"]
mod metered;

use std::sync::Arc;
use std::time::Duration;

use gym_sandbox::provider::{create_provider, list_providers};
use gym_sandbox::{AsyncSandbox, ErrorKind, Sandbox, SandboxProvider, SandboxSpec};
use serde_json::json;

use metered::{Metered, NAME};

#[test]
fn d26_a_provider_from_outside_is_made_by_its_name() {
    Metered::register().unwrap();
    assert_eq!(Metered::register().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(list_providers(), ["docker", "local", NAME]);
    let config = json!({NAME: {"local": {"shell": "/bin/sh"}}});
    assert_eq!(create_provider(&config).unwrap().name(), NAME);
    let wrong = create_provider(&json!({NAME: {"local": {"colour": "blue"}}})).unwrap_err();
    assert_eq!(
        wrong.kind(),
        ErrorKind::InvalidArgument,
        "errors of the factory come through"
    );
    // And through both facades.
    let sandbox = Sandbox::from_config(&config)
        .unwrap()
        .with_spec(SandboxSpec::default());
    sandbox.start().unwrap();
    assert_eq!(
        sandbox.exec("echo made").unwrap().stdout().as_deref(),
        Some("made\n")
    );
    assert_eq!(sandbox.inspect().unwrap().provider, NAME);
    sandbox.stop().unwrap();
}

#[tokio::test]
async fn commands_are_metered() {
    let local = create_provider(&json!({"local": {"shell": "/bin/sh"}})).unwrap();
    let metered = Arc::new(Metered::new(local));
    let shared: Arc<dyn SandboxProvider> = metered.clone();
    let run = AsyncSandbox::scope(shared, SandboxSpec::default(), async |sandbox| {
        sandbox.exec("sleep 0.2").await
    });
    assert!(run.await.unwrap().is_success());
    assert!(
        metered.used() >= Duration::from_millis(200),
        "{:?}",
        metered.used()
    );
}
