//! `create`: a sandbox that outlives this process.

use std::collections::BTreeMap;
use std::sync::Arc;

use gym_sandbox::docker::DockerProvider;
use gym_sandbox::{AsyncSandbox, Error, ErrorKind, Operation, PathProblem, Ports, Result};
use serde::Serialize;

use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::{CreateRequest, SandboxRequest, Upload};
use crate::cli::session::{Afterwards, Outcome, blocking, with_sandbox};

/// Where the declared ports of a sandbox answer.
pub(super) type Endpoints = BTreeMap<u16, String>;

/// What `--json` prints.
#[derive(Serialize)]
struct Created {
    id: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    endpoints: Endpoints,
}

/// Makes it and prints its id.
///
/// # Errors
/// It could not be made, or not be filled; nothing is left then.
pub(in crate::cli) async fn run(request: CreateRequest) -> Result<u8> {
    let SandboxRequest {
        config,
        spec,
        uploads,
    } = request.sandbox;
    check_sources(&uploads)?;
    let provider = Arc::new(DockerProvider::new(config)?);
    let ports = spec.ports().clone();
    let sandbox = AsyncSandbox::owning(provider).with_spec(spec);
    let outcome = with_sandbox(sandbox, Afterwards::Keep, async |sandbox| {
        upload(sandbox, &uploads).await?;
        let id = sandbox.sandbox_id().ok_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                Operation::Create,
                "a started sandbox has no id",
            )
        })?;
        let endpoints = endpoints(sandbox, &ports).await?;
        let id = id.to_string();
        Ok(Created { id, endpoints })
    })
    .await?;
    let created = match outcome {
        Outcome::Ended(created) => created,
        Outcome::Interrupted(interrupt) => return Ok(interrupt.exit_code()),
    };
    if request.format == Format::Text {
        output::endpoints(&created.endpoints);
    }
    blocking(move || match request.format {
        Format::Json => output::json(&created),
        Format::Text => output::data(format!("{}\n", created.id).as_bytes()),
    })
    .await?;
    Ok(exit::SUCCESS)
}

/// Refuses a copy of nothing before anything is made for it.
pub(super) fn check_sources(uploads: &[Upload]) -> Result<()> {
    match uploads.iter().find(|upload| !upload.local.exists()) {
        None => Ok(()),
        Some(upload) => Err(Error::new(
            ErrorKind::Path(PathProblem::NotFound),
            Operation::Upload,
            format!("`{}` does not exist on this machine", upload.local.display()),
        )),
    }
}

/// Makes all copies, in order.
pub(super) async fn upload(sandbox: &AsyncSandbox, uploads: &[Upload]) -> Result<()> {
    for Upload { local, remote } in uploads {
        sandbox.upload(local, remote).await?;
    }
    Ok(())
}

pub(super) async fn endpoints(sandbox: &AsyncSandbox, ports: &Ports) -> Result<Endpoints> {
    let mut endpoints = BTreeMap::new();
    for &port in ports.as_slice() {
        endpoints.insert(port, sandbox.endpoint(port).await?.endpoint().to_owned());
    }
    Ok(endpoints)
}
