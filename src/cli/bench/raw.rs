//! The baseline: the same engine calls made directly, with nothing around them.
//! The only file of the command that knows bollard; it knows nothing of the library.

use bollard::Docker;
use bollard::container::LogOutput;
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
    #[error("the baseline's exec ended with exit code {code:?} after {stdout_bytes} bytes")]
    Ended { code: Option<i64>, stdout_bytes: u64 },
}

/// How an exec ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct RawEnd {
    pub(in crate::cli) code: Option<i64>,
    pub(in crate::cli) stdout_bytes: u64,
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

    /// Runs a program that must exit with 0 after so many bytes on standard output.
    ///
    /// # Errors
    /// A call failed, or the program ended otherwise.
    pub(in crate::cli) async fn exec(
        &self,
        container: &str,
        argv: &[&str],
        stdout_bytes: u64,
    ) -> Result<(), RawError> {
        let end = self.exec_to_the_end(container, argv).await?;
        if end.code == Some(0) && end.stdout_bytes == stdout_bytes {
            Ok(())
        } else {
            Err(RawError::Ended {
                code: end.code,
                stdout_bytes: end.stdout_bytes,
            })
        }
    }

    /// Runs a program: create, start, read to the end, inspect.
    ///
    /// # Errors
    /// A call failed.
    pub(in crate::cli) async fn exec_to_the_end(
        &self,
        container: &str,
        argv: &[&str],
    ) -> Result<RawEnd, RawError> {
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
        let mut stdout_bytes = 0;
        if let StartExecResults::Attached { mut output, .. } =
            self.docker.start_exec(&exec.id, Some(options)).await?
        {
            while let Some(chunk) = output.next().await {
                if let LogOutput::StdOut { message } = chunk? {
                    stdout_bytes += message.len() as u64;
                }
            }
        }
        let code = self.docker.inspect_exec(&exec.id).await?.exit_code;
        Ok(RawEnd { code, stdout_bytes })
    }
}
