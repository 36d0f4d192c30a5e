//! Sandboxes that only some rows need: made by the first of them, and removed at the end. After a signal they are
//! dropped, which hands their removal to the provider.

use std::sync::Arc;

use futures::future::{join_all, try_join_all};
use gym_sandbox::docker::{DockerProvider, DockerRaw};
use gym_sandbox::{
    AsyncSandbox, Error, ErrorKind, ExecOptions, ExecResult, Operation, Result, SandboxHandle,
    SandboxProvider, SandboxSpec,
};
use tokio::sync::OnceCell;

use super::context::Target;

/// How many sandboxes share the commands in flight.
pub(super) const SIZE: usize = 8;

/// They, and what they are made of.
#[derive(Debug)]
pub(in crate::cli) struct Fleet {
    docker: Arc<DockerProvider>,
    image: String,
    sandboxes: OnceCell<Vec<AsyncSandbox>>,
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
    pub(super) async fn targets(&self) -> Result<Vec<Target<'_>>> {
        let start = || async {
            let sandboxes: Vec<AsyncSandbox> = (0..SIZE).map(|_| self.sandbox(Some("none"))).collect();
            try_join_all(sandboxes.iter().map(AsyncSandbox::start)).await?;
            Ok::<_, Error>(sandboxes)
        };
        let sandboxes = self.sandboxes.get_or_try_init(start).await?;
        sandboxes.iter().map(Target::of).collect()
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

    /// Removes them.
    ///
    /// # Errors
    /// That of the first one that could not be removed.
    pub(in crate::cli) async fn end(self) -> Result<()> {
        let sandboxes = self.sandboxes.into_inner().unwrap_or_default();
        let stopped = join_all(sandboxes.iter().map(AsyncSandbox::stop)).await;
        stopped.into_iter().collect()
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
