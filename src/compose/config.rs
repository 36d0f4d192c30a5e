//! What `compose config` prints: the resolved project as YAML or JSON, its services, its images.
//!
//! The only file of the loader that writes YAML.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::diagnostic::Diagnostics;
use super::load::ComposeLoader;
use super::model::{Encode, Project, Style, encode_float};
use super::node::{Node, Value};
use super::options::Interpolation;

/// An output form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// YAML.
    #[default]
    Yaml,
    /// JSON, indented.
    Json,
}

/// What was printed, and what there is to say about the project.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rendered {
    /// The text, with a line break at its end.
    pub text: String,
    /// The warnings.
    pub warnings: Diagnostics,
}

/// Prints the resolved project as `docker compose config` does, with the same fields.
///
/// With [`Interpolation::Keep`] in the loader's options the variables stay, and so does what depends on their values.
///
/// # Errors
///
/// All mistakes of all files, in file order.
///
/// # Examples
///
/// ```
/// use gym_sandbox::compose::config::{Format, render};
/// use gym_sandbox::compose::{ComposeLoader, LoadOptions, Source};
///
/// let file = Source::text("compose.yaml", "services: {web: {image: nginx}}");
/// let loader = ComposeLoader::new(LoadOptions::new().with_file(file).with_project_name("demo"));
/// assert!(render(&loader, Format::Yaml)?.text.contains("image: nginx"));
/// # Ok::<(), gym_sandbox::compose::Diagnostics>(())
/// ```
pub fn render(loader: &ComposeLoader, format: Format) -> Result<Rendered, Diagnostics> {
    if loader.options().interpolation == Interpolation::Keep {
        let (tree, warnings) = loader.load_tree()?;
        return Ok(Rendered { text: write(&tree_to_json(&tree), format), warnings });
    }
    let loaded = loader.load()?;
    let text = match format {
        Format::Yaml => to_yaml(&loaded.project),
        Format::Json => to_json(&loaded.project),
    };
    Ok(Rendered { text, warnings: loaded.warnings })
}

/// Prints the names of the active services, one a line, each after those it depends on.
///
/// # Errors
///
/// All mistakes of all files, in file order.
pub fn services(loader: &ComposeLoader) -> Result<Rendered, Diagnostics> {
    let loaded = loader.load()?;
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for name in loaded.project.services.keys() {
        visit(&loaded.project, name, &mut seen, &mut order);
    }
    Ok(Rendered { text: lines(order), warnings: loaded.warnings })
}

/// Prints the images of the active services, one a line, sorted by service.
///
/// # Errors
///
/// All mistakes of all files, in file order.
pub fn images(loader: &ComposeLoader) -> Result<Rendered, Diagnostics> {
    let loaded = loader.load()?;
    let images = loaded.project.services.keys().filter_map(|name| loaded.project.image_of(name)).collect();
    Ok(Rendered { text: lines(images), warnings: loaded.warnings })
}

/// Writes a project as JSON, with `$` written `$$` so that it can be read again.
pub fn to_json(project: &Project) -> String {
    write(&printable(project).encode(Style::Json), Format::Json).replace('$', "$$")
}

/// Writes a project as YAML, with `$` written `$$` so that it can be read again.
pub fn to_yaml(project: &Project) -> String {
    write(&printable(project).encode(Style::Yaml), Format::Yaml).replace('$', "$$")
}

/// Leaves out what no active service uses, and the files that are folded in already.
fn printable(project: &Project) -> Project {
    let mut project = project.without_unused();
    for service in project.services.values_mut() {
        service.env_files.clear();
        service.label_files.clear();
    }
    project
}

fn visit(project: &Project, name: &str, seen: &mut BTreeSet<String>, order: &mut Vec<String>) {
    // The loader refused cycles; the set is for projects that were changed since.
    if !project.services.contains_key(name) || !seen.insert(name.to_owned()) {
        return;
    }
    for dependency in project.services[name].depends_on.keys() {
        visit(project, dependency, seen, order);
    }
    order.push(name.to_owned());
}

fn lines(items: Vec<String>) -> String {
    items.into_iter().map(|item| item + "\n").collect()
}

fn write(value: &Json, format: Format) -> String {
    match format {
        Format::Json => serde_json::to_string_pretty(value).unwrap_or_default() + "\n",
        Format::Yaml => serde_yaml::to_string(value).unwrap_or_default(),
    }
}

/// Writes a tree as it is; the values of secrets are not part of it.
fn tree_to_json(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(value) => Json::from(*value),
        Value::Uint(value) => Json::from(*value),
        Value::Float(value) => encode_float(*value),
        Value::Float32(value) => value.encode(Style::Json),
        Value::Str(text) | Value::Time(text) => Json::String(text.clone()),
        Value::Seq(items) => Json::Array(items.iter().map(tree_to_json).collect()),
        Value::Map(map) => {
            let entries = map.iter().filter(|(key, _)| *key != super::normalize::RESOLVED_VALUE);
            let mut entries: Vec<_> = entries.map(|(key, node)| (key.clone(), tree_to_json(node))).collect();
            entries.sort_by(|left, right| left.0.cmp(&right.0));
            Json::Object(entries.into_iter().collect())
        }
    }
}
