//! What can be typed after `compose`, as plain data.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::super::units::TimeLimit;
use super::{EXIT_CODES, LogLineArgs, ProgramArgs};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ComposeArgs {
    /// Print the project as docker compose resolves it
    Config(Box<ComposeConfigArgs>),
    /// Print what a start would make, in order; refuse what is not allowed; touch nothing
    Plan(Box<ComposePlanArgs>),
    /// Start the project, wait until it is ready, and stay until a signal takes it down
    Up(Box<ComposeUpArgs>),
    /// Start the project, run a command in a service, take the project down
    Run(Box<ComposeRunArgs>),
    /// List the containers of a project
    Ps(ComposeNameArgs),
    /// Print what the services of a project printed
    Logs(ComposeLogsArgs),
    /// Run a command in a service of a project
    Exec(Box<ComposeExecArgs>),
    /// Take a project down, whoever started it
    Down(ComposeDownArgs),
}

/// Which files make a project, and what they see.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ProjectArgs {
    /// A Compose file, over those before it; `-` is standard input [default: compose.yaml here or above] [repeatable]
    #[arg(short, long = "file", value_name = "FILE")]
    pub(in crate::cli) file: Vec<PathBuf>,
    /// What relative paths are relative to [default: the folder of the first file]
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) project_directory: Option<PathBuf>,
    /// The project's name
    #[arg(short, long, value_name = "NAME")]
    pub(in crate::cli) project_name: Option<String>,
    /// A variable of the files; without a value that of this process [repeatable]
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(in crate::cli) env: Vec<String>,
    /// A file of variables, in place of `.env` [repeatable]
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) env_file: Vec<PathBuf>,
    /// Let the files see all variables of this process
    #[arg(long)]
    pub(in crate::cli) env_from_process: bool,
    /// An active profile; `*` is all of them [repeatable]
    #[arg(long, value_name = "PROFILE")]
    pub(in crate::cli) profile: Vec<String>,
    /// Let the files name others outside of the project's folders
    #[arg(long)]
    pub(in crate::cli) allow_outside_paths: bool,
    /// What becomes of input that docker compose reads as no author can have meant
    #[arg(long, value_enum, default_value_t = StrictnessArg::Careful)]
    pub(in crate::cli) strictness: StrictnessArg,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ComposeConfigArgs {
    #[command(flatten)]
    pub(in crate::cli) project: ProjectArgs,
    /// The form of the output [default: yaml]
    #[arg(long, value_enum)]
    pub(in crate::cli) format: Option<ConfigFormatArg>,
    /// Leave variables as they are written
    #[arg(long)]
    pub(in crate::cli) no_interpolate: bool,
    /// Print only the names of the services, one a line
    #[arg(long, conflicts_with = "images")]
    pub(in crate::cli) services: bool,
    /// Print only the images, one a line
    #[arg(long)]
    pub(in crate::cli) images: bool,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ComposePlanArgs {
    #[command(flatten)]
    pub(in crate::cli) project: ProjectArgs,
    #[command(flatten)]
    pub(in crate::cli) choices: ChoiceArgs,
    /// The form of the output [default: yaml]
    #[arg(long, value_enum)]
    pub(in crate::cli) format: Option<ConfigFormatArg>,
}

/// What the files do not decide.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ChoiceArgs {
    /// What becomes of the host ports that the files ask for
    #[arg(long, value_enum, default_value_t = HostPortsArg::Ephemeral)]
    pub(in crate::cli) host_ports: HostPortsArg,
    /// Give containers the names of `container_name`
    #[arg(long)]
    pub(in crate::cli) literal_container_names: bool,
    /// An image in place of what a service names or builds [repeatable]
    #[arg(long, value_name = "SERVICE=REF")]
    pub(in crate::cli) image: Vec<String>,
    /// The range that networks get their subnets from, as in 10.77.0.0/16; `engine` for the engine's own pools
    /// [default: 198.18.0.0/15]
    #[arg(long, value_name = "RANGE")]
    pub(in crate::cli) subnets: Option<String>,
    /// A network of the engine for all projects, in place of a bridge for each: they can reach each other then
    #[arg(long, value_name = "NETWORK")]
    pub(in crate::cli) shared_network: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ComposeUpArgs {
    #[command(flatten)]
    pub(in crate::cli) project: ProjectArgs,
    #[command(flatten)]
    pub(in crate::cli) choices: ChoiceArgs,
    /// Leave the project running, until `compose down`
    #[arg(short, long)]
    pub(in crate::cli) detach: bool,
    /// How long it may take until all is ready, as in 60s [default: 20m]
    #[arg(long, value_name = "DURATION")]
    pub(in crate::cli) wait_timeout: Option<TimeLimit>,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = EXIT_CODES,
    override_usage = "gym-sandbox compose run [OPTIONS] <SERVICE> <--shell <LINE>|-- <CMD>...>"
)]
pub(in crate::cli) struct ComposeRunArgs {
    #[command(flatten)]
    pub(in crate::cli) project: ProjectArgs,
    #[command(flatten)]
    pub(in crate::cli) choices: ChoiceArgs,
    /// How long it may take until all is ready, as in 60s [default: 20m]
    #[arg(long, value_name = "DURATION")]
    pub(in crate::cli) wait_timeout: Option<TimeLimit>,
    /// The service to run the command in
    #[arg(value_name = "SERVICE")]
    pub(in crate::cli) service: String,
    #[command(flatten)]
    pub(in crate::cli) program: ProgramArgs,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ComposeNameArgs {
    /// The name of the project
    #[arg(short, long, value_name = "NAME")]
    pub(in crate::cli) project_name: String,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ComposeLogsArgs {
    #[command(flatten)]
    pub(in crate::cli) name: ComposeNameArgs,
    /// The services; without any, all
    #[arg(value_name = "SERVICE")]
    pub(in crate::cli) services: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) lines: LogLineArgs,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = EXIT_CODES,
    override_usage = "gym-sandbox compose exec --project-name <NAME> [OPTIONS] <SERVICE> <--shell <LINE>|-- <CMD>...>"
)]
pub(in crate::cli) struct ComposeExecArgs {
    #[command(flatten)]
    pub(in crate::cli) name: ComposeNameArgs,
    /// The service
    #[arg(value_name = "SERVICE")]
    pub(in crate::cli) service: String,
    #[command(flatten)]
    pub(in crate::cli) program: ProgramArgs,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ComposeDownArgs {
    #[command(flatten)]
    pub(in crate::cli) name: ComposeNameArgs,
    /// How long every container gets to end by itself [default: what the files said, else no time at all]
    #[arg(long, value_name = "DURATION")]
    pub(in crate::cli) grace: Option<TimeLimit>,
    /// Leave the volumes
    #[arg(long)]
    pub(in crate::cli) keep_volumes: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(in crate::cli) enum HostPortsArg {
    /// Free ports of the loopback address
    Ephemeral,
    /// Those of the files
    AsWritten,
    /// None
    Unpublished,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(in crate::cli) enum StrictnessArg {
    /// Refused where it would be lost, else a warning
    Careful,
    /// Read as docker compose does, with a warning
    Compatible,
    /// Refused
    Strict,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(in crate::cli) enum ConfigFormatArg {
    /// YAML
    Yaml,
    /// JSON
    Json,
}
