use proptest::prelude::*;
use serde_json::json;

use super::super::{Ports, SandboxSpec, Value};
use super::invalid;

fn parse(ports: &Value) -> crate::Result<Ports> {
    SandboxSpec::from_value(json!({"ports": ports})).map(|spec| spec.ports().clone())
}

#[test]
fn r05_ports_must_be_a_list() {
    for wrong in [json!("80"), json!(80), json!({"80": 1}), json!(true)] {
        invalid(parse(&wrong));
    }
    assert!(parse(&json!([])).unwrap().is_empty());
}

#[test]
fn r06_whole_numbers_and_numeric_text_are_taken() {
    assert_eq!(parse(&json!(["9222", 80])).unwrap().as_slice(), [9222, 80]);
}

#[test]
fn r06_anything_else_is_invalid() {
    for wrong in [
        json!(true),
        json!(80.0),
        json!(80.5),
        json!("http"),
        json!(""),
        json!("80/tcp"),
        json!(null),
        json!([80]),
        json!({}),
    ] {
        let text = invalid(parse(&json!([wrong.clone()])));
        assert!(text.contains("invalid port"), "{wrong}: {text}");
    }
}

#[test]
fn r07_only_1_to_65535_are_ports() {
    assert_eq!(parse(&json!([1, 65535])).unwrap().as_slice(), [1, 65535]);
    for wrong in [
        json!(0),
        json!(65536),
        json!(-1),
        json!("0"),
        json!("65536"),
        json!(70000),
    ] {
        let text = invalid(parse(&json!([wrong.clone()])));
        assert!(text.contains("1..=65535"), "{wrong}: {text}");
    }
    assert!(invalid(Ports::new([0])).contains("1..=65535"));
}

#[test]
fn r08_a_port_given_twice_is_refused_after_reading_it() {
    let text = invalid(parse(&json!([8080, "8080"])));
    assert!(text.contains("8080") && text.contains("twice"), "{text}");
    assert!(invalid(SandboxSpec::new("image").with_ports([1, 2, 1])).contains("port 1 "));
}

proptest! {
    #[test]
    fn r09_the_order_is_kept(ports in proptest::collection::hash_set(1u16.., 0..20)) {
        let given: Vec<u16> = ports.into_iter().collect();
        let spec = SandboxSpec::new("image").with_ports(given.iter().copied()).unwrap();
        prop_assert_eq!(spec.ports().as_slice(), given.as_slice());
        let text = serde_json::to_value(&spec).unwrap();
        prop_assert_eq!(&text["ports"], &json!(given));
        prop_assert!(given.iter().all(|&port| spec.ports().contains(port)));
    }
}

#[test]
fn r10_ports_default_to_none() {
    assert!(SandboxSpec::new("image").ports().is_empty());
    assert!(SandboxSpec::from_value(json!({})).unwrap().ports().is_empty());
}
