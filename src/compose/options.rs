//! What to load and how: plain data the caller fills in.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::source::{OutsidePaths, Source};
use super::trap::Strictness;

/// Whether variables are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interpolation {
    /// Variables are replaced by their values.
    #[default]
    Apply,
    /// Variables stay as written; only [`crate::compose::config`] can print such a project.
    Keep,
}

/// What to load and how.
///
/// Nothing of the process is used unless it is given: no environment, and no working folder but for relative paths.
///
/// # Examples
///
/// ```
/// use gym_sandbox::compose::{LoadOptions, Source};
///
/// let options = LoadOptions::new()
///     .with_file(Source::path("compose.yaml"))
///     .with_file(Source::path("overlay.yaml"))
///     .with_variable("CPUS", "2")
///     .with_profile("*");
/// assert_eq!(options.files.len(), 2);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LoadOptions {
    /// The files, later ones over earlier ones. Without any, the default names are looked for.
    pub files: Vec<Source>,
    /// The folder relative paths are relative to. Default: the folder of the first file.
    pub project_directory: Option<PathBuf>,
    /// The project name. Default: `COMPOSE_PROJECT_NAME`, the file's `name`, the folder's name.
    pub project_name: Option<String>,
    /// The variables; the only ones besides those of the `.env` files.
    pub environment: BTreeMap<String, String>,
    /// The files of variables, in place of `.env` in the project folder. Default: `COMPOSE_ENV_FILES`, separated by
    /// commas, else `.env`, if it is there and `COMPOSE_DISABLE_ENV_FILE` is not true.
    pub env_files: Vec<PathBuf>,
    /// The active profiles; `*` activates all. Default: `COMPOSE_PROFILES`, separated by commas.
    pub profiles: Vec<String>,
    /// What may be read outside of the project. Default: nothing.
    pub outside_paths: OutsidePaths,
    /// Whether variables are replaced. Default: they are.
    pub interpolation: Interpolation,
    /// How input is taken that docker compose reads as no author can have meant. Default: carefully.
    pub strictness: Strictness,
    /// What `~` stands for. Default: the user's home folder.
    pub home: Option<PathBuf>,
    /// The folder relative file names are relative to. Default: the process's.
    pub working_directory: Option<PathBuf>,
}

impl LoadOptions {
    /// Makes options that load the default file of the working folder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file.
    pub fn with_file(mut self, file: Source) -> Self {
        self.files.push(file);
        self
    }

    /// Sets the folder relative paths are relative to.
    pub fn with_project_directory(mut self, folder: impl Into<PathBuf>) -> Self {
        self.project_directory = Some(folder.into());
        self
    }

    /// Sets the project name.
    pub fn with_project_name(mut self, name: impl Into<String>) -> Self {
        self.project_name = Some(name.into());
        self
    }

    /// Adds a variable.
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Adds variables.
    pub fn with_variables(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.environment.extend(variables);
        self
    }

    /// Adds a file of variables, in place of `.env`.
    pub fn with_env_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.env_files.push(file.into());
        self
    }

    /// Activates a profile.
    pub fn with_profile(mut self, name: impl Into<String>) -> Self {
        self.profiles.push(name.into());
        self
    }

    /// Sets what may be read outside of the project.
    pub fn with_outside_paths(mut self, outside: OutsidePaths) -> Self {
        self.outside_paths = outside;
        self
    }

    /// Sets whether variables are replaced.
    pub fn with_interpolation(mut self, interpolation: Interpolation) -> Self {
        self.interpolation = interpolation;
        self
    }

    /// Sets how input is taken that docker compose reads as no author can have meant.
    pub fn with_strictness(mut self, strictness: Strictness) -> Self {
        self.strictness = strictness;
        self
    }

    /// Sets what `~` stands for.
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Sets the folder relative file names are relative to.
    pub fn with_working_directory(mut self, folder: impl Into<PathBuf>) -> Self {
        self.working_directory = Some(folder.into());
        self
    }
}
