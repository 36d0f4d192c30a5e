//! Every row of docs/compose-support.md that says "run" is in a fixture of compose-fixtures/run, whose effect is seen.

use std::collections::BTreeSet;

use gym_sandbox::compose::support::{KEYS, Verdict};
use gym_sandbox::provider::config_from_yaml;
use serde_json::Value;

use crate::fixtures::{cases, json};

/// Rows without a fixture, and why.
const WITHOUT: [(&str, &str); 3] = [
    (
        "networks.*.external",
        "d18_external_networks_and_volumes_are_used_and_stay",
    ),
    (
        "volumes.*.external",
        "d18_external_networks_and_volumes_are_used_and_stay",
    ),
    (
        "services.*.build.platforms",
        "an engine builds for its own platform only",
    ),
];

#[test]
fn every_row_that_runs_has_a_fixture_whose_effect_is_seen() {
    let mut used = BTreeSet::new();
    let mut blind = Vec::new();
    for case in cases() {
        for entry in std::fs::read_dir(&case).unwrap() {
            let file = entry.unwrap().path();
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            if file.extension().is_some_and(|extension| extension == "yaml") && !name.starts_with("expect") {
                let value = config_from_yaml(&std::fs::read_to_string(&file).unwrap());
                let value = value.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                collect(&value, &mut Vec::new(), &mut used);
            }
        }
        let expected = json(&case.join("expect.json"));
        let sees = ["exec", "inspect", "log", "services"];
        if !sees
            .iter()
            .any(|key| expected[key].as_array().is_some_and(|steps| !steps.is_empty()))
        {
            blind.push(case.display().to_string());
        }
    }
    assert!(blind.is_empty(), "nothing is seen of {blind:?}");
    let missing: Vec<&str> = KEYS
        .iter()
        .filter(|row| matches!(row.verdict, Verdict::Run | Verdict::UnderPolicy))
        .map(|row| row.path)
        .filter(|path| !used.iter().any(|key| fits(path, key)))
        .collect();
    let reasons: Vec<&str> = WITHOUT.iter().map(|(path, _)| *path).collect();
    assert_eq!(
        missing.iter().collect::<BTreeSet<_>>(),
        reasons.iter().collect::<BTreeSet<_>>(),
        "rows without a fixture, and those of which it is known"
    );
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
