//! Compares the loader, field for field, with docker compose's recorded answers.
//!
//! `COMPOSE_CORPUS` is a list of folders, separated by colons. Every folder below them that holds a `case.json` is a
//! case: its files, and `expect.json` (what docker compose printed) or `expect.err` (that it refused). What differs on
//! purpose is the table "Deliberate differences" of docs/compose-support.md; anything else fails.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gym_sandbox::compose::config::{self, Format};
use gym_sandbox::compose::{
    ComposeLoader, Diagnostic, LoadOptions, OutsidePaths, Plan, PlanOptions, Project, Service, Source,
    Strictness,
};
use serde_json::Value;

#[test]
fn every_case_gets_docker_composes_answer() {
    let Ok(folders) = std::env::var("COMPOSE_CORPUS") else {
        assert!(
            std::env::var("SANDBOX_REQUIRE_CORPUS").is_err(),
            "SANDBOX_REQUIRE_CORPUS is set, COMPOSE_CORPUS is not"
        );
        eprintln!("SKIPPED: compose corpus: COMPOSE_CORPUS is not set");
        return;
    };
    let mut cases = Vec::new();
    for folder in folders.split(':').filter(|folder| !folder.is_empty()) {
        find_cases(Path::new(folder), &mut cases);
    }
    cases.sort();
    assert!(!cases.is_empty(), "no case.json below {folders}");
    let differences = deliberate_differences();
    let (mut same, mut listed, mut wrong) = (0, Vec::new(), Vec::new());
    for case in &cases {
        let name = case
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        match run(case, Strictness::Careful) {
            Ok(()) => same += 1,
            Err(problem) => match differences.get(&name) {
                Some(text) if problem.contains(text.as_str()) => {
                    listed.push(name);
                    // Apart from the diagnostic, the answer has to be the same.
                    if let Err(problem) = run(case, Strictness::Compatible)
                        && !problem.contains(text.as_str())
                    {
                        wrong.push(format!("{}: {problem}", case.display()));
                    }
                }
                _ => wrong.push(format!("{}: {problem}", case.display())),
            },
        }
    }
    eprintln!(
        "compose corpus: {same} of {} the same, {} differ on purpose: {}",
        cases.len(),
        listed.len(),
        listed.join(", ")
    );
    assert!(
        wrong.is_empty(),
        "{} of {} cases differ:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n\n")
    );
}

/// The plan of every project that loads is made, or refused by name; nothing panics, and nothing is a mistake of ours.
#[test]
fn every_case_is_planned_or_refused_by_name() {
    let Ok(folders) = std::env::var("COMPOSE_CORPUS") else {
        eprintln!("SKIPPED: compose corpus: COMPOSE_CORPUS is not set");
        return;
    };
    let mut cases = Vec::new();
    for folder in folders.split(':').filter(|folder| !folder.is_empty()) {
        find_cases(Path::new(folder), &mut cases);
    }
    let (mut planned, mut refused) = (0, BTreeMap::<String, usize>::new());
    let mut wrong = Vec::new();
    for case in &cases {
        let text = std::fs::read_to_string(case.join("case.json")).expect("found before");
        let description: Value = serde_json::from_str(&text).expect("case.json is JSON");
        let options = options(case, &description).with_strictness(Strictness::Compatible);
        let loaded = match ComposeLoader::new(options).load() {
            Ok(loaded) => loaded,
            Err(diagnostics) => {
                let text = diagnostics.to_string().to_lowercase();
                assert!(!text.contains("internal error"), "{}: {text}", case.display());
                continue;
            }
        };
        match Plan::new(&loaded.project, &PlanOptions::default()) {
            Ok(plan) => {
                let printed = config::plan(&plan, Format::Json);
                assert!(printed.contains(&plan.project), "{}", case.display());
                planned += 1;
            }
            Err(diagnostics) => {
                let is_refused_by_policy = |diagnostic: &Diagnostic| {
                    let hint = diagnostic.hint.as_deref().unwrap_or_default();
                    // What has no command at all no engine can start.
                    hint.contains("whoever runs the project can allow it")
                        || diagnostic.message.contains("leave nothing to run")
                };
                if needs_only_images(&loaded.project) && !diagnostics.iter().all(is_refused_by_policy) {
                    wrong.push(format!("{}: {diagnostics}", case.display()));
                }
                let text = diagnostics.to_string();
                assert!(
                    !text.to_lowercase().contains("internal"),
                    "{}: {text}",
                    case.display()
                );
                for diagnostic in &diagnostics {
                    assert!(
                        !diagnostic.path.segments().is_empty(),
                        "{}: {diagnostic}",
                        case.display()
                    );
                    *refused.entry(diagnostic.message.clone()).or_default() += 1;
                }
            }
        }
    }
    eprintln!(
        "compose plan: {planned} of {} planned; refused: {refused:#?}",
        cases.len()
    );
    assert!(planned > 0);
    assert!(
        wrong.is_empty(),
        "refused for another reason than the policy:\n{}",
        wrong.join("\n")
    );
}

/// Whether a project is made of images and of what it makes itself: nothing is built, looked up elsewhere or given by a
/// variable that the case does not set.
fn needs_only_images(project: &Project) -> bool {
    let mut services = project.services.values();
    let is_plain = |service: &Service| {
        service.build.is_none()
            && !service.image.is_empty()
            && service.external_links.is_empty()
            && service.models.is_empty()
            && service.provider.is_none()
            && service.credential_spec.is_none()
    };
    services.all(is_plain)
        && project
            .secrets
            .values()
            .all(|secret| secret.environment.is_empty())
        && project.models.is_empty()
}

fn find_cases(folder: &Path, cases: &mut Vec<PathBuf>) {
    if folder.join("case.json").is_file() {
        cases.push(folder.to_owned());
        return;
    }
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
        find_cases(&entry.path(), cases);
    }
}

/// Reads the table "Deliberate differences": the case, and the text its diagnostic has.
fn deliberate_differences() -> BTreeMap<String, String> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/compose-support.md"))
        .unwrap_or_default();
    let table = page.split("## Deliberate differences").nth(1).unwrap_or_default();
    let mut found = BTreeMap::new();
    for line in table.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, cases, diagnostic, ..] = cells.as_slice() else {
            continue;
        };
        for case in cases
            .split(',')
            .map(|case| case.trim().trim_matches('`'))
            .filter(|case| !case.is_empty())
        {
            found.insert(case.to_owned(), diagnostic.trim_matches('`').to_owned());
        }
    }
    found
}

fn run(case: &Path, strictness: Strictness) -> Result<(), String> {
    let read = |name: &str| std::fs::read_to_string(case.join(name));
    let description: Value =
        serde_json::from_str(&read("case.json").expect("found before")).map_err(|error| error.to_string())?;
    let loader = ComposeLoader::new(options(case, &description).with_strictness(strictness));
    let expected = read("expect.json").ok();
    match (config::render(&loader, Format::Json), expected) {
        (Ok(rendered), Some(expected)) => {
            let home = std::env::home_dir().unwrap_or_default().display().to_string();
            let expected = expected
                .replace("\"$DIR", &format!("\"{}", case.display()))
                .replace("\"$HOME", &format!("\"{home}"));
            let expected = normalized(
                serde_json::from_str(&expected).map_err(|error| error.to_string())?,
                case,
            );
            let got = normalized(
                serde_json::from_str(&rendered.text).map_err(|error| error.to_string())?,
                case,
            );
            let mut differences = Vec::new();
            compare("", &expected, &got, &mut differences);
            if differences.is_empty() {
                Ok(())
            } else {
                Err(differences.join("\n  "))
            }
        }
        (Err(diagnostics), Some(_)) => Err(format!("refused, but docker compose accepts it: {diagnostics}")),
        (Ok(_), None) => Err(format!(
            "accepted, but docker compose says: {}",
            read("expect.err").unwrap_or_default().trim()
        )),
        (Err(diagnostics), None) => {
            let expected = read("expect.err").unwrap_or_default();
            if names_the_same(&expected, &diagnostics.to_string()) {
                Ok(())
            } else {
                Err(format!(
                    "refused for another reason: {diagnostics}\n  docker compose says: {}",
                    expected.trim()
                ))
            }
        }
    }
}

fn options(case: &Path, description: &Value) -> LoadOptions {
    let mut options = LoadOptions::new()
        .with_working_directory(case)
        .with_outside_paths(OutsidePaths::Allow);
    if let Some(file) = description["file"].as_str() {
        options = options.with_file(Source::path(file));
    }
    let arguments: Vec<&str> = description["args"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for pair in arguments.windows(2) {
        options = match pair[0] {
            "-f" => options.with_file(Source::path(pair[1])),
            "--env-file" => options.with_env_file(case.join(pair[1])),
            "--profile" => options.with_profile(pair[1]),
            "--project-directory" => options.with_project_directory(case.join(pair[1])),
            _ => options,
        };
    }
    if let Some(name) = description["project"].as_str() {
        options = options.with_project_name(name);
    }
    for profile in description["profiles"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        options = options.with_profile(profile);
    }
    for (name, value) in description["env"].as_object().into_iter().flatten() {
        options = options.with_variable(name, value.as_str().unwrap_or_default());
    }
    options
}

/// Undoes what docker compose's output does to text (`$$` is one `$`), and what recording it did to paths.
fn normalized(value: Value, case: &Path) -> Value {
    match value {
        Value::String(text) => {
            let text = text.replace("$$", "$");
            Value::String(if Path::new(&text).starts_with(case) {
                without_parents(&text)
            } else {
                text
            })
        }
        Value::Array(items) => items.into_iter().map(|item| normalized(item, case)).collect(),
        Value::Object(map) => {
            let entries = map
                .into_iter()
                .map(|(key, value)| (key.replace("$$", "$"), normalized(value, case)));
            entries.collect::<serde_json::Map<_, _>>().into()
        }
        other => other,
    }
}

fn without_parents(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

fn compare(path: &str, expected: &Value, got: &Value, differences: &mut Vec<String>) {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            for (key, value) in expected {
                match got.get(key) {
                    Some(other) => compare(&format!("{path}.{key}"), value, other, differences),
                    None => {
                        differences.push(format!("{path}.{key}: expected {value}, got nothing"));
                    }
                }
            }
            for (key, value) in got.iter().filter(|(key, _)| !expected.contains_key(*key)) {
                differences.push(format!("{path}.{key}: expected nothing, got {value}"));
            }
        }
        (Value::Array(expected), Value::Array(got)) if expected.len() == got.len() => {
            for (index, (expected, got)) in expected.iter().zip(got).enumerate() {
                compare(&format!("{path}[{index}]"), expected, got, differences);
            }
        }
        (Value::Number(expected), Value::Number(got)) if expected.as_f64() == got.as_f64() => {}
        _ if expected == got => {}
        _ => differences.push(format!("{path}: expected {expected}, got {got}")),
    }
}

/// Tells whether two refusals name the same path or cause: most of the longer words of one are in the other.
fn names_the_same(expected: &str, got: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let text = text.replace("$DIR/", "").to_lowercase();
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        text.split(|c: char| !is_part(c))
            .filter(|word| word.len() > 3)
            .map(str::to_owned)
            .collect()
    };
    let got = words(got);
    let expected: Vec<String> = words(expected)
        .into_iter()
        .filter(|word| !matches!(word.as_str(), "validating" | "invalid" | "project"))
        .collect();
    let known = expected.iter().filter(|word| got.contains(word)).count();
    known * 2 >= expected.len()
}
