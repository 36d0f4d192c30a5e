//! The measured things themselves: each once by the library, by the raw calls, and by the docker CLI.

use std::time::Duration;

use futures::future::try_join_all;
use gym_sandbox::{ExecOptions, ExecResult, ExecTimeout, Operation, Result};

use super::context::{Context, Target, baseline_failed, succeeded};
use super::copies;
use super::creation::Creation;
use super::project::Project;
use super::transfer::{Side, Transfer};

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
    /// Many of them at the same time, over several sandboxes.
    TrueOverFleet,
    /// A command with a long output, of which the usual part is kept.
    Stdout,
    /// The same over the channel that goes through the engine.
    StdoutFromAfar,
    /// A copy.
    Copy(Transfer),
    /// A sandbox is made.
    Create(Creation),
    /// A Compose project goes up or down.
    Project(Project),
    /// Many copies of one go up and down.
    Copies,
}

impl Work {
    /// Says whether every run needs something ready.
    pub(super) fn needs_ready(self) -> bool {
        matches!(
            self,
            Self::Copy(_) | Self::Create(_) | Self::Project(_) | Self::Copies
        )
    }

    /// Makes that ready.
    pub(super) async fn ready(self, context: &Context<'_>, target: &Target<'_>, side: Side) -> Result<()> {
        match self {
            Self::Copy(transfer) => transfer.ready(context, target, side).await,
            Self::Create(_) | Self::Copies => context.left.pass(context.raw).await,
            Self::Project(project) => project.ready(context, side).await,
            Self::True
            | Self::TrueWithTimeout
            | Self::TrueInFlight
            | Self::TrueOverFleet
            | Self::Stdout
            | Self::StdoutFromAfar => Ok(()),
        }
    }

    /// By the library.
    pub(super) async fn ours(self, context: &Context<'_>, target: &Target<'_>) -> Result<()> {
        match self {
            Self::True => ours(target, &TRUE, ExecTimeout::Never, 0).await,
            Self::TrueWithTimeout => ours(target, &TRUE, ExecTimeout::After(ARMED), 0).await,
            Self::TrueInFlight => {
                let each = || ours(target, &TRUE, ExecTimeout::Never, 0);
                try_join_all((0..IN_FLIGHT).map(|_| each())).await.map(drop)
            }
            Self::TrueOverFleet => {
                let targets = context.fleet.targets(context.left).await?;
                let each = targets.iter().cycle().take(IN_FLIGHT as usize);
                try_join_all(each.map(|target| ours(target, &TRUE, ExecTimeout::Never, 0)))
                    .await
                    .map(drop)
            }
            Self::Stdout => ours(target, &STDOUT, ExecTimeout::Never, STDOUT_BYTES).await,
            Self::StdoutFromAfar => {
                let options = ExecOptions::new(STDOUT).with_timeout(ExecTimeout::Never);
                let result = context.fleet.exec_from_afar(&target.container, options).await?;
                ended_well(&result, STDOUT_BYTES)
            }
            Self::Copy(transfer) => transfer.ours_whole(context, target).await,
            Self::Create(creation) => creation.ours(context).await,
            Self::Project(project) => project.ours(context).await,
            Self::Copies => copies::ours(context).await,
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
            Self::TrueOverFleet => {
                let targets = context.fleet.targets(context.left).await?;
                let each = targets.iter().cycle().take(IN_FLIGHT as usize);
                try_join_all(each.map(|target| context.raw.exec(&target.container, &TRUE, 0)))
                    .await
                    .map(drop)
            }
            Self::Stdout | Self::StdoutFromAfar => exec(&STDOUT, STDOUT_BYTES).await,
            Self::Copy(transfer) => return transfer.raw(context, target).await,
            Self::Create(creation) => return creation.raw(context).await,
            Self::Project(project) => return project.raw(context).await,
            Self::Copies => return copies::raw(context).await,
        };
        ended.map_err(|error| baseline_failed(Operation::Exec, error))
    }

    /// By the docker CLI, or by docker compose.
    pub(super) async fn docker_cli(self, context: &Context<'_>, target: &Target<'_>) -> Result<()> {
        let exec = |argv: &'static [&'static str]| context.docker_exec(&target.container, argv);
        match self {
            Self::True | Self::TrueWithTimeout => exec(&TRUE).await,
            Self::TrueInFlight => try_join_all((0..IN_FLIGHT).map(|_| exec(&TRUE))).await.map(drop),
            Self::TrueOverFleet => {
                let targets = context.fleet.targets(context.left).await?;
                let each = targets.iter().cycle().take(IN_FLIGHT as usize);
                try_join_all(each.map(|target| context.docker_exec(&target.container, &TRUE)))
                    .await
                    .map(drop)
            }
            Self::Stdout | Self::StdoutFromAfar => exec(&STDOUT).await,
            Self::Copy(transfer) => transfer.docker_cli(context, target).await,
            Self::Create(creation) => creation.docker_cli(context).await,
            Self::Project(project) => project.docker_compose(context).await,
            // Without a limit of its own it stands beside nothing.
            Self::Copies => Ok(()),
        }
    }
}

async fn ours(target: &Target<'_>, argv: &[&str], timeout: ExecTimeout, stdout_bytes: u64) -> Result<()> {
    let options = ExecOptions::new(argv.to_vec()).with_timeout(timeout);
    ended_well(&target.sandbox.exec_with(options).await?, stdout_bytes)
}

fn ended_well(result: &ExecResult, stdout_bytes: u64) -> Result<()> {
    succeeded(
        result.is_success() && result.bytes().stdout == stdout_bytes,
        "the library's exec did not succeed",
    )
}
