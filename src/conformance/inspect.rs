//! Details of a sandbox (D7, capability `Inspect`).

use crate::error::ErrorKind;
use crate::provider::{Capability, InspectProvider, SandboxHandle};
use crate::spec::{SandboxResources, SandboxStatus};

use super::case::cases;
use super::check::{equal, holds, refused_with};
use super::lifecycle::wait_for;
use super::{Context, Failure, Need, Outcome};

const INSPECT: Need = Need::Capability(Capability::Inspect);

fn inspector(context: &Context) -> Result<&dyn InspectProvider, Failure> {
    context
        .provider()
        .as_inspect()
        .ok_or_else(|| Failure::new("the provider has lost the capability"))
}

/// The details of a running sandbox are those it was made with.
pub async fn a_running_sandbox_is_described(context: &Context) -> Outcome {
    let spec = context.spec().with_metadata("team", "red");
    let handle = context.create(&spec).await?;
    let detail = inspector(context)?.inspect(&handle).await?;
    equal("the id", &detail.sandbox_id, handle.sandbox_id())?;
    equal(
        "the provider",
        detail.provider.as_str(),
        context.provider().name(),
    )?;
    equal("the status", detail.status, SandboxStatus::Running)?;
    equal("the image", detail.image.as_deref(), spec.image())?;
    equal("the exit code", detail.exit_code, None)?;
    holds("it was not killed", !detail.oom_killed)?;
    equal(
        "the label",
        detail.labels.get("team").map(String::as_str),
        Some("red"),
    )?;
    holds("it says when it was created", detail.created.is_some())?;
    holds("it says when it was started", detail.started.is_some())?;
    equal("when it ended", detail.finished, None)
}

/// Limits are shown as they were asked for (C12).
pub async fn limits_are_shown(context: &Context) -> Outcome {
    let limits = SandboxResources::default().with_cpu(0.5).with_memory_mib(64);
    let handle = context.create(&context.spec().with_resources(limits)).await?;
    let detail = inspector(context)?.inspect(&handle).await?;
    equal("the processors", detail.limits.cpu, Some(0.5))?;
    equal("the memory", detail.limits.memory_mib, Some(64))
}

/// Every declared port is shown with its endpoint.
pub async fn endpoints_are_shown(context: &Context) -> Outcome {
    let Some(endpoints) = context.provider().as_endpoint() else {
        return Ok(());
    };
    let handle = context.create(&context.spec().with_ports([8080, 8081])?).await?;
    let detail = inspector(context)?.inspect(&handle).await?;
    equal(
        "the ports",
        detail.endpoints.keys().copied().collect::<Vec<_>>(),
        [8080, 8081],
    )?;
    for (port, shown) in &detail.endpoints {
        equal("the endpoint", shown, &endpoints.endpoint(&handle, *port).await?)?;
    }
    Ok(())
}

/// A main process that ended is shown with its exit code and last words (D7).
pub async fn an_ended_main_process_is_described(context: &Context) -> Outcome {
    let line = "until test -e /tmp/end; do sleep 1; done; echo last words; echo last warning >&2; exit 3";
    let handle = context
        .create(&context.spec().with_entrypoint(["sh", "-c", line]))
        .await?;
    context.stdout(&handle, "touch /tmp/end").await?;
    wait_for(context, &handle, SandboxStatus::Stopped).await?;
    let detail = inspector(context)?.inspect(&handle).await?;
    equal("the exit code", detail.exit_code, Some(3))?;
    equal("the status", detail.status, SandboxStatus::Stopped)?;
    holds("it says when it ended", detail.finished.is_some())?;
    for words in ["last words", "last warning"] {
        let said = detail.last_log_lines.iter().any(|line| line.contains(words));
        holds(format!("`{words}` is in {:?}", detail.last_log_lines), said)?;
    }
    Ok(())
}

/// A removed sandbox is not found.
pub async fn a_removed_sandbox_is_not_found(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    context.provider().close(&handle).await?;
    refused_with(
        "inspecting a removed sandbox",
        inspector(context)?.inspect(&handle).await,
        ErrorKind::NotFound,
    )
}

/// A handle of another provider is refused.
pub async fn a_foreign_handle_is_not_inspected(context: &Context) -> Outcome {
    let foreign = SandboxHandle::new(
        crate::spec::SandboxId::new("gym-sandbox-foreign")?,
        "some-other-provider",
    );
    refused_with(
        "inspecting a foreign handle",
        inspector(context)?.inspect(&foreign).await,
        ErrorKind::ForeignHandle,
    )
}

/// Values of the environment are not shown.
pub async fn values_of_the_environment_are_not_shown(context: &Context) -> Outcome {
    let handle = context
        .create(&context.spec().with_env("TOKEN", "hunter2"))
        .await?;
    let detail = inspector(context)?.inspect(&handle).await?;
    holds(
        "the details don't show it",
        !format!("{detail:?}").contains("hunter2"),
    )?;
    holds(
        "the handle does not show it",
        !format!("{handle:?}").contains("hunter2"),
    )
}

cases!("inspect":
    a_running_sandbox_is_described needs INSPECT,
    limits_are_shown needs INSPECT,
    endpoints_are_shown needs INSPECT,
    an_ended_main_process_is_described needs INSPECT,
    a_removed_sandbox_is_not_found needs INSPECT,
    a_foreign_handle_is_not_inspected needs INSPECT,
    values_of_the_environment_are_not_shown needs INSPECT,
);
