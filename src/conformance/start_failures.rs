//! Commands that can't be started are results of a type of their own; what only looks like it is not (D5).

use crate::spec::{ExecErrorType, ExecOptions, ExecReason, ExecResult, StartProblem};

use super::case::cases;
use super::check::{equal, holds};
use super::{Context, Outcome};

fn is_start_failure(what: &str, result: &ExecResult, problem: StartProblem) -> Outcome {
    equal(
        &format!("the error type of {what}"),
        result.error_type,
        Some(ExecErrorType::Start),
    )?;
    equal(
        &format!("the reason of {what}"),
        result.reason,
        Some(ExecReason::Start(problem)),
    )?;
    equal(
        &format!("the code of {what}"),
        result.return_code,
        problem.return_code(),
    )?;
    equal(
        &format!("standard output of {what}"),
        result.stdout().as_deref(),
        Some(""),
    )?;
    holds(
        format!("{what} is explained on standard error"),
        result.stderr().is_some_and(|text| !text.is_empty()),
    )
}

/// A missing program is 127 (D5).
pub async fn a_missing_program_is_127(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let bare = context.exec(&handle, ["no-such-program"]).await?;
    is_start_failure("a missing name", &bare, StartProblem::NotFound)?;
    let path = context.exec(&handle, ["/no/such/program", "argument"]).await?;
    is_start_failure("a missing path", &path, StartProblem::NotFound)
}

/// A program that is a directory or not executable is 126 (D5).
pub async fn what_is_not_executable_is_126(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    context
        .stdout(&handle, "echo true > /tmp/plain; chmod 644 /tmp/plain")
        .await?;
    let plain = context.exec(&handle, ["/tmp/plain"]).await?;
    is_start_failure(
        "a file that is not executable",
        &plain,
        StartProblem::NotExecutable,
    )?;
    let directory = context.exec(&handle, ["/tmp"]).await?;
    is_start_failure("a directory", &directory, StartProblem::NotExecutable)
}

/// A missing working directory is 126, for lines and lists (D5).
pub async fn a_missing_directory_is_126(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    for options in [ExecOptions::new("pwd"), ExecOptions::new(["sh", "-c", "pwd"])] {
        let result = context
            .exec(&handle, options.with_cwd("/no/such/directory"))
            .await?;
        is_start_failure("a command in a missing directory", &result, StartProblem::Cwd)?;
    }
    context.stdout(&handle, "touch /tmp/file").await?;
    let result = context
        .exec(&handle, ExecOptions::new("pwd").with_cwd("/tmp/file"))
        .await?;
    is_start_failure("a command in a file", &result, StartProblem::Cwd)
}

/// An unknown user is 126 (D5).
pub async fn an_unknown_user_is_126(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let result = context
        .exec(&handle, ExecOptions::new("id").with_user("no-such-user"))
        .await?;
    is_start_failure("a command of an unknown user", &result, StartProblem::User)
}

/// A program that the shell does not find is an ordinary 127 of the shell (D5).
pub async fn a_shells_127_is_ordinary(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let result = context.exec(&handle, "no-such-program").await?;
    equal("the result", (result.return_code, result.error_type), (127, None))?;
    holds(
        "the shell says why",
        result
            .stderr()
            .is_some_and(|text| text.contains("no-such-program")),
    )
}

/// A program that prints what an engine prints is an ordinary result: texts decide nothing (D5, D6).
pub async fn texts_of_engines_decide_nothing(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    for text in [
        "OCI runtime exec failed: exec failed: unable to start container process",
        "Error response from daemon: No such container: x",
        "Cannot connect to the Docker daemon",
        "container is not running",
    ] {
        for (code, stream) in [(126, "1"), (127, "1"), (125, "2"), (1, "2")] {
            let result = context
                .exec(&handle, format!("echo '{text}' >&{stream}; exit {code}"))
                .await?;
            equal(
                "the result",
                (result.return_code, result.error_type),
                (code, None),
            )?;
            let printed = if stream == "1" {
                result.stdout()
            } else {
                result.stderr()
            };
            equal("the text", printed, Some(format!("{text}\n")))?;
        }
    }
    Ok(())
}

cases!("start_failures":
    a_missing_program_is_127,
    what_is_not_executable_is_126,
    a_missing_directory_is_126,
    an_unknown_user_is_126 needs super::Need::User,
    a_shells_127_is_ordinary,
    texts_of_engines_decide_nothing,
);
