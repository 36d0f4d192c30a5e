//! The tables against small trees.

use super::*;
use crate::compose::yaml::{self, Budget};

fn errors(text: &str) -> Vec<String> {
    let mut sink = Sink::default();
    let mut documents = yaml::parse(text, 1, &mut Budget::default(), &mut sink);
    let mut root = documents.remove(0).root;
    validate(&mut root, &mut sink);
    // What is wrong is gone: a second look finds nothing.
    let mut again = Sink::default();
    validate(&mut root, &mut again);
    assert!(!again.has_errors(), "{text}");
    sink.finish(&[]).0.iter().map(ToString::to_string).collect()
}

#[test]
fn wrong_keys_and_types_are_all_found() {
    assert_eq!(
        errors(
            "services: {a: {imag: x, cpus: [], ports: [80, {foo: 1}, true], healthcheck: {interval: 10}}, \"b c\": {}}\nbar: 1\n"
        ),
        [
            "services.a.imag: additional properties 'imag' not allowed",
            "services.a.cpus: must be a number or string",
            "services.a.ports.1.foo: additional properties 'foo' not allowed",
            "services.a.ports.2: must be a mapping, number or string",
            "services.a.healthcheck.interval: must be a string",
            "services.b c: additional properties 'b c' not allowed",
            "bar: additional properties 'bar' not allowed",
        ]
    );
    assert_eq!(
        errors("services: {a: {image: x, deploy: {resources: {reservations: {devices: [{count: 1}]}}}}}"),
        ["services.a.deploy.resources.reservations.devices.0: missing property 'capabilities'"]
    );
    assert_eq!(
        errors("services: {a: {image: 2024-01-01}}"),
        ["services.a.image: invalid jsonType time.Time: an unquoted date"]
    );
    for (groups, repeated) in [
        ("[1, 1]", 1),
        ("[\"1\", 1]", 1),
        ("[\"1.0\", 1]", 1),
        ("[1, \"1\"]", 0),
        ("[\"1\", \"1.0\"]", 0),
    ] {
        let found = errors(&format!("services: {{a: {{group_add: {groups}}}}}"));
        assert_eq!(found.len(), repeated, "{groups}");
    }
    assert_eq!(
        errors("x-a: 2024-01-01\nservices: {a: {x-b: [1], image: x}}"),
        Vec::<String>::new()
    );
}

#[test]
fn a_key_that_is_nearly_right_is_suggested() {
    let Shape::Object(project) = &PROJECT else {
        panic!("the project is a mapping")
    };
    assert_eq!(nearest("servicse", project), Some("services"));
    assert_eq!(nearest("foo", project), None);
}
