//! `compose config`: prints a Compose project as docker compose resolves it. Needs no engine.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use gym_sandbox::compose::config::{self, Rendered};
use gym_sandbox::compose::{ComposeLoader, Diagnostics, LARGEST_FILE_BYTES, LoadOptions, Source, render};
use gym_sandbox::{Error, ErrorKind, Operation, Result};

use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::{ComposeConfigRequest, ConfigOutput};

/// What diagnostics call standard input.
const STANDARD_INPUT: &str = "<stdin>";
/// More is read of no file than the loader takes and one byte, which it then refuses.
const MOST_BYTES: u64 = LARGEST_FILE_BYTES + 1;

/// Prints the project to standard output, and what there is to say about it to standard error.
///
/// # Errors
/// Standard input can't be read, or the output can't be written. A project with mistakes is no error: they are printed.
pub(in crate::cli) fn run(request: ComposeConfigRequest) -> Result<u8> {
    let (options, input) = with_files(request.options, request.files)?;
    let loader = ComposeLoader::new(options);
    let rendered = match request.output {
        ConfigOutput::Project(format) => config::render(&loader, format),
        ConfigOutput::Services => config::services(&loader),
        ConfigOutput::Images => config::images(&loader),
    };
    let Rendered { text, warnings, .. } = match rendered {
        Ok(rendered) => rendered,
        Err(mistakes) => {
            say(&mistakes, input);
            return Ok(exit::USAGE);
        }
    };
    say(&warnings, input);
    let lists = !matches!(request.output, ConfigOutput::Project(_));
    let written = if lists && request.format == Format::Json {
        output::json(&text.lines().collect::<Vec<_>>())
    } else {
        output::data(text.as_bytes())
    };
    written.map_err(|error| {
        Error::new(
            ErrorKind::Io,
            Operation::Configure,
            "the output could not be written",
        )
        .with_source(error)
    })?;
    Ok(exit::SUCCESS)
}

/// Adds the files, reading standard input where one is `-`; returns its text, too.
pub(super) fn with_files(
    mut options: LoadOptions,
    files: Vec<PathBuf>,
) -> Result<(LoadOptions, Option<String>)> {
    let mut input = None;
    for file in files {
        options = if file.as_os_str() == "-" {
            let text = standard_input()?;
            input = Some(text.clone());
            options.with_file(Source::text(STANDARD_INPUT, text))
        } else {
            options.with_file(Source::path(file))
        };
    }
    Ok((options, input))
}

fn standard_input() -> Result<String> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(MOST_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|error| {
            // As a file that can't be read.
            Error::invalid(Operation::Configure, "standard input could not be read").with_source(error)
        })?;
    String::from_utf8(bytes)
        .map_err(|_| Error::invalid(Operation::Configure, "standard input is not UTF-8 text"))
}

/// Prints diagnostics with the lines they are about.
fn say(diagnostics: &Diagnostics, input: Option<String>) {
    let mut known = HashMap::new();
    if let Some(text) = input {
        known.insert(PathBuf::from(STANDARD_INPUT), Some(text));
    }
    let known = RefCell::new(known);
    let page = render(diagnostics, |file| {
        known
            .borrow_mut()
            .entry(file.to_owned())
            .or_insert_with(|| read(file))
            .clone()
    });
    output::diagnostics(&page);
}

/// Reads a file once more, to show a line of it. It may have gone since.
fn read(file: &Path) -> Option<String> {
    let mut text = String::new();
    std::fs::File::open(file)
        .ok()?
        .take(MOST_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}
