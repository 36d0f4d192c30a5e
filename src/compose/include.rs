//! `include`: other projects' resources, loaded where they are and with their own variables.

use super::load::{Load, ParsedFile, Place};
use super::node::{Map, Node, Position, Value};
use super::path::YamlPath;
use super::{envfile, paths, pathtext};

/// What is imported.
const SECTIONS: &[&str] = &["services", "volumes", "networks", "secrets", "configs", "models"];

/// The deepest nesting of includes.
const DEEPEST: usize = 32;

/// Imports into `root` what it includes, and takes the key out.
pub(crate) fn apply(load: &mut Load<'_>, root: &mut Node, place: &Place) {
    let Some(include) = root.as_map_mut().and_then(|map| map.shift_remove("include")) else {
        return;
    };
    let path = YamlPath::of_keys(["include"]);
    let entries = match &include.value {
        Value::Null => return,
        Value::Seq(entries) => entries,
        _ => {
            load.sink.error(
                include.key_at,
                &path,
                format!("`include` must be a list, not a {}", include.kind()),
            );
            return;
        }
    };
    for (index, entry) in entries.iter().enumerate() {
        let path = path.index(index);
        let Some(wanted) = Wanted::read(load, entry, &path) else {
            continue;
        };
        if let Some(imported) = wanted.load(load, place, &path) {
            import(load, root, imported);
        }
    }
}

/// One entry of `include`.
struct Wanted {
    files: Vec<String>,
    project_directory: Option<String>,
    env_files: Vec<String>,
    at: Position,
}

impl Wanted {
    fn read(load: &mut Load<'_>, entry: &Node, path: &YamlPath) -> Option<Self> {
        let mut wanted = Self {
            files: Vec::new(),
            project_directory: None,
            env_files: Vec::new(),
            at: entry.at,
        };
        match &entry.value {
            Value::Str(file) => wanted.files.push(file.clone()),
            Value::Map(map) => {
                for (key, node) in map.iter() {
                    match key.as_str() {
                        "path" => wanted.files = texts(load, node, &path.key(key))?,
                        "env_file" => wanted.env_files = texts(load, node, &path.key(key))?,
                        "project_directory" => {
                            wanted.project_directory = texts(load, node, &path.key(key))?.pop();
                        }
                        _ => {
                            let message = format!("additional properties '{key}' not allowed");
                            load.sink.error(node.key_at, &path.key(key), message);
                            return None;
                        }
                    }
                }
            }
            _ => {
                load.sink.error(
                    entry.at,
                    path,
                    format!("must be a mapping or string, not a {}", entry.kind()),
                );
                return None;
            }
        }
        if wanted.files.is_empty() {
            load.sink.error(entry.at, path, "missing property 'path'");
            return None;
        }
        let remote = wanted
            .files
            .iter()
            .find(|file| paths::is_remote(file) || file.starts_with("oci:"));
        if let Some(file) = remote {
            load.sink
                .error(entry.at, path, format!("remote files cannot be included: {file}"));
            return None;
        }
        Some(wanted)
    }

    fn load(self, load: &mut Load<'_>, place: &Place, path: &YamlPath) -> Option<Node> {
        let files: Vec<String> = self
            .files
            .iter()
            .map(|file| pathtext::absolute(&place.folder, file))
            .collect();
        let first = files.first()?;
        if place.ancestors.contains(first) || place.ancestors.len() > DEEPEST {
            let chain = place.ancestors.join(" includes ");
            load.sink.error(
                self.at,
                path,
                format!("include cycle detected: {chain} includes {first}"),
            );
            return None;
        }
        let folder = match &self.project_directory {
            Some(folder) if !folder.is_empty() => pathtext::clean(&pathtext::absolute(&place.folder, folder)),
            _ => pathtext::folder(first),
        };
        let mut environment = place.environment.clone();
        let own = self.own_variables(load, place, &folder, path)?;
        for (name, value) in own {
            environment.entry(name).or_insert(value);
        }
        let parsed: Vec<ParsedFile> = files
            .iter()
            .map(|file| load.parse_within(file, self.at, path))
            .collect::<Option<_>>()?;
        let place = Place {
            folder,
            environment,
            ancestors: place.ancestors.clone(),
        };
        Some(load.group(parsed, &place))
    }

    /// Reads the variables of the included project: its `.env`, or what the entry names.
    fn own_variables(
        &self,
        load: &mut Load<'_>,
        place: &Place,
        folder: &str,
        path: &YamlPath,
    ) -> Option<std::collections::BTreeMap<String, String>> {
        let mut files: Vec<String> = self
            .env_files
            .iter()
            .map(|file| pathtext::absolute(&place.folder, file))
            .collect();
        if files.is_empty() {
            let default = pathtext::join(folder, ".env");
            if load.reader.is_file(&default) {
                files.push(default);
            }
        }
        let mut values = std::collections::BTreeMap::new();
        for file in files {
            let text = load.reader.read_within(&file, self.at, path, &mut load.sink)?;
            let lookup = |name: &str| place.environment.get(name).cloned();
            if let Err(error) = super::dotenv::parse(&text, &mut values, &lookup) {
                envfile::report(load, &file, &error);
                return None;
            }
        }
        Some(values)
    }
}

/// Reads a string or a list of strings.
fn texts(load: &mut Load<'_>, node: &Node, path: &YamlPath) -> Option<Vec<String>> {
    let items = match &node.value {
        Value::Str(text) => return Some(vec![text.clone()]),
        Value::Seq(items) => items,
        Value::Null => return Some(Vec::new()),
        _ => {
            load.sink
                .error(node.key_at, path, "must be a string or a list of strings");
            return None;
        }
    };
    let texts: Option<Vec<String>> = items
        .iter()
        .map(|item| item.as_str().map(str::to_owned))
        .collect();
    if texts.is_none() {
        load.sink.error(node.key_at, path, "must be a list of strings");
    }
    texts
}

fn import(load: &mut Load<'_>, root: &mut Node, mut imported: Node) {
    let at = root.at;
    let Some(root) = root.as_map_mut() else {
        return;
    };
    for section in SECTIONS {
        let Some(found) = imported.as_map_mut().and_then(|map| map.shift_remove(*section)) else {
            continue;
        };
        let Value::Map(found) = found.value else {
            continue;
        };
        let known = root
            .entry((*section).to_owned())
            .or_insert_with(|| Node::map(Map::new(), at));
        if known.is_null() {
            let message = format!("{section} must be a mapping, to import others into it");
            load.sink
                .error(known.key_at, &YamlPath::of_keys([*section]), message);
        }
        let Some(known) = known.as_map_mut() else {
            continue;
        };
        for (name, node) in *found {
            match known.get(&name) {
                None => {
                    known.insert(name, node);
                }
                Some(other) if other.same_value(&node) => {}
                Some(other) => {
                    let message = format!("{section}.{name} conflicts with imported resource");
                    load.sink.error(
                        other.key_at,
                        &YamlPath::of_keys([section, name.as_str()]),
                        message,
                    );
                }
            }
        }
    }
}
