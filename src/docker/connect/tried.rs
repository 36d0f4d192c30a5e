//! What was tried, why each failed, and the one error that says so.

use std::fmt;

use crate::error::{Error, ErrorKind, Operation};

use super::discovery::{Candidate, Choice};

/// Why one place gave no engine.
#[derive(Debug)]
pub(super) struct Attempt {
    what: String,
    from: String,
    failure: Failure,
}

/// A reason, and what kind of error it is when it is the only one.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: ErrorKind,
    pub(super) reason: String,
    pub(super) hint: Option<&'static str>,
}

impl Failure {
    pub(super) fn unavailable(reason: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Unavailable,
            reason: reason.into(),
            hint: None,
        }
    }

    pub(super) fn unsupported(reason: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Unsupported,
            reason: reason.into(),
            hint: None,
        }
    }

    pub(super) fn invalid(reason: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::InvalidArgument,
            reason: reason.into(),
            hint: None,
        }
    }

    pub(super) fn with_hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }
}

impl Attempt {
    pub(super) fn new(what: impl fmt::Display, from: &str, reason: String) -> Self {
        Self {
            what: what.to_string(),
            from: from.to_owned(),
            failure: Failure::unavailable(reason),
        }
    }

    pub(super) fn of(candidate: &Candidate, failure: Failure) -> Self {
        Self {
            what: candidate.address.to_string(),
            from: candidate.how.clone(),
            failure,
        }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.what, self.from, self.failure.reason)
    }
}

/// The list below an error: a line for each attempt, in the order in which they were made.
#[derive(Debug)]
struct Tried(Vec<Attempt>);

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tried in this order:")?;
        for attempt in &self.0 {
            write!(f, "\n    {attempt}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Tried {}

/// Makes the error of a search that found nothing.
pub(super) fn nothing_found(attempts: Vec<Attempt>, choice: Choice) -> Error {
    let kind = match choice {
        Choice::Named => attempts
            .last()
            .map_or(ErrorKind::Unavailable, |attempt| attempt.failure.kind),
        // An engine that is there but can't be used says more than sockets that are not there.
        Choice::Searched
            if attempts
                .iter()
                .any(|attempt| attempt.failure.kind == ErrorKind::Unsupported) =>
        {
            ErrorKind::Unsupported
        }
        Choice::Searched => ErrorKind::Unavailable,
    };
    let message = match (choice, attempts.last()) {
        (Choice::Named, Some(attempt)) => {
            format!(
                "the engine at `{}` ({}) can't be used",
                attempt.what, attempt.from
            )
        }
        _ => format!("no engine can be used, {} places were tried", attempts.len()),
    };
    let hint = attempts.iter().find_map(|attempt| attempt.failure.hint).unwrap_or(match choice {
        Choice::Named => "check that the engine runs and that the address is right",
        Choice::Searched => {
            "start an engine (Docker or podman), or set DOCKER_HOST to the address of one; `gym-sandbox doctor` shows \
             what is reached"
        }
    });
    Error::new(kind, Operation::Connect, message)
        .with_hint(hint)
        .with_source(Tried(attempts))
}

#[cfg(test)]
mod tests {
    use super::super::address::Address;
    use super::*;

    fn attempt(path: &str, how: &str, failure: Failure) -> Attempt {
        Attempt::of(
            &Candidate {
                address: Address::Unix(path.into()),
                how: how.to_owned(),
            },
            failure,
        )
    }

    #[test]
    fn the_error_lists_everything_tried_with_its_reason() {
        let error = nothing_found(
            vec![
                attempt(
                    "/a.sock",
                    "default socket",
                    Failure::unavailable("it does not exist"),
                ),
                attempt(
                    "/b.sock",
                    "podman socket",
                    Failure::unavailable("permission denied").with_hint("join the group"),
                ),
            ],
            Choice::Searched,
        );
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.is_retryable());
        assert_eq!(
            error.report().to_string(),
            "connect to an engine: no engine can be used, 2 places were tried\n  \
             caused by: tried in this order:\n    \
             unix:///a.sock (default socket): it does not exist\n    \
             unix:///b.sock (podman socket): permission denied\n  \
             hint: join the group"
        );
    }

    #[test]
    fn a_named_engine_gives_the_kind_of_its_failure() {
        let error = nothing_found(
            vec![attempt("/a.sock", "DOCKER_HOST", Failure::unsupported("too old"))],
            Choice::Named,
        );
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(
            error.to_string(),
            "connect to an engine: the engine at `unix:///a.sock` (DOCKER_HOST) can't be used"
        );
    }

    #[test]
    fn an_engine_that_is_too_old_is_not_hidden_by_sockets_that_are_missing() {
        let error = nothing_found(
            vec![
                attempt("/a.sock", "default socket", Failure::unsupported("too old")),
                attempt(
                    "/b.sock",
                    "podman socket",
                    Failure::unavailable("it does not exist"),
                ),
            ],
            Choice::Searched,
        );
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}
