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
        json!({"sandbox_id": "box", "version": null}),
    ] {
        let error = SandboxDescriptor::from_value(value.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{value}");
    }
}

#[test]
fn k08_a_descriptor_of_an_unknown_version_is_refused_with_a_text() {
    let first = SandboxDescriptor::from_value(json!({"sandbox_id": "box", "version": 1})).unwrap();
    assert_eq!(first.to_value(), json!({"sandbox_id": "box"}));
    for version in [
        json!(2),
        json!(0),
        json!("1"),
        json!(1.5),
        json!("x".repeat(1_000_000)),
    ] {
        let error =
            SandboxDescriptor::from_value(json!({"sandbox_id": "box", "version": version})).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let text = error.to_string();
        assert!(
            text.contains("version") && text.contains("only version 1 is known"),
            "{text}"
        );
        assert!(text.len() < 300, "{} bytes", text.len());
    }
    let direct = serde_json::from_str::<SandboxDescriptor>(r#"{"sandbox_id": "box", "version": 2}"#);
    assert!(direct.unwrap_err().to_string().contains("its version is 2"));
}
