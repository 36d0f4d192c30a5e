//! The measured things themselves: each once by the library, by the raw calls, and by the docker CLI.

use std::time::Duration;

use futures::future::try_join_all;
use gym_sandbox::{ExecOptions, ExecTimeout, Operation, Result};

use super::context::{Context, Target, baseline_failed, succeeded};

/// How many commands run at the same time.
pub(super) const IN_FLIGHT: u32 = 32;

/// How long the output is.
pub(super) const STDOUT_BYTES: u64 = 100_000_000;

const TRUE: [&str; 1] = ["true"];
const STDOUT: [&str; 3] = ["sh", "-c", "dd if=/dev/zero bs=1000000 count=100 2>/dev/null"];

/// A timeout that never comes.
const ARMED: Duration = Duration::from_secs(600);

/// What is done once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Work {
    /// A command that does nothing.
    True,
    /// The same under a timeout.
    TrueWithTimeout,
    /// Many of them at the same time.
    TrueInFlight,
    /// A command with a long output, of which the usual part is kept.
    Stdout,
}

impl Work {
    /// By the library.
    pub(super) async fn ours(self, target: &Target<'_>) -> Result<()> {
        match self {
            Self::True => ours(target, &TRUE, ExecTimeout::Never, 0).await,
            Self::TrueWithTimeout => ours(target, &TRUE, ExecTimeout::After(ARMED), 0).await,
            Self::TrueInFlight => {
                let each = || ours(target, &TRUE, ExecTimeout::Never, 0);
                try_join_all((0..IN_FLIGHT).map(|_| each())).await.map(drop)
            }
            Self::Stdout => ours(target, &STDOUT, ExecTimeout::Never, STDOUT_BYTES).await,
        }
    }

    /// By the same calls without the library. They know no timeout.
    pub(super) async fn raw(self, context: &Context<'_>, target: &Target<'_>) -> Result<()> {
        let exec = |argv: &'static [&'static str], bytes| context.raw.exec(&target.container, argv, bytes);
        let ended = match self {
            Self::True | Self::TrueWithTimeout => exec(&TRUE, 0).await,
            Self::TrueInFlight => try_join_all((0..IN_FLIGHT).map(|_| exec(&TRUE, 0)))
                .await
                .map(drop),
            Self::Stdout => exec(&STDOUT, STDOUT_BYTES).await,
        };
        ended.map_err(|error| baseline_failed(Operation::Exec, error))
    }

    /// By the docker CLI.
    pub(super) async fn docker_cli(self, context: &Context<'_>, target: &Target<'_>) -> Result<()> {
        let exec = |argv: &'static [&'static str]| context.docker_exec(&target.container, argv);
        match self {
            Self::True | Self::TrueWithTimeout => exec(&TRUE).await,
            Self::TrueInFlight => try_join_all((0..IN_FLIGHT).map(|_| exec(&TRUE))).await.map(drop),
            Self::Stdout => exec(&STDOUT).await,
        }
    }
}

async fn ours(target: &Target<'_>, argv: &[&str], timeout: ExecTimeout, stdout_bytes: u64) -> Result<()> {
    let options = ExecOptions::new(argv.to_vec()).with_timeout(timeout);
    let result = target.sandbox.exec_with(options).await?;
    succeeded(
        result.is_success() && result.bytes().stdout == stdout_bytes,
        "the library's exec did not succeed",
    )
}
