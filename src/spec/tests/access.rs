use serde_json::json;

use crate::spec::{DirectSandboxConnection, SandboxAccess, SandboxDescriptor};

#[test]
fn d36_the_fields_of_an_access() {
    let descriptor = json!({"sandbox_id": "a", "ports": [80]});
    let connection = DirectSandboxConnection::new(
        SandboxDescriptor::from_value(descriptor.clone()).unwrap(),
        "docker",
    );
    let access = SandboxAccess::new(connection, "/work");
    let written = json!({
        "connection": {"kind": "direct", "descriptor": descriptor, "provider_config_ref": "docker"},
        "workdir": "/work",
    });
    assert_eq!(json!(access), written);
    assert_eq!(serde_json::from_value::<SandboxAccess>(written).unwrap(), access);
    assert_eq!(access.connection().provider_config_ref(), "docker");
    assert_eq!(access.connection().descriptor().sandbox_id.as_str(), "a");
}

#[test]
fn an_access_has_all_of_its_fields_and_no_other() {
    let good = json!({
        "connection": {"kind": "direct", "descriptor": {"sandbox_id": "a"}, "provider_config_ref": "docker"},
        "workdir": "/work",
    });
    serde_json::from_value::<SandboxAccess>(good.clone()).unwrap();
    for (place, key, value) in [
        ("", "colour", json!("blue")),
        ("/connection", "colour", json!("blue")),
        ("/connection", "kind", json!("proxied")),
        ("/connection", "descriptor", json!("a")),
        ("/connection", "provider_config_ref", json!(null)),
        ("", "workdir", json!(1)),
    ] {
        let mut wrong = good.clone();
        wrong.pointer_mut(place).unwrap()[key] = value;
        let error = serde_json::from_value::<SandboxAccess>(wrong)
            .unwrap_err()
            .to_string();
        assert!(!error.is_empty(), "{key}");
    }
    for (place, key) in [
        ("", "workdir"),
        ("", "connection"),
        ("/connection", "kind"),
        ("/connection", "descriptor"),
    ] {
        let mut wrong = good.clone();
        wrong
            .pointer_mut(place)
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove(key);
        let error = serde_json::from_value::<SandboxAccess>(wrong)
            .unwrap_err()
            .to_string();
        assert!(error.contains(key), "{key}: {error}");
    }
}
