use serde_json::json;

use crate::provider::{ConfigBlock, config_from_yaml};
use crate::spec::Value;

use super::invalid;

#[test]
fn g05_a_block_has_exactly_one_key() {
    for wrong in [json!({}), json!({"docker": {}, "local": {}})] {
        let text = invalid(ConfigBlock::from_value(&wrong));
        assert!(text.contains("exactly one key"), "{text}");
    }
    let text = invalid(ConfigBlock::from_value(&json!({"docker": {}, "local": {}})));
    assert!(text.contains("docker, local"), "{text}");
}

#[test]
fn g05_the_key_is_not_blank() {
    for wrong in [json!({"": {}}), json!({"  ": {}})] {
        assert!(invalid(ConfigBlock::from_value(&wrong)).contains("empty"));
    }
}

#[test]
fn g05_null_settings_are_no_settings() {
    let block = ConfigBlock::from_value(&json!({"docker": null})).unwrap();
    assert_eq!(block.provider(), "docker");
    assert!(block.settings().is_empty());
}

#[test]
fn g05_settings_must_be_a_map() {
    for wrong in [json!([]), json!("fast"), json!(1), json!(false)] {
        let text = invalid(ConfigBlock::from_value(&json!({ "docker": wrong.clone() })));
        assert!(
            text.contains("`docker`") && text.contains("map"),
            "{wrong}: {text}"
        );
    }
}

#[test]
fn g05_a_block_must_be_a_map() {
    for wrong in [json!(null), json!("docker"), json!(["docker"]), json!(1)] {
        assert!(invalid(ConfigBlock::from_value(&wrong)).contains("must be a map"));
    }
}

#[test]
fn a_blocks_debug_text_holds_no_values() {
    let block = ConfigBlock::from_value(&json!({"docker": {"token": "hunter2"}})).unwrap();
    let shown = format!("{block:?}");
    assert!(shown.contains("docker") && shown.contains("token"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn yaml_is_read_with_its_types() {
    let value =
        config_from_yaml("docker:\n  exec: {default_timeout_s: 60, exec_shell: null}\n  host: \"1\"\n")
            .unwrap();
    assert_eq!(
        value,
        json!({"docker": {"exec": {"default_timeout_s": 60, "exec_shell": null}, "host": "1"}})
    );
    assert_eq!(config_from_yaml("").unwrap(), Value::Null);
}

#[test]
fn a_yaml_mistake_is_told_with_its_place() {
    let text = invalid(config_from_yaml("docker:\n  exec: {a: 1\n"));
    assert!(text.contains("line "), "{text}");
    invalid(config_from_yaml("a: 1\na: 2\n"));
    invalid(config_from_yaml("? [a]\n: 1\n"));
}
