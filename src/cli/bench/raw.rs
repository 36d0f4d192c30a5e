//! The baseline: the same engine calls made directly, with nothing around them.
//! The only file of the command that knows bollard; it knows nothing of the library but its error.

use bollard::Docker;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use futures::StreamExt;
use gym_sandbox::{Error, ErrorKind, Operation, Result};

/// The size of a read from an output stream.
const READ_BYTES: usize = 64 * 1024;

/// A bare connection to an engine.
#[derive(Debug)]
pub(in crate::cli) struct RawEngine {
    docker: Docker,
}

impl RawEngine {
    /// Connects to the engine at that address.
    ///
    /// # Errors
    /// The engine does not answer, or the address is of no known kind.
    pub(in crate::cli) async fn connect(address: &str) -> Result<Self> {
        let unreachable = |error: bollard::errors::Error| {
            Error::new(
                ErrorKind::Unavailable,
                Operation::Connect,
                format!("the baseline can't reach the engine at `{address}`"),
            )
            .with_source(error)
        };
        let docker = Docker::connect_with_host(address).map_err(unreachable)?;
        let docker = docker.negotiate_version().await.map_err(unreachable)?;
        Ok(Self { docker })
    }

    /// Runs a program: create, start, read to the end, inspect.
    ///
    /// # Errors
    /// A call failed, or the program did not exit with 0.
    pub(in crate::cli) async fn exec(&self, container: &str, argv: &[&str]) -> Result<()> {
        let code = self.exec_code(container, argv).await.map_err(|error| {
            Error::new(
                ErrorKind::Unavailable,
                Operation::Exec,
                "the baseline's exec failed",
            )
            .with_source(error)
        })?;
        match code {
            Some(0) => Ok(()),
            code => Err(Error::new(
                ErrorKind::Internal,
                Operation::Exec,
                format!("the baseline's exec ended with exit code {code:?}"),
            )),
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
