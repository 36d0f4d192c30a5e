//! Pausing and resuming (D8, L18, capability `Pause`).

use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;

use crate::error::{ErrorKind, SandboxReason};
use crate::provider::{Capability, PauseProvider, SandboxHandle};
use crate::spec::{ExecErrorType, ExecOptions, ExecReason, SandboxStatus};

use super::case::cases;
use super::check::{equal, holds, refused, refused_with};
use super::{Context, Failure, Need, Outcome};

const PAUSE: Need = Need::Capability(Capability::Pause);

/// What returns "at once" on any machine, and what hangs does not.
const AT_ONCE: Duration = Duration::from_secs(60);

fn pausing(context: &Context) -> Result<&dyn PauseProvider, Failure> {
    context
        .provider()
        .as_pause()
        .ok_or_else(|| Failure::new("the provider has lost the capability"))
}

async fn paused(context: &Context) -> Result<SandboxHandle, Failure> {
    let handle = context.sandbox().await?;
    pausing(context)?.pause(&handle).await?;
    Ok(handle)
}

/// A paused sandbox has a status of its own, and pausing and resuming succeed also when there is nothing to do (D8).
pub async fn pausing_and_resuming_are_idempotent(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let status = || async { context.provider().status(&handle).await };
    let resumed = pausing(context)?.resume(&handle, None).await?;
    equal("the id after a resume", resumed.sandbox_id(), handle.sandbox_id())?;
    equal("the status before", status().await?, SandboxStatus::Running)?;
    for _ in 0..2 {
        pausing(context)?.pause(&handle).await?;
        equal("the status after a pause", status().await?, SandboxStatus::Paused)?;
    }
    for _ in 0..2 {
        pausing(context)?.resume(&handle, None).await?;
        equal(
            "the status after a resume",
            status().await?,
            SandboxStatus::Running,
        )?;
    }
    Ok(())
}

/// A command in a paused sandbox is a result that says so, at once (D6, D8).
pub async fn a_command_in_a_paused_sandbox_says_so_at_once(context: &Context) -> Outcome {
    let handle = paused(context).await?;
    let began = Instant::now();
    let result = context.exec(&handle, "echo never").await?;
    holds("the answer comes at once", began.elapsed() < AT_ONCE)?;
    equal("the code", result.return_code, 125)?;
    equal("the error type", result.error_type, Some(ExecErrorType::Sandbox))?;
    equal(
        "the reason",
        result.reason,
        Some(ExecReason::Sandbox(SandboxReason::Paused)),
    )
}

/// A command that is spawned in a paused sandbox has streams that end, and a result that says why (D6, D31).
pub async fn a_command_spawned_in_a_paused_sandbox_ends(context: &Context) -> Outcome {
    let Some(spawn) = context.provider().as_spawn() else {
        return Ok(());
    };
    let handle = paused(context).await?;
    let mut session = spawn.spawn(&handle, ExecOptions::new("echo never")).await?;
    for stream in [session.take_stdout(), session.take_stderr()] {
        let mut stream = stream.ok_or_else(|| Failure::new("a stream can't be taken"))?;
        let mut read = Vec::new();
        match tokio::time::timeout(AT_ONCE, stream.read_to_end(&mut read)).await {
            Ok(outcome) => outcome.map(drop)?,
            Err(_) => {
                return Err(Failure::new(
                    "a stream of a command that was not run does not end",
                ));
            }
        }
        equal("what it holds", read, Vec::<u8>::new())?;
    }
    equal(
        "the reason",
        session.wait().await?.reason,
        Some(ExecReason::Sandbox(SandboxReason::Paused)),
    )
}

/// Files, processes and memory are as before after a pause (L18), and the handle that resume gives can be used.
pub async fn a_pause_keeps_the_state(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let line = "echo kept > /tmp/kept; { sleep 1000; } >/dev/null 2>&1 & echo $! > /tmp/pid";
    context.stdout(&handle, line).await?;
    pausing(context)?.pause(&handle).await?;
    let resumed = pausing(context)?.resume(&handle, None).await?;
    let after = "cat /tmp/kept; kill -0 \"$(cat /tmp/pid)\" && echo alive";
    equal(
        "what is left after the pause",
        context.stdout(&resumed, after).await?,
        "kept\nalive\n",
    )?;
    equal(
        "the same by the old handle",
        context.stdout(&handle, "cat /tmp/kept").await?,
        "kept\n",
    )
}

/// A command that runs while its sandbox is paused goes on afterwards.
pub async fn a_running_command_goes_on_after_a_pause(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let line = "touch /tmp/begun; until test -e /tmp/go; do sleep 1; done; echo done; exit 3";
    let command = context.exec(&handle, line);
    let pause = async {
        let begun = "n=0; until test -e /tmp/begun; do n=$((n+1)); test $n -lt 120 || exit 1; sleep 1; done";
        context.stdout(&handle, begun).await?;
        pausing(context)?.pause(&handle).await?;
        pausing(context)?.resume(&handle, None).await?;
        context.stdout(&handle, "touch /tmp/go").await
    };
    let (result, woken) = tokio::join!(command, pause);
    woken?;
    let result = result?;
    equal("the code", result.return_code, 3)?;
    equal("its output", result.stdout().as_deref(), Some("done\n"))
}

/// The time limit of a command goes on during a pause, and the command is gone afterwards (D8).
pub async fn a_timeout_comes_during_a_pause(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let mut limits = [5, 30, 100].map(Duration::from_secs).into_iter();
    loop {
        let limit = limits.next().unwrap_or_default();
        let began = Instant::now();
        let options = ExecOptions::new("touch /tmp/begun; sleep 2987").with_timeout(limit);
        let command = context.exec(&handle, options);
        let pause = async {
            while began.elapsed() < limit {
                let look = context.exec(&handle, "test -e /tmp/begun").await?;
                if look.is_success() {
                    pausing(context)?.pause(&handle).await?;
                    return Ok::<_, Failure>(true);
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok(false)
        };
        let (result, was_paused) = tokio::join!(command, pause);
        equal("the error type", result?.error_type, Some(ExecErrorType::Timeout))?;
        // It has to begin first, which takes a busy engine seconds.
        if was_paused? {
            holds(
                "the timeout comes in time",
                began.elapsed() < limit + Duration::from_secs(60),
            )?;
            break;
        }
        holds("the command begins", limits.len() > 0)?;
    }
    pausing(context)?.resume(&handle, None).await?;
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let left = context.processes(&handle, "sleep 298[7]").await?;
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return equal("what is left of the command", left, "");
        }
    }
}

/// A paused sandbox can be removed (D8).
pub async fn a_paused_sandbox_can_be_closed(context: &Context) -> Outcome {
    let handle = paused(context).await?;
    context.provider().close(&handle).await?;
    equal(
        "the status after closing",
        context.provider().status(&handle).await?,
        SandboxStatus::Stopped,
    )
}

/// A removed sandbox can neither be paused nor resumed, and a foreign handle is refused.
pub async fn what_is_gone_or_foreign_is_refused(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let foreign = SandboxHandle::new(handle.sandbox_id().clone(), "some-other-provider");
    refused_with(
        "pausing a foreign handle",
        pausing(context)?.pause(&foreign).await,
        ErrorKind::ForeignHandle,
    )?;
    refused_with(
        "resuming a foreign handle",
        pausing(context)?.resume(&foreign, None).await,
        ErrorKind::ForeignHandle,
    )?;
    context.provider().close(&handle).await?;
    let pause = refused("pausing a removed one", pausing(context)?.pause(&handle).await)?;
    let resume = refused(
        "resuming a removed one",
        pausing(context)?.resume(&handle, None).await,
    )?;
    for error in [pause, resume] {
        holds(
            format!("{:?} says that it is gone", error.kind()),
            matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Sandbox(_)),
        )?;
    }
    Ok(())
}

cases!("pause":
    pausing_and_resuming_are_idempotent needs PAUSE,
    a_command_in_a_paused_sandbox_says_so_at_once needs PAUSE,
    a_command_spawned_in_a_paused_sandbox_ends needs PAUSE,
    a_pause_keeps_the_state needs PAUSE,
    a_running_command_goes_on_after_a_pause needs PAUSE,
    a_timeout_comes_during_a_pause needs PAUSE,
    a_paused_sandbox_can_be_closed needs PAUSE,
    what_is_gone_or_foreign_is_refused needs PAUSE,
);
