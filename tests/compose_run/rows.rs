//! Every row of docs/compose-support.md that says "run" is in a fixture of compose-fixtures/run, whose effect is seen.

use std::collections::BTreeSet;

use gym_sandbox::provider::config_from_yaml;
use serde_json::Value;

use crate::fixtures::{are_all, cases, json};

const PAGE: &str = include_str!("../../docs/compose-support.md");

#[test]
fn every_row_that_runs_has_a_fixture_whose_effect_is_seen() {
    if !are_all() {
        return;
    }
    let used = used();
    let rows = rows_that_run(PAGE);
    assert!(rows.len() > 100, "{} rows", rows.len());
    assert_eq!(without_fixture(&rows, &used), Vec::<&str>::new());
}

#[test]
fn a_row_without_a_fixture_is_found() {
    if !are_all() {
        return;
    }
    let added =
        "| `services.*.new_key` | run | as it says |\n| `networks.*.driver.of` | run under policy | |";
    let page = PAGE.replacen(
        "\n| `services.*.init` |",
        &format!("\n{added}\n| `services.*.init` |"),
        1,
    );
    let rows = rows_that_run(&page);
    assert_eq!(
        without_fixture(&rows, &used()),
        ["services.*.new_key", "networks.*.driver.of"]
    );
    // What is refused or ignored needs none.
    assert!(!rows.contains(&"services.*.provider") && !rows.contains(&"version"));
}

/// The keys of the page that are done, perhaps only where the policy allows it.
fn rows_that_run(page: &str) -> Vec<&str> {
    let rows = page.lines().filter_map(|line| {
        let (key, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let (verdict, _) = rest.split_once(" |")?;
        matches!(verdict, "run" | "run under policy").then_some(key)
    });
    rows.collect()
}

fn without_fixture<'a>(rows: &[&'a str], used: &BTreeSet<Vec<String>>) -> Vec<&'a str> {
    let is_used = |row: &str| used.iter().any(|key| fits(row, key));
    rows.iter().copied().filter(|row| !is_used(row)).collect()
}

/// The keys that fixtures use of which something is seen.
fn used() -> BTreeSet<Vec<String>> {
    let mut used = BTreeSet::new();
    for case in cases() {
        let expected = json(&case.join("expect.json"));
        let sees = ["exec", "inspect", "network", "log", "services"];
        assert!(
            sees.iter()
                .any(|key| expected[key].as_array().is_some_and(|steps| !steps.is_empty())),
            "nothing is seen of {}",
            case.display()
        );
        let before = json(&case.join("case.json"))["before"].clone();
        for entry in std::fs::read_dir(&case).unwrap() {
            let file = entry.unwrap().path();
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            let is_yaml = file.extension().is_some_and(|extension| extension == "yaml");
            if is_yaml && !name.starts_with("expect") && before != name {
                let value = config_from_yaml(&std::fs::read_to_string(&file).unwrap());
                let value = value.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                collect(&value, &mut Vec::new(), &mut used);
            }
        }
    }
    used
}

fn fits(pattern: &str, key: &[String]) -> bool {
    let parts: Vec<&str> = pattern.split('.').collect();
    parts.len() == key.len()
        && parts
            .iter()
            .zip(key)
            .all(|(part, key)| *part == "*" || part == key)
}

fn collect(value: &Value, path: &mut Vec<String>, used: &mut BTreeSet<Vec<String>>) {
    used.insert(path.clone());
    let mut go = |key: String, value: &Value| {
        path.push(key);
        collect(value, path, used);
        path.pop();
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| go(key.clone(), value)),
        Value::Array(items) => items.iter().for_each(|value| go("[]".to_owned(), value)),
        _ => {}
    }
}
