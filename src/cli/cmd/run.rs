//! `run`: create, upload, run, download, remove.

use std::path::Path;
use std::sync::Arc;

use gym_sandbox::docker::DockerProvider;
use gym_sandbox::local::{LocalConfig, LocalProvider};
use gym_sandbox::{
    AsyncSandbox, Error, ExecOptions, ExecResult, Operation, Result, SandboxId, SandboxProvider, Value,
};

use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::{Backend, Download, RunRequest, SandboxRequest};
use crate::cli::session::{Afterwards, Outcome, blocking, with_sandbox};
use crate::cli::stream;

use super::create::{Endpoints, check_sources, endpoints, upload};
use super::exec::{json, options, unprintable};

/// What is known at the end.
struct Finished {
    result: ExecResult,
    /// The copies out of the sandbox: the first that failed, the others attached to it.
    download: Result<()>,
    /// The id of a sandbox that stays.
    kept: Option<SandboxId>,
}

/// Runs it and gives the exit code.
///
/// # Errors
/// What kept the command from being run, or its output from being had.
pub(in crate::cli) async fn run(request: RunRequest) -> Result<u8> {
    let RunRequest {
        backend,
        sandbox: SandboxRequest {
            config,
            spec,
            uploads,
        },
        program,
        downloads,
        afterwards,
        format,
    } = request;
    check_sources(&uploads)?;
    let options = options(program)?;
    options.check(Operation::Exec)?;
    let provider: Arc<dyn SandboxProvider> = match backend {
        Backend::Docker => Arc::new(DockerProvider::new(config)?),
        Backend::Local => local()?,
    };
    let ports = spec.ports().clone();
    let sandbox = AsyncSandbox::owning(provider).with_spec(spec);
    let outcome = with_sandbox(sandbox, afterwards, async |sandbox| {
        upload(sandbox, &uploads).await?;
        let beside = Beside {
            kept: kept(sandbox, afterwards),
            endpoints: endpoints(sandbox, &ports).await?,
        };
        let result = run_command(sandbox, options, format, &beside).await?;
        let download = copy_out(sandbox, &downloads).await;
        if format == Format::Json {
            // The last thing before it is kept: a sandbox whose id nobody can be told is removed.
            let value = json_beside(&result, &beside)?;
            blocking(move || output::json(&value)).await?;
        }
        Ok(Finished {
            result,
            download,
            kept: beside.kept,
        })
    })
    .await?;
    let Finished {
        result,
        download,
        kept,
    } = match outcome {
        Outcome::Ended(finished) => finished,
        Outcome::Interrupted(interrupt) => return Ok(interrupt.exit_code()),
    };
    if let Some(id) = kept.filter(|_| format == Format::Text) {
        output::note(&format!("the sandbox is kept: {id}"));
    }
    match (download, exit::of_result(&result)) {
        // A missing report is worth less than the code of the command that did not write it.
        (Err(error), code) if code != exit::SUCCESS => {
            output::error(&error);
            Ok(code)
        }
        (download, code) => download.map(|()| code),
    }
}

/// This machine. The provider itself warns that it does not isolate. Where there is no bash, lines are for sh.
fn local() -> Result<Arc<dyn SandboxProvider>> {
    let mut config = LocalConfig::default();
    if !Path::new(&config.shell).exists() {
        config = config.with_shell("/bin/sh");
    }
    Ok(Arc::new(LocalProvider::new(config)?))
}

/// What a run says beside the command's result.
struct Beside {
    kept: Option<SandboxId>,
    endpoints: Endpoints,
}

fn kept(sandbox: &AsyncSandbox, afterwards: Afterwards) -> Option<SandboxId> {
    match afterwards {
        Afterwards::Keep => sandbox.sandbox_id(),
        Afterwards::Remove => None,
    }
}

/// Runs the command; its output is passed on meanwhile, unless it is to be part of an object.
async fn run_command(
    sandbox: &AsyncSandbox,
    options: ExecOptions,
    format: Format,
    beside: &Beside,
) -> Result<ExecResult> {
    match format {
        Format::Json => sandbox.exec_with(options).await,
        Format::Text => {
            // The command's streams are passed on byte for byte, so what is said beside them is said before or after.
            output::endpoints(&beside.endpoints);
            let result = stream::to_the_end(sandbox.spawn(options).await?).await?;
            output::explanation(&result);
            Ok(result)
        }
    }
}

/// The result's own fields, and those of this run that a script can't know otherwise.
fn json_beside(result: &ExecResult, beside: &Beside) -> Result<Value> {
    let mut value = json(result)?;
    if let Some(object) = value.as_object_mut() {
        if let Some(id) = &beside.kept {
            object.insert("sandbox_id".to_owned(), id.as_str().into());
        }
        if !beside.endpoints.is_empty() {
            let endpoints = serde_json::to_value(&beside.endpoints).map_err(unprintable)?;
            object.insert("endpoints".to_owned(), endpoints);
        }
    }
    Ok(value)
}

/// Makes all copies that can be made.
async fn copy_out(sandbox: &AsyncSandbox, downloads: &[Download]) -> Result<()> {
    let mut failed: Option<Error> = None;
    for Download { remote, local } in downloads {
        if let Err(error) = sandbox.download(remote, local).await {
            failed = Some(match failed {
                None => error,
                Some(first) => first.with_cleanup_error(error),
            });
        }
    }
    failed.map_or(Ok(()), Err)
}
