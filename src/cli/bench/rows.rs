//! The table of what is measured. A capability brings its own rows; a row names its goal of the performance table.

use futures::FutureExt;
use gym_sandbox::{AsyncSandbox, Error, ErrorKind, ExecOptions, Operation, Result};
use tokio::process::Command;

use super::raw::{RawEngine, RawError};
use super::sample::{Method, Plan};

/// What the rows measure with: one sandbox, reached in several ways.
pub(in crate::cli) struct Context<'a> {
    /// The sandbox, through the library.
    pub(in crate::cli) sandbox: &'a AsyncSandbox,
    /// The same engine without the library.
    pub(in crate::cli) raw: RawEngine,
    /// The container behind the sandbox.
    pub(in crate::cli) container: String,
    /// The engine's address.
    pub(in crate::cli) address: String,
    /// Whether the docker CLI can be measured, too.
    pub(in crate::cli) cli: DockerCli,
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

/// One line of the table.
pub(in crate::cli) struct Row {
    /// What is measured, and on which path.
    pub(in crate::cli) name: &'static str,
    /// The largest ratio to the raw calls that is good enough.
    pub(in crate::cli) goal: f64,
    /// The same to the other method.
    pub(in crate::cli) other_goal: f64,
    /// How much is measured for a verdict.
    pub(in crate::cli) plan: Plan,
    /// Ours, raw, and any other method, in this order.
    pub(in crate::cli) methods: for<'a> fn(&'a Context<'a>) -> Vec<Method<'a>>,
}

/// All rows.
pub(in crate::cli) const ROWS: [Row; 1] = [Row {
    name: "exec engine true",
    goal: 1.08,
    other_goal: 0.80,
    plan: Plan {
        warm_up: 5,
        blocks: 60,
        block_length: 5,
    },
    methods: exec_true,
}];

fn exec_true<'a>(context: &'a Context<'a>) -> Vec<Method<'a>> {
    const ARGV: [&str; 1] = ["true"];
    let mut methods = vec![
        Method {
            name: "ours",
            once: Box::new(|| {
                async {
                    let result = context.sandbox.exec_with(ExecOptions::new(ARGV)).await?;
                    succeeded(result.is_success(), "the library's exec did not succeed")
                }
                .boxed()
            }),
        },
        Method {
            name: "raw",
            once: Box::new(|| {
                async {
                    let ended = context.raw.exec(&context.container, &ARGV).await;
                    ended.map_err(|error| baseline_failed(Operation::Exec, error))
                }
                .boxed()
            }),
        },
    ];
    if context.cli == DockerCli::Installed {
        methods.push(Method {
            name: "docker CLI",
            once: Box::new(|| docker_exec(context, &ARGV).boxed()),
        });
    }
    methods
}

/// The command's error for one of the baseline.
pub(in crate::cli) fn baseline_failed(operation: Operation, error: RawError) -> Error {
    Error::new(ErrorKind::Unavailable, operation, "the baseline failed").with_source(error)
}

async fn docker_exec(context: &Context<'_>, argv: &[&str]) -> Result<()> {
    let output = Command::new("docker")
        .args(["--host", &context.address, "exec", &context.container])
        .args(argv)
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| {
            Error::new(
                ErrorKind::Io,
                Operation::Exec,
                "the docker CLI could not be started",
            )
            .with_source(error)
        })?;
    succeeded(output.status.success(), "the docker CLI's exec did not succeed")
}

fn succeeded(success: bool, otherwise: &'static str) -> Result<()> {
    if success {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::Internal, Operation::Exec, otherwise))
    }
}
