//! A provider of your own: a few lines over another one, registered by its name, used through the facade.
//!
//! ```sh
//! cargo run --example custom_provider
//! ```
//!
//! `tests/conformance.rs` runs the conformance suite over the provider of this example.

#![allow(clippy::print_stdout, reason = "an example prints")]

mod metered;

use std::sync::Arc;

use gym_sandbox::provider::{config_from_yaml, create_provider, list_providers};
use gym_sandbox::{AsyncSandbox, SandboxProvider, SandboxSpec};

use metered::Metered;

#[tokio::main]
async fn main() -> gym_sandbox::Result<()> {
    Metered::register()?;
    println!("providers: {}", list_providers().join(", "));

    // By configuration, as any other provider.
    let config = config_from_yaml("metered: {local: {shell: /bin/sh}}")?;
    let provider = create_provider(&config)?;
    let result = AsyncSandbox::scope(provider, SandboxSpec::default(), async |sandbox| {
        sandbox.exec("echo hello from $PWD").await
    })
    .await?;
    print!("{}", result.stdout().unwrap_or_default());

    // By hand, to ask what it has metered.
    let local = create_provider(&config_from_yaml("local: {shell: /bin/sh}")?)?;
    let metered = Arc::new(Metered::new(local));
    let shared: Arc<dyn SandboxProvider> = metered.clone();
    AsyncSandbox::scope(shared, SandboxSpec::default(), async |sandbox| {
        sandbox.exec("sleep 0.3").await
    })
    .await?;
    println!(
        "commands took at least 0.3 s: {}",
        metered.used().as_millis() >= 300
    );
    Ok(())
}
