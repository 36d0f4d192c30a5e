//! Names of signals, the same for every provider. Sends none.

use crate::error::{Error, Operation, Result};

/// The signals that every `kill` knows by name, without `SIG`.
const SIGNALS: [&str; 19] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
    "ALRM", "TERM", "CONT", "STOP", "TSTP", "WINCH",
];

/// The name of a signal without `SIG`, from a name with or without it.
pub(crate) fn signal_name(name: &str, operation: Operation) -> Result<&'static str> {
    let upper = name.to_ascii_uppercase();
    let short = upper.strip_prefix("SIG").unwrap_or(&upper);
    SIGNALS.into_iter().find(|&known| known == short).ok_or_else(|| {
        Error::invalid(operation, format!("`{}` is not a signal", name.escape_debug()))
            .with_hint(format!("signals are {}", SIGNALS.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn signals_go_by_name_with_or_without_their_prefix() {
        assert_eq!(signal_name("TERM", Operation::Spawn).unwrap(), "TERM");
        assert_eq!(signal_name("sigint", Operation::Spawn).unwrap(), "INT");
        for name in ["", "SIG", "15", "NOPE", "TERM; rm -rf /"] {
            assert_eq!(
                signal_name(name, Operation::Spawn).unwrap_err().kind(),
                ErrorKind::InvalidArgument,
                "{name}"
            );
        }
    }
}
