//! Times the loader: a 200-service file, and the corpus of `COMPOSE_CORPUS` when it is set.
//!
//! `cargo bench --bench compose`. A ratio against docker compose needs its command; docs/compose-support.md says how the
//! two are compared.

#![expect(clippy::print_stderr, reason = "a skipped bench says so")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use criterion::{Criterion, criterion_group, criterion_main};
use gym_sandbox::compose::config::{self, Format};
use gym_sandbox::compose::{ComposeLoader, LoadOptions, OutsidePaths, Source, Strictness};

/// Writes a file of `count` services, each with the keys real files use most.
fn many_services(count: usize) -> String {
    let mut text = String::from("x-common: &common\n  init: true\n  restart: always\n\nservices:\n");
    for index in 0..count {
        let dependency = index.checked_sub(1).map_or(String::new(), |previous| {
            format!("    depends_on:\n      s{previous}: {{condition: service_started}}\n")
        });
        let _ = write!(
            text,
            "  s{index}:\n    <<: *common\n    image: \"registry.example/app:${{TAG:-latest}}\"\n    \
             command: sh -c 'echo {index} && sleep infinity'\n    environment:\n      - INDEX={index}\n      \
             - NAME=${{NAME:-s{index}}}\n    ports: [\"{port}:80\"]\n    volumes: [\"data:/data\", \"./src:/src:ro\"]\n    \
             mem_limit: 512m\n    cpus: 0.5\n    networks: [back]\n    healthcheck:\n      \
             test: [CMD, curl, -f, http://localhost]\n      interval: 1m30s\n{dependency}",
            port = 10_000 + index,
        );
    }
    text + "volumes:\n  data:\nnetworks:\n  back:\n"
}

fn large_file(criterion: &mut Criterion) {
    let text = many_services(200);
    let options = LoadOptions::new()
        .with_file(Source::text("compose.yaml", text))
        .with_project_name("bench")
        .with_working_directory("/nowhere");
    let loader = ComposeLoader::new(options);
    criterion.bench_function("compose config 200 services", |bencher| {
        bencher.iter(|| config::render(&loader, Format::Json).expect("the file is right"));
    });
}

fn corpus(criterion: &mut Criterion) {
    let Ok(folders) = std::env::var("COMPOSE_CORPUS") else {
        eprintln!("SKIPPED: compose corpus: COMPOSE_CORPUS is not set");
        return;
    };
    let mut cases = Vec::new();
    for folder in folders.split(':').filter(|folder| !folder.is_empty()) {
        find_cases(Path::new(folder), &mut cases);
    }
    let loaders: Vec<ComposeLoader> = cases.iter().filter_map(|case| loader(case)).collect();
    criterion.bench_function(
        &format!("compose config corpus ({} files)", loaders.len()),
        |bencher| {
            bencher.iter(|| {
                // Refused files cost time too.
                loaders
                    .iter()
                    .filter(|loader| config::render(loader, Format::Json).is_ok())
                    .count()
            });
        },
    );
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

fn loader(case: &Path) -> Option<ComposeLoader> {
    let description: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(case.join("case.json")).ok()?).ok()?;
    let mut options = LoadOptions::new()
        .with_working_directory(case)
        .with_project_name("bench")
        .with_outside_paths(OutsidePaths::Allow)
        .with_strictness(Strictness::Compatible)
        .with_profile("*");
    if let Some(file) = description["file"].as_str() {
        options = options.with_file(Source::path(file));
    }
    let arguments: Vec<&str> = description["args"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(serde_json::Value::as_str)
        .collect();
    for pair in arguments.windows(2).filter(|pair| pair[0] == "-f") {
        options = options.with_file(Source::path(pair[1]));
    }
    for (name, value) in description["env"].as_object().into_iter().flatten() {
        options = options.with_variable(name, value.as_str().unwrap_or_default());
    }
    Some(ComposeLoader::new(options))
}

criterion_group!(benches, large_file, corpus);
criterion_main!(benches);
