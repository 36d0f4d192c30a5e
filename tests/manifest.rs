//! What the manifest depends on: the crates asked for by name are there and used, and every one is explained.

#![expect(clippy::unwrap_used, reason = "a file that can't be read fails the test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The packages asked for by name, and a text that only a real use of each has.
const ASKED_FOR: [(&str, &str); 9] = [
    ("bollard", "client.create_container("),
    ("tokio", "tokio::time::timeout("),
    ("futures", "StreamExt"),
    ("tar", "use tar::{EntryType, Header}"),
    ("serde", "#[derive(Deserialize"),
    ("serde_yaml", "serde_yaml::from_str("),
    ("bytes", "bytes::Bytes"),
    ("thiserror", "thiserror::Error"),
    ("tracing", "tracing::"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The names of a manifest's dependencies in the tables that the filter wants.
fn dependencies(manifest: &str, wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let mut table = String::new();
    let mut names = BTreeSet::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            header.trim_end_matches(']').clone_into(&mut table);
        } else if wanted(&table)
            && let Some((name, _)) = line.split_once('=')
            && !line.starts_with('#')
        {
            names.insert(
                name.trim()
                    .trim_matches('"')
                    .split('.')
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
    }
    names
}

/// The library's code without its tests.
fn library() -> String {
    let mut code = String::new();
    let mut folders: Vec<PathBuf> = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && name != "tests" && name != "cli" {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests.rs" {
                code.push_str(&std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    code
}

fn squeezed(code: &str) -> String {
    code.split_whitespace().collect()
}

#[test]
fn the_packages_asked_for_are_direct_dependencies() {
    let direct = dependencies(&read("Cargo.toml"), |table| table == "dependencies");
    for (name, _) in ASKED_FOR {
        assert!(
            direct.contains(name),
            "{name} is no direct dependency: {direct:?}"
        );
    }
    assert!(
        read("Cargo.toml").contains("serde_yaml = { package = \"yaml_serde\""),
        "serde_yaml is the maintained fork"
    );
}

#[test]
fn the_packages_asked_for_are_used() {
    let code = library();
    let dense = squeezed(&code);
    let unused: Vec<&str> = ASKED_FOR
        .iter()
        .filter(|(_, usage)| !dense.contains(&squeezed(usage)) && !used_through_import(&code, usage))
        .map(|(name, _)| *name)
        .collect();
    assert!(unused.is_empty(), "not really used: {unused:?}");
}

/// `bytes::Bytes` may also be imported as `use bytes::{Buf, Bytes}` and then named alone.
fn used_through_import(code: &str, usage: &str) -> bool {
    let Some((name, item)) = usage.split_once("::") else {
        return false;
    };
    let imported = code.split(&format!("use {name}::")).skip(1).any(|rest| {
        rest.split(';')
            .next()
            .unwrap_or_default()
            .contains(item.trim_end_matches('('))
    });
    imported && code.matches(item).count() > 1
}

#[test]
fn a_use_is_told_from_a_mention() {
    assert!(used_through_import(
        "use bytes::{Buf, Bytes};\nfn f(b: Bytes) {}",
        "bytes::Bytes"
    ));
    assert!(!used_through_import("use bytes::{Buf, Bytes};", "bytes::Bytes"));
    assert!(!used_through_import("fn f(b: Bytes) -> Bytes {}", "bytes::Bytes"));
}

#[test]
fn every_dependency_is_explained() {
    let all = dependencies(&read("Cargo.toml"), |table| table.ends_with("dependencies"));
    assert!(
        all.contains("proptest") && all.contains("tokio"),
        "the tables were not read: {all:?}"
    );
    let explained = read("docs/dependencies.md");
    let missing: Vec<&String> = all
        .iter()
        .filter(|name| !explained.contains(&format!("`{name}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/dependencies.md says nothing of {missing:?}"
    );
}

#[test]
fn the_tables_of_a_manifest_are_read() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\na = \"1\"\n# b = \"1\"\nc.workspace = true\n\
                    [target.'cfg(unix)'.dependencies]\nd = \"1\"\n[dev-dependencies]\ne = { version = \"1\" }\n";
    let named = |wanted: fn(&str) -> bool| dependencies(manifest, wanted).into_iter().collect::<Vec<_>>();
    assert_eq!(named(|table| table == "dependencies"), ["a", "c"]);
    assert_eq!(
        named(|table| table.ends_with("dependencies")),
        ["a", "c", "d", "e"]
    );
}
