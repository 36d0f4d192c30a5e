//! Lists, sweeps and details.

use gym_sandbox::docker::DockerConfig;
use gym_sandbox::{KeptSandboxes, SandboxFilter, SharedObjects, SweepMode, SweepOptions};

use super::super::args::{FilterArgs, GcArgs, PsArgs};
use super::super::output::Format;

/// A list of sandboxes.
#[derive(Debug)]
pub(in crate::cli) struct ListRequest {
    pub(in crate::cli) config: DockerConfig,
    pub(in crate::cli) filter: SandboxFilter,
    pub(in crate::cli) format: Format,
}

/// A sweep.
#[derive(Debug)]
pub(in crate::cli) struct SweepRequest {
    pub(in crate::cli) config: DockerConfig,
    pub(in crate::cli) options: SweepOptions,
    pub(in crate::cli) patience: Patience,
    pub(in crate::cli) format: Format,
}

/// Whether the command waits for what takes a second look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Patience {
    /// It does.
    Waits,
    /// It leaves that to the next sweep.
    DoesNotWait,
}

/// Details of a sandbox.
#[derive(Debug)]
pub(in crate::cli) struct DetailRequest {
    pub(in crate::cli) config: DockerConfig,
    pub(in crate::cli) id: String,
}

pub(super) fn list(args: PsArgs, config: DockerConfig, format: Format) -> ListRequest {
    ListRequest {
        config,
        filter: filter(args.filter),
        format,
    }
}

pub(super) fn sweep(args: GcArgs, config: DockerConfig, format: Format) -> SweepRequest {
    let mut options = SweepOptions::default().with_filter(filter(args.filter));
    if args.dry_run {
        options = options.with_mode(SweepMode::DryRun);
    }
    if args.shared {
        options = options.with_shared(SharedObjects::RemoveUnused);
    }
    if args.kept {
        options = options.with_kept(KeptSandboxes::Remove);
    }
    SweepRequest {
        config,
        options,
        patience: if args.no_wait {
            Patience::DoesNotWait
        } else {
            Patience::Waits
        },
        format,
    }
}

fn filter(args: FilterArgs) -> SandboxFilter {
    let mut filter = SandboxFilter::default();
    filter.run = args.run;
    filter.project = args.project;
    filter
}
