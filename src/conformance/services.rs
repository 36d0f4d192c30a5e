//! Background services (L16, capability `Services`).

use std::time::Duration;

use crate::error::ErrorKind;
use crate::provider::{Capability, SandboxHandle, ServicesProvider};
use crate::spec::{ExecOptions, ServiceSpec, ServiceStatus};

use super::case::cases;
use super::check::{equal, holds, refused_with};
use super::{Context, Failure, Need, Outcome};

const SERVICES: Need = Need::Capability(Capability::Services);

const GRACE: Duration = Duration::from_secs(20);

/// No step of a case takes so long.
const STEP: Duration = Duration::from_secs(120);

fn services(context: &Context) -> Result<&dyn ServicesProvider, Failure> {
    context
        .provider()
        .as_services()
        .ok_or_else(|| Failure::new("the provider has lost the capability"))
}

async fn until(
    context: &Context,
    handle: &SandboxHandle,
    name: &str,
    status: Option<ServiceStatus>,
) -> Outcome {
    let deadline = tokio::time::Instant::now() + STEP;
    loop {
        let now = services(context)?.service_status(handle, name).await?;
        if now == status {
            return Ok(());
        }
        if tokio::time::Instant::now() > deadline {
            return equal(&format!("the status of the service after {STEP:?}"), now, status);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn until_printed(context: &Context, handle: &SandboxHandle, name: &str, text: &str) -> Outcome {
    let deadline = tokio::time::Instant::now() + STEP;
    loop {
        let log = services(context)?.service_logs(handle, name).await?;
        if log.text() == text {
            return Ok(());
        }
        if tokio::time::Instant::now() > deadline {
            let what = format!("what the service printed after {STEP:?}");
            return equal(&what, log.text(), text.to_owned());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A service runs beside commands, is found by its name, and ends when it is stopped, with all it started.
pub async fn a_service_runs_until_it_is_stopped(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let provider = services(context)?;
    equal(
        "the status before",
        provider.service_status(&handle, "web").await?,
        None,
    )?;
    let line = "echo \"$WORD $(pwd)\"; echo oops >&2; sleep 31771 & sleep 31772";
    let spec = ServiceSpec::new("web", line)
        .with_cwd("/tmp")
        .with_env("WORD", "with space");
    provider.start_service(&handle, &spec).await?;
    equal(
        "the status",
        provider.service_status(&handle, "web").await?,
        Some(ServiceStatus::Running),
    )?;
    until_printed(context, &handle, "web", "with space /tmp\noops\n").await?;
    refused_with(
        "a second service of that name",
        provider.start_service(&handle, &spec).await,
        ErrorKind::Conflict,
    )?;
    let stopped = provider.stop_service(&handle, "web", GRACE).await?;
    holds(
        format!("{stopped:?} is an end"),
        matches!(stopped, Some(ServiceStatus::Exited { .. })),
    )?;
    equal(
        "what is left of it",
        context.processes(&handle, "sleep 3177[12]").await?,
        "",
    )?;
    equal(
        "stopping it again",
        provider.stop_service(&handle, "web", GRACE).await?,
        stopped,
    )
}

/// The exit code of a service that ends by itself is kept, and its name can be used again.
pub async fn the_exit_code_of_a_service_is_kept(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let provider = services(context)?;
    for code in [3, 0] {
        let line = format!("echo {code}; exit {code}");
        provider
            .start_service(&handle, &ServiceSpec::new("job", line))
            .await?;
        until(
            context,
            &handle,
            "job",
            Some(ServiceStatus::Exited { code: Some(code) }),
        )
        .await?;
        // The output of the one before is replaced.
        until_printed(context, &handle, "job", &format!("{code}\n")).await?;
    }
    Ok(())
}

/// A service that ignores `TERM` is killed.
pub async fn a_service_that_will_not_end_is_killed(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let provider = services(context)?;
    let line = "trap '' TERM; echo ready; while :; do sleep 1; done";
    provider
        .start_service(&handle, &ServiceSpec::new("deaf", line))
        .await?;
    until_printed(context, &handle, "deaf", "ready\n").await?;
    let stopped = provider
        .stop_service(&handle, "deaf", Duration::from_secs(1))
        .await?;
    holds(
        format!("{stopped:?} is an end"),
        matches!(stopped, Some(ServiceStatus::Exited { .. })),
    )?;
    equal(
        "what is left of it",
        context.processes(&handle, "read[y]; while").await?,
        "",
    )
}

/// A service lives on after a command that preserves it, and after a command that ran out of time (L16, D3).
pub async fn a_service_outlives_commands(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let provider = services(context)?;
    let line = "{ sleep 31773; } >/dev/null 2>&1 & echo started";
    let result = provider
        .exec_with_services(&handle, ExecOptions::new(line))
        .await?;
    equal("its output", result.stdout().as_deref(), Some("started\n"))?;
    provider
        .start_service(&handle, &ServiceSpec::new("named", ["sleep", "31774"]))
        .await?;
    let late = ExecOptions::new("sleep 31775").with_timeout(Duration::from_secs(1));
    context.exec(&handle, late).await?;
    for number in ["3177[3]", "3177[4]"] {
        // A shell that was slow may not have become the program yet.
        let deadline = tokio::time::Instant::now() + STEP;
        while context
            .processes(&handle, &format!("sleep {number}"))
            .await?
            .is_empty()
        {
            holds(
                format!("`sleep {number}` lives on"),
                tokio::time::Instant::now() < deadline,
            )?;
        }
    }
    equal(
        "the status of the service",
        provider.service_status(&handle, "named").await?,
        Some(ServiceStatus::Running),
    )
}

/// What was never started has no status, no output and nothing to stop; what is no name is refused.
pub async fn what_was_never_started_is_told(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let provider = services(context)?;
    equal(
        "stopping it",
        provider.stop_service(&handle, "never", GRACE).await?,
        None,
    )?;
    refused_with(
        "its output",
        provider.service_logs(&handle, "never").await,
        ErrorKind::NotFound,
    )?;
    for name in ["", "../escape", "a b"] {
        refused_with(
            &format!("the name `{name}`"),
            provider.service_status(&handle, name).await,
            ErrorKind::InvalidArgument,
        )?;
    }
    context.provider().close(&handle).await?;
    let outcome = provider
        .start_service(&handle, &ServiceSpec::new("late", "true"))
        .await;
    let error = super::check::refused("a service in a removed sandbox", outcome)?;
    holds(
        format!("{:?} says that the sandbox is gone", error.kind()),
        matches!(error.kind(), ErrorKind::Sandbox(_)),
    )
}

cases!("services":
    a_service_runs_until_it_is_stopped needs SERVICES,
    the_exit_code_of_a_service_is_kept needs SERVICES,
    a_service_that_will_not_end_is_killed needs SERVICES,
    a_service_outlives_commands needs SERVICES,
    what_was_never_started_is_told needs SERVICES,
);
