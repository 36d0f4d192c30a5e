//! What the rows measure with: sandboxes that are there, reached in several ways.

use std::process::Stdio;

use gym_sandbox::docker::DockerRaw;
use gym_sandbox::{AsyncSandbox, Error, ErrorKind, Operation, Result};
use tokio::process::Command;

use super::copies::Room;
use super::docker_compose::DockerCompose;
use super::fleet::Fleet;
use super::left::Left;
use super::project::Upped;
use super::raw::{RawEngine, RawError};
use super::scratch::Scratch;

/// The sandboxes, and the ways to them.
pub(in crate::cli) struct Context<'a> {
    /// One with the preset `compat`.
    pub(in crate::cli) compat: Target<'a>,
    /// One with the preset `hardened`.
    pub(in crate::cli) hardened: Target<'a>,
    /// One whose commands are run by the resident agent.
    pub(in crate::cli) agent: Target<'a>,
    /// Such a one with the preset `hardened`.
    pub(in crate::cli) agent_hardened: Target<'a>,
    /// More of them.
    pub(in crate::cli) fleet: Fleet,
    /// What must be gone in the end, however it ends.
    pub(in crate::cli) left: &'a Left,
    /// The same engine without the library.
    pub(in crate::cli) raw: &'a RawEngine,
    /// The engine's address.
    pub(in crate::cli) address: String,
    /// Whether the docker CLI can be measured, too.
    pub(in crate::cli) cli: DockerCli,
    /// The project that is up, for those who know it by name.
    pub(in crate::cli) upped: Upped,
    /// What copies of a project need.
    pub(in crate::cli) room: Room,
    /// The docker compose command. None where it is not there.
    pub(in crate::cli) docker_compose: Option<DockerCompose>,
    /// What is copied.
    pub(in crate::cli) scratch: Scratch,
    /// Only a few samples are wanted.
    pub(in crate::cli) is_quick: bool,
}

/// One sandbox.
#[derive(Clone)]
pub(in crate::cli) struct Target<'a> {
    /// Through the library.
    pub(in crate::cli) sandbox: &'a AsyncSandbox,
    /// The container behind it.
    pub(in crate::cli) container: String,
}

impl<'a> Target<'a> {
    /// Of a sandbox that is started.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] where it is not.
    pub(in crate::cli) fn of(sandbox: &'a AsyncSandbox) -> Result<Self> {
        let container = sandbox
            .handle()
            .and_then(|handle| Some(handle.raw::<DockerRaw>()?.container_id.clone()))
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Internal,
                    Operation::Exec,
                    "the sandbox has no container",
                )
            })?;
        Ok(Self { sandbox, container })
    }
}

/// Whether this machine has the docker CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum DockerCli {
    /// It does.
    Installed,
    /// It does not, or it does not start.
    Missing,
}

impl DockerCli {
    /// Looks for it.
    pub(in crate::cli) async fn find() -> Self {
        match Command::new("docker")
            .arg("--version")
            .kill_on_drop(true)
            .output()
            .await
        {
            Ok(output) if output.status.success() => Self::Installed,
            _ => Self::Missing,
        }
    }
}

impl Context<'_> {
    /// Runs a program by the docker CLI; its output is read by nobody.
    ///
    /// # Errors
    /// It did not start, or did not exit with 0.
    pub(in crate::cli) async fn docker_exec(&self, container: &str, argv: &[&str]) -> Result<()> {
        self.docker(&[&["exec", container], argv].concat()).await
    }

    /// Runs the docker CLI; its output is read by nobody.
    ///
    /// # Errors
    /// It did not start, or did not exit with 0.
    pub(in crate::cli) async fn docker(&self, arguments: &[&str]) -> Result<()> {
        let status = Command::new("docker")
            .args(["--host", &self.address])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .status()
            .await
            .map_err(|error| {
                Error::new(
                    ErrorKind::Io,
                    Operation::Exec,
                    "the docker CLI could not be started",
                )
                .with_source(error)
            })?;
        succeeded(status.success(), "the docker CLI did not succeed")
    }
}

/// Starts a program on this machine and reads its output, as a process without any sandbox.
///
/// # Errors
/// It did not start, or did not exit with 0.
pub(in crate::cli) async fn host_spawn(argv: &[&str]) -> Result<()> {
    let output = Command::new(argv.first().copied().unwrap_or("true"))
        .args(argv.iter().skip(1))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| {
            Error::new(
                ErrorKind::Io,
                Operation::Exec,
                "the host's process could not be started",
            )
            .with_source(error)
        })?;
    succeeded(output.status.success(), "the host's process did not succeed")
}

/// Nothing, or an error with this text.
pub(in crate::cli) fn succeeded(success: bool, otherwise: &'static str) -> Result<()> {
    if success {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::Internal, Operation::Exec, otherwise))
    }
}

/// The command's error for one of the baseline.
pub(in crate::cli) fn baseline_failed(operation: Operation, error: RawError) -> Error {
    Error::new(ErrorKind::Unavailable, operation, "the baseline failed").with_source(error)
}
