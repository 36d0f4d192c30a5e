//! From running to removed (T1, Q1, Q2, D6, D7).

use std::time::{Duration, Instant};

use crate::error::{ErrorKind, SandboxReason};
use crate::provider::SandboxHandle;
use crate::spec::{ExecErrorType, ExecOptions, ExecReason, SandboxStatus};

use super::case::cases;
use super::check::{equal, holds, refused, refused_with};
use super::{Context, Failure, Need, Outcome};

/// A removed sandbox is stopped (T1).
pub async fn a_removed_sandbox_is_stopped(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    equal(
        "the status before",
        context.provider().status(&handle).await?,
        SandboxStatus::Running,
    )?;
    context.provider().close(&handle).await?;
    equal(
        "the status after",
        context.provider().status(&handle).await?,
        SandboxStatus::Stopped,
    )
}

/// Closing again succeeds, one after the other and at once (Q1).
pub async fn closing_again_succeeds(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let provider = context.provider();
    let (first, second, third) = tokio::join!(
        provider.close(&handle),
        provider.close(&handle),
        provider.close(&handle)
    );
    first.and(second).and(third)?;
    Ok(provider.close(&handle).await?)
}

/// When close returns the sandbox does not exist any more.
pub async fn close_returns_when_it_is_gone(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    context.provider().close(&handle).await?;
    context.nothing_left_now().await
}

/// A command in a removed sandbox is a result that says so, not an error (D6).
pub async fn a_command_in_a_removed_sandbox_says_so(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    context.provider().close(&handle).await?;
    let result = context.exec(&handle, "echo never").await?;
    equal("the code", result.return_code, 125)?;
    equal("the error type", result.error_type, Some(ExecErrorType::Sandbox))?;
    equal(
        "the reason",
        result.reason,
        Some(ExecReason::Sandbox(SandboxReason::Removed)),
    )?;
    equal("standard output", result.stdout(), None)?;
    holds(
        "it is explained on standard error",
        result.stderr().is_some_and(|text| !text.is_empty()),
    )
}

/// Files of a removed sandbox are an error that says so.
pub async fn files_of_a_removed_sandbox_are_an_error(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    context.provider().close(&handle).await?;
    let local = tempfile::NamedTempFile::new()?;
    let upload = refused(
        "an upload",
        context.upload(&handle, local.path(), "/tmp/file").await,
    )?;
    let download = refused(
        "a download",
        context
            .provider()
            .download_file(&handle, "/etc/passwd", local.path())
            .await,
    )?;
    for error in [upload, download] {
        let says_so = matches!(
            error.kind(),
            ErrorKind::NotFound | ErrorKind::Sandbox(SandboxReason::Removed)
        );
        holds(
            format!("{:?} says that the sandbox is gone", error.kind()),
            says_so,
        )?;
    }
    Ok(())
}

/// Closing does not wait for commands that run, and they end as a lost sandbox, not as an ordinary result (Q2, D6).
pub async fn closing_ends_running_commands(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let close = async {
        // The command has begun when its file is there.
        let wait = "n=0; until test -e /tmp/begun; do n=$((n+1)); test $n -lt 120 || exit 1; sleep 1; done";
        context.stdout(&handle, wait).await?;
        let started = Instant::now();
        context.provider().close(&handle).await?;
        Ok::<_, Failure>(started.elapsed())
    };
    let options = ExecOptions::new("touch /tmp/begun; sleep 1000").with_timeout(Duration::from_secs(500));
    let (result, closed) = tokio::join!(context.exec(&handle, options), close);
    holds("closing takes less than 60 s", closed? < Duration::from_secs(60))?;
    let result = result?;
    equal("the code", result.return_code, 125)?;
    equal("the error type", result.error_type, Some(ExecErrorType::Sandbox))
}

/// A sandbox whose main process has ended is stopped; commands say that it does not run; closing works (D6, D7).
pub async fn a_main_process_that_ended_is_told(context: &Context) -> Outcome {
    let line = "until test -e /tmp/end; do sleep 1; done; echo bye; exit 3";
    let handle = context
        .create(&context.spec().with_entrypoint(["sh", "-c", line]))
        .await?;
    equal(
        "the status before",
        context.provider().status(&handle).await?,
        SandboxStatus::Running,
    )?;
    context.stdout(&handle, "touch /tmp/end").await?;
    wait_for(context, &handle, SandboxStatus::Stopped).await?;
    let result = context.exec(&handle, "echo never").await?;
    equal("the code", result.return_code, 125)?;
    equal("the error type", result.error_type, Some(ExecErrorType::Sandbox))?;
    equal(
        "the reason",
        result.reason,
        Some(ExecReason::Sandbox(SandboxReason::NotRunning)),
    )?;
    Ok(context.provider().close(&handle).await?)
}

/// How long the end of a sandbox may take to be told.
const TOLD: Duration = Duration::from_secs(120);

/// Waits until a sandbox has a status.
pub(super) async fn wait_for(context: &Context, handle: &SandboxHandle, status: SandboxStatus) -> Outcome {
    let deadline = Instant::now() + TOLD;
    loop {
        let now = context.provider().status(handle).await?;
        if now == status {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return equal(&format!("the status after {TOLD:?}"), now, status);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A handle of another provider is an error in every call, and no panic.
pub async fn a_foreign_handle_is_refused(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let foreign = SandboxHandle::new(handle.sandbox_id().clone(), "some-other-provider");
    let provider = context.provider();
    let local = tempfile::NamedTempFile::new()?;
    let kind = ErrorKind::ForeignHandle;
    refused_with(
        "exec",
        provider.exec(&foreign, ExecOptions::new("true")).await,
        kind,
    )?;
    refused_with(
        "upload",
        provider.upload_file(&foreign, local.path(), "/tmp/file").await,
        kind,
    )?;
    refused_with(
        "download",
        provider.download_file(&foreign, "/tmp/file", local.path()).await,
        kind,
    )?;
    refused_with("status", provider.status(&foreign).await, kind)?;
    refused_with("close", provider.close(&foreign).await, kind)?;
    equal(
        "the status of the real one",
        provider.status(&handle).await?,
        SandboxStatus::Running,
    )
}

/// A handle with the provider's name but without its private part is an error, and no panic.
pub async fn a_hollow_handle_is_no_panic(context: &Context) -> Outcome {
    let name = context.provider().name().to_owned();
    let hollow = SandboxHandle::new(crate::spec::SandboxId::new("gym-sandbox-hollow")?, name);
    let local = tempfile::NamedTempFile::new()?;
    // Errors and results are both right; what the sandbox did not do can't be ordinary.
    if let Ok(result) = context.exec(&hollow, "true").await {
        equal("the error type", result.error_type, Some(ExecErrorType::Sandbox))?;
    }
    refused("upload", context.upload(&hollow, local.path(), "/tmp/file").await)?;
    Ok(())
}

cases!("lifecycle":
    a_removed_sandbox_is_stopped,
    closing_again_succeeds,
    close_returns_when_it_is_gone needs Need::Survey,
    a_command_in_a_removed_sandbox_says_so,
    files_of_a_removed_sandbox_are_an_error,
    closing_ends_running_commands,
    a_main_process_that_ended_is_told needs Need::Image,
    a_foreign_handle_is_refused,
    a_hollow_handle_is_no_panic,
);
