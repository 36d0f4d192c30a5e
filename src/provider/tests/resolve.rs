use std::collections::BTreeMap;

use serde_json::json;

use crate::provider::{create_provider, resolve_provider_config, resolve_provider_metadata};
use crate::spec::{Mapping, SandboxSpec, Value};

use super::invalid;

fn named(value: Value) -> Mapping {
    match value {
        Value::Object(named) => named,
        other => panic!("not a map: {other}"),
    }
}

#[test]
fn f01_an_empty_name_is_refused() {
    let blocks = named(json!({"": {"docker": {}}}));
    for name in ["", "  "] {
        assert!(invalid(resolve_provider_config(&json!(name), Some(&blocks))).contains("empty"));
        assert!(invalid(resolve_provider_metadata(&json!(name), Some(&blocks))).contains("empty"));
    }
}

#[test]
fn f01_a_missing_name_is_told_with_what_could_be_meant() {
    let blocks = named(json!({
        "zeta": {"docker": {}},
        "alpha": {"local": {}, "default_metadata": {}},
        "two": {"docker": {}, "local": {}},
        "none": {"default_metadata": {}},
        "text": "docker",
    }));
    let text = invalid(resolve_provider_config(&json!("fast"), Some(&blocks)));
    assert!(text.contains("`fast`"), "{text}");
    assert!(text.contains("provider blocks are alpha, zeta"), "{text}");
    assert!(!text.contains("two") && !text.contains("none,"), "{text}");
    for empty in [None, Some(&named(json!({"text": 1})))] {
        let text = invalid(resolve_provider_config(&json!("fast"), empty));
        assert!(text.contains("`fast`") && text.contains("(none)"), "{text}");
    }
}

#[test]
fn f02_a_map_is_a_block_and_anything_else_is_refused() {
    let block = json!({"docker": {"exec": {"concurrency": 2}}});
    assert_eq!(resolve_provider_config(&block, None).unwrap(), block);
    for wrong in [json!(null), json!(1), json!(true), json!(["docker"])] {
        invalid(resolve_provider_config(&wrong, None));
        invalid(resolve_provider_metadata(&wrong, None));
    }
}

#[test]
fn f03_a_block_is_a_map_with_one_provider() {
    let blocks = named(json!({"list": [1], "null": null}));
    for name in ["list", "null"] {
        let text = invalid(resolve_provider_config(&json!(name), Some(&blocks)));
        assert!(text.contains(name) && text.contains("must be a map"), "{text}");
    }
    let text = invalid(resolve_provider_config(&json!({"docker": {}, "local": {}}), None));
    assert!(text.contains("[docker, local]"), "{text}");
    let text = invalid(resolve_provider_config(&json!({"default_metadata": {}}), None));
    assert!(text.contains("[default_metadata]"), "{text}");
    // Only this key is reserved.
    invalid(resolve_provider_config(
        &json!({"docker": {}, "metadata": {}}),
        None,
    ));
}

#[test]
fn f04_the_result_is_a_new_map_of_the_provider_alone() {
    let blocks = named(json!({"fast": {"default_metadata": {"a": "b"}, "docker": {"host": "unix:///x"}}}));
    let before = blocks.clone();
    let mut config = resolve_provider_config(&json!("fast"), Some(&blocks)).unwrap();
    assert_eq!(config, json!({"docker": {"host": "unix:///x"}}));
    config["docker"]["host"] = json!("changed");
    assert_eq!(blocks, before);
    let provider = create_provider(&resolve_provider_config(&json!("fast"), Some(&blocks)).unwrap()).unwrap();
    assert_eq!(provider.name(), "docker");
}

#[test]
fn f05_metadata_needs_no_single_provider() {
    let of = |block: Value| resolve_provider_metadata(&block, None);
    assert_eq!(of(json!({"docker": {}})).unwrap(), BTreeMap::new());
    assert_eq!(of(json!({"default_metadata": null})).unwrap(), BTreeMap::new());
    let metadata =
        of(json!({"a": 1, "b": 2, "default_metadata": {"team": "x", "n": 3, "on": true}})).unwrap();
    let wanted = [("n", "3"), ("on", "true"), ("team", "x")].map(|(key, text)| (key.into(), text.into()));
    assert_eq!(metadata, BTreeMap::from(wanted));
    for wrong in [
        json!([]),
        json!("x"),
        json!(1),
        json!({"k": []}),
        json!({"k": null}),
    ] {
        let text = invalid(of(json!({"docker": {}, "default_metadata": wrong})));
        assert!(text.contains("default_metadata"), "{text}");
    }
}

#[test]
fn f06_metadata_of_the_spec_wins_over_the_default() {
    let defaults = resolve_provider_metadata(
        &json!({"default_metadata": {"a": "default", "b": "default"}}),
        None,
    );
    let spec = SandboxSpec::new("x")
        .with_metadata("a", "spec")
        .with_default_metadata(&defaults.unwrap());
    let wanted = [("a", "spec"), ("b", "default")].map(|(key, text)| (key.into(), text.into()));
    assert_eq!(*spec.metadata(), BTreeMap::from(wanted));
}
