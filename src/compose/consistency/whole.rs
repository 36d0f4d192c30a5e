//! Checks that look at the whole project: secrets, container names, cycles.

use std::collections::BTreeMap;

use crate::compose::diagnostic::Sink;
use crate::compose::model::Project;
use crate::compose::node::Node;
use crate::compose::path::YamlPath;

pub(super) fn secrets(project: &Project, model: &Node, sink: &mut Sink) {
    for (name, secret) in &project.secrets {
        let path = YamlPath::of_keys(["secrets", name.as_str()]);
        if !secret.external
            && secret.file.is_empty()
            && secret.environment.is_empty()
            && !sink.is_poisoned(&path)
        {
            let message = format!("secret \"{name}\" must declare either `file` or `environment`");
            sink.error(model.position_of(&path), &path, message);
        }
    }
}

pub(super) fn container_names(project: &Project, model: &Node, sink: &mut Sink) {
    let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, service) in &project.services {
        let container = service.container_name.as_str();
        if container.is_empty() {
            continue;
        }
        if let Some(other) = taken.insert(container, name) {
            let path = YamlPath::of_keys(["services", name.as_str(), "container_name"]);
            let message = format!("container name \"{container}\" is already in use by service {other}");
            sink.error(model.position_of(&path), &path, message);
        }
    }
}

/// Finds services that depend on one another in a circle; each circle is said once.
pub(super) fn cycles(project: &Project, model: &Node, sink: &mut Sink) {
    // 0: not seen, 1: on the way, 2: done.
    let mut states: BTreeMap<&str, u8> = BTreeMap::new();
    for start in project.services.keys() {
        if states.contains_key(start.as_str()) {
            continue;
        }
        // Each step is a service and the dependencies of it that are still to be followed.
        let mut way: Vec<(&str, Vec<&str>)> = vec![(start, children(project, start))];
        states.insert(start, 1);
        while let Some((name, open)) = way.last_mut() {
            let name = *name;
            let Some(next) = open.pop() else {
                states.insert(name, 2);
                way.pop();
                continue;
            };
            match states.get(next) {
                None => {
                    states.insert(next, 1);
                    way.push((next, children(project, next)));
                }
                Some(1) => {
                    let from = way.iter().position(|(name, _)| *name == next).unwrap_or(0);
                    let circle: Vec<_> = way[from..].iter().map(|(name, _)| *name).collect();
                    let path = YamlPath::of_keys(["services", name, "depends_on", next]);
                    let message = format!("dependency cycle detected: {} -> {next}", circle.join(" -> "));
                    sink.error(model.position_of(&path), &path, message);
                }
                Some(_) => {}
            }
        }
    }
}

fn children<'a>(project: &'a Project, name: &str) -> Vec<&'a str> {
    let Some(service) = project.services.get(name) else {
        return Vec::new();
    };
    let known = service
        .depends_on
        .keys()
        .filter(|name| project.services.contains_key(*name));
    let mut names: Vec<&str> = known.map(String::as_str).collect();
    names.reverse();
    names
}
