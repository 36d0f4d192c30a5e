//! `run`: create, upload, run, download, remove.

use std::collections::BTreeMap;
use std::sync::Arc;

use gym_sandbox::docker::DockerProvider;
use gym_sandbox::{
    AsyncSandbox, Error, ErrorKind, ExecOptions, ExecResult, Operation, PathProblem, Result, SandboxId, Value,
};

use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::{Download, Input, RunRequest, Upload};
use crate::cli::session::{Afterwards, Outcome, blocking, with_sandbox};

/// What is known at the end.
struct Finished {
    result: Arc<ExecResult>,
    /// The first copy out of the sandbox that failed.
    download: Result<()>,
}

/// Runs it and gives the exit code.
///
/// # Errors
/// What kept the command from being run, or its output from being had.
pub(in crate::cli) async fn run(request: RunRequest) -> Result<u8> {
    let RunRequest {
        config,
        spec,
        mut options,
        input,
        uploads,
        downloads,
        afterwards,
        format,
    } = request;
    check_sources(&uploads)?;
    options.check(Operation::Exec)?;
    if input == Input::Process {
        options = options.with_stdin_reader(process_input()?);
    }
    let provider = Arc::new(DockerProvider::new(config)?);
    let ports = spec.ports().as_slice().to_vec();
    let sandbox = AsyncSandbox::owning(provider).with_spec(spec);
    let outcome = with_sandbox(sandbox, afterwards, async |sandbox| {
        for Upload { local, remote } in &uploads {
            sandbox.upload(local, remote).await?;
        }
        let extra = Extra {
            kept: kept(sandbox, afterwards),
            endpoints: endpoints(sandbox, &ports).await?,
        };
        let result = run_command(sandbox, options, format, extra).await?;
        Ok(Finished {
            result,
            download: copy_out(sandbox, &downloads).await,
        })
    })
    .await?;
    let Finished { result, download } = match outcome {
        Outcome::Ended(finished) => finished,
        Outcome::Interrupted(interrupt) => return Ok(interrupt.exit_code()),
    };
    match (download, exit::of_result(&result)) {
        // A missing report is worth less than the code of the command that did not write it.
        (Err(error), code) if code != exit::SUCCESS => {
            output::error(&error);
            Ok(code)
        }
        (download, code) => download.map(|()| code),
    }
}

/// Refuses a copy of nothing before anything is made for it.
fn check_sources(uploads: &[Upload]) -> Result<()> {
    match uploads.iter().find(|upload| !upload.local.exists()) {
        None => Ok(()),
        Some(upload) => Err(Error::new(
            ErrorKind::Path(PathProblem::NotFound),
            Operation::Upload,
            format!("`{}` does not exist on this machine", upload.local.display()),
        )),
    }
}

/// What a run says beside the command's result.
struct Extra {
    kept: Option<SandboxId>,
    endpoints: BTreeMap<u16, String>,
}

fn kept(sandbox: &AsyncSandbox, afterwards: Afterwards) -> Option<SandboxId> {
    match afterwards {
        Afterwards::Keep => sandbox.sandbox_id(),
        Afterwards::Remove => None,
    }
}

async fn endpoints(sandbox: &AsyncSandbox, ports: &[u16]) -> Result<BTreeMap<u16, String>> {
    let mut endpoints = BTreeMap::new();
    for &port in ports {
        endpoints.insert(port, sandbox.endpoint(port).await?.endpoint().to_owned());
    }
    Ok(endpoints)
}

/// Runs the command and prints what came of it. The one place that decides how output reaches this process.
async fn run_command(
    sandbox: &AsyncSandbox,
    options: ExecOptions,
    format: Format,
    extra: Extra,
) -> Result<Arc<ExecResult>> {
    if format == Format::Text {
        // The command's streams are passed on byte for byte, so what is said beside them is said before or after.
        for (port, endpoint) in &extra.endpoints {
            output::note(&format!("port {port} is at {endpoint}"));
        }
        if let Some(id) = &extra.kept {
            output::note(&format!("the sandbox is kept: {id}"));
        }
    }
    let result = Arc::new(sandbox.exec_with(options).await?);
    match format {
        Format::Json => {
            let value = json(&result, &extra)?;
            blocking(move || output::json(&value)).await?;
        }
        Format::Text => {
            let streams = Arc::clone(&result);
            blocking(move || output::streams(&streams)).await?;
            output::explanation(&result);
        }
    }
    Ok(result)
}

/// The result's own fields, and those of this run that a script can't know otherwise.
fn json(result: &ExecResult, extra: &Extra) -> Result<Value> {
    let unprintable = |error| {
        Error::new(
            ErrorKind::Internal,
            Operation::Exec,
            "the result can't be written as JSON",
        )
        .with_source(error)
    };
    let mut value = serde_json::to_value(result).map_err(unprintable)?;
    if let Some(object) = value.as_object_mut() {
        if let Some(id) = &extra.kept {
            object.insert("sandbox_id".to_owned(), id.as_str().into());
        }
        if !extra.endpoints.is_empty() {
            object.insert(
                "endpoints".to_owned(),
                serde_json::to_value(&extra.endpoints).map_err(unprintable)?,
            );
        }
    }
    Ok(value)
}

/// Makes all copies that can be made, and gives the first error; the others are attached to it.
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

/// This process's standard input as a stream. Its own descriptor, so that closing it closes no other.
fn process_input() -> Result<tokio::fs::File> {
    use std::os::fd::AsFd;

    let descriptor = std::io::stdin().as_fd().try_clone_to_owned().map_err(|error| {
        Error::new(ErrorKind::Io, Operation::Exec, "standard input can't be read").with_source(error)
    })?;
    Ok(tokio::fs::File::from_std(descriptor.into()))
}
