//! Commands that run out of time (X3, D1, D3).

use std::time::{Duration, Instant};

use crate::error::ErrorKind;
use crate::spec::{ExecErrorType, ExecOptions, ExecTimeout};

use super::case::cases;
use super::check::{equal, holds, refused_with};
use super::{Context, Outcome};

/// The time of a command that runs out of it: where it was too short for the command to come to its words, which takes a busy
/// engine seconds, the next.
pub(super) const LIMITS: [Duration; 3] = [
    Duration::from_secs(2),
    Duration::from_secs(20),
    Duration::from_secs(120),
];

/// How much earlier a timeout may come: who keeps the time in milliseconds has cut off a part of one.
const EARLY: Duration = Duration::from_millis(50);

/// A timeout is 125 without output; what was printed is the partial output; the sandbox stays usable (X3, D3).
pub async fn a_timeout_is_125_and_keeps_what_was_printed(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let mut limits = LIMITS.into_iter();
    let (limit, result, took) = loop {
        let limit = limits.next().unwrap_or_default();
        let started = Instant::now();
        let options = ExecOptions::new("echo printed; echo warned >&2; sleep 1000")
            .with_env("TOKEN", "hunter2")
            .with_timeout(limit);
        let result = context.exec(&handle, options).await?;
        let has_printed = |text: Option<String>| text.is_some_and(|text| !text.is_empty());
        if limits.len() == 0 || (has_printed(result.partial_stdout()) && has_printed(result.partial_stderr()))
        {
            break (limit, result, started.elapsed());
        }
    };
    equal("the code", result.return_code, 125)?;
    equal("the error type", result.error_type, Some(ExecErrorType::Timeout))?;
    equal("standard output", result.stdout(), None)?;
    equal(
        "the partial output",
        result.partial_stdout().as_deref(),
        Some("printed\n"),
    )?;
    equal(
        "the partial error output",
        result.partial_stderr().as_deref(),
        Some("warned\n"),
    )?;
    let text = result.stderr().unwrap_or_default();
    holds(
        "the reason is told, without values",
        !text.is_empty() && !text.contains("hunter2"),
    )?;
    holds(
        format!("it takes its {limit:?} and little more ({took:?})"),
        (limit.saturating_sub(EARLY)..limit + Duration::from_secs(60)).contains(&took),
    )?;
    equal(
        "the output afterwards",
        context.stdout(&handle, "echo usable").await?,
        "usable\n",
    )
}

/// After a timeout no process of the command is left (D3).
pub async fn a_timeout_kills_the_commands_processes(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let line = "sleep 98761 & sh -c 'sleep 98762 & sleep 98763' & sleep 98764";
    let result = context
        .exec(
            &handle,
            ExecOptions::new(line).with_timeout(Duration::from_secs(2)),
        )
        .await?;
    equal("the error type", result.error_type, Some(ExecErrorType::Timeout))?;
    equal(
        "what lives on",
        context.processes(&handle, "sleep 9876[1-4]").await?,
        "",
    )
}

/// A command that ends in time is not touched, and `Never` is no limit (D1).
pub async fn a_command_in_time_is_ordinary(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    for timeout in [
        ExecTimeout::After(Duration::from_secs(60)),
        ExecTimeout::Never,
        ExecTimeout::Default,
    ] {
        let options = ExecOptions::new("sleep 1; echo done").with_timeout(timeout);
        equal("the output", context.stdout(&handle, options).await?, "done\n")?;
    }
    Ok(())
}

/// A timeout of zero is refused (D1).
pub async fn a_timeout_of_zero_is_refused(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let options = ExecOptions::new("true").with_timeout(Duration::ZERO);
    refused_with(
        "a zero timeout",
        context.exec(&handle, options).await,
        ErrorKind::InvalidArgument,
    )
}

cases!("timeout":
    a_timeout_is_125_and_keeps_what_was_printed,
    a_timeout_kills_the_commands_processes,
    a_command_in_time_is_ordinary,
    a_timeout_of_zero_is_refused,
);
