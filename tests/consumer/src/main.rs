//! What a program does that depends on the library: one rollout, on the provider that its configuration names, and one
//! Compose project, where that has containers.
//!
//! The argument is a configuration block as YAML, a second one the image (for providers that have images).

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use gym_sandbox::compose::{AsyncSandboxCompose, Source};
use gym_sandbox::provider::{config_from_yaml, create_provider};
use gym_sandbox::{AsyncSandbox, ExecErrorType, ExecOptions, SandboxProvider, SandboxSpec};

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
    let image = arguments.next();
    let spec = image.as_ref().map_or_else(SandboxSpec::default, SandboxSpec::new);
    let provider = create_provider(&config_from_yaml(&config)?)?;
    let spec = spec.with_env("WHO", "rollout").with_file("task.txt", "count\nthese\nlines\n");
    let shared = Arc::clone(&provider);
    let score = AsyncSandbox::scope(shared, spec, async |sandbox| {
        let counted = sandbox.exec("wc -l < task.txt > score && echo done by $WHO").await?;
        assert_eq!(counted.stdout().as_deref(), Some("done by rollout\n"), "{counted:?}");
        let slow = ExecOptions::new("sleep 1000").with_timeout(Duration::from_secs(1));
        let slow = sandbox.exec_with(slow).await?;
        assert_eq!(slow.error_type, Some(ExecErrorType::Timeout), "{slow:?}");
        sandbox.read_file("score").await
    })
    .await?;
    assert_eq!(String::from_utf8_lossy(&score).trim(), "3");
    println!("{}: the rollout has score 3", provider.name());
    if let Some(image) = image.filter(|_| provider.as_containers().is_some()) {
        project(&provider, &image).await?;
        println!("{}: the project has come up and gone", provider.name());
    }
    provider.aclose().await
}

/// A store that is waited for, a one-shot service that fills it, and the service that is worked in.
async fn project(provider: &Arc<dyn SandboxProvider>, image: &str) -> gym_sandbox::Result<()> {
    let text = "
services:
  store:
    image: ${IMAGE}
    command: [sh, -c, 'touch /ready; exec sleep 300']
    healthcheck: {test: 'test -f /ready', interval: 5s, retries: 60}
    volumes: ['data:/data']
  fill:
    image: ${IMAGE}
    command: [sh, -c, 'echo filled > /data/table']
    volumes: ['data:/data']
    depends_on: {store: {condition: service_healthy}}
  main:
    image: ${IMAGE}
    command: sleep 300
    volumes: ['data:/data:ro']
    depends_on: {fill: {condition: service_completed_successfully}}
volumes: {data: }
";
    let project = AsyncSandboxCompose::new(Arc::clone(provider))
        .with_source(Source::text("compose.yaml", text))
        .with_variable("IMAGE", image);
    project
        .scope(async |project| {
            let seen = project.default_service()?.exec("cat /data/table").await?;
            assert_eq!(seen.stdout().as_deref(), Some("filled\n"), "{seen:?}");
            Ok::<_, gym_sandbox::Error>(())
        })
        .await
}
