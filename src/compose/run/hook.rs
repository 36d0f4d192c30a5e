//! Commands in a service's container after its start and before its stop.

use std::time::Duration;

use crate::compose::plan::{HookStep, PRE_STOP};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{SandboxHandle, SandboxProvider};
use crate::spec::ExecOptions;
use crate::spec::container::ContainerDetail;

/// How long a hook may take.
const HOOK: Duration = Duration::from_secs(300);

/// Runs a hook; one that fails is an error.
pub(super) async fn run_hook(
    provider: &dyn SandboxProvider,
    handle: &SandboxHandle,
    service: &str,
    key: &str,
    hook: &HookStep,
) -> Result<()> {
    let mut options = ExecOptions::new(hook.command.clone()).with_timeout(HOOK);
    if let Some(user) = &hook.user {
        options = options.with_user(user.as_str());
    }
    options.cwd.clone_from(&hook.working_dir);
    for (name, value) in hook.environment.iter() {
        options = options.with_env(name, value.unwrap_or_default());
    }
    let result = provider.exec(handle, options).await?;
    if result.is_success() {
        return Ok(());
    }
    let printed = result.stderr().unwrap_or_default();
    Err(Error::new(
        ErrorKind::NotReady,
        Operation::ComposeUp,
        format!(
            "the {key} hook of service `{service}` ended with {}: {}",
            result.return_code,
            printed.trim_end()
        ),
    ))
}

/// Runs the hooks before a stop. One that cannot run keeps nothing from going.
pub(super) async fn run_before_stop(
    provider: &dyn SandboxProvider,
    handle: &SandboxHandle,
    service: &str,
    hooks: &[HookStep],
) {
    for hook in hooks {
        if let Err(error) = run_hook(provider, handle, service, "pre_stop", hook).await {
            tracing::warn!(%error, "a hook before a stop failed");
        }
    }
}

/// The hooks before a stop that a container's labels name. Labels may be anybody's: what cannot be read is none.
pub(super) fn noted(container: &ContainerDetail) -> Vec<HookStep> {
    let Some(label) = container.labels.get(PRE_STOP) else {
        return Vec::new();
    };
    serde_json::from_str(label).unwrap_or_else(|error| {
        tracing::warn!(container = container.name, %error, "the hooks before its stop cannot be read");
        Vec::new()
    })
}
