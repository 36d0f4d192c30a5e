//! Turns short forms into long ones, so that later stages and later files meet one form only.
//!
//! Which keys is the table; the text of ports, mounts and devices is read in short.rs.

use super::diagnostic::Sink;
use super::node::{Node, Value};
use super::path::{Pattern, YamlPath, lookup};
use super::pathtext;
use super::short;
use super::trap::{self, Trap};
use super::yaml::Budget;

mod forms;

use forms::{depends_on, env_file, key_values, names, port_node, ssh, ulimit};

/// Whether variables are still in the text, so that it may not parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variables {
    Replaced,
    Kept,
}

/// Makes the whole tree canonical; what cannot be is reported and taken out.
pub(crate) fn canonicalize(
    root: &mut Node,
    variables: Variables,
    traps: trap::Policy,
    budget: &mut Budget,
    sink: &mut Sink,
) {
    Walk {
        sink,
        path: YamlPath::new(),
        variables,
        traps,
        budget,
    }
    .node(root);
}

/// A short form.
#[derive(Clone, Copy, Debug)]
enum Form {
    Build,
    FileMount,
    StringOrBoolean,
    KeyValues,
    DependsOn,
    EnvFiles,
    StringOrList,
    Extends,
    Gpus,
    Names,
    Mount,
    Device,
    Ports,
    Ssh,
    External,
    Ulimit,
}

static FORMS: &[(Pattern, Form)] = &[
    (&["services", "*", "build"], Form::Build),
    (&["services", "*", "build", "secrets", "*"], Form::FileMount),
    (&["services", "*", "build", "provenance"], Form::StringOrBoolean),
    (&["services", "*", "build", "sbom"], Form::StringOrBoolean),
    (
        &["services", "*", "build", "additional_contexts"],
        Form::KeyValues,
    ),
    (&["services", "*", "build", "ssh"], Form::Ssh),
    (&["services", "*", "build", "ulimits", "*"], Form::Ulimit),
    (&["services", "*", "ulimits", "*"], Form::Ulimit),
    (&["services", "*", "depends_on"], Form::DependsOn),
    (&["services", "*", "env_file"], Form::EnvFiles),
    (&["services", "*", "label_file"], Form::StringOrList),
    (&["services", "*", "extends"], Form::Extends),
    (&["services", "*", "gpus"], Form::Gpus),
    (&["services", "*", "networks"], Form::Names),
    (&["services", "*", "models"], Form::Names),
    (&["services", "*", "volumes", "*"], Form::Mount),
    (&["services", "*", "dns"], Form::StringOrList),
    (&["services", "*", "devices", "*"], Form::Device),
    (&["services", "*", "secrets", "*"], Form::FileMount),
    (&["services", "*", "configs", "*"], Form::FileMount),
    (&["services", "*", "ports"], Form::Ports),
    (
        &["services", "*", "develop", "watch", "*", "ignore"],
        Form::StringOrList,
    ),
    (
        &["services", "*", "develop", "watch", "*", "include"],
        Form::StringOrList,
    ),
    (&["volumes", "*"], Form::External),
    (&["networks", "*"], Form::External),
    (&["secrets", "*"], Form::External),
    (&["configs", "*"], Form::External),
];

struct Walk<'a> {
    sink: &'a mut Sink,
    path: YamlPath,
    variables: Variables,
    traps: trap::Policy,
    budget: &'a mut Budget,
}

impl Walk<'_> {
    /// Returns false when the node has to go.
    fn node(&mut self, node: &mut Node) -> bool {
        if let Some(form) = lookup(FORMS, &self.path)
            && let Err(message) = self.convert(*form, node)
        {
            if self.variables == Variables::Kept {
                return true;
            }
            self.sink.error(node.at, &self.path, message);
            return false;
        }
        match &mut node.value {
            Value::Map(map) => map.retain(|key, child| {
                self.path.push_key(key);
                let keep = self.node(child);
                self.path.pop();
                keep
            }),
            Value::Seq(items) => {
                let omits_empty = self.path.matches(&["services", "*", "dns"]);
                let mut index = 0;
                items.retain_mut(|child| {
                    self.path.push_index(index);
                    let keep = self.node(child);
                    self.path.pop();
                    index += 1;
                    keep && !(omits_empty && child.as_str() == Some(""))
                });
            }
            _ => {}
        }
        true
    }

    fn convert(&mut self, form: Form, node: &mut Node) -> Result<(), String> {
        let at = node.at;
        let text = node.as_str().map(str::to_owned);
        let replacement = match (form, text) {
            (Form::Build, Some(context)) => Node::with_entries([("context", Value::Str(context))], at),
            (Form::FileMount, Some(source)) => Node::with_entries([("source", Value::Str(source))], at),
            (Form::Extends, Some(service)) => Node::with_entries([("service", Value::Str(service))], at),
            (Form::StringOrBoolean, None) => Node::string(node.to_text(), at),
            (Form::StringOrList, Some(_)) => Node::seq(vec![node.clone()], at),
            (Form::Gpus, Some(_)) => {
                let all = Node::with_entries([("count", Value::Str("all".to_owned()))], at);
                Node::seq(vec![all], at)
            }
            (Form::Device, Some(text)) => {
                let [source, target, permissions] = short::parse_device(&text)?;
                let entries = [
                    ("source", source),
                    ("target", target),
                    ("permissions", permissions),
                ];
                Node::with_entries(entries.map(|(key, value)| (key, Value::Str(value))), at)
            }
            (Form::Mount, Some(text)) => self.mount(&text, node)?,
            (Form::EnvFiles, Some(_)) => Node::seq(vec![env_file(node.clone())], at),
            (Form::EnvFiles, None) => {
                if let Some(items) = node.as_seq_mut() {
                    for item in items {
                        *item = env_file(std::mem::take(item));
                    }
                }
                return Ok(());
            }
            (Form::DependsOn, None) => return depends_on(node),
            (Form::Names, None) => {
                names(node);
                return Ok(());
            }
            (Form::KeyValues, None) => return key_values(node),
            (Form::Ssh, None) => return ssh(node),
            (Form::Ports, None) => return self.ports(node),
            (Form::External, None) => return self.external(node),
            (Form::Ulimit, _) => return ulimit(node),
            _ => return Ok(()),
        };
        *node = Node {
            key_at: node.key_at,
            ..replacement
        };
        Ok(())
    }

    fn mount(&mut self, text: &str, node: &Node) -> Result<Node, String> {
        let mount = short::parse_mount(text)?;
        if mount.is_misread_name() {
            trap::report(
                self.traps,
                Trap::OneLetterVolume,
                node.at,
                &self.path,
                text,
                self.sink,
            );
        }
        for option in &mount.ignored {
            trap::report(
                self.traps,
                Trap::IgnoredMountOption,
                node.at,
                &self.path,
                option,
                self.sink,
            );
        }
        let kind = if mount.is_bind { "bind" } else { "volume" };
        let mut entries = vec![("type", Value::Str(kind.to_owned()))];
        if !mount.source.is_empty() {
            entries.push(("source", Value::Str(mount.source)));
        }
        if !mount.target.is_empty() {
            entries.push(("target", Value::Str(pathtext::clean(&mount.target))));
        }
        if mount.read_only {
            entries.push(("read_only", Value::Bool(true)));
        }
        let mut result = Node::with_entries(entries, node.at);
        let mut bind = Vec::new();
        bind.extend(mount.selinux.map(|value| ("selinux", Value::Str(value))));
        bind.extend(mount.propagation.map(|value| ("propagation", Value::Str(value))));
        if mount.is_bind {
            bind.push(("create_host_path", Value::Bool(true)));
        }
        let mut options = Vec::new();
        if mount.is_bind || !bind.is_empty() {
            options.push(("bind", Node::with_entries(bind, node.at)));
        }
        if !mount.tiny && (!mount.is_bind || mount.nocopy) {
            let nocopy = mount.nocopy.then_some(("nocopy", Value::Bool(true)));
            options.push(("volume", Node::with_entries(nocopy, node.at)));
        }
        if let Some(map) = result.as_map_mut() {
            map.extend(options.into_iter().map(|(key, node)| (key.to_owned(), node)));
        }
        Ok(result)
    }

    fn ports(&mut self, node: &mut Node) -> Result<(), String> {
        let at = node.at;
        let Some(items) = node.as_seq_mut() else {
            return Ok(());
        };
        let mut ports = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let text = match &item.value {
                Value::Str(text) => text.clone(),
                Value::Int(number) => number.to_string(),
                Value::Map(_) => {
                    ports.push(item.clone());
                    continue;
                }
                _ => return Err(format!("a port cannot be a {}", item.kind())),
            };
            match short::parse_port(&text) {
                Ok(parsed) => {
                    let Some(rest) = self.budget.ports.checked_sub(parsed.len()) else {
                        return Err("the ranges of the project stand for too many ports".to_owned());
                    };
                    self.budget.ports = rest;
                    ports.extend(parsed.into_iter().map(|port| port_node(port, item)));
                } // With variables kept, the reference leaves the whole list as it is.
                Err(_) if self.variables == Variables::Kept => return Ok(()),
                Err(message) => self.sink.error(item.at, &self.path.index(index), message),
            }
        }
        *node = Node {
            key_at: node.key_at,
            ..Node::seq(ports, at)
        };
        Ok(())
    }

    fn external(&mut self, node: &mut Node) -> Result<(), String> {
        let at = node.key_at;
        let Some(map) = node.as_map_mut() else {
            return Ok(());
        };
        let Some(external) = map.get("external") else {
            return Ok(());
        };
        let Some(inner) = external.as_map() else {
            return Ok(());
        };
        let inner_name = inner.get("name").cloned();
        let flag = Node {
            value: Value::Bool(true),
            at: external.at,
            key_at: external.key_at,
        };
        map.insert("external".to_owned(), flag);
        let Some(inner_name) = inner_name else {
            return Ok(());
        };
        let hint = "write `name: ...` beside `external: true`";
        self.sink
            .warning(at, &self.path, "external.name is deprecated", hint);
        match map.get("name") {
            Some(name) if !name.same_value(&inner_name) => {
                Err("name and external.name conflict; only use name".to_owned())
            }
            Some(_) => Ok(()),
            None => {
                map.insert("name".to_owned(), inner_name);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
