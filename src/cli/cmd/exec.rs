//! `exec`: a command in a sandbox that is there.

use std::sync::Arc;

use gym_sandbox::docker::DockerProvider;
use gym_sandbox::provider::Traced;
use gym_sandbox::{
    Error, ErrorKind, ExecOptions, ExecResult, Operation, Result, SandboxHandle, SandboxProvider, Value,
};

use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::{ExecRequest, Input, ProgramRequest};
use crate::cli::session::{Outcome, blocking, until_interrupted};
use crate::cli::stream;

/// Runs it and gives the exit code. The sandbox stays.
///
/// # Errors
/// There is no such sandbox, or the output can't be had.
pub(in crate::cli) async fn run(request: ExecRequest) -> Result<u8> {
    let ExecRequest {
        config,
        id,
        program,
        format,
    } = request;
    let options = options(program)?;
    options.check(Operation::Exec)?;
    let docker = DockerProvider::new(config)?;
    let provider = Traced::new(Arc::new(docker.clone()));
    let work = Box::pin(async {
        let handle = docker.attach(&id).await?;
        run_command(&provider, &handle, options, format).await
    });
    let outcome = until_interrupted(work).await?;
    // A command that a signal cut off is killed in the background: this waits for it.
    provider.aclose().await?;
    match outcome {
        Outcome::Ended(result) => Ok(exit::of_result(&result)),
        Outcome::Interrupted(interrupt) => Ok(interrupt.exit_code()),
    }
}

async fn run_command(
    provider: &Traced,
    handle: &SandboxHandle,
    options: ExecOptions,
    format: Format,
) -> Result<ExecResult> {
    match format {
        Format::Json => {
            let result = provider.exec(handle, options).await?;
            let value = json(&result)?;
            blocking(move || output::json(&value)).await?;
            Ok(result)
        }
        Format::Text => {
            let spawn = provider.as_spawn().ok_or_else(|| {
                Error::unsupported(Operation::Spawn, provider.name(), "commands with streams")
            })?;
            let result = stream::to_the_end(spawn.spawn(handle, options).await?).await?;
            output::explanation(&result);
            Ok(result)
        }
    }
}

/// The command with its input.
pub(super) fn options(program: ProgramRequest) -> Result<ExecOptions> {
    match program.input {
        Input::Empty => Ok(program.options),
        Input::Process => Ok(program.options.with_stdin_reader(stream::standard_input()?)),
    }
}

/// The documented object. A hint is in it only where there is one.
pub(super) fn json(result: &ExecResult) -> Result<Value> {
    let mut value = serde_json::to_value(result).map_err(unprintable)?;
    if let Some(object) = value.as_object_mut()
        && result.hint.is_none()
    {
        object.remove("hint");
    }
    Ok(value)
}

pub(super) fn unprintable(error: serde_json::Error) -> Error {
    Error::new(
        ErrorKind::Internal,
        Operation::Exec,
        "the result can't be written as JSON",
    )
    .with_source(error)
}
