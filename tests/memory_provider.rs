//! The provider in memory as the facade uses it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use gym_sandbox::testing::MemoryProvider;
use gym_sandbox::{AsyncSandbox, SandboxProvider, SandboxSpec};

#[tokio::test]
async fn what_was_dropped_is_gone_when_the_provider_is_closed() {
    let provider = MemoryProvider::new();
    let sandboxes = (0..64).map(|_| async {
        let sandbox = AsyncSandbox::new(provider.clone());
        sandbox.start_with(&SandboxSpec::default()).await.unwrap();
        sandbox
    });
    drop(futures::future::join_all(sandboxes).await);
    provider.aclose().await.unwrap();
    assert_eq!(provider.living(), 0);
}
