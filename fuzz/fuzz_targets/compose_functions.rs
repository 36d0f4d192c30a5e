//! What the Compose fuzz targets do with their input.
//!
//! Included by the targets and by `tests/compose_properties.rs`, which runs the same functions on generated input in CI.

use gym_sandbox::compose::config::{self, Format};
use gym_sandbox::compose::{
    ComposeLoader, Diagnostics, Interpolation, LoadOptions, MemoryFiles, Source, Strictness, render,
};

fn options() -> LoadOptions {
    LoadOptions::new()
        .with_working_directory("/project")
        .with_project_name("fuzz")
        .with_home("/home/user")
        .with_strictness(Strictness::Compatible)
        .with_variable("SET", "set")
        .with_variable("EMPTY", "")
        .with_profile("*")
}

/// Renders what was wrong, which must not panic either.
fn show(text: &str, diagnostics: &Diagnostics) {
    assert!(!diagnostics.is_empty(), "a refusal says why");
    let _ = render(diagnostics, |_| Some(text.to_owned()));
}

/// Loads one file; what is accepted must be printed so that it can be read.
pub fn load(text: &str) {
    let file = Source::text("compose.yaml", text);
    let loader = ComposeLoader::with_files(options().with_file(file.clone()), MemoryFiles::new());
    match config::render(&loader, Format::Json) {
        Ok(rendered) => assert!(rendered.text.starts_with('{'), "JSON is printed"),
        Err(diagnostics) => show(text, &diagnostics),
    }
    let kept = options().with_file(file).with_interpolation(Interpolation::Keep);
    if let Err(diagnostics) =
        config::render(&ComposeLoader::with_files(kept, MemoryFiles::new()), Format::Yaml)
    {
        show(text, &diagnostics);
    }
}

/// Loads two files, the second over the first; they are one text, parted by a line of equal signs.
pub fn merge(text: &str) {
    let (base, over) = text.split_once("\n====\n").unwrap_or((text, ""));
    let options = options()
        .with_file(Source::text("base.yaml", base))
        .with_file(Source::text("over.yaml", over));
    let files = MemoryFiles::new()
        .with("/project/base.yaml", base)
        .with("/project/over.yaml", over);
    if let Err(diagnostics) = ComposeLoader::with_files(options, files).load() {
        show(text, &diagnostics);
    }
}

/// Reads a file of variables in every dialect.
pub fn env_file(text: &str) {
    let compose =
        "services: {a: {image: x, env_file: [a.env, {path: a.env, format: raw}], label_file: a.env}}";
    let files = MemoryFiles::new()
        .with("/project/a.env", text)
        .with("/project/.env", text);
    let options = options().with_file(Source::text("compose.yaml", compose));
    if let Err(diagnostics) = ComposeLoader::with_files(options, files).load() {
        show(text, &diagnostics);
    }
}
