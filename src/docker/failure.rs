//! What can come back from an engine call instead of an answer, and how it becomes an error of this crate.
//! Statuses and texts of the engine are read here and in the tables of the operations, nowhere else.

use std::future::Future;
use std::time::Duration;

use bollard::errors::Error as BollardError;

use crate::error::{Error, ErrorKind, Operation, Resource};

/// How long a call may take that the engine answers from memory.
pub(super) const QUICK: Duration = Duration::from_secs(30);

/// How long the removal of a container may take; killing thousands of processes and unmounting takes seconds.
pub(super) const REMOVE: Duration = Duration::from_secs(60);

/// Why an engine call gave no answer that can be used.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum EngineFailure {
    /// The engine refused.
    #[error("{text}")]
    Refused { status: u16, text: String },
    /// No connection to the engine could be made: it was never asked.
    #[error("the engine can't be reached: {text}")]
    Unreached { text: String },
    /// The connection broke, or it is not known whether there was one: the engine may be at work.
    #[error("the engine does not answer: {text}")]
    Transport { text: String },
    /// The engine was reached but did not answer in time.
    #[error("the engine did not answer in {0:?}")]
    Deadline(Duration),
    /// No subnet of the range that networks are given theirs from is free.
    #[error("no subnet with the prefix /{prefix} is free in {range}")]
    NoSubnet { range: String, prefix: u32 },
    /// The engine answered what can't be understood.
    #[error("the engine's answer can't be read: {text}")]
    Unreadable { text: String },
}

/// Makes a call under a deadline of our own: the client's is the same for all calls and does not fit any.
pub(super) async fn call<T>(
    deadline: Duration,
    future: impl Future<Output = Result<T, BollardError>>,
) -> Result<T, EngineFailure> {
    match tokio::time::timeout(deadline, future).await {
        Ok(answer) => answer.map_err(EngineFailure::from),
        Err(_) => Err(EngineFailure::Deadline(deadline)),
    }
}

impl From<BollardError> for EngineFailure {
    fn from(error: BollardError) -> Self {
        match error {
            BollardError::DockerResponseServerError { status_code, message } => Self::Refused {
                status: status_code,
                text: message.trim().to_owned(),
            },
            BollardError::JsonDataError { message, .. } => Self::Unreadable { text: message },
            BollardError::JsonSerdeError { err } => Self::Unreadable {
                text: err.to_string(),
            },
            BollardError::DockerStreamError { error } => Self::Refused {
                status: 500,
                text: error,
            },
            BollardError::HyperLegacyError { err } if err.is_connect() => Self::Unreached {
                text: innermost(&err),
            },
            other => Self::Transport {
                text: innermost(&other),
            },
        }
    }
}

impl EngineFailure {
    /// The task that makes a call has ended without an answer.
    pub(super) fn cut_off() -> Self {
        Self::Transport {
            text: "the call was cut off".to_owned(),
        }
    }

    /// Whether the engine was never asked or has refused: there is nothing that it may be at work on.
    pub(super) fn began_nothing(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Unreached { .. })
    }

    /// The status of a refusal.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Says whether the engine refused with this status.
    pub(super) fn is_status(&self, status: u16) -> bool {
        self.status() == Some(status)
    }

    /// The text of a refusal.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Refused { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Makes an error that says what was tried and keeps this as its cause. A refusal that is not one of the general
    /// ones gets the given kind.
    pub(super) fn into_error(
        self,
        operation: Operation,
        message: impl Into<std::borrow::Cow<'static, str>>,
        refused: ErrorKind,
    ) -> Error {
        let kind = match &self {
            Self::Unreached { text } | Self::Transport { text }
                if text.to_lowercase().contains("too many open files") =>
            {
                ErrorKind::ResourceExhausted(Resource::FileDescriptors)
            }
            Self::Unreached { .. } | Self::Transport { .. } => ErrorKind::Unavailable,
            Self::Deadline(_) => ErrorKind::Timeout,
            Self::Unreadable { .. } => ErrorKind::Internal,
            Self::NoSubnet { .. } => ErrorKind::ResourceExhausted(Resource::Networks),
            Self::Refused { text, .. } => exhausted(text).map_or(refused, ErrorKind::ResourceExhausted),
        };
        let mut error = Error::new(kind, operation, message);
        if kind == ErrorKind::ResourceExhausted(Resource::FileDescriptors) {
            error = error.with_retryable(true);
        }
        if let Some(hint) = hint(kind) {
            error = error.with_hint(hint);
        }
        error.with_source(self)
    }
}

fn hint(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::Unavailable => "check that the engine runs; `gym-sandbox doctor` says how it is reached",
        ErrorKind::Timeout => "the engine is overloaded or hangs; try again, or look at its log",
        ErrorKind::ResourceExhausted(Resource::Networks) => {
            "remove unused networks of the engine, name a larger range of subnets, or give the engine larger default \
             address pools"
        }
        ErrorKind::ResourceExhausted(Resource::Ports) => "use a port that the engine chooses",
        ErrorKind::ResourceExhausted(Resource::Disk) => "free disk space of the engine",
        ErrorKind::ResourceExhausted(Resource::FileDescriptors) => {
            "raise this process's limit of open files (`ulimit -n`), or lower `exec.concurrency`"
        }
        _ => return None,
    })
}

/// Engine texts that mean that something is used up, whatever their status (engine-facts section 4, bugs B28).
const EXHAUSTED: [(&str, Resource); 7] = [
    (
        "could not find an available, non-overlapping ipv4 address pool",
        Resource::Networks,
    ),
    (
        "all predefined address pools have been fully subnetted",
        Resource::Networks,
    ),
    (
        "no available ipv4 addresses on this network's address pools",
        Resource::Networks,
    ),
    ("port is already allocated", Resource::Ports),
    ("address already in use", Resource::Ports),
    ("no space left on device", Resource::Disk),
    ("cannot allocate memory", Resource::Memory),
];

/// Says whether a container's own address is another one's. The system says of ports that are taken the same in lower case.
pub(super) fn has_no_address(text: &str) -> bool {
    text.contains("Address already in use")
}

fn exhausted(text: &str) -> Option<Resource> {
    if has_no_address(text) {
        return None;
    }
    let text = text.to_lowercase();
    EXHAUSTED
        .iter()
        .find(|(part, _)| text.contains(part))
        .map(|&(_, resource)| resource)
}

/// The last cause of an error, which is the one that says something (`connection refused`).
fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_up_resources_are_told_by_text_and_not_by_status() {
        for (text, resource) in [
            (
                "could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network",
                Resource::Networks,
            ),
            (
                "all predefined address pools have been fully subnetted",
                Resource::Networks,
            ),
            (
                "no available IPv4 addresses on this network's address pools: n (0123)",
                Resource::Networks,
            ),
            (
                "driver failed: Bind for 0.0.0.0:38123 failed: port is already allocated",
                Resource::Ports,
            ),
            (
                "Error starting userland proxy: listen tcp4 127.0.0.1:80: bind: address already in use",
                Resource::Ports,
            ),
            ("write /var/lib/x: no space left on device", Resource::Disk),
        ] {
            for status in [400, 404, 500] {
                let failure = EngineFailure::Refused {
                    status,
                    text: text.to_owned(),
                };
                let error = failure.into_error(Operation::Create, "x", ErrorKind::CreateFailed);
                assert_eq!(
                    error.kind(),
                    ErrorKind::ResourceExhausted(resource),
                    "{status} {text}"
                );
            }
        }
    }

    #[test]
    fn b26_a_full_table_of_open_files_is_not_an_engine_that_is_away() {
        let failure = EngineFailure::Transport {
            text: "Too many open files (os error 24)".to_owned(),
        };
        let error = failure.into_error(Operation::Close, "x", ErrorKind::Conflict);
        assert_eq!(
            error.kind(),
            ErrorKind::ResourceExhausted(Resource::FileDescriptors)
        );
        assert!(error.is_retryable());
        let failure = EngineFailure::Transport {
            text: "Connection refused (os error 111)".to_owned(),
        };
        assert_eq!(
            failure
                .into_error(Operation::Close, "x", ErrorKind::Conflict)
                .kind(),
            ErrorKind::Unavailable
        );
    }

    #[tokio::test]
    async fn c18_a_call_whose_connection_could_not_be_opened_has_begun_nothing() {
        // Taken, so that nobody else gets it, and not listened on.
        let taken = tokio::net::TcpSocket::new_v4().expect("a socket is made");
        taken.bind(([127, 0, 0, 1], 0).into()).expect("a port is free");
        let address = format!("tcp://{}", taken.local_addr().expect("it is bound"));
        let client = bollard::Docker::connect_with_http(&address, 10, bollard::API_DEFAULT_VERSION);
        let client = client.expect("the address is one");
        let failure = call(QUICK, client.ping()).await.expect_err("nobody listens");
        assert!(matches!(failure, EngineFailure::Unreached { .. }), "{failure:?}");
        assert!(failure.began_nothing());
        let error = failure.into_error(Operation::Create, "x", ErrorKind::CreateFailed);
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let broken = EngineFailure::Transport {
            text: "connection closed before message completed".to_owned(),
        };
        assert!(!broken.began_nothing());
    }

    #[test]
    fn a_plain_refusal_gets_the_kind_of_the_operation() {
        let failure = EngineFailure::Refused {
            status: 500,
            text: "boom".to_owned(),
        };
        let error = failure.into_error(Operation::Create, "the engine refused", ErrorKind::CreateFailed);
        assert_eq!(error.kind(), ErrorKind::CreateFailed);
        assert!(error.report().to_string().contains("caused by: boom"));
    }
}
