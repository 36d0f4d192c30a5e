//! Tests of what every provider shares, and the scripted provider that the facade is tested with.

mod attribution;
mod capabilities;
mod check;
mod config;
mod handle;
mod registry;
mod resolve;
pub(crate) mod scripted;
mod traced;

use crate::error::{Error, ErrorKind};

/// The text of an error that must be an invalid argument.
fn invalid<T>(result: Result<T, Error>) -> String {
    let error = result.err().expect("must be refused");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    error.report().to_string()
}
