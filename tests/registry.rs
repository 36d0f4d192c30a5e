//! The registry from outside, in a process of its own: what is registered here holds for the whole process.

use std::sync::Arc;

use gym_sandbox::provider::{
    OnExisting, ProviderFactory, create_provider, list_providers, register_provider,
};
use gym_sandbox::{Error, ErrorKind, Operation};
use serde_json::json;

/// A factory that can be told from the built-in one: it makes nothing.
fn telling() -> ProviderFactory {
    Arc::new(|_| {
        Err(Error::new(
            ErrorKind::Conflict,
            Operation::Configure,
            "the registered one",
        ))
    })
}

#[test]
fn g01_a_registered_provider_shadows_a_built_in_one() {
    assert_eq!(list_providers(), ["docker", "local"]);
    // Making the built-in one does no I/O, so that it works without an engine.
    let built_in = create_provider(&json!({"docker": {"host": "tcp://127.0.0.1:1"}})).unwrap();
    assert_eq!(built_in.name(), "docker");
    register_provider("docker", telling(), OnExisting::Refuse).unwrap_err();
    create_provider(&json!({"docker": {}})).unwrap();
    register_provider("docker", telling(), OnExisting::Replace).unwrap();
    let error = create_provider(&json!({"docker": {}})).unwrap_err();
    assert!(error.to_string().contains("the registered one"), "{error}");
    assert_eq!(
        list_providers(),
        ["docker", "local"],
        "a shadowed name is listed once"
    );
}
