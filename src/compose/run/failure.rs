//! What went wrong with a service, in words: its name, its exit code, its last lines.

use crate::compose::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::compose::path::YamlPath;
use crate::compose::plan::ServiceStep;
use crate::error::{Error, ErrorKind, Operation};
use crate::spec::container::{ContainerDetail, ContainerSpec, HealthProbe, NamespaceMode, NetworkAttachment};
use crate::spec::{ExecErrorType, ExecReason, ExecResult};

use super::crew::Crew;

/// The most of a service's last output that an error holds.
pub(super) const MOST_BYTES: usize = 4096;

/// The exit code of what was killed.
const KILLED: i64 = 137;

impl Crew {
    /// Makes the error of a service whose container ended or is not as it should be.
    pub(super) async fn service_error(&self, service: usize, container: &str, what: &str) -> Error {
        let printed = self.last_lines(container).await;
        let error = service_failure(&self.plan.services[service].name, what, &printed, None);
        let detail = self.detail_of(container).await;
        if detail.is_some_and(|detail| detail.oom_killed && detail.exit_code == Some(KILLED)) {
            return error.with_hint(
                "the engine says that it ran out of memory; raise its `mem_limit`, or let it take less",
            );
        }
        error
    }

    async fn detail_of(&self, container: &str) -> Option<ContainerDetail> {
        let containers = self.containers(Operation::ComposeUp).ok()?;
        containers.inspect_container(container).await.ok().flatten()
    }

    /// As [`service_error`](Self::service_error), with what the engine's last probe of its health has come to.
    pub(super) async fn health_error(&self, service: usize, container: &str, what: &str) -> Error {
        let detail = self.detail_of(container).await;
        let probe = detail.and_then(|detail| detail.last_probe);
        let printed = self.last_lines(container).await;
        let name = &self.plan.services[service].name;
        service_failure(name, what, &printed, probe.as_ref())
    }

    /// Names the service that a container shares something with where that is why it could not be started: it does not run.
    /// The engine tells its id only.
    pub(super) async fn not_started(&self, service: &str, container: &ContainerSpec, error: Error) -> Error {
        for (what, name) in shared_with(container) {
            let is_of = |step: &ServiceStep| step.containers.iter().any(|other| other.name == name);
            let Some(other) = self.plan.services.iter().position(is_of) else {
                continue;
            };
            let id = self.id_of(name);
            let detail = self.detail_of(&id).await;
            if let Some(code) = detail.and_then(|detail| detail.exit_code) {
                let what = format!("exited with {code}, and service `{service}` was to share its {what}");
                return self.service_error(other, &id, &what).await.with_source(error);
            }
        }
        in_service(service, error)
    }

    pub(super) async fn last_lines(&self, container: &str) -> String {
        match self.containers(Operation::ComposeUp) {
            Ok(containers) => containers.last_log_lines(container).await.join("\n"),
            Err(_) => String::new(),
        }
    }
}

/// The containers whose namespaces one has, and what of them.
fn shared_with(container: &ContainerSpec) -> impl Iterator<Item = (&'static str, &str)> {
    let network = match &container.network {
        NetworkAttachment::Container(name) => Some(("network", name.as_str())),
        _ => None,
    };
    let others = [("ipc", &container.ipc), ("pid", &container.pid)];
    let others = others.into_iter().filter_map(|(what, mode)| match mode {
        NamespaceMode::Container(name) => Some((what, name.as_str())),
        _ => None,
    });
    network.into_iter().chain(others)
}

/// The error of a service that failed, with the end of what it printed, and of what its health check did.
pub(super) fn service_failure(name: &str, what: &str, printed: &str, probe: Option<&HealthProbe>) -> Error {
    let mut message = format!("service `{name}` {what}");
    if printed.is_empty() {
        message.push_str("; it printed nothing");
    } else {
        message.push_str("; its last output was:\n");
        message.push_str(last_part(printed));
    }
    if let Some(probe) = probe {
        message.push_str(if printed.is_empty() { "; " } else { "\n" });
        message.push_str(&told(probe));
    }
    Error::new(ErrorKind::NotReady, Operation::ComposeUp, message)
}

/// What a probe of ours has come to.
pub(super) fn probe_of(result: &ExecResult) -> HealthProbe {
    if result.error_type.is_some() {
        return HealthProbe::new(None, result.message.as_deref().unwrap_or_default());
    }
    let printed = [result.stdout(), result.stderr()].into_iter().flatten();
    HealthProbe::new(Some(result.return_code.into()), printed.collect::<String>())
}

/// What a health check has come to, in words.
pub(super) fn told(probe: &HealthProbe) -> String {
    let ended = match probe.exit_code {
        Some(code) => format!("ended with {code}"),
        None => "did not end by itself".to_owned(),
    };
    match last_part(probe.output.trim_end()) {
        "" => format!("its health check {ended} and printed nothing"),
        printed => format!("its health check {ended} and said:\n{printed}"),
    }
}

/// What kind of failure the result of a command is that must have succeeded.
pub(super) fn kind_of(result: &ExecResult) -> ErrorKind {
    match (result.error_type, result.reason) {
        (_, Some(ExecReason::Sandbox(reason))) => ErrorKind::Sandbox(reason),
        (Some(ExecErrorType::Timeout), _) => ErrorKind::Timeout,
        _ => ErrorKind::NotReady,
    }
}

/// The end of a text, from a whole character on.
pub(super) fn last_part(text: &str) -> &str {
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

/// The same of several, all of which are told. None of none.
pub(super) fn in_services(mut errors: Vec<(&str, Error)>) -> Option<Error> {
    if errors.len() <= 1 {
        return errors.pop().map(|(service, error)| in_service(service, error));
    }
    let invalid = |(_, error): &(&str, Error)| error.kind() == ErrorKind::InvalidArgument;
    let kind = if errors.iter().all(invalid) {
        ErrorKind::InvalidArgument
    } else {
        ErrorKind::Unsupported
    };
    let told = errors.into_iter().map(|(service, error)| {
        let path = YamlPath::of_keys(["services", service]);
        Diagnostic::of_project(path, error.to_string(), error.hint(), Severity::Error)
    });
    let message = "the project has services that can't be as they are described";
    Some(Error::new(kind, Operation::ComposeUp, message).with_source(Diagnostics(told.collect())))
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

    #[test]
    fn what_a_health_check_said_stands_beside_what_the_service_printed() {
        let failure = |printed, probe: Option<(Option<i64>, &str)>| {
            let probe = probe.map(|(code, output)| HealthProbe::new(code, output));
            let error = service_failure("db", "is unhealthy", printed, probe.as_ref());
            error.to_string().split_once("service ").unwrap().1.to_owned()
        };
        assert_eq!(
            failure("up", Some((Some(1), "no /ok\n"))),
            "`db` is unhealthy; its last output was:\nup\nits health check ended with 1 and said:\nno /ok"
        );
        assert_eq!(
            failure("", Some((None, "too long"))),
            "`db` is unhealthy; it printed nothing; its health check did not end by itself and said:\ntoo long"
        );
        assert_eq!(
            failure("", Some((Some(2), ""))),
            "`db` is unhealthy; it printed nothing; its health check ended with 2 and printed nothing"
        );
        assert_eq!(failure("", None), "`db` is unhealthy; it printed nothing");
    }
}
