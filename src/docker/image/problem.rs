//! What the texts of engines and registries mean.

use crate::error::{Error, ErrorKind, ImageProblem, Operation};

use super::super::failure::EngineFailure;
use super::ImageReference;

/// Texts of the engine and of registries, and what they mean, in the order they are looked for (contract D12). The
/// engine answers 500 for most of them, so the status says nothing.
const PULL_TEXTS: [(&str, ImageProblem); 28] = [
    ("toomanyrequests", ImageProblem::RateLimited),
    ("rate limit", ImageProblem::RateLimited),
    ("too many requests", ImageProblem::RateLimited),
    ("no matching manifest for", ImageProblem::Platform),
    ("does not match the specified platform", ImageProblem::Platform),
    ("repository does not exist", ImageProblem::NotFound),
    ("manifest unknown", ImageProblem::NotFound),
    ("name unknown", ImageProblem::NotFound),
    ("no such image", ImageProblem::NotFound),
    ("unauthorized", ImageProblem::Auth),
    ("authentication required", ImageProblem::Auth),
    ("no basic auth credentials", ImageProblem::Auth),
    ("access denied", ImageProblem::Auth),
    ("no such host", ImageProblem::Offline),
    ("connection refused", ImageProblem::Offline),
    ("network is unreachable", ImageProblem::Offline),
    ("temporary failure in name resolution", ImageProblem::Offline),
    ("server misbehaving", ImageProblem::Offline),
    ("i/o timeout", ImageProblem::Offline),
    ("timeout exceeded", ImageProblem::Offline),
    ("tls handshake timeout", ImageProblem::Offline),
    ("no route to host", ImageProblem::Offline),
    ("connection reset by peer", ImageProblem::Offline),
    ("broken pipe", ImageProblem::Offline),
    ("context deadline exceeded", ImageProblem::Offline),
    ("unexpected eof", ImageProblem::Offline),
    (": eof", ImageProblem::Offline),
    ("not found", ImageProblem::NotFound),
];

pub(in crate::docker) fn problem_of(text: &str) -> Option<ImageProblem> {
    // So that a cause that stands alone is found as one that follows another.
    let text = format!(": {}", text.to_lowercase());
    PULL_TEXTS
        .iter()
        .find(|(part, _)| text.contains(part))
        .map(|&(_, problem)| problem)
}

/// Makes the error for an image that could not be had.
pub(in crate::docker) fn image_error(image: &ImageReference, failure: EngineFailure) -> Error {
    if let EngineFailure::Deadline(silence) = failure {
        return Error::new(
            ErrorKind::Timeout,
            Operation::Image,
            format!("the pull of `{image}` gave no sign of life for {silence:?}"),
        )
        .with_hint("the registry or the engine hangs; try again, or raise `pull.stall_timeout_s`")
        .with_retryable(true);
    }
    let Some(text) = failure.text() else {
        return failure.into_error(
            Operation::Image,
            format!("pulling `{image}` failed"),
            ErrorKind::Internal,
        );
    };
    let problem = problem_of(text).unwrap_or(ImageProblem::Other);
    let (message, hint) = match problem {
        ImageProblem::Auth => (
            "the registry refuses to give",
            "log in to the registry, and check the name",
        ),
        ImageProblem::NotFound => (
            "there is no image",
            "check the name and tag; a private image needs a login",
        ),
        ImageProblem::RateLimited => (
            "the registry's rate limit keeps it from giving",
            "wait, log in, or use a mirror",
        ),
        ImageProblem::Platform => (
            "the platform does not fit that of",
            "leave out `platform`, or pull the image for it with `pull_policy: always`",
        ),
        ImageProblem::Offline => (
            "the registry can't be reached for",
            "check the engine's network, or load the image into the engine and use `pull_policy: never`",
        ),
        _ => ("could not get", "the engine's text below says why"),
    };
    Error::new(
        ErrorKind::Image(problem),
        Operation::Image,
        format!("{message} `{image}`"),
    )
    .with_hint(hint)
    .with_retryable(matches!(
        problem,
        ImageProblem::RateLimited | ImageProblem::Offline
    ))
    .with_source(failure)
}

#[cfg(test)]
#[path = "problem_tests.rs"]
mod tests;
