//! What `compose config` prints: the resolved project as YAML or JSON, its services, its images.
//!
//! The only file of the loader that writes YAML.

use indexmap::IndexSet;
use serde_json::Value as Json;

use super::diagnostic::Diagnostics;
use super::gofmt;
use super::load::ComposeLoader;
use super::model::{Encode, Project, Style, encode_float};
use super::node::{Node, Value};
use super::options::Interpolation;
use super::plan::{Plan, dependency_order};
use super::scalar::{self, ScalarTag};

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
        return Ok(Rendered {
            text: write(&tree_to_json(&tree), format),
            warnings,
        });
    }
    let outcome = loader.load()?;
    let text = match format {
        Format::Yaml => to_yaml(&outcome.project),
        Format::Json => to_json(&outcome.project),
    };
    Ok(Rendered {
        text,
        warnings: outcome.warnings,
    })
}

/// Prints the names of the active services, one a line, each after those it depends on.
///
/// # Errors
///
/// All mistakes of all files, in file order.
pub fn services(loader: &ComposeLoader) -> Result<Rendered, Diagnostics> {
    let outcome = loader.load()?;
    Ok(Rendered {
        text: lines(dependency_order(&outcome.project)),
        warnings: outcome.warnings,
    })
}

/// Prints the images of the active services, one a line, sorted by service.
///
/// # Errors
///
/// All mistakes of all files, in file order.
pub fn images(loader: &ComposeLoader) -> Result<Rendered, Diagnostics> {
    let outcome = loader.load()?;
    let images = outcome
        .project
        .services
        .keys()
        .filter_map(|name| outcome.project.image_of(name))
        .collect();
    Ok(Rendered {
        text: lines(images),
        warnings: outcome.warnings,
    })
}

/// Writes a project as JSON, with `$` written `$$` so that it can be read again.
pub fn to_json(project: &Project) -> String {
    write(&printable(project).encode(Style::Json), Format::Json).replace('$', "$$")
}

/// Writes a project as YAML, with `$` written `$$` so that it can be read again.
pub fn to_yaml(project: &Project) -> String {
    write(&printable(project).encode(Style::Yaml), Format::Yaml).replace('$', "$$")
}

/// Writes a plan, without what nobody asked for. Unlike a project it is no Compose file, so that `$` stays as it is.
pub fn plan(plan: &Plan, format: Format) -> String {
    let mut value = serde_json::to_value(plan).unwrap_or_default();
    prune(&mut value);
    write(&value, format)
}

/// Takes out what stands for "not asked for", but for the values of variables, which may be empty or taken away.
fn prune(value: &mut Json) {
    let is_nothing = |value: &Json| match value {
        Json::Null | Json::Bool(false) => true,
        Json::Array(items) => items.is_empty(),
        Json::Object(map) => map.is_empty(),
        _ => false,
    };
    match value {
        Json::Object(map) => {
            // An empty command is not the same as none.
            let keeps = |key: &str| matches!(key, "entrypoint" | "command");
            for (key, value) in map.iter_mut() {
                if key != "environment" && key != "args" {
                    prune(value);
                }
            }
            map.retain(|key, value| !is_nothing(value) || keeps(key) && value.is_array());
        }
        Json::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
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

fn lines(items: Vec<String>) -> String {
    items.into_iter().map(|item| item + "\n").collect()
}

fn write(value: &Json, format: Format) -> String {
    match format {
        Format::Json => serde_json::to_string_pretty(value).unwrap_or_default() + "\n",
        Format::Yaml => write_yaml(value),
    }
}

/// Writes YAML that go-yaml, and so this loader, reads back as the same values.
///
/// The writer quotes what YAML 1.2 would misread, but not what only go-yaml takes for a number or a date (`1_000`,
/// `2024-01-01`, `0b11`). Such strings go through it as words of their own, and are put back quoted.
fn write_yaml(value: &Json) -> String {
    let mut quoted = Quoted {
        word: "quoted".to_owned(),
        texts: IndexSet::new(),
    };
    let plain = serde_json::to_string(value).unwrap_or_default();
    while plain.contains(&quoted.word) {
        quoted.word.push('x');
    }
    let replaced = quoted.replace(value);
    let text = serde_yaml::to_string(&replaced).unwrap_or_default();
    let mut parts = text.split(&quoted.word);
    let mut output = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Behind each word stand its number and a dash.
        let (number, rest) = part.trim_start_matches('-').split_once('-').unwrap_or(("", part));
        let original = number
            .parse::<usize>()
            .ok()
            .and_then(|index| quoted.texts.get_index(index));
        output.push_str(&Json::String(original.cloned().unwrap_or_default()).to_string());
        output.push_str(rest);
    }
    output
}

/// Tells whether YAML 1.1, which many readers still speak, takes the text for a flag or a number to the base of 60.
fn is_old(text: &str) -> bool {
    const FLAGS: &[&str] = &["y", "yes", "on", "n", "no", "off"];
    let is_number =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    FLAGS.iter().any(|flag| text.eq_ignore_ascii_case(flag))
        || text.contains(':') && text.trim_start_matches(['+', '-']).split(':').all(is_number)
}

struct Quoted {
    /// A word that is nowhere in the value.
    word: String,
    texts: IndexSet<String>,
}

impl Quoted {
    fn text(&mut self, text: &str) -> String {
        let is_string = matches!(scalar::resolve(text, true, ScalarTag::None), Ok(Value::Str(_)));
        if is_string && text != "<<" && !is_old(text) || text.is_empty() {
            return text.to_owned();
        }
        let (index, _) = self.texts.insert_full(text.to_owned());
        format!("{}-{index}-", self.word)
    }

    fn replace(&mut self, value: &Json) -> Json {
        match value {
            Json::String(text) => Json::String(self.text(text)),
            Json::Array(items) => Json::Array(items.iter().map(|item| self.replace(item)).collect()),
            Json::Object(map) => Json::Object(
                map.iter()
                    .map(|(key, value)| (self.text(key), self.replace(value)))
                    .collect(),
            ),
            other => other.clone(),
        }
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
        Value::Str(text) => Json::String(text.clone()),
        Value::Time(text) => Json::String(gofmt::rfc3339(text)),
        Value::Seq(items) => Json::Array(items.iter().map(tree_to_json).collect()),
        Value::Map(map) => {
            let entries = map
                .iter()
                .filter(|(key, _)| *key != super::normalize::RESOLVED_VALUE);
            let mut entries: Vec<_> = entries
                .map(|(key, node)| (key.clone(), tree_to_json(node)))
                .collect();
            entries.sort_by(|left, right| left.0.cmp(&right.0));
            Json::Object(entries.into_iter().collect())
        }
    }
}
