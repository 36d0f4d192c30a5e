use serde_json::json;

use super::super::{Mapping, SandboxResources, SandboxSpec, Value};
use super::invalid;

fn mapping(value: Value) -> Mapping {
    match value {
        Value::Object(mapping) => mapping,
        other => panic!("not a mapping: {other}"),
    }
}

fn parse(value: Value) -> crate::Result<SandboxResources> {
    SandboxResources::from_mapping(Some(&mapping(value)))
}

#[test]
fn r01_no_mapping_means_no_limits() {
    let none = SandboxResources::from_mapping(None).unwrap();
    assert_eq!(none, SandboxResources::default());
    assert_eq!(
        (none.cpu, none.memory_mib, none.disk_gib, none.gpu, none.gpu_type),
        (None, None, None, None, None)
    );
    assert_eq!(parse(json!({})).unwrap(), SandboxResources::default());
}

#[test]
fn r02_unknown_keys_are_named_sorted_with_the_allowed_ones() {
    let text = invalid(parse(json!({"zeta": 1, "cpu": 1, "alpha": 2})));
    let alpha = text.find("alpha").expect("names the first key");
    let zeta = text.find("zeta").expect("names the second key");
    assert!(alpha < zeta, "{text}");
    for allowed in ["cpu", "disk_gib", "gpu", "gpu_type", "memory_mib"] {
        assert!(text.contains(allowed), "{allowed} is missing in {text}");
    }
}

#[test]
fn r03_numbers_may_be_text() {
    let parsed = parse(json!({
        "cpu": "0.5", "memory_mib": "4096", "disk_gib": " 10 ", "gpu": "2", "gpu_type": "a100"
    }))
    .unwrap();
    assert_eq!(parsed.cpu, Some(0.5));
    assert_eq!(parsed.memory_mib, Some(4096));
    assert_eq!(parsed.disk_gib, Some(10));
    assert_eq!(parsed.gpu, Some(2));
    assert_eq!(parsed.gpu_type.as_deref(), Some("a100"));
}

#[test]
fn r03_plain_numbers_are_taken_as_they_are() {
    let parsed = parse(json!({"cpu": 2, "memory_mib": 512, "gpu_type": 7})).unwrap();
    assert_eq!(parsed.cpu, Some(2.0));
    assert_eq!(parsed.memory_mib, Some(512));
    assert_eq!(parsed.gpu_type.as_deref(), Some("7"));
}

#[test]
fn r03_null_stays_unset() {
    let parsed = parse(json!({
        "cpu": null, "memory_mib": null, "disk_gib": null, "gpu": null, "gpu_type": null
    }))
    .unwrap();
    assert_eq!(parsed, SandboxResources::default());
}

#[test]
fn r03_what_is_no_number_is_refused_by_name() {
    for (key, value) in [
        ("cpu", json!("many")),
        ("cpu", json!("nan")),
        ("cpu", json!("inf")),
        ("cpu", json!([1])),
        ("memory_mib", json!("4GB")),
        ("memory_mib", json!(-1)),
        ("memory_mib", json!(1.5)),
        ("memory_mib", json!(true)),
        ("disk_gib", json!("")),
        ("gpu", json!({})),
    ] {
        let text = invalid(parse(json!({ key: value.clone() })));
        assert!(text.contains(key), "{key}={value}: {text}");
    }
}

#[test]
fn r04_resources_in_a_spec_are_checked_when_it_is_made() {
    let spec = SandboxSpec::from_value(json!({"resources": {"cpu": "1.5", "memory_mib": "64"}})).unwrap();
    assert_eq!(spec.resources().cpu, Some(1.5));
    assert_eq!(spec.resources().memory_mib, Some(64));
    let text = invalid(SandboxSpec::from_value(json!({"resources": {"ram": 1}})));
    assert!(text.contains("ram") && text.contains("memory_mib"), "{text}");
}

#[test]
fn r04_null_resources_are_no_limits() {
    let spec = SandboxSpec::from_value(json!({"resources": null})).unwrap();
    assert_eq!(spec.resources(), &SandboxResources::default());
}
