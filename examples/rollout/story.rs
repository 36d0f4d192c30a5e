//! What happened, in words: what a person reads in the last column. Decides nothing.

use std::time::Duration;

use gym_sandbox::{ExecErrorType, ExecResult};

/// How much of a candidate's own words is quoted.
const QUOTE_CHARACTERS: usize = 32;

/// Of a run that left no report.
pub(crate) fn without_report(result: &ExecResult, timeout: Duration) -> String {
    let ended = match result.error_type {
        None => by_itself(result),
        Some(ExecErrorType::Timeout) => format!(
            "the tests did not end in {} s, {}",
            timeout.as_secs(),
            killed(result)
        ),
        Some(_) => result
            .message
            .clone()
            .unwrap_or_else(|| "the tests could not be run".to_owned()),
    };
    format!("{ended}; no report")
}

/// Of a result without an error type: the exit code is the command's, whatever it printed.
fn by_itself(result: &ExecResult) -> String {
    let code = result.return_code;
    if let Some(hint) = &result.hint {
        return format!("the tests ended with exit code {code}: {hint}");
    }
    match last_line(result) {
        line if line.is_empty() => format!("the tests ended with exit code {code}"),
        line => format!(
            "the tests ended with exit code {code} of their own, saying \"{}\"",
            shortened(&line)
        ),
    }
}

fn killed(result: &ExecResult) -> String {
    let count = match result.killed {
        None => "an unknown number of processes".to_owned(),
        Some(1) => "1 process".to_owned(),
        Some(count) => format!("{count} processes"),
    };
    format!("{count} killed, none lives")
}

/// How much was printed, where it is more than is kept.
pub(crate) fn output(result: &ExecResult) -> String {
    if !result.truncated().stdout {
        return String::new();
    }
    let kept = result.bytes().stdout - result.captured_stdout.missing_bytes();
    format!(
        "; {} bytes printed, {} MiB of them kept",
        result.bytes().stdout,
        kept >> 20
    )
}

/// The last line of standard error.
pub(crate) fn last_line(result: &ExecResult) -> String {
    let text = result.stderr().unwrap_or_default();
    text.lines().last().unwrap_or_default().to_owned()
}

fn shortened(line: &str) -> String {
    // A candidate's text goes to a terminal: control characters stay harmless.
    let line = line.escape_debug().to_string();
    match line.char_indices().nth(QUOTE_CHARACTERS) {
        None => line,
        Some((end, _)) => format!("{}..", &line[..end]),
    }
}
