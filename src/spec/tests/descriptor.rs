use serde_json::json;

use crate::error::ErrorKind;
use crate::spec::SandboxDescriptor;

#[test]
fn k04_a_descriptor_goes_through_json_and_back() {
    for value in [
        json!({"sandbox_id": "box"}),
        json!({"sandbox_id": "box", "provider": "docker", "engine": "unix:///s", "ports": [9, 8], "workdir": "/w",
               "shell": "bash"}),
        json!({"sandbox_id": "box", "of_another_provider": {"node": [1, 2]}}),
    ] {
        let descriptor = SandboxDescriptor::from_value(value.clone()).unwrap();
        assert_eq!(descriptor.to_value(), value);
    }
}

#[test]
fn k05_k08_an_id_is_a_descriptor_and_what_is_none_is_refused() {
    let bare = SandboxDescriptor::from_value(json!("box")).unwrap();
    assert_eq!(
        bare,
        SandboxDescriptor::from_value(json!({"sandbox_id": "box"})).unwrap()
    );
    for value in [
        json!({}),
        json!([]),
        json!(7),
        json!({"sandbox_id": ""}),
        json!({"sandbox_id": "a/b"}),
        json!({"sandbox_id": "box", "ports": [0]}),
        json!({"sandbox_id": "box", "ports": "80"}),
        json!({"sandbox_id": "box", "workdir": 1}),
    ] {
        let error = SandboxDescriptor::from_value(value.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{value}");
    }
}
