//! What is claimed of a network, and whether it was so.

use std::process::ExitCode;

/// The claims that were tried.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    tried: usize,
    wrong: Vec<&'static str>,
}

impl Claims {
    /// It must have been reached.
    pub(crate) fn reached(&mut self, what: &'static str, was_reached: bool) {
        self.tell(what, was_reached, true);
    }

    /// It must not.
    pub(crate) fn refused(&mut self, what: &'static str, was_reached: bool) {
        self.tell(what, was_reached, false);
    }

    fn tell(&mut self, what: &'static str, is: bool, must_be: bool) {
        let word = if is { "reached" } else { "not reached" };
        let verdict = if is == must_be { "as said" } else { "WRONG" };
        println!("  {what:<42} {word:<12} {verdict}");
        self.tried += 1;
        if is != must_be {
            self.wrong.push(what);
        }
    }

    /// Prints what came of them.
    pub(crate) fn verdict(&self) -> ExitCode {
        if self.wrong.is_empty() {
            println!(
                "all {} claims are right; an internal network needs a firewall where the engine's machine matters",
                self.tried
            );
        } else {
            println!("wrong: {}", self.wrong.join("; "));
        }
        crate::common::verdict(self.wrong.is_empty())
    }
}
