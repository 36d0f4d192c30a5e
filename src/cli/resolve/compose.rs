//! Which Compose project is read, and what is printed of it.

use std::path::PathBuf;

use gym_sandbox::compose::{Interpolation, LoadOptions, OutsidePaths, Strictness, config};
use gym_sandbox::{Error, Operation, Result};

use super::super::args::{ComposeConfigArgs, ConfigFormatArg, ProjectArgs, StrictnessArg};
use super::super::output::Format;

/// A Compose project to print.
#[derive(Debug)]
pub(in crate::cli) struct ComposeConfigRequest {
    /// How it is loaded, without its files.
    pub(in crate::cli) options: LoadOptions,
    /// Its files; `-` is standard input.
    pub(in crate::cli) files: Vec<PathBuf>,
    pub(in crate::cli) output: ConfigOutput,
    pub(in crate::cli) format: Format,
}

/// What is printed of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum ConfigOutput {
    /// All of it.
    Project(config::Format),
    /// The names of its services.
    Services,
    /// Its images.
    Images,
}

pub(super) fn request(args: ComposeConfigArgs, format: Format) -> Result<ComposeConfigRequest> {
    let form = match (args.format, format) {
        (Some(ConfigFormatArg::Json), _) | (None, Format::Json) => config::Format::Json,
        (Some(ConfigFormatArg::Yaml), _) | (None, Format::Text) => config::Format::Yaml,
    };
    let output = match (args.services, args.images) {
        (true, _) => ConfigOutput::Services,
        (false, true) => ConfigOutput::Images,
        (false, false) => ConfigOutput::Project(form),
    };
    let (mut options, files) = project(args.project)?;
    if args.no_interpolate && matches!(output, ConfigOutput::Project(_)) {
        options = options.with_interpolation(Interpolation::Keep);
    }
    Ok(ComposeConfigRequest {
        options,
        files,
        output,
        format,
    })
}

/// How a project is loaded, and its files.
pub(super) fn project(args: ProjectArgs) -> Result<(LoadOptions, Vec<PathBuf>)> {
    let mut options = LoadOptions::new().with_strictness(match args.strictness {
        StrictnessArg::Careful => Strictness::Careful,
        StrictnessArg::Compatible => Strictness::Compatible,
        StrictnessArg::Strict => Strictness::Strict,
    });
    if args.env_from_process {
        options = options.with_variables(process_variables());
    }
    options = options.with_variables(super::variables(&args.env)?);
    options.project_directory = args.project_directory;
    options.project_name = args.project_name;
    options.env_files = args.env_file;
    options.profiles = args.profile;
    if args.allow_outside_paths {
        options = options.with_outside_paths(OutsidePaths::Allow);
    }
    if args.file.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
        return Err(Error::invalid(
            Operation::Configure,
            "-f: standard input can be read only once",
        ));
    }
    Ok((options, args.file))
}

/// The variables of this process; those that are not UTF-8 can stand in no Compose file.
fn process_variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
