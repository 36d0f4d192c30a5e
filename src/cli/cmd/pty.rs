//! `pty` and `shell`: this terminal, bridged to one in a sandbox.

use std::sync::Arc;

use gym_sandbox::docker::DockerProvider;
use gym_sandbox::provider::{PtySession, Traced};
use gym_sandbox::{AsyncSandbox, Capability, Error, Operation, Result, SandboxProvider, SandboxPtySpec};

use crate::cli::exit;
use crate::cli::output;
use crate::cli::resolve::{PtyRequest, SandboxRequest, ShellRequest};
use crate::cli::session::{Afterwards, Outcome, until_interrupted, with_sandbox};
use crate::cli::terminal;

use super::create::{check_sources, endpoints, upload};

/// Opens a terminal in a sandbox that is there, and gives the exit code of what ran in it. The sandbox stays.
///
/// # Errors
/// There is no such sandbox, or no terminal can be had in it.
pub(in crate::cli) async fn attach(request: PtyRequest) -> Result<u8> {
    let PtyRequest { config, id, spec } = request;
    spec.check(Operation::Pty)?;
    let docker = DockerProvider::new(config)?;
    let provider = Traced::new(Arc::new(docker.clone()));
    let work = Box::pin(async {
        let handle = docker.attach(&id).await?;
        let pty = provider
            .as_pty()
            .ok_or_else(|| Error::unsupported(Operation::Pty, provider.name(), Capability::Pty.as_str()))?;
        let (_raw, spec) = terminal::enter(spec)?;
        bridge(pty.create_pty(&handle, &spec).await?).await
    });
    let outcome = until_interrupted(work).await?;
    // What a signal cut off is killed in the background: this waits for it, until another signal.
    if let Err(error) = until_interrupted(provider.aclose()).await {
        output::note(&error.to_string());
    }
    Ok(code_of(&outcome))
}

/// Opens a terminal in a sandbox of its own, which is removed at the end.
///
/// # Errors
/// What kept the sandbox from being made, or a terminal in it.
pub(in crate::cli) async fn shell(request: ShellRequest) -> Result<u8> {
    let ShellRequest {
        sandbox: SandboxRequest {
            config,
            spec,
            uploads,
        },
        spec: terminal,
    } = request;
    check_sources(&uploads)?;
    terminal.check(Operation::Pty)?;
    let ports = spec.ports().clone();
    let provider = Arc::new(DockerProvider::new(config)?);
    let sandbox = AsyncSandbox::owning(provider).with_spec(spec);
    let outcome = with_sandbox(sandbox, Afterwards::Remove, async |sandbox| {
        upload(sandbox, &uploads).await?;
        output::endpoints(&endpoints(sandbox, &ports).await?);
        open(sandbox, terminal).await
    })
    .await?;
    Ok(code_of(&outcome))
}

async fn open(sandbox: &AsyncSandbox, spec: SandboxPtySpec) -> Result<i32> {
    let (_raw, spec) = terminal::enter(spec)?;
    let session = sandbox.pty().create(spec).await?;
    terminal::bridge(session).await
}

async fn bridge(session: Arc<dyn PtySession>) -> Result<i32> {
    terminal::bridge(session).await
}

fn code_of(outcome: &Outcome<i32>) -> u8 {
    match outcome {
        Outcome::Ended(code) => exit::low_byte(*code),
        Outcome::Interrupted(interrupt) => interrupt.exit_code(),
    }
}
