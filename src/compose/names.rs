//! Which files a project has, where it stands, what it is called, and which variables it sees.

use std::path::{Path, PathBuf};

use super::envfile;
use super::load::{Environment, Load, ParsedFile, Place};
use super::model::{Context, Decode, Project};
use super::node::{Node, Position, Value};
use super::options::Interpolation;
use super::path::YamlPath;
use super::source::Source;
use super::{pathtext, template};

/// The variable that holds the project name.
pub(crate) const PROJECT_NAME_VARIABLE: &str = "COMPOSE_PROJECT_NAME";

/// The names a Compose file is looked for under, best first.
const DEFAULT_FILES: &[&str] = &[
    "compose.yaml",
    "compose.yml",
    "docker-compose.yml",
    "docker-compose.yaml",
];
/// The names of a file over it.
const DEFAULT_OVERRIDES: &[&str] = &[
    "compose.override.yml",
    "compose.override.yaml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
];

/// A file the caller named.
#[derive(Debug)]
pub(crate) struct NamedFile {
    pub(crate) path: String,
    /// Its text, when it is in no file.
    pub(crate) text: Option<String>,
}

/// Where a load starts.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) files: Vec<NamedFile>,
    pub(crate) folder: String,
    pub(crate) environment: Environment,
}

/// Finds the files, the project folder and the variables.
pub(crate) fn find_start(load: &mut Load<'_>) -> Option<Start> {
    let options = load.options;
    let working = working_folder(load)?;
    let given = options
        .project_directory
        .as_ref()
        .map(|folder| resolved(&working, folder));
    let mut files: Vec<NamedFile> = options.files.iter().map(|file| named(&working, file)).collect();
    let mut environment = options.environment.clone();
    let folder_of = |files: &[NamedFile]| {
        let first = files
            .iter()
            .find(|file| file.text.is_none())
            .map(|file| pathtext::folder(&file.path));
        given.clone().or(first).unwrap_or_else(|| working.clone())
    };
    load.reader.allow(&folder_of(&files));
    let mut env_files: Vec<String> = options
        .env_files
        .iter()
        .map(|file| resolved(&working, file))
        .collect();
    if env_files.is_empty()
        && let Some(list) = options.environment.get("COMPOSE_ENV_FILES")
    {
        let named = list.split(',').filter(|file| !file.is_empty());
        env_files = named.map(|file| resolved(&working, Path::new(file))).collect();
    }
    add_env_files(load, &env_files, &folder_of(&files), &mut environment)?;
    if files.is_empty() {
        files = default_files(load, &working, &folder_of(&[]), &environment)?;
        if env_files.is_empty() {
            load.reader.allow(&folder_of(&files));
            add_env_files(load, &[], &folder_of(&files), &mut environment)?;
        }
    }
    for file in files.iter().filter(|file| file.text.is_none()) {
        load.reader.allow(&pathtext::folder(&file.path));
    }
    let folder = folder_of(&files);
    Some(Start {
        files,
        folder,
        environment,
    })
}

fn working_folder(load: &mut Load<'_>) -> Option<String> {
    let given = load
        .options
        .working_directory
        .as_ref()
        .map(|folder| folder.to_string_lossy().into_owned());
    if let Some(folder) = given.as_ref().filter(|folder| folder.starts_with('/')) {
        return Some(pathtext::clean(folder));
    }
    match std::env::current_dir() {
        Ok(current) => Some(pathtext::join(
            &current.to_string_lossy(),
            &given.unwrap_or_default(),
        )),
        Err(error) => {
            load.sink.error(
                Position::default(),
                &YamlPath::new(),
                format!("the working folder is unknown: {error}"),
            );
            None
        }
    }
}

fn resolved(working: &str, path: &Path) -> String {
    pathtext::clean(&pathtext::absolute(working, &path.to_string_lossy()))
}

fn named(working: &str, source: &Source) -> NamedFile {
    match source {
        Source::Path(path) => NamedFile {
            path: resolved(working, path),
            text: None,
        },
        Source::Text { name, text } => NamedFile {
            path: name.clone(),
            text: Some(text.clone()),
        },
    }
}

/// Adds variables of files to those that are set already, which win.
fn add_env_files(
    load: &mut Load<'_>,
    named: &[String],
    folder: &str,
    environment: &mut Environment,
) -> Option<()> {
    let nowhere = Position::default();
    let root = YamlPath::new();
    let mut found = Environment::new();
    let default = [pathtext::join(folder, ".env")];
    let is_default = named.is_empty();
    if is_default && wants_no_default(load)? {
        return Some(());
    }
    for file in if is_default { &default[..] } else { named } {
        if is_default && !load.reader.is_file(file) {
            continue;
        }
        let text = if is_default {
            load.reader.read_within(file, nowhere, &root, &mut load.sink)?
        } else {
            match load.reader.read_named(file) {
                Ok(text) => text,
                Err(message) => {
                    load.sink
                        .error(nowhere, &root, format!("couldn't find env file: {message}"));
                    return None;
                }
            }
        };
        let lookup = |name: &str| environment.get(name).cloned();
        if let Err(error) = super::dotenv::parse(&text, &mut found, &lookup) {
            envfile::report(load, file, &error);
            return None;
        }
    }
    for (name, value) in found {
        environment.entry(name).or_insert(value);
    }
    Some(())
}

/// Reads `COMPOSE_DISABLE_ENV_FILE`, in the words of Go's `ParseBool`.
fn wants_no_default(load: &mut Load<'_>) -> Option<bool> {
    let name = "COMPOSE_DISABLE_ENV_FILE";
    match load.options.environment.get(name).map(String::as_str) {
        Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Some(true),
        None | Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Some(false),
        Some(other) => {
            let message = format!("{name} is \"{other}\": it must be `true` or `false`");
            load.sink.error(Position::default(), &YamlPath::new(), message);
            None
        }
    }
}

/// Finds the files when none is given: those of `COMPOSE_FILE`, or the default names in this folder or above.
fn default_files(
    load: &mut Load<'_>,
    working: &str,
    folder: &str,
    environment: &Environment,
) -> Option<Vec<NamedFile>> {
    let file = |path: String| NamedFile { path, text: None };
    if let Some(list) = environment.get("COMPOSE_FILE").filter(|list| !list.is_empty()) {
        let separator = environment
            .get("COMPOSE_PATH_SEPARATOR")
            .map_or(":", String::as_str);
        let separator = if separator.is_empty() { ":" } else { separator };
        return Some(
            list.split(separator)
                .map(|path| file(resolved(working, Path::new(path))))
                .collect(),
        );
    }
    let mut folder = folder.to_owned();
    loop {
        let find = |names: &[&str]| {
            names
                .iter()
                .map(|name| pathtext::join(&folder, name))
                .find(|path| load.reader.is_file(path))
        };
        if let Some(main) = find(DEFAULT_FILES) {
            return Some(
                std::iter::once(main)
                    .chain(find(DEFAULT_OVERRIDES))
                    .map(file)
                    .collect(),
            );
        }
        let parent = pathtext::folder(&folder);
        if parent == folder {
            let message = "no configuration file provided: not found";
            let hint = format!("name a file, or make one called {}", DEFAULT_FILES[0]);
            load.sink
                .error_with_hint(Position::default(), &YamlPath::new(), message, hint);
            return None;
        }
        folder = parent;
    }
}

/// Determines the project name: given, then `COMPOSE_PROJECT_NAME`, then `name:`, then the folder.
pub(crate) fn project_name(load: &mut Load<'_>, start: &Start, files: &[ParsedFile]) -> Option<String> {
    let nowhere = Position::default();
    let root = YamlPath::new();
    let from_environment = start
        .environment
        .get(PROJECT_NAME_VARIABLE)
        .filter(|name| !name.is_empty());
    let given = load.options.project_name.as_ref().filter(|name| !name.is_empty());
    if let Some(name) = given.or(from_environment) {
        if normalized_name(name) == *name {
            return Some(name.clone());
        }
        let message = format!(
            "invalid project name \"{name}\": must consist only of lowercase alphanumeric characters, hyphens, and \
             underscores as well as start with a letter or number"
        );
        load.sink.error(nowhere, &root, message);
        return None;
    }
    let mut written = String::new();
    for document in files.iter().flat_map(|file| &file.documents) {
        match document.root.get("name").map(|node| (node, &node.value)) {
            None | Some((_, Value::Null | Value::Seq(_) | Value::Map(_))) => {}
            Some((node, _)) => {
                let text = node.to_text();
                if !text.is_empty() {
                    written = text;
                }
            }
        }
    }
    let name = if written.is_empty() {
        normalized_name(start.folder.rsplit('/').next().unwrap_or_default())
    } else if load.options.interpolation == Interpolation::Apply {
        let lookup = |name: &str| start.environment.get(name).cloned();
        // A mistake in it is found again, with its position, when the file is interpolated.
        template::substitute(&written, &lookup, &mut |_| {})
            .map(|name| normalized_name(&name))
            .ok()?
    } else {
        normalized_name(&written)
    };
    if name.is_empty() {
        let hint = "give a name, or set `name:` in the file";
        load.sink
            .error_with_hint(nowhere, &root, "project name must not be empty", hint);
        return None;
    }
    Some(name)
}

/// Makes a project name of any text: lower case, other characters dropped, no `_` or `-` first.
pub(crate) fn normalized_name(text: &str) -> String {
    let kept: String = text
        .to_lowercase()
        .chars()
        .filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'))
        .collect();
    kept.trim_start_matches(['_', '-']).to_owned()
}

/// Makes the tree typed.
pub(crate) fn decode_project(load: &mut Load<'_>, model: &Node, place: Place) -> Project {
    let mut project = Project {
        environment: place.environment,
        directory: PathBuf::from(place.folder),
        ..Project::default()
    };
    let mut context = Context {
        sink: &mut load.sink,
        path: YamlPath::new(),
        traps: load.traps,
    };
    context.entries(model, |key, node, context| match key {
        "name" => project.name = Decode::decode(node, context),
        "services" => project.services = Decode::decode(node, context),
        "networks" => project.networks = Decode::decode(node, context),
        "volumes" => project.volumes = Decode::decode(node, context),
        "secrets" => project.secrets = Decode::decode(node, context),
        "configs" => project.configs = Decode::decode(node, context),
        "models" => project.models = Decode::decode(node, context),
        _ => {
            if key.starts_with("x-") {
                project
                    .extensions
                    .insert(key.to_owned(), Decode::decode(node, context));
            }
        }
    });
    project
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_any_text() {
        for (text, name) in [
            (".My App.v2", "myappv2"),
            ("___", ""),
            ("é", ""),
            ("15-project.Name", "15-projectname"),
            ("_-a_b", "a_b"),
        ] {
            assert_eq!(normalized_name(text), name, "{text}");
        }
    }
}
