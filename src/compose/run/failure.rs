//! What went wrong with a service, in words: its name, its exit code, its last lines.

use crate::error::{Error, ErrorKind, Operation};

use super::crew::Crew;

/// The most of a service's last output that an error holds.
pub(super) const MOST_BYTES: usize = 4096;

impl Crew {
    /// Makes the error of a service whose container ended or is not as it should be.
    pub(super) async fn service_error(&self, service: usize, container: &str, what: &str) -> Error {
        let lines = match self.containers(Operation::ComposeUp) {
            Ok(containers) => containers.last_log_lines(container).await,
            Err(_) => Vec::new(),
        };
        service_failure(&self.plan.services[service].name, what, &lines.join("\n"))
    }
}

/// The error of a service that failed, with the end of what it printed.
pub(super) fn service_failure(name: &str, what: &str, printed: &str) -> Error {
    let mut message = format!("service `{name}` {what}");
    if printed.is_empty() {
        message.push_str("; it printed nothing");
    } else {
        message.push_str("; its last output was:\n");
        message.push_str(last_part(printed));
    }
    Error::new(ErrorKind::NotReady, Operation::ComposeUp, message)
}

/// The end of a text, from a whole character on.
fn last_part(text: &str) -> &str {
    let mut start = text.len().saturating_sub(MOST_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Puts the name of a service before what went wrong, and keeps the cause.
pub(super) fn in_service(service: &str, error: Error) -> Error {
    because(format!("service `{service}` could not be started"), error)
}

/// The same with volumes, each with the service that wants it.
pub(super) fn in_volumes<'a>(volumes: impl IntoIterator<Item = (&'a str, &'a str)>, error: Error) -> Error {
    let volumes = volumes.into_iter();
    let named: Vec<String> = volumes
        .map(|(volume, service)| format!("volume `{volume}` of service `{service}`"))
        .collect();
    because(format!("{} could not be filled", named.join(", ")), error)
}

fn because(message: String, error: Error) -> Error {
    let mut named =
        Error::new(error.kind(), Operation::ComposeUp, message).with_retryable(error.is_retryable());
    if let Some(hint) = error.hint() {
        named = named.with_hint(hint.to_owned());
    }
    named.with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_text_starts_with_a_whole_character() {
        let text = format!("x{}", "é".repeat(MOST_BYTES));
        let part = last_part(&text);
        assert!(part.len() <= MOST_BYTES && part.starts_with('é'));
    }
}
