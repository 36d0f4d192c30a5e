//! Sandboxes that only some rows need: made by the first of them, and removed at the end.

use std::sync::Arc;

use futures::future::try_join_all;
use gym_sandbox::docker::{DockerProvider, DockerRaw};
use gym_sandbox::{
    AsyncSandbox, Error, ErrorKind, ExecOptions, ExecResult, Operation, Result, SandboxHandle,
    SandboxProvider, SandboxSpec,
};
use tokio::sync::OnceCell;

use super::context::Target;
use super::left::Left;

/// How many sandboxes share the commands in flight.
pub(super) const SIZE: usize = 8;

/// They, and what they are made of.
#[derive(Debug)]
pub(in crate::cli) struct Fleet {
    docker: Arc<DockerProvider>,
    image: String,
    sandboxes: OnceCell<Vec<Arc<AsyncSandbox>>>,
    /// A handle of somebody who did not make the sandbox.
    far: OnceCell<SandboxHandle>,
}

impl Fleet {
    /// None of them yet.
    pub(in crate::cli) fn new(docker: Arc<DockerProvider>, image: String) -> Self {
        Self {
            docker,
            image,
            sandboxes: OnceCell::new(),
            far: OnceCell::new(),
        }
    }

    /// A sandbox that is not started, whose commands are the agent's.
    pub(super) fn sandbox(&self, network: Option<&str>) -> AsyncSandbox {
        agent_sandbox(&self.docker, &self.image, network)
    }

    /// The image of all of them.
    pub(super) fn image(&self) -> &str {
        &self.image
    }

    /// All of them, started.
    pub(super) async fn targets(&self, left: &Left) -> Result<Vec<Target<'_>>> {
        let start = || async {
            let sandbox = || left.standing(self.sandbox(Some("none")));
            let sandboxes: Vec<Arc<AsyncSandbox>> = (0..SIZE).map(|_| sandbox()).collect();
            try_join_all(sandboxes.iter().map(|sandbox| sandbox.start())).await?;
            Ok::<_, Error>(sandboxes)
        };
        let sandboxes = self.sandboxes.get_or_try_init(start).await?;
        sandboxes.iter().map(|sandbox| Target::of(sandbox)).collect()
    }

    /// Runs a command as somebody who did not make the sandbox: there is no socket, the agent is reached by an exec.
    pub(super) async fn exec_from_afar(&self, container: &str, options: ExecOptions) -> Result<ExecResult> {
        let attach = || self.docker.attach(container);
        let handle = self.far.get_or_try_init(attach).await?;
        let result = self.docker.exec(handle, options).await?;
        let raw = handle.raw::<DockerRaw>();
        match raw.and_then(DockerRaw::engine_reason) {
            None => Ok(result),
            Some(why) => Err(Error::new(
                ErrorKind::Internal,
                Operation::Exec,
                format!("the agent is not reached: {why}"),
            )),
        }
    }
}

/// A sandbox of a provider that is not started, whose commands are the agent's.
pub(super) fn agent_sandbox(
    docker: &Arc<DockerProvider>,
    image: &str,
    network: Option<&str>,
) -> AsyncSandbox {
    let mut spec = SandboxSpec::new(image).with_provider_option("exec_path", "agent");
    if let Some(network) = network {
        spec = spec.with_provider_option("network", network);
    }
    let provider: Arc<dyn SandboxProvider> = Arc::clone(docker) as _;
    AsyncSandbox::new(provider).with_spec(spec)
}
