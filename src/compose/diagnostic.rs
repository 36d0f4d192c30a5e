//! What is wrong with a Compose file, said with file, line, column and path.
//!
//! Holds text and positions only; finding mistakes is the stages' work.

use std::fmt;
use std::path::{Path, PathBuf};

use super::node::Position;
use super::path::YamlPath;

/// How bad a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file is read, but probably not as its author meant it.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// One thing to say about a Compose file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The file, as the loader resolved it; none when the mistake is in no file (an option, a missing file).
    pub file: Option<PathBuf>,
    /// Line from 1; 0 when there is no position.
    pub line: u32,
    /// Column in characters from 1; 0 when there is no position.
    pub column: u32,
    /// The YAML path, for example `services.web.ports.0`; empty for the whole file.
    pub path: YamlPath,
    /// What is wrong: lower case, no final dot.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Error or warning.
    pub severity: Severity,
}

impl Diagnostic {
    /// One without a position: the typed project has none.
    pub(crate) fn of_project(
        path: YamlPath,
        message: String,
        hint: Option<&str>,
        severity: Severity,
    ) -> Self {
        Self {
            file: None,
            line: 0,
            column: 0,
            path,
            message,
            hint: hint.map(str::to_owned),
            severity,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(formatter, "{}:", file.display())?;
            if self.line > 0 {
                write!(formatter, "{}:{}:", self.line, self.column)?;
            }
            formatter.write_str(" ")?;
        }
        let path = self.path.to_string();
        if path.is_empty() {
            write!(formatter, "{}", self.message)
        } else {
            write!(formatter, "{path}: {}", self.message)
        }
    }
}

/// All that is wrong, in file order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Iterates over the diagnostics in file order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// Tells whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, diagnostic) in self.0.iter().enumerate() {
            if position > 0 {
                formatter.write_str("\n")?;
            }
            write!(formatter, "{diagnostic}")?;
            if let Some(hint) = &diagnostic.hint {
                write!(formatter, " ({hint})")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// Renders diagnostics for a terminal: message, place, source line with a caret, hint.
///
/// `source` gives the text of a file; a file it does not know is rendered without its line.
///
/// # Examples
///
/// ```
/// use gym_sandbox::compose::{ComposeLoader, LoadOptions, Source, render};
///
/// let text = "services:\n  web:\n    imag: nginx\n";
/// let options = LoadOptions::new().with_file(Source::text("compose.yaml", text));
/// let diagnostics = ComposeLoader::new(options).load().unwrap_err();
/// let page = render(&diagnostics, |_| Some(text.to_owned()));
/// assert!(page.contains("3 |     imag: nginx"));
/// ```
pub fn render(diagnostics: &Diagnostics, source: impl Fn(&Path) -> Option<String>) -> String {
    let mut page = String::new();
    for diagnostic in diagnostics {
        render_one(&mut page, diagnostic, &source);
    }
    page
}

fn render_one(page: &mut String, diagnostic: &Diagnostic, source: &impl Fn(&Path) -> Option<String>) {
    let path = diagnostic.path.to_string();
    let separator = if path.is_empty() { "" } else { ": " };
    push(
        page,
        format_args!(
            "{}: {path}{separator}{}\n",
            diagnostic.severity, diagnostic.message
        ),
    );
    if let Some(file) = &diagnostic.file {
        if diagnostic.line == 0 {
            push(page, format_args!("  --> {}\n", file.display()));
        } else {
            push(
                page,
                format_args!(
                    "  --> {}:{}:{}\n",
                    file.display(),
                    diagnostic.line,
                    diagnostic.column
                ),
            );
            if let Some(text) = source(file) {
                render_line(page, diagnostic, &text);
            }
        }
    }
    if let Some(hint) = &diagnostic.hint {
        push(page, format_args!("  = hint: {hint}\n"));
    }
}

fn push(page: &mut String, text: fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = fmt::Write::write_fmt(page, text);
}

/// The most characters of a source line that are shown.
const SHOWN_COLUMNS: usize = 160;

fn render_line(page: &mut String, diagnostic: &Diagnostic, text: &str) {
    let Some(line) = text.lines().nth(diagnostic.line as usize - 1) else {
        return;
    };
    let line: String = line
        .chars()
        .take(SHOWN_COLUMNS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let number = diagnostic.line.to_string();
    let margin = " ".repeat(number.len());
    let caret = " ".repeat((diagnostic.column as usize).saturating_sub(1).min(SHOWN_COLUMNS));
    push(
        page,
        format_args!("{margin} |\n{number} | {line}\n{margin} | {caret}^\n"),
    );
}

/// Where stages put what they find.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    found: Vec<(Position, Diagnostic)>,
    /// Paths that were taken out of the tree because of an error, so that no later stage complains about the hole.
    poisoned: Vec<YamlPath>,
    errors: usize,
}

/// Errors beyond this many are not kept: a hostile file must not make a hostile error.
const MOST_DIAGNOSTICS: usize = 1_000;

impl Sink {
    pub(crate) fn error(&mut self, at: Position, path: &YamlPath, message: impl Into<String>) {
        self.push(Severity::Error, at, path, message.into(), None);
    }

    pub(crate) fn error_with_hint(
        &mut self,
        at: Position,
        path: &YamlPath,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(Severity::Error, at, path, message.into(), Some(hint.into()));
    }

    pub(crate) fn warning(
        &mut self,
        at: Position,
        path: &YamlPath,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let hint = hint.into();
        let hint = (!hint.is_empty()).then_some(hint);
        self.push(Severity::Warning, at, path, message.into(), hint);
    }

    fn push(
        &mut self,
        severity: Severity,
        at: Position,
        path: &YamlPath,
        message: String,
        hint: Option<String>,
    ) {
        if severity == Severity::Error {
            self.errors += 1;
            self.poison(path);
        }
        if self.found.len() >= MOST_DIAGNOSTICS {
            return;
        }
        let diagnostic = Diagnostic {
            file: None,
            line: at.line,
            column: at.column,
            path: path.clone(),
            message,
            hint,
            severity,
        };
        let known = self
            .found
            .iter()
            .any(|(position, other)| *position == at && *other == diagnostic);
        if !known {
            self.found.push((at, diagnostic));
        }
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    pub(crate) fn error_count(&self) -> usize {
        self.errors
    }

    /// Tells whether nothing more is kept.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= MOST_DIAGNOSTICS
    }

    /// Says that what is below `path` is not as it was written, so that no later stage complains about it.
    pub(crate) fn poison(&mut self, path: &YamlPath) {
        if self.poisoned.len() < MOST_DIAGNOSTICS {
            self.poisoned.push(path.clone());
        }
    }

    /// Tells whether something below `path` was already found wrong. With too many mistakes to know, all is.
    pub(crate) fn is_poisoned(&self, path: &YamlPath) -> bool {
        self.poisoned.len() >= MOST_DIAGNOSTICS
            || self.poisoned.iter().any(|poisoned| poisoned.starts_with(path))
    }

    /// Returns (errors, warnings) in file order, with file names filled in.
    pub(crate) fn finish(mut self, files: &[PathBuf]) -> (Diagnostics, Diagnostics) {
        self.found.sort_by_key(|(at, _)| (at.line == 0, *at));
        let mut errors = Vec::new();
        let mut warnings = Vec::new();
        for (at, mut diagnostic) in self.found {
            if at.line > 0 || at.file > 0 {
                diagnostic.file = files.get(usize::from(at.file).wrapping_sub(1)).cloned();
            }
            match diagnostic.severity {
                Severity::Error => errors.push(diagnostic),
                Severity::Warning => warnings.push(diagnostic),
            }
        }
        (Diagnostics(errors), Diagnostics(warnings))
    }
}
