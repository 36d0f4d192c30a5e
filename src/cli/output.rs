//! Everything the command prints: data to standard output, the rest to standard error. Knows no engine.

mod engine;
mod stats;
mod upkeep;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};

use gym_sandbox::{Error, ExecResult};
use serde::Serialize;

pub(super) use engine::{engine_line, engine_report};
pub(super) use stats::stats_rows;
pub(super) use upkeep::{listed, sandboxes, swept};

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// For a person.
    Text,
    /// One JSON value.
    Json,
}

/// Prints an error with its causes and its hint. It may hold what a sandbox printed, which must not reach the terminal as
/// commands to it.
pub(super) fn error(error: &Error) {
    to_stderr(format_args!("error: {}\n", harmless(&error.report().to_string())));
}

/// Text without control characters but line breaks and tabs: they are written as escapes.
fn harmless(text: &str) -> Cow<'_, str> {
    let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(acts) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown.into()
}

/// Prints a remark.
pub(super) fn note(text: &str) {
    to_stderr(format_args!("gym-sandbox: {text}\n"));
}

/// Prints diagnostics of a Compose project.
pub(super) fn diagnostics(page: &str) {
    to_stderr(format_args!("{page}"));
}

/// Writes a line of progress over the last one.
pub(super) fn progress(text: &str) {
    to_stderr(format_args!("\r\x1b[K{text}"));
}

/// Clears the line of progress, on a terminal only.
pub(super) fn progress_done() {
    if io::IsTerminal::is_terminal(&io::stderr()) {
        to_stderr(format_args!("\r\x1b[K"));
    }
}

fn to_stderr(text: std::fmt::Arguments<'_>) {
    // Where standard error can't be written nobody can be told.
    let _ = io::stderr().lock().write_fmt(text);
}

/// Prints data. A reader that went away is no error: it has what it wanted.
pub(super) fn data(bytes: &[u8]) -> io::Result<()> {
    write(&mut io::stdout().lock(), &[bytes])
}

/// Prints one JSON value and a newline.
pub(super) fn json(value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    data(text.as_bytes())
}

/// Prints one JSON value on a line of its own.
pub(super) fn json_line(value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string(value)?;
    text.push('\n');
    data(text.as_bytes())
}

/// Passes on what a sandbox printed to its standard error.
pub(super) fn data_to_stderr(bytes: &[u8]) -> io::Result<()> {
    write(&mut io::stderr().lock(), &[bytes])
}

/// Says why a command has no result of its own, and what may explain one.
pub(super) fn explanation(result: &ExecResult) {
    for text in [&result.message, &result.hint].into_iter().flatten() {
        note(text);
    }
}

/// Says where ports answer.
pub(super) fn endpoints(endpoints: &BTreeMap<u16, String>) {
    for (port, endpoint) in endpoints {
        note(&format!("port {port} is at {endpoint}"));
    }
}

fn write(stream: &mut dyn Write, parts: &[&[u8]]) -> io::Result<()> {
    let written = parts
        .iter()
        .try_for_each(|part| stream.write_all(part))
        .and_then(|()| stream.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Lays cells out in columns, two spaces apart; the last column is as wide as it likes.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let line: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sandbox_printed_is_no_command_to_the_terminal() {
        assert_eq!(harmless("a\tb\nü"), "a\tb\nü");
        assert_eq!(
            harmless("\u{1b}[2Jboom\r\u{9b}1m\u{7}\n"),
            "\\u{1b}[2Jboom\\r\\u{9b}1m\\u{7}\n"
        );
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let cells = |row: &[&str]| row.iter().map(|&cell| cell.to_owned()).collect();
        let rows = [cells(&["a", "bb", "c"]), cells(&["äaa", "b", ""])];
        assert_eq!(table(&rows), "a    bb  c\näaa  b\n");
    }

    #[test]
    fn a_reader_that_went_away_is_no_error() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        assert!(write(&mut Closed, &[b"x"]).is_ok());
    }
}
