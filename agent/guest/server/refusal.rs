//! Why the agent does not begin, and where it says so.

use crate::sys;

/// With less stack than this it does not begin: it might end in the middle of its work, and its sandbox with it.
const LEAST_STACK_BYTES: u64 = 128 * 1024;

pub(super) fn check_stack() {
    let stack = sys::stack_limit();
    if stack < LEAST_STACK_BYTES {
        fail(&format!("the limit of the stack is too low: {stack} bytes"));
    }
}

/// Writes a line to standard error, the only place there is.
pub(crate) fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "gym-sandbox-agent: {text}");
}

/// Ends the program before it serves anybody.
pub(crate) fn fail(reason: &str) -> ! {
    say(reason);
    sys::exit_now(1)
}
