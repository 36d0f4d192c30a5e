//! `doctor` with and without an engine.

use crate::support::{Call, engine_or_skip};

#[tokio::test]
async fn a_dead_host_is_1_and_the_error_says_what_was_tried() {
    for host in ["unix:///nonexistent/engine.sock", "tcp://127.0.0.1:1"] {
        for (how, call) in [
            ("the configured host", Call::new(&["--host", host, "doctor"])),
            (
                "the configured host",
                Call::new(&["--host", host, "doctor", "--json"]),
            ),
            ("DOCKER_HOST", Call::new(&["doctor"]).env("DOCKER_HOST", host)),
        ] {
            let (code, stdout, stderr) = call.answer().await.text();
            assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
            assert!(stderr.starts_with("error: connect to an engine: "), "{stderr}");
            assert!(stderr.contains(&format!("{host} ({how}): ")), "{stderr}");
            assert!(stderr.contains("\n  hint: "), "{stderr}");
        }
    }
}

#[tokio::test]
async fn a_live_engine_is_described() {
    let _docker = engine_or_skip!();
    let text = Call::new(&["doctor"]).answer().await;
    let json = Call::new(&["doctor", "--json"]).answer().await;
    assert_eq!(text.text().2, "");
    assert_eq!(text.code, json.code);
    assert!(json.json().is_object(), "{:?}", json.text());
    assert!(text.stdout().lines().count() > 3, "{}", text.stdout());
}
