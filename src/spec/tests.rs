//! Contract tests of the spec types. The numbers in the names are those of `docs/contract-coverage.md`.

mod access;
mod capture;
mod command;
mod descriptor;
mod endpoint;
mod exec;
mod names;
mod ports;
mod resources;
mod result;
mod sandbox;

use crate::error::{Error, ErrorKind};

/// The text of an error that must be an invalid argument.
fn invalid<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    let error = result.expect_err("must be refused");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    error.report().to_string()
}
