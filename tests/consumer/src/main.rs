//! What a program does that depends on the library: one rollout, on the provider that its configuration names.
//!
//! The argument is a configuration block as YAML, a second one the image (for providers that have images).

use std::process::ExitCode;
use std::time::Duration;

use gym_sandbox::provider::{config_from_yaml, create_provider};
use gym_sandbox::{AsyncSandbox, ExecErrorType, ExecOptions, SandboxSpec};

#[tokio::main]
async fn main() -> ExitCode {
    match rollout().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error.report());
            ExitCode::FAILURE
        }
    }
}

async fn rollout() -> gym_sandbox::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let config = arguments.next().unwrap_or_else(|| "local: {shell: /bin/sh}".to_owned());
    let spec = arguments.next().map_or_else(SandboxSpec::default, SandboxSpec::new);
    let provider = create_provider(&config_from_yaml(&config)?)?;
    let spec = spec.with_env("WHO", "rollout").with_file("task.txt", "count\nthese\nlines\n");
    let shared = std::sync::Arc::clone(&provider);
    let score = AsyncSandbox::scope(shared, spec, async |sandbox| {
        let counted = sandbox.exec("wc -l < task.txt > score && echo done by $WHO").await?;
        assert_eq!(counted.stdout().as_deref(), Some("done by rollout\n"), "{counted:?}");
        let slow = ExecOptions::new("sleep 1000").with_timeout(Duration::from_secs(1));
        let slow = sandbox.exec_with(slow).await?;
        assert_eq!(slow.error_type, Some(ExecErrorType::Timeout), "{slow:?}");
        sandbox.read_file("score").await
    })
    .await?;
    provider.aclose().await?;
    assert_eq!(String::from_utf8_lossy(&score).trim(), "3");
    println!("{}: the rollout has score 3", provider.name());
    Ok(())
}
