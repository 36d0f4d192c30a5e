//! Y1: terminals through the facade of a provider that has none.

use crate::error::ErrorKind;
use crate::provider::tests::scripted::{Capabilities, Scripted};
use crate::spec::{PtyAttachOptions, SandboxPtySpec};

use super::shared;

#[tokio::test]
async fn y1_a_provider_without_terminals_is_told_before_a_start() {
    let sandbox = shared(&Scripted::with(Capabilities::None));
    let pty = sandbox.pty();
    for (error, what) in [
        (
            pty.create(SandboxPtySpec::default()).await.unwrap_err(),
            "PTY sessions",
        ),
        (pty.exec("true").await.unwrap_err(), "PTY sessions"),
        (
            pty.attach("id", PtyAttachOptions::default()).await.unwrap_err(),
            "attaching to PTY sessions",
        ),
    ] {
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        let text = error.to_string();
        assert!(text.contains("`scripted`") && text.contains(what), "{text}");
    }
}
