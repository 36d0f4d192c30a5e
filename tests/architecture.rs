//! The import rules and the size of files, read from the sources; and proof that the check can fail.

#![expect(clippy::unwrap_used, reason = "a file that can't be read fails the test")]

#[path = "architecture/rules.rs"]
mod rules;
#[path = "architecture/scan.rs"]
mod scan;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rules::{exports, violations};

/// The longest a file may be. Tests may have twice of it: a long table is still one table.
const LONGEST: usize = 400;
const LONGEST_TESTS: usize = 800;
const LONGEST_UNSAFE: usize = 740;

/// All Rust sources below some folders, with their paths from the root of the package.
fn sources(folders: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path
                    .strip_prefix(root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .replace('\\', "/");
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn root_exports() -> BTreeMap<String, String> {
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    exports(&std::fs::read_to_string(lib).unwrap())
}

#[test]
fn every_part_names_only_what_it_may() {
    let sources = sources(&["src"]);
    assert!(sources.len() > 50, "the sources were not found");
    let exports = root_exports();
    assert_eq!(
        exports.get("SandboxSpec").map(String::as_str),
        Some("spec"),
        "the exports were not found"
    );
    let problems: Vec<String> = sources
        .iter()
        .flat_map(|(file, source)| violations(file, source, &exports))
        .collect();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn files_are_short() {
    let long: Vec<String> = sources(&["src", "tests", "examples", "benches", "agent"])
        .iter()
        .filter_map(|(file, source)| {
            let lines = source.lines().count();
            let tests = file.ends_with("/tests.rs") || file.starts_with("tests/") || file.contains("/tests/");
            let longest = match file.as_str() {
                // Every `unsafe` of the agent's program is in this one file, each with its reason.
                "agent/guest/sys.rs" => LONGEST_UNSAFE,
                _ if tests => LONGEST_TESTS,
                _ => LONGEST,
            };
            (lines > longest).then(|| format!("{file} has {lines} lines, {longest} are allowed"))
        })
        .collect();
    assert!(long.is_empty(), "\n{}", long.join("\n"));
}

/// Checks one bad snippet: the file, what it holds, and a word of the complaint.
#[track_caller]
fn refused(file: &str, source: &str, word: &str) {
    let problems = violations(file, source, &root_exports());
    assert_eq!(problems.len(), 1, "{source} in {file}: {problems:?}");
    assert!(problems[0].contains(word), "{problems:?}");
}

#[track_caller]
fn accepted(file: &str, source: &str) {
    let problems = violations(file, source, &root_exports());
    assert!(problems.is_empty(), "{source} in {file}: {problems:?}");
}

#[test]
fn a_backend_in_a_wrong_place_is_found() {
    refused(
        "src/sandbox/mod.rs",
        "use crate::docker::DockerProvider;",
        "docker",
    );
    refused(
        "src/provider/config.rs",
        "use crate::{error::Error, docker::DockerConfig};",
        "docker",
    );
    refused(
        "src/compose/run.rs",
        "fn f() { crate::docker::connect(); }",
        "docker",
    );
    refused("src/compose/run.rs", "use super::super::local;", "local");
    refused("src/docker/mod.rs", "use super::local::LocalProvider;", "local");
    refused("src/local/mod.rs", "use crate::docker;", "docker");
    refused("src/conformance/exec.rs", "use crate::builtin;", "builtin");
    refused("src/provider/mod.rs", "use crate::builtin;", "builtin");
    refused(
        "src/testing/provider.rs",
        "use crate::local::LocalProvider;",
        "local",
    );
    refused(
        "src/local/exec.rs",
        "use crate::sandbox::AsyncSandbox;",
        "sandbox",
    );
    refused("src/local/exec.rs", "use bollard::Docker;", "bollard");
    refused("src/sandbox/mod.rs", "use crate::blocking::Sandbox;", "blocking");
    refused("src/blocking/mod.rs", "use crate::compose::Project;", "compose");
    accepted("src/provider/registry.rs", "use crate::builtin;");
    accepted("src/builtin.rs", "use crate::docker::DockerProvider;");
    accepted(
        "src/blocking/mod.rs",
        "use crate::{docker::DockerProvider, sandbox::AsyncSandbox};",
    );
}

#[test]
fn a_path_upwards_is_found() {
    refused(
        "src/spec/exec.rs",
        "use crate::provider::SandboxProvider;",
        "provider",
    );
    refused(
        "src/error.rs",
        "fn f() -> crate::sandbox::AsyncSandbox {}",
        "sandbox",
    );
    refused("src/provider/handle.rs", "use crate::AsyncSandbox;", "sandbox");
    refused("src/spec/exec.rs", "use crate::*;", "`*`");
    accepted(
        "src/spec/exec.rs",
        "use crate::error::Error; use super::Command; use crate::SandboxId;",
    );
    accepted(
        "src/sandbox/scope.rs",
        "use crate::provider::SandboxProvider; use super::AsyncSandbox;",
    );
}

#[test]
fn a_crate_in_a_wrong_place_is_found() {
    refused("src/sandbox/mod.rs", "use bollard::Docker;", "bollard");
    refused(
        "src/cli/cmd/run.rs",
        "fn f() { let _ = bollard::Docker::connect_with_defaults(); }",
        "bollard",
    );
    refused("src/docker/mod.rs", "use saphyr_parser::Parser;", "saphyr_parser");
    refused("src/compose/merge.rs", "use serde_yaml::Value;", "serde_yaml");
    refused("src/cli/cmd/run.rs", "use clap::Parser;", "clap");
    accepted("src/docker/exec/mod.rs", "use bollard::exec::StartExecResults;");
    accepted("src/provider/config.rs", "fn f() { serde_yaml::from_str(\"\"); }");
    accepted("src/compose/yaml.rs", "use granit_parser::Parser;");
}

#[test]
fn the_command_may_use_only_the_public_interface() {
    refused("src/cli/cmd/run.rs", "use crate::spec::SandboxSpec;", "spec");
    refused(
        "src/cli/cmd/run.rs",
        "use super::super::super::docker::DockerProvider;",
        "docker",
    );
    refused("src/main.rs", "use bollard::Docker;", "bollard");
    refused(
        "src/cli/bench/raw.rs",
        "use gym_sandbox::Error;",
        "nothing of ours",
    );
    refused("src/cli/bench/raw.rs", "use super::rows::Row;", "nothing of ours");
    accepted("src/cli/bench/raw.rs", "use bollard::Docker;");
    accepted(
        "src/cli/cmd/run.rs",
        "use gym_sandbox::SandboxSpec; use crate::cli::args::RunArgs; use super::super::output;",
    );
}

#[test]
fn a_part_without_a_rule_is_found() {
    refused("src/metrics/mod.rs", "", "no rule");
}

#[test]
fn comments_and_texts_are_not_code() {
    accepted(
        "src/spec/exec.rs",
        r##"
        //! See [`crate::docker::DockerProvider`].
        /* crate::docker /* bollard::x */ crate::docker */
        const A: &str = "crate::docker::x \" bollard::y";
        const B: &str = r#"use crate::docker; "bollard::z" "#;
        const C: char = '"'; const D: &[u8] = b"bollard::b"; fn f<'a>(x: &'a str) -> &'a str { x }
        "##,
    );
    // What stands behind them is.
    refused(
        "src/spec/exec.rs",
        "const C: char = '\"'; use crate::docker::x; // \"",
        "docker",
    );
    refused("src/spec/exec.rs", "/* a */ use crate::docker::x;", "docker");
}

#[test]
fn modules_in_a_file_are_counted() {
    accepted(
        "src/docker/mod.rs",
        "mod tests { use super::*; use super::super::spec::SandboxSpec; }",
    );
    refused(
        "src/docker/mod.rs",
        "mod tests { fn f() {} } use super::local::x;",
        "local",
    );
    refused(
        "src/docker/exec.rs",
        "mod tests { use super::super::super::local::x; }",
        "local",
    );
    accepted(
        "src/docker/exec.rs",
        "mod tests { use super::super::lanes::Lane; }",
    );
}
