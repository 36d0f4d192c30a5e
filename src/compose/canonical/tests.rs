//! The forms that have rules of their own; ports, mounts and devices are tested with short.rs.

use super::*;
use crate::compose::trap::Strictness;
use crate::compose::yaml::{self, Budget};

fn canonical(text: &str) -> Result<String, String> {
    let mut sink = Sink::default();
    let mut documents = yaml::parse(text, 1, &mut Budget::default(), &mut sink);
    let mut root = documents.remove(0).root;
    let traps = trap::Policy {
        strictness: Strictness::Compatible,
    };
    canonicalize(
        &mut root,
        Variables::Replaced,
        traps,
        &mut Budget::default(),
        &mut sink,
    );
    if sink.has_errors() {
        Err(sink.finish(&[]).0.to_string())
    } else {
        Ok(root.to_text())
    }
}

#[test]
fn short_forms_become_long_ones() {
    for (short, long) in [
        ("build: .", "build:map[context:.]"),
        ("secrets: [s]", "secrets:[map[source:s]]"),
        (
            "depends_on: [b]",
            "depends_on:map[b:map[condition:service_started required:true]]",
        ),
        ("networks: [n]", "networks:map[n:<nil>]"),
        ("env_file: e", "env_file:[map[path:e required:true]]"),
        ("dns: [\"\", a]", "dns:[a]"),
        ("gpus: all", "gpus:[map[count:all]]"),
        ("extends: b", "extends:map[service:b]"),
        (
            "build: {context: ., ssh: [default, k=p], sbom: true}",
            "build:map[context:. sbom:true ssh:map[default:<nil> k:p]]",
        ),
        (
            "devices: [\"/a:/b\"]",
            "devices:[map[permissions:rwm source:/a target:/b]]",
        ),
        (
            "volumes: [\"data:/d/..:ro\"]",
            "volumes:[map[read_only:true source:data target:/ type:volume volume:map[]]]",
        ),
    ] {
        let result = canonical(&format!("services: {{a: {{{short}}}}}")).unwrap();
        assert_eq!(result, format!("map[services:map[a:map[{long}]]]"), "{short}");
    }
    assert_eq!(
        canonical("volumes: {v: {external: {name: n}}}").unwrap(),
        "map[volumes:map[v:map[external:true name:n]]]"
    );
    for limits in ["{n: \"5\"}", "{n: 1e3}", "{n: {soft: \"5\", hard: 5}}"] {
        let error = canonical(&format!(
            "services: {{a: {{build: {{context: ., ulimits: {limits}}}}}}}"
        ))
        .unwrap_err();
        assert!(error.contains("a limit is a whole number"), "{limits}: {error}");
    }
    assert!(canonical("services: {a: {ulimits: {n: 5, m: {soft: 1, hard: -1}}}}").is_ok());
    for port in ["0", "0:0", "8080:0"] {
        let ports = canonical(&format!("services: {{a: {{ports: [\"{port}\"]}}}}")).unwrap();
        assert!(!ports.contains("target"), "{port}: {ports}");
    }
    assert!(
        canonical("volumes: {v: {external: {name: n}, name: m}}")
            .unwrap_err()
            .contains("only use name")
    );
    assert!(
        canonical("services: {a: {build: {additional_contexts: [x]}}}")
            .unwrap_err()
            .contains("expected key=value")
    );
}
