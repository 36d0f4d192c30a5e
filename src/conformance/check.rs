//! How a case says that a provider did something else than it must.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};

/// What a case ends with.
pub type Outcome = std::result::Result<(), Failure>;

/// What a provider did instead of what it must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// Says what was wrong.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Says where it was wrong, in front.
    pub(super) fn at(self, place: impl fmt::Display) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(format!(
            "a call failed that must succeed: {} ({:?})",
            error.report(),
            error.kind()
        ))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(format!("reading or writing on this machine failed: {error}"))
    }
}

/// Fails the case unless the two are equal.
#[expect(
    clippy::needless_pass_by_value,
    reason = "calls read better without borrows everywhere"
)]
pub(super) fn equal<T: PartialEq<U> + fmt::Debug, U: fmt::Debug>(what: &str, is: T, must_be: U) -> Outcome {
    if is == must_be {
        Ok(())
    } else {
        Err(Failure(format!("{what} is {is:?} and must be {must_be:?}")))
    }
}

/// Fails the case unless it holds.
pub(super) fn holds(what: impl fmt::Display, condition: bool) -> Outcome {
    if condition {
        Ok(())
    } else {
        Err(Failure(format!("this must hold and does not: {what}")))
    }
}

/// Fails the case unless the bytes are equal, and shows only where they differ.
pub(super) fn equal_bytes(what: &str, is: &[u8], must_be: &[u8]) -> Outcome {
    if is == must_be {
        return Ok(());
    }
    let differ = is
        .iter()
        .zip(must_be)
        .position(|(is, must_be)| is != must_be)
        .unwrap_or(is.len().min(must_be.len()));
    let around = |bytes: &[u8]| {
        let end = bytes.len().min(differ + 16);
        String::from_utf8_lossy(&bytes[differ.min(end)..end])
            .escape_debug()
            .to_string()
    };
    Err(Failure(format!(
        "{what} has {} bytes and must have {}; from byte {differ} on it is `{}` and must be `{}`",
        is.len(),
        must_be.len(),
        around(is),
        around(must_be)
    )))
}

/// Gives the error of a call that must fail.
pub(super) fn refused<T>(what: &str, result: Result<T>) -> std::result::Result<Error, Failure> {
    match result {
        Ok(_) => Err(Failure(format!("{what} succeeded and must fail"))),
        Err(error) => Ok(error),
    }
}

/// Fails the case unless the call failed with this kind.
pub(super) fn refused_with<T>(what: &str, result: Result<T>, kind: ErrorKind) -> Outcome {
    let error = refused(what, result)?;
    equal(
        &format!("the kind of the error of {what} (`{error}`)"),
        error.kind(),
        kind,
    )
}
