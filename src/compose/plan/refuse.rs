//! What is refused by name before anything is made, and what has no effect.

use std::path::Path;

use serde_json::Value as Json;

use super::{Notes, Plan, PlanOptions, Planner};
use crate::compose::model::{Encode, Project, Style};
use crate::compose::path::YamlPath;
use crate::compose::support::{self, Verdict};
use crate::provider::{Policy, Violation};

/// Refuses the keys that the table of `support.rs` refuses, and warns of those without effect.
pub(super) fn keys(project: &Project, options: &PlanOptions, notes: &mut Notes) {
    let mut project = project.without_unused();
    for (name, service) in &mut project.services {
        // What is not built is not asked whether it could be.
        let planner = Planner {
            project: &Project::default(),
            options,
        };
        if !planner.is_built(name, service) {
            service.build = None;
        }
    }
    walk(&project.encode(Style::Yaml), &YamlPath::new(), notes);
}

fn walk(value: &Json, path: &YamlPath, notes: &mut Notes) {
    if !path.segments().is_empty() {
        match support::exactly(path) {
            Some(key) if key.verdict == Verdict::Refused => {
                notes.error(path.clone(), format!("is not supported: {}", key.note), None);
                return;
            }
            Some(key) if key.verdict == Verdict::Ignored => {
                if !is_default(value) {
                    notes.warning(path.clone(), format!("has no effect: {}", key.note));
                }
                return;
            }
            _ => {}
        }
    }
    match value {
        Json::Object(map) => {
            for (key, value) in map.iter().filter(|(key, _)| !key.starts_with("x-")) {
                walk(value, &path.key(key), notes);
            }
        }
        Json::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &path.index(index), notes);
            }
        }
        _ => {}
    }
}

/// Values that the loader fills in, or that ask for what is done anyway.
fn is_default(value: &Json) -> bool {
    match value {
        Json::String(word) => matches!(word.as_str(), "" | "ingress" | "host" | "replicated" | "default"),
        Json::Null | Json::Bool(true) => true,
        _ => false,
    }
}

/// Refuses what the policy does not allow.
pub(super) fn policy(planner: &Planner<'_>, plan: &Plan, notes: &mut Notes) {
    let policy = effective(planner);
    let made = plan.services.iter().flat_map(|service| &service.containers);
    let mut own: Vec<String> = made.map(|container| container.name.clone()).collect();
    // Who refers to a service that is scaled to nothing has been told so.
    let none = plan
        .services
        .iter()
        .filter(|service| service.containers.is_empty());
    own.extend(none.map(|service| planner.name_of(&service.name, 1)));
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    for service in &plan.services {
        // All containers of a service ask for the same.
        let Some(container) = service.containers.first() else {
            continue;
        };
        let refused = policy.check_beside(&container.spec, &own);
        note(refused, &YamlPath::of_keys(["services", &service.name]), notes);
    }
    for network in plan.networks.iter().filter(|network| !network.external) {
        let refused = policy.check_network(&network.spec);
        note(refused, &YamlPath::of_keys(["networks", &network.key]), notes);
    }
    for volume in plan.volumes.iter().filter(|volume| !volume.external) {
        let refused = policy.check_volume(&volume.spec);
        note(refused, &YamlPath::of_keys(["volumes", &volume.key]), notes);
    }
}

/// The caller's policy; the project's own folder may always be mounted.
fn effective(planner: &Planner<'_>) -> Policy {
    let mut policy = planner.options.policy.clone();
    let folder = &planner.project.directory;
    if folder.is_absolute() && folder.as_path() != Path::new("/") {
        policy.allow_host_binds.push(folder.display().to_string());
    }
    // In their place a sandbox gets a folder of the shared storage.
    for key in planner.options.shared_folders.keys() {
        policy
            .allow_host_binds
            .push(folder.join(key).display().to_string());
    }
    policy
}

fn note(refused: Result<(), Vec<Violation>>, path: &YamlPath, notes: &mut Notes) {
    for violation in refused.err().unwrap_or_default() {
        let hint = format!("whoever runs the project can allow it with {}", violation.allow);
        notes.error(path.clone(), violation.to_string(), Some(&hint));
    }
}
