//! Times the loader: a 200-service file, and the corpus of `COMPOSE_CORPUS` when it is set.
//!
//! `cargo bench --bench compose`. `gym-sandbox bench --rows 'compose config'` has the ratios against docker compose.

#![expect(clippy::print_stderr, reason = "a skipped bench says so")]

#[path = "../src/cli/bench/corpus.rs"]
mod corpus;

use criterion::{Criterion, criterion_group, criterion_main};
use gym_sandbox::compose::config::{self, Format};
use gym_sandbox::compose::{ComposeLoader, LoadOptions, Source};

fn large_file(criterion: &mut Criterion) {
    let text = corpus::many_services(200);
    let options = LoadOptions::new()
        .with_file(Source::text("compose.yaml", text))
        .with_project_name(corpus::PROJECT)
        .with_working_directory("/nowhere");
    let loader = ComposeLoader::new(options);
    criterion.bench_function("compose config 200 services", |bencher| {
        bencher.iter(|| config::render(&loader, Format::Json).expect("the file is right"));
    });
}

fn whole_corpus(criterion: &mut Criterion) {
    let Some(cases) = corpus::cases() else {
        eprintln!("SKIPPED: compose corpus: {} is not set", corpus::VARIABLE);
        return;
    };
    let loaders: Vec<ComposeLoader> = cases.iter().map(corpus::Case::loader).collect();
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

criterion_group!(benches, large_file, whole_corpus);
criterion_main!(benches);
