//! Laws and tables for merging; the reference's answers for many pairs are in compose-fixtures.

use proptest::prelude::*;

use super::*;
use crate::compose::yaml::{self, Budget};

fn tree(text: &str) -> Node {
    let mut sink = Sink::default();
    let mut documents = yaml::parse(text, 1, &mut Budget::default(), &mut sink);
    assert!(!sink.has_errors(), "{text}");
    documents.remove(0).root
}

fn merged(base: &str, over: &str) -> Result<String, String> {
    let mut sink = Sink::default();
    let mut base = tree(base);
    merge_files(&mut base, tree(over), &mut sink);
    if sink.has_errors() {
        Err(sink.finish(&[]).0.to_string())
    } else {
        Ok(base.to_text())
    }
}

#[test]
fn each_rule_once() {
    let service = |key: &str| format!("services: {{a: {{{key}}}}}");
    for (base, over, expected) in [
        ("image: x", "image: y", "image:y"),
        ("image: x", "image: ", "image:x"),
        ("command: [a]", "command: ", "command:<nil>"),
        (
            "environment: [A=1, B=2]",
            "environment: {B: 3, C: }",
            "environment:[A=1 B=2 B=3 C]",
        ),
        ("labels: {b: 1, a: 2}", "labels: [c]", "labels:[a=2 b=1 c]"),
        ("dns: x", "dns: [y]", "dns:[x y]"),
        ("ports: [1]", "ports: [1, 2]", "ports:[1 1 2]"),
        (
            "extra_hosts: [\"a=1\"]",
            "extra_hosts: {a: 1, b: 2}",
            "extra_hosts:[a=1 b=2]",
        ),
        (
            "networks: [n]",
            "networks: {m: }",
            "networks:map[m:<nil> n:<nil>]",
        ),
        ("build: .", "build: {target: t}", "build:map[context:. target:t]"),
        (
            "logging: {driver: a, options: {x: 1}}",
            "logging: {driver: b}",
            "logging:map[driver:b]",
        ),
        (
            "logging: {driver: a, options: {x: 1}}",
            "logging: {options: {y: 2}}",
            "logging:map[driver:a options:map[x:1 y:2]]",
        ),
        (
            "ulimits: {n: {soft: 1, hard: 2}}",
            "ulimits: {n: 5}",
            "ulimits:map[n:5]",
        ),
    ] {
        let result = merged(&service(base), &service(over)).unwrap();
        assert_eq!(
            result,
            format!("map[services:map[a:map[{expected}]]]"),
            "{base} + {over}"
        );
    }
    let dependency = merged(
        &service("depends_on: [b]"),
        &service("depends_on: {b: {condition: service_healthy}}"),
    )
    .unwrap();
    assert!(
        dependency.contains("b:map[condition:service_healthy required:true]"),
        "{dependency}"
    );
    assert!(
        merged(&service("ports: [1]"), &service("ports: x"))
            .unwrap_err()
            .contains("cannot override services.a.ports")
    );
}

/// A tree of mappings with plain keys, whose leaves are scalars.
fn mapping() -> impl Strategy<Value = Node> {
    let leaf = "[a-z]{1,3}".prop_map(|text| Node::string(text, Position::default()));
    leaf.prop_recursive(3, 20, 4, |inner| {
        proptest::collection::btree_map("[a-d]", inner, 0..4)
            .prop_map(|map| Node::map(map.into_iter().collect(), Position::default()))
    })
}

fn merge_quietly(base: &Node, over: &Node) -> Node {
    let mut base = base.clone();
    merge_files(&mut base, over.clone(), &mut Sink::default());
    base
}

proptest! {
    #[test]
    fn merging_nothing_changes_nothing(node in mapping()) {
        let nothing = Node::new(Value::Null, Position::default());
        prop_assert!(merge_quietly(&node, &nothing).same_value(&node));
    }

    #[test]
    fn merging_twice_is_merging_once(base in mapping(), over in mapping()) {
        let once = merge_quietly(&base, &over);
        prop_assert!(merge_quietly(&once, &over).same_value(&once));
    }

    #[test]
    fn the_later_scalar_wins_at_every_path(base in mapping(), over in mapping()) {
        fn check(merged: &Node, over: &Node) -> bool {
            match over.as_map() {
                Some(map) => map.iter().all(|(key, child)| merged.get(key).is_some_and(|merged| check(merged, child))),
                None => merged.same_value(over),
            }
        }
        // A mapping and a scalar at one path is a mistake, and then the first stays.
        let mut sink = Sink::default();
        let mut merged = base.clone();
        merge_files(&mut merged, over.clone(), &mut sink);
        if !sink.has_errors() {
            prop_assert!(check(&merged, &over));
        }
    }
}
