//! What is refused, all of it, and whether it is wrong or only cannot be done here.

use crate::compose::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::compose::path::YamlPath;
use crate::error::{Error, ErrorKind};

/// What keeps a project from being planned.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    /// [`ErrorKind::Unsupported`] when some of it cannot be done here, else [`ErrorKind::InvalidArgument`].
    pub(crate) kind: ErrorKind,
    pub(crate) diagnostics: Diagnostics,
}

/// What was found until now.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    found: Vec<Diagnostic>,
    is_unsupported: bool,
}

impl Refusals {
    /// Notes what is wrong whatever the provider.
    pub(super) fn invalid(&mut self, path: YamlPath, message: impl Into<String>) {
        self.found.push(Diagnostic::of_project(
            path,
            message.into(),
            None,
            Severity::Error,
        ));
    }

    /// Notes what cannot be done here.
    pub(super) fn unsupported(&mut self, path: YamlPath, message: impl Into<String>, hint: Option<&str>) {
        self.is_unsupported = true;
        self.found.push(Diagnostic::of_project(
            path,
            message.into(),
            hint,
            Severity::Error,
        ));
    }

    /// Notes what a capability of the provider refuses.
    pub(super) fn error(&mut self, path: YamlPath, error: &Error) {
        match error.kind() {
            ErrorKind::InvalidArgument => self.invalid(path, error.to_string()),
            _ => self.unsupported(path, error.to_string(), error.hint()),
        }
    }

    pub(super) fn finish<T>(self, plan: T) -> Result<T, Refused> {
        if self.found.is_empty() {
            return Ok(plan);
        }
        Err(Refused {
            kind: if self.is_unsupported {
                ErrorKind::Unsupported
            } else {
                ErrorKind::InvalidArgument
            },
            diagnostics: Diagnostics(self.found),
        })
    }
}
