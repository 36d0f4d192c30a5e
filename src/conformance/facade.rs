//! The facade over the provider (L4, L14, D13, D33).

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Operation};
use crate::sandbox::AsyncSandbox;
use crate::spec::SandboxStatus;

use super::case::cases;
use super::check::{equal, refused_with};
use super::{Context, Failure, Outcome};

/// A whole life: files of the spec, commands in its directory, transfers, stop (L4, L14, D13).
pub async fn a_whole_life(context: &Context) -> Outcome {
    let spec = context
        .spec()
        .with_workdir("/tmp/life")
        .with_env("GREETING", "hello")
        .with_file("/tmp/first", "first\n")
        .with_file("second", "zweite Zeile: ü\n");
    let sandbox = AsyncSandbox::new(Arc::clone(context.provider())).with_spec(spec);
    sandbox.start().await?;
    let outcome = live(&sandbox).await;
    sandbox.stop().await?;
    outcome?;
    equal(
        "the status after stop",
        sandbox.status().await?,
        SandboxStatus::Stopped,
    )?;
    refused_with(
        "a command after stop",
        sandbox.exec("true").await,
        ErrorKind::Stopped,
    )
}

async fn live(sandbox: &AsyncSandbox) -> Outcome {
    equal("the status", sandbox.status().await?, SandboxStatus::Running)?;
    let result = sandbox.exec("pwd; cat /tmp/first second; echo $GREETING").await?;
    let expected = "/tmp/life\nfirst\nzweite Zeile: ü\nhello\n";
    equal("the output", result.stdout().as_deref(), Some(expected))?;
    let folder = tempfile::tempdir()?;
    let (local, back) = (folder.path().join("local"), folder.path().join("back"));
    std::fs::write(&local, "transferred")?;
    sandbox.upload(&local, "sub/file").await?;
    equal(
        "the file",
        sandbox.exec("cat /tmp/life/sub/file").await?.stdout().as_deref(),
        Some("transferred"),
    )?;
    sandbox.download("sub/file", &back).await?;
    equal("the file here", std::fs::read_to_string(&back)?, "transferred")
}

/// A scope removes its sandbox when its body fails, and gives the body's error (D33).
pub async fn a_scope_removes_its_sandbox(context: &Context) -> Outcome {
    let provider = Arc::clone(context.provider());
    let mut handle = None;
    let outcome = AsyncSandbox::scope(provider, context.spec(), async |sandbox| {
        handle = sandbox.handle();
        sandbox.exec("true").await?;
        Err::<(), Error>(Error::new(ErrorKind::Conflict, Operation::Exec, "from the body"))
    })
    .await;
    refused_with("the scope", outcome, ErrorKind::Conflict)?;
    let handle = handle.ok_or_else(|| Failure::new("a started sandbox has no handle"))?;
    equal(
        "the status after the scope",
        context.provider().status(&handle).await?,
        SandboxStatus::Stopped,
    )
}

/// A dropped sandbox is removed in the background.
pub async fn a_dropped_sandbox_is_removed(context: &Context) -> Outcome {
    let sandbox = AsyncSandbox::new(Arc::clone(context.provider())).with_spec(context.spec());
    sandbox.start().await?;
    let handle = sandbox
        .handle()
        .ok_or_else(|| Failure::new("a started sandbox has no handle"))?;
    context.adopt(&handle);
    drop(sandbox);
    super::lifecycle::wait_for(context, &handle, SandboxStatus::Stopped).await
}

cases!("facade":
    a_whole_life,
    a_scope_removes_its_sandbox,
    a_dropped_sandbox_is_removed,
);
