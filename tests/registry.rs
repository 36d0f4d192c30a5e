//! The registry from outside, in a process of its own: what is registered here holds for the whole process.

use std::sync::Arc;

use gym_sandbox::docker::DockerConfig;
use gym_sandbox::provider::{
    ConfigBlock, OnExisting, ProviderFactory, config_from_yaml, create_provider, list_providers,
    register_provider, resolve_provider_config, resolve_provider_metadata,
};
use gym_sandbox::{Error, ErrorKind, Operation, Value};
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

#[test]
fn f07_the_shipped_docker_block() {
    let shipped = config_from_yaml(DockerConfig::SHIPPED_BLOCK).unwrap();
    let blocks = shipped.as_object().unwrap();
    let config = resolve_provider_config(&json!("docker"), Some(blocks)).unwrap();
    let block = ConfigBlock::from_value(&config).unwrap();
    assert_eq!(block.provider(), "docker");
    let settings = Value::Object(block.settings().clone());
    for (key, value) in [
        ("/create/keepalive_shell", json!("/bin/sh")),
        ("/create/start_timeout_s", json!(600)),
        ("/create/use_init", json!(true)),
        ("/create/apply_resource_limits", json!(true)),
        ("/create/publish_host", json!("127.0.0.1")),
        ("/exec/default_timeout_s", json!(180)),
        ("/exec/concurrency", json!(32)),
        ("/probe/timeout_s", json!(30)),
        ("/probe/deadline_s", json!(60)),
        ("/probe/stable_count", json!(1)),
    ] {
        assert_eq!(settings.pointer(key), Some(&value), "{key}");
    }
    let read = DockerConfig::from_settings(block.settings()).unwrap();
    assert!(read.probe.command.is_some() && read.probe.expected_stdout.is_some());
    // What the block writes down is what holds without it, but for the probe.
    let mut plain = read;
    assert_eq!(DockerConfig::default().probe.deadline, None);
    plain.probe = DockerConfig::default().probe;
    assert_eq!(plain, DockerConfig::default());
    let metadata = resolve_provider_metadata(&json!("docker"), Some(blocks)).unwrap();
    assert_eq!(
        metadata.get("sandbox-api").map(String::as_str),
        Some("docker-engine")
    );
}
