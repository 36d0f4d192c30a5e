//! The baseline: the same engine calls made directly, with nothing around them.
//! The only file of the command that knows bollard; it knows nothing of the library.

use bollard::Docker;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use futures::StreamExt;

/// The size of a read from an output stream.
const READ_BYTES: usize = 64 * 1024;

/// A bare connection to an engine.
#[derive(Debug)]
pub(in crate::cli) struct RawEngine {
    docker: Docker,
}

/// Why the baseline failed.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum RawError {
    #[error("the baseline can't reach the engine at `{address}`")]
    Connect {
        address: String,
        source: bollard::errors::Error,
    },
    #[error("a call of the baseline failed")]
    Call(#[from] bollard::errors::Error),
    #[error("the baseline's exec ended with exit code {0:?}")]
    Exit(Option<i64>),
}

impl RawEngine {
    /// Connects to the engine at that address.
    ///
    /// # Errors
    /// The engine does not answer, or the address is of no known kind.
    pub(in crate::cli) async fn connect(address: &str) -> Result<Self, RawError> {
        let unreachable = |source| RawError::Connect {
            address: address.to_owned(),
            source,
        };
        let docker = Docker::connect_with_host(address).map_err(unreachable)?;
        let docker = docker.negotiate_version().await.map_err(unreachable)?;
        Ok(Self { docker })
    }

    /// Runs a program: create, start, read to the end, inspect.
    ///
    /// # Errors
    /// A call failed, or the program did not exit with 0.
    pub(in crate::cli) async fn exec(&self, container: &str, argv: &[&str]) -> Result<(), RawError> {
        match self.exec_code(container, argv).await? {
            Some(0) => Ok(()),
            code => Err(RawError::Exit(code)),
        }
    }

    async fn exec_code(&self, container: &str, argv: &[&str]) -> Result<Option<i64>, bollard::errors::Error> {
        let options = CreateExecOptions {
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(argv.to_vec()),
            ..CreateExecOptions::default()
        };
        let exec = self.docker.create_exec(container, options).await?;
        let options = StartExecOptions {
            output_capacity: Some(READ_BYTES),
            ..StartExecOptions::default()
        };
        if let StartExecResults::Attached { mut output, .. } =
            self.docker.start_exec(&exec.id, Some(options)).await?
        {
            while let Some(chunk) = output.next().await {
                chunk?;
            }
        }
        Ok(self.docker.inspect_exec(&exec.id).await?.exit_code)
    }
}
