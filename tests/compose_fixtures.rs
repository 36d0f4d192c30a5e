//! Runs every folder of compose-fixtures: adding a case is adding a folder.
//!
//! `ok/CASE` holds `expect.json`, what docker compose 2.40.3 prints for it with the folder written `$DIR`, and perhaps
//! `expect.warnings`; `err/CASE` holds `expect.err`, the diagnostics one a line; `run/CASE` must load without a warning,
//! and holds `expect.plan.yaml` and what `tests/compose_run` expects of it; `refused/CASE` loads and is not planned.
//! `case.json` names files, variables, profiles and the project; without it `compose.yaml` is loaded as project `t`. For
//! `run/CASE` also the policy, the API version (`api`) and the machine (`arch`) that it needs, and what is up beforehand
//! (`before`: a file, as the project `NAME-before`).
//! `COMPOSE_FIXTURES_WRITE=1` writes `expect.err` and `expect.warnings` anew; read the difference before keeping it.

use std::path::{Path, PathBuf};

use gym_sandbox::compose::config::{self, Format};
use gym_sandbox::compose::{ComposeLoader, LoadOptions, Plan, PlanOptions, Source, Strictness};
use serde_json::Value;

fn cases(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("compose-fixtures")
        .join(kind);
    let entries = std::fs::read_dir(&folder).expect("compose-fixtures has this folder");
    let mut cases: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    assert!(!cases.is_empty(), "{} is empty", folder.display());
    cases
}

fn loader(case: &Path) -> ComposeLoader {
    let text = std::fs::read_to_string(case.join("case.json")).unwrap_or_else(|_| "{}".to_owned());
    let description: Value = serde_json::from_str(&text).expect("case.json is JSON");
    let strings = |key: &str| -> Vec<String> {
        let items = description[key].as_array().cloned().unwrap_or_default();
        items
            .iter()
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect()
    };
    let mut options = LoadOptions::new()
        .with_working_directory(case)
        .with_home("/home/user");
    let files = strings("files");
    let files = if files.is_empty() {
        vec!["compose.yaml".to_owned()]
    } else {
        files
    };
    for file in files {
        options = options.with_file(Source::path(file));
    }
    for profile in strings("profiles") {
        options = options.with_profile(profile);
    }
    for file in strings("env_files") {
        options = options.with_env_file(file);
    }
    if let Some(folder) = description["project_directory"].as_str() {
        options = options.with_project_directory(folder);
    }
    if description.get("project") != Some(&Value::Null) {
        options = options.with_project_name(description["project"].as_str().unwrap_or("t"));
    }
    if description["strictness"] == "compatible" {
        options = options.with_strictness(Strictness::Compatible);
    }
    for (name, value) in description["env"].as_object().into_iter().flatten() {
        options = options.with_variable(name, value.as_str().unwrap_or_default());
    }
    ComposeLoader::new(options)
}

/// Writes the case's folder as `$DIR`.
fn portable(text: &str, case: &Path) -> String {
    let text = text.replace(&case.display().to_string(), "$DIR");
    match case.parent() {
        Some(parent) => text.replace(&format!("{}/", parent.display()), "$PARENT/"),
        None => text,
    }
}

fn write_expectations() -> bool {
    std::env::var_os("COMPOSE_FIXTURES_WRITE").is_some()
}

/// Compares text with a file; an absent file stands for empty text.
fn compare_text(file: &Path, got: &str, problems: &mut Vec<String>) {
    let expected = std::fs::read_to_string(file).unwrap_or_default();
    if expected.trim_end() == got.trim_end() {
        return;
    }
    if write_expectations() {
        std::fs::write(file, format!("{}\n", got.trim_end())).expect("the fixture can be written");
    } else {
        problems.push(format!("{}:\nexpected:\n{expected}\ngot:\n{got}", file.display()));
    }
}

#[test]
fn accepted_files_resolve_to_what_docker_compose_prints() {
    let mut problems = Vec::new();
    for case in cases("ok") {
        let rendered = match config::render(&loader(&case), Format::Json) {
            Ok(rendered) => rendered,
            Err(diagnostics) => {
                problems.push(format!("{}: refused: {diagnostics}", case.display()));
                continue;
            }
        };
        let expected =
            std::fs::read_to_string(case.join("expect.json")).expect("ok cases have an expect.json");
        let expected: Value = serde_json::from_str(&expected).expect("expect.json is JSON");
        let got: Value = serde_json::from_str(&portable(&rendered.text, &case)).expect("the output is JSON");
        if sorted(&expected) != sorted(&got) {
            let got = serde_json::to_string_pretty(&sorted(&got)).expect("JSON");
            problems.push(format!("{}: got\n{got}", case.display()));
        }
        compare_text(
            &case.join("expect.warnings"),
            &portable(&rendered.warnings.to_string(), &case),
            &mut problems,
        );
        read_again(&case, &mut problems);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

/// What `compose config` prints as YAML must be the same project again.
fn read_again(case: &Path, problems: &mut Vec<String>) {
    let Ok(first) = loader(case).load() else { return };
    let options = LoadOptions::new()
        .with_file(Source::text("again.yaml", config::to_yaml(&first.project)))
        .with_working_directory(case)
        .with_strictness(Strictness::Compatible)
        .with_profile("*");
    match ComposeLoader::new(options).load() {
        Ok(second) => {
            let (first, second) = (config::to_json(&first.project), config::to_json(&second.project));
            if first != second && !is_one_way(&first) {
                problems.push(format!(
                    "{}: printed and read again it differs:\n{first}\n{second}",
                    case.display()
                ));
            }
        }
        Err(diagnostics) => {
            let text = diagnostics.to_string();
            // docker compose prints these so that it cannot read them again either.
            let known = [
                "invalid size: '-1'",
                "depends on undefined service",
                "items must be unique",
            ];
            if !known.iter().any(|known| text.contains(known)) {
                problems.push(format!("{}: printed, it is refused: {text}", case.display()));
            }
        }
    }
}

/// A key with a dollar sign is printed with two, but keys are not interpolated when read again.
fn is_one_way(printed: &str) -> bool {
    printed
        .lines()
        .any(|line| line.split("\": ").next().is_some_and(|key| key.contains("$$")))
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(map) => {
            let mut entries: Vec<_> = map
                .iter()
                .map(|(key, value)| (key.clone(), sorted(value)))
                .collect();
            entries.sort_by(|left, right| left.0.cmp(&right.0));
            entries.into_iter().collect::<serde_json::Map<_, _>>().into()
        }
        Value::Number(number) => number
            .as_f64()
            .map_or(Value::Null, |number| format!("number {number}").into()),
        other => other.clone(),
    }
}

#[test]
fn refused_files_name_every_mistake_with_its_place() {
    let mut problems = Vec::new();
    for case in cases("err") {
        match loader(&case).load() {
            Ok(_) => problems.push(format!("{}: accepted", case.display())),
            Err(diagnostics) => {
                compare_text(
                    &case.join("expect.err"),
                    &portable(&diagnostics.to_string(), &case),
                    &mut problems,
                );
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn projects_to_run_load_without_a_warning() {
    for case in cases("run") {
        let loaded = loader(&case)
            .load()
            .unwrap_or_else(|diagnostics| panic!("{}: {diagnostics}", case.display()));
        assert!(
            loaded.warnings.is_empty(),
            "{}: {}",
            case.display(),
            loaded.warnings
        );
    }
}

/// `run/CASE` holds `expect.plan.yaml`, what it becomes on an engine.
#[test]
fn projects_that_run_are_planned_as_recorded() {
    let mut problems = Vec::new();
    for case in cases("run") {
        let loaded = loader(&case).load().expect("run cases load");
        let mut options = PlanOptions::default();
        let described = std::fs::read_to_string(case.join("case.json")).unwrap_or_else(|_| "{}".to_owned());
        let described: Value = serde_json::from_str(&described).expect("case.json is JSON");
        if let Some(policy) = described.get("policy") {
            options.policy = serde_json::from_value(policy.clone()).expect("it is a policy");
        }
        match Plan::new(&loaded.project, &options) {
            Ok(plan) => compare_text(
                &case.join("expect.plan.yaml"),
                &without_hashes(&portable(&config::plan(&plan, Format::Yaml), &case)),
                &mut problems,
            ),
            Err(diagnostics) => problems.push(format!("{}: refused: {diagnostics}", case.display())),
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

/// The hash of a service holds the folder it is in.
fn without_hashes(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once("config-hash: ") {
        Some((before, _)) => format!("{before}config-hash: HASH"),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// `refused/CASE` loads, and is refused before anything is made: `expect.err` says what, one a line.
#[test]
fn what_cannot_run_or_is_not_allowed_is_refused_by_name() {
    let mut problems = Vec::new();
    for case in cases("refused") {
        let loaded = loader(&case).load().expect("refused cases load");
        match Plan::new(&loaded.project, &PlanOptions::default()) {
            Ok(_) => problems.push(format!("{}: planned", case.display())),
            Err(diagnostics) => compare_text(
                &case.join("expect.err"),
                &portable(&diagnostics.to_string(), &case),
                &mut problems,
            ),
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}
