//! Folds `env_file` into `environment` and `label_file` into `labels`.

use std::collections::BTreeMap;

use super::dotenv::{self, DotenvError};
use super::load::Load;
use super::model::{EnvFile, Project, Service};
use super::node::{Node, Position};
use super::path::YamlPath;
use super::trap::{self, Trap};

/// Reads the files of every active service.
pub(crate) fn apply(load: &mut Load<'_>, project: &mut Project, model: &Node) {
    let environment = std::mem::take(&mut project.environment);
    for (name, service) in &mut project.services {
        let path = YamlPath::of_keys(["services", name.as_str()]);
        if load.sink.is_poisoned(&path) {
            continue;
        }
        read_environment(load, service, &environment, model, &path);
        read_labels(load, service, model, &path);
    }
    project.environment = environment;
}

fn read_environment(
    load: &mut Load<'_>,
    service: &mut Service,
    environment: &BTreeMap<String, String>,
    model: &Node,
    path: &YamlPath,
) {
    for (name, value) in &mut service.environment {
        if value.is_none() {
            *value = environment.get(name).cloned();
        }
    }
    let own: BTreeMap<String, String> = service
        .environment
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), value.clone()?)))
        .collect();
    let mut values = own.clone();
    for (index, file) in service.env_files.iter().enumerate() {
        let place = path.key("env_file").index(index);
        let at = model.position_of(&place);
        let lookup = |name: &str| environment.get(name).or_else(|| own.get(name)).cloned();
        read_env_file(load, file, &mut values, &lookup, at, &place);
    }
    for (name, value) in &service.environment {
        if value.is_none() && values.contains_key(name) {
            let place = path.key("environment");
            let at = model.position_of(&place.key(name));
            let traps = load.traps;
            trap::report(traps, Trap::NullHidesEnvFile, at, &place, name, &mut load.sink);
        }
    }
    let mut merged: BTreeMap<String, Option<String>> = values
        .into_iter()
        .map(|(name, value)| (name, Some(value)))
        .collect();
    merged.append(&mut service.environment);
    service.environment = merged;
}

fn read_env_file(
    load: &mut Load<'_>,
    file: &EnvFile,
    values: &mut BTreeMap<String, String>,
    lookup: dotenv::Lookup<'_>,
    at: Position,
    place: &YamlPath,
) {
    if !load.reader.exists(&file.path) {
        if file.required {
            let message = format!("env file {} not found: no such file", file.path);
            load.sink
                .error_with_hint(at, place, message, "make it, or write `required: false`");
        }
        return;
    }
    let Some(text) = load.reader.read_within(&file.path, at, place, &mut load.sink) else {
        return;
    };
    let result = match file.format.as_str() {
        "" | ".env" => dotenv::parse(&text, values, lookup),
        "raw" => dotenv::parse_raw(&text, values, lookup),
        format => {
            load.sink
                .error(at, place, format!("unsupported env_file format \"{format}\""));
            return;
        }
    };
    if let Err(error) = result {
        report(load, &file.path, &error);
    }
}

fn read_labels(load: &mut Load<'_>, service: &mut Service, model: &Node, path: &YamlPath) {
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    for (index, file) in service.label_files.iter().enumerate() {
        let place = path.key("label_file").index(index);
        let at = model.position_of(&place);
        if !load.reader.exists(file) {
            load.sink
                .error(at, &place, format!("label file {file} not found: no such file"));
            continue;
        }
        let Some(text) = load.reader.read_within(file, at, &place, &mut load.sink) else {
            continue;
        };
        let mut values = BTreeMap::new();
        let lookup = |name: &str| labels.get(name).cloned();
        if let Err(error) = dotenv::parse(&text, &mut values, &lookup) {
            report(load, file, &error);
        }
        labels.append(&mut values);
    }
    labels.append(&mut service.labels);
    service.labels = labels;
}

/// Says what is wrong in a file of variables.
pub(crate) fn report(load: &mut Load<'_>, file: &str, error: &DotenvError) {
    let number = load.reader.register(file);
    let at = Position {
        file: number,
        line: error.line,
        column: 1,
        prefixed: false,
    };
    load.sink.error(
        at,
        &YamlPath::new(),
        format!("failed to read {file}: line {}: {}", error.line, error.message),
    );
}
