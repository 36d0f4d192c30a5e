use serde_json::json;

use super::super::SandboxEndpoint;
use super::invalid;

#[test]
fn r11_scheme_and_authority_are_needed() {
    for wrong in [
        "",
        "   ",
        "/relative/path",
        "127.0.0.1:80",
        "http:",
        "http://",
        "http:///path",
        "http://?query",
        "://host",
        "1http://host",
        "http//host",
        "http://ho st",
    ] {
        let text = invalid(SandboxEndpoint::new(wrong));
        assert!(text.contains("absolute URL"), "{wrong:?}: {text}");
    }
    for right in [
        "http://127.0.0.1:8080",
        "https://[::1]:443/path?query#part",
        "unix+http://socket",
        "ws://host",
    ] {
        assert_eq!(SandboxEndpoint::new(right).unwrap().endpoint(), right);
    }
}

#[test]
fn r11_white_space_around_it_is_cut_off() {
    assert_eq!(
        SandboxEndpoint::new("  http://a:1\n").unwrap().endpoint(),
        "http://a:1"
    );
}

#[test]
fn r11_reading_one_checks_it_too() {
    serde_json::from_value::<SandboxEndpoint>(json!({"endpoint": "/relative", "headers": {}})).unwrap_err();
    let read: SandboxEndpoint = serde_json::from_value(json!({"endpoint": " http://a "})).unwrap();
    assert_eq!(read.endpoint(), "http://a");
    assert!(read.headers().is_empty());
}

#[test]
fn r12_headers_are_a_map_of_texts() {
    let read: SandboxEndpoint = serde_json::from_value(json!({
        "endpoint": "http://a", "headers": {"X-Number": 7, "X-Flag": true, "X-Text": "seven"}
    }))
    .unwrap();
    let headers: Vec<_> = read
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        headers,
        [("X-Flag", "true"), ("X-Number", "7"), ("X-Text", "seven")]
    );
    for wrong in [json!(["a"]), json!("a"), json!(1)] {
        serde_json::from_value::<SandboxEndpoint>(json!({"endpoint": "http://a", "headers": wrong}))
            .unwrap_err();
    }
}

#[test]
fn r12_values_of_headers_are_not_shown() {
    let endpoint = SandboxEndpoint::new("http://a")
        .unwrap()
        .with_header("Authorization", "Bearer hunter2");
    let shown = format!("{endpoint:?}");
    assert!(shown.contains("Authorization"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}
