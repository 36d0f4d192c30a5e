//! Lists, details and sweeps, as they are typed.

/// Which sandboxes.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct FilterArgs {
    /// Only those of this run
    #[arg(long, value_name = "RUN")]
    pub(in crate::cli) run: Option<String>,
    /// Only those of this project
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) project: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct PsArgs {
    #[command(flatten)]
    pub(in crate::cli) filter: FilterArgs,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct InspectArgs {
    /// The id of the sandbox
    #[arg(value_name = "ID")]
    pub(in crate::cli) id: String,
}

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(in crate::cli) struct GcArgs {
    /// Only say what would be removed
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    /// Also what sandboxes of other versions shared and nothing uses
    #[arg(long)]
    pub(in crate::cli) shared: bool,
    /// Also sandboxes that were kept on purpose, whoever made them
    #[arg(long)]
    pub(in crate::cli) kept: bool,
    /// Do not wait for the second look that some dead owners need
    #[arg(long)]
    pub(in crate::cli) no_wait: bool,
    #[command(flatten)]
    pub(in crate::cli) filter: FilterArgs,
}
