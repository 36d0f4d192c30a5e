//! Who may use whom (see `docs/architecture.md`), as a table.

use std::collections::BTreeMap;

use crate::scan::paths;

/// What each part of the library may name beside itself.
const LAYERS: [(&str, &[&str]); 12] = [
    ("error", &["spec"]),
    ("spec", &["error"]),
    ("provider", &["error", "spec"]),
    ("docker", &["error", "spec", "provider"]),
    ("local", &["error", "spec", "provider"]),
    ("sandbox", &["error", "spec", "provider"]),
    ("testing", &["error", "spec", "provider"]),
    ("conformance", &["error", "spec", "provider", "sandbox"]),
    ("compose", &["error", "spec", "provider", "sandbox"]),
    (
        "blocking",
        &["error", "spec", "provider", "sandbox", "docker", "local"],
    ),
    // The table of built-in providers is the one place that names backends for the registry.
    ("builtin", &["error", "spec", "provider", "docker", "local"]),
    // The command is a program of its own; the library is another crate to it.
    ("cli", &[]),
];

/// Files that may name more than their part.
const EXCEPTIONS: [(&str, &str); 1] = [("src/provider/registry.rs", "builtin")];

/// Crates that only some files may name: the name, where it is allowed, and why.
const CRATES: [(&str, &[&str], &str); 9] = [
    (
        "bollard",
        &["src/docker/", "src/cli/bench/raw.rs"],
        "the engine's client stays in one part",
    ),
    ("saphyr", &["src/compose/yaml.rs"], "one file reads YAML events"),
    (
        "saphyr_parser",
        &["src/compose/yaml.rs"],
        "one file reads YAML events",
    ),
    (
        "granit_parser",
        &["src/compose/yaml.rs"],
        "one file reads YAML events",
    ),
    (
        "serde_yaml",
        &["src/provider/config", "src/compose/config"],
        "typed YAML is read and written in one place each",
    ),
    (
        "clap",
        &["src/cli/args", "src/main.rs", "src/cli/mod.rs"],
        "arguments are plain data below",
    ),
    (
        "clap_complete",
        &["src/cli/args.rs"],
        "arguments are plain data below",
    ),
    (
        "gym_sandbox",
        &["src/cli/", "src/main.rs"],
        "only the command is outside of the library",
    ),
    (
        "gym_sandbox_agent",
        &["src/docker/agent"],
        "the agent's program is injected in one place",
    ),
];

/// The baseline of the benches: bollard, and nothing of ours.
const RAW: &str = "src/cli/bench/raw.rs";

/// Names that the crate's root exports, with the part they come from.
pub(crate) fn exports(lib: &str) -> BTreeMap<String, String> {
    let named = paths(&[], lib).external.into_iter().filter(|path| path.len() > 1);
    named
        .map(|path| (path[path.len() - 1].clone(), path[0].clone()))
        .collect()
}

/// What a file names and must not, one line each.
pub(crate) fn violations(file: &str, source: &str, exports: &BTreeMap<String, String>) -> Vec<String> {
    let Some(module) = module_of(file) else {
        return Vec::new();
    };
    let module: Vec<&str> = module.iter().map(String::as_str).collect();
    let found = paths(&module, source);
    let mut problems = Vec::new();
    for path in &found.external {
        if let Some((name, allowed, why)) = CRATES.iter().find(|(name, ..)| *name == path[0])
            && !allowed.iter().any(|place| file.starts_with(place))
        {
            problems.push(format!("{file} names crate `{name}`: {why}"));
        }
        if file == RAW && path[0] == "gym_sandbox" {
            problems.push(format!(
                "{file} names `{}`: the baseline uses nothing of ours",
                path.join("::")
            ));
        }
    }
    let Some(own) = module.first().copied() else {
        return problems;
    };
    let layer = LAYERS.iter().find(|(layer, _)| *layer == own);
    let Some((_, allowed)) = layer else {
        problems.push(format!(
            "{file} belongs to `{own}`, which has no rule: give it one"
        ));
        return problems;
    };
    for path in &found.internal {
        let Some(first) = path.first() else {
            problems.push(format!("{file} names everything of the crate's root"));
            continue;
        };
        let used = exports.get(first).map_or(first.as_str(), String::as_str);
        let excepted = EXCEPTIONS.contains(&(file, used));
        if used != own && !allowed.contains(&used) && !excepted {
            problems.push(format!(
                "{file} names `{}`: `{own}` may not use `{used}`",
                path.join("::")
            ));
        }
        if file == RAW {
            problems.push(format!(
                "{file} names `{}`: the baseline uses nothing of ours",
                path.join("::")
            ));
        }
    }
    problems
}

/// The module of a file: `src/docker/exec/mod.rs` is `docker::exec`. None for the roots, which name every part.
fn module_of(file: &str) -> Option<Vec<String>> {
    let path = file.strip_prefix("src/")?.strip_suffix(".rs")?;
    if path == "lib" {
        return None;
    }
    if path == "main" {
        return Some(Vec::new());
    }
    Some(
        path.trim_end_matches("/mod")
            .split('/')
            .map(str::to_owned)
            .collect(),
    )
}
