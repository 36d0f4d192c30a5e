//! The whole story of an error, for a person.

use std::error::Error as _;
use std::fmt;

use super::Error;

pub(super) struct Report<'a>(pub(super) &'a Error);

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut printed = self.0.to_string();
        let mut cause = self.0.source();
        while let Some(error) = cause {
            let text = error.to_string();
            // Foreign errors often repeat their own cause in their text; a line that was said is not said again.
            if !printed.contains(&text) {
                write!(f, "\n  caused by: {text}")?;
                printed = text;
            }
            cause = error.source();
        }
        for error in self.0.cleanup_errors() {
            write!(f, "\n  and then: {}", Report(error))?;
        }
        if let Some(hint) = self.0.hint() {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}
