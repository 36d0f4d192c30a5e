//! What the examples share: how they end, and how they read their arguments.

use std::collections::VecDeque;
use std::process::ExitCode;

/// What goes wrong in an example has nobody to tell the kinds apart: it ends it with a text.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Says what went wrong, with all causes.
pub(crate) fn ended(outcome: Result<ExitCode, Failure>) -> ExitCode {
    outcome.unwrap_or_else(|failure| {
        match failure.downcast_ref::<gym_sandbox::Error>() {
            Some(error) => eprintln!("error: {}", error.report()),
            None => eprintln!("error: {failure}"),
        }
        ExitCode::FAILURE
    })
}

/// 0 when all was as expected.
pub(crate) fn verdict(is_right: bool) -> ExitCode {
    if is_right {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The arguments that are still to be read.
pub(crate) struct Arguments(VecDeque<String>);

impl Arguments {
    pub(crate) fn of_process() -> Self {
        Self(std::env::args().skip(1).collect())
    }

    /// The next option.
    pub(crate) fn option(&mut self) -> Option<String> {
        self.0.pop_front()
    }

    /// The value of an option.
    pub(crate) fn value(&mut self, option: &str) -> Result<String, Failure> {
        let value = self.0.pop_front();
        value.ok_or_else(|| format!("`{option}` needs a value").into())
    }
}

/// What an option is told that is none.
pub(crate) fn unknown(option: &str, known: &str) -> Failure {
    format!("unknown option `{option}`; there are {known}").into()
}
