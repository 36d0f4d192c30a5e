//! Reaching the engine at one address: opening the transport, agreeing on an API version, reading what it is.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bollard::models::{SystemInfo, SystemVersion};
use bollard::{API_DEFAULT_VERSION, BollardRequest, ClientVersion, Docker};

use crate::docker::failure::{EngineFailure, QUICK, call};

use super::address::Address;
use super::clock::EngineClock;
use super::discovery::Candidate;
use super::engine::{ApiVersion, Engine, Flavor, MINIMUM_API};
use super::tried::Failure;

/// How long a local engine may take for its first answer.
pub(super) const LOCAL: Duration = Duration::from_secs(5);

/// The same for an engine behind a network.
const REMOTE: Duration = Duration::from_secs(10);

/// The client's own time-out. Each call has a deadline of ours; this one only has to be out of its way.
const CLIENT_TIMEOUT_SECONDS: u64 = 24 * 60 * 60;

/// A client and what it needs to stay alive.
struct Line {
    transport: Transport,
    #[cfg(feature = "ssh")]
    tunnel: Option<Arc<super::ssh::Tunnel>>,
}

enum Transport {
    Unix(String),
    Http(String),
    #[cfg(feature = "tls")]
    Tls(super::tls::Endpoint),
}

/// Reaches the engine at a place, or says why not. Bounded by deadlines at every step.
pub(super) async fn reach(candidate: &Candidate) -> Result<Engine, Failure> {
    let deadline = if matches!(candidate.address, Address::Unix(_)) {
        local_patience()
    } else {
        REMOTE
    };
    let line = open(&candidate.address, deadline).await?;

    let newest = newest_known();
    // Without a version in the path: an engine refuses those that it does not know.
    let version = call(deadline, line.client(newest)?.version())
        .await
        .map_err(|failure| first_unanswered(&failure, &candidate.address))?;
    let api_version = negotiate(&version, newest)?;
    let client = with_version_in_path(line.client(api_version)?, api_version, String::new());

    // An engine that answered at all gets the time of any other call: it counts its containers for this.
    let asked = Instant::now();
    let info = call(QUICK, client.info())
        .await
        .map_err(|failure| unanswered(&failure))?;
    let clock = clock(&info, asked, Instant::now());
    Ok(Engine {
        client,
        address: candidate.address.to_string().into(),
        how: candidate.how.as_str().into(),
        api_version,
        flavor: flavor(&version),
        is_local: candidate.address.is_local(),
        remote_host: candidate.address.remote_host().map(Arc::from),
        cpus: info
            .ncpu
            .and_then(|cpus| u32::try_from(cpus).ok())
            .filter(|cpus| *cpus > 0),
        memory_bytes: info
            .mem_total
            .and_then(|bytes| u64::try_from(bytes).ok())
            .filter(|bytes| *bytes > 0),
        has_own_pools: info.default_address_pools.is_some_and(|pools| !pools.is_empty()),
        os_type: info
            .os_type
            .or(version.os)
            .unwrap_or_else(|| "linux".to_owned())
            .into(),
        architecture: info.architecture.or(version.arch).unwrap_or_default().into(),
        clock: Arc::new(Mutex::new(clock)),
        #[cfg(feature = "ssh")]
        tunnel: line.tunnel,
    })
}

/// [`LOCAL`]. Tests have more, as they run beside many others.
fn local_patience() -> Duration {
    #[cfg(test)]
    return super::tests::PATIENCE.get();
    #[cfg(not(test))]
    LOCAL
}

async fn open(address: &Address, deadline: Duration) -> Result<Line, Failure> {
    let transport = match address {
        Address::Unix(path) => {
            check_socket(path, deadline).await?;
            Transport::Unix(path.display().to_string())
        }
        Address::Tcp {
            host,
            port,
            tls: None,
        } => Transport::Http(format!("{host}:{port}")),
        #[cfg(feature = "tls")]
        Address::Tcp {
            host,
            port,
            tls: Some(files),
        } => Transport::Tls(super::tls::Endpoint::open(format!("{host}:{port}"), files, deadline).await?),
        #[cfg(not(feature = "tls"))]
        Address::Tcp { tls: Some(_), .. } => return Err(without_feature("tls", "TLS")),
        #[cfg(feature = "ssh")]
        Address::Ssh(target) => {
            let tunnel = super::ssh::Tunnel::open(target, deadline).await?;
            return Ok(Line {
                transport: Transport::Unix(tunnel.socket().display().to_string()),
                tunnel: Some(Arc::new(tunnel)),
            });
        }
        #[cfg(not(feature = "ssh"))]
        Address::Ssh(_) => return Err(without_feature("ssh", "ssh")),
    };
    Ok(Line {
        transport,
        #[cfg(feature = "ssh")]
        tunnel: None,
    })
}

#[cfg(not(all(feature = "tls", feature = "ssh")))]
fn without_feature(feature: &str, what: &str) -> Failure {
    Failure::unsupported(format!(
        "this build cannot use {what}: the feature `{feature}` of gym-sandbox is off"
    ))
    .with_hint("build gym-sandbox with this feature, or use another address")
}

impl Line {
    fn client(&self, version: ApiVersion) -> Result<Docker, Failure> {
        let spoken = ClientVersion {
            major_version: version.major.into(),
            minor_version: version.minor.into(),
        };
        match &self.transport {
            Transport::Unix(path) => Docker::connect_with_unix(path, CLIENT_TIMEOUT_SECONDS, &spoken),
            Transport::Http(authority) => {
                Docker::connect_with_http(authority, CLIENT_TIMEOUT_SECONDS, &spoken)
            }
            #[cfg(feature = "tls")]
            Transport::Tls(endpoint) => return endpoint.client(CLIENT_TIMEOUT_SECONDS, &spoken),
        }
        .map_err(|error| unanswered(&EngineFailure::from(error)))
    }
}

/// Makes the client name the API version in every request.
///
/// bollard 0.21.1 builds a path with the version and then joins the bare path over it, which drops the version. An
/// engine takes such a request as one of its own newest version, so what was negotiated would mean nothing.
///
/// It also adds `more` to the query: what the client has no option for.
pub(super) fn with_version_in_path(client: Docker, version: ApiVersion, more: String) -> Docker {
    client.with_request_modifier(move |mut request| {
        // bollard 0.21.1 encodes credentials in the usual alphabet of base64; the engine reads the one for URLs, and
        // takes what it can't read for no credentials at all.
        for name in ["x-registry-auth", "x-registry-config"] {
            if let Some(value) = request.headers_mut().get_mut(name)
                && let Ok(text) = value.to_str()
                && let Ok(fixed) = text.replace('+', "-").replace('/', "_").parse()
            {
                *value = fixed;
                value.set_sensitive(true);
            }
        }
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        if path.starts_with(&format!("/v{version}/")) {
            return request;
        }
        let mark = match (more.is_empty(), path.contains('?')) {
            (true, _) => "",
            (false, true) => "&",
            (false, false) => "?",
        };
        let path = format!("/v{version}{path}{mark}{more}");
        at_path(request, &path)
    })
}

/// Makes the client ask for this path and query whatever it is told to ask for: for answers that it would read in a way
/// of its own.
pub(super) fn with_path(client: Docker, version: ApiVersion, path: &str) -> Docker {
    let path = format!("/v{version}{path}");
    client.with_request_modifier(move |request| at_path(request, &path))
}

fn at_path(mut request: BollardRequest, path: &str) -> BollardRequest {
    let mut parts = request.uri().clone().into_parts();
    if let Ok(path) = path.parse() {
        parts.path_and_query = Some(path);
        if let Ok(uri) = parts.try_into() {
            *request.uri_mut() = uri;
        }
    }
    request
}

/// Finds out what is wrong with a socket before the client, whose errors do not tell these cases apart.
async fn check_socket(path: &Path, deadline: Duration) -> Result<(), Failure> {
    use std::os::unix::fs::FileTypeExt;
    let look = async {
        let kind = tokio::fs::metadata(path).await?.file_type();
        if kind.is_dir() {
            return Ok(Err(Failure::invalid("it is a directory, not a socket")));
        }
        if !kind.is_socket() {
            return Ok(Err(Failure::invalid("it is a file, not a socket")));
        }
        tokio::net::UnixStream::connect(path).await.map(|_| Ok(()))
    };
    match tokio::time::timeout(deadline, look).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => Err(socket_failure(&error)),
        Err(_) => Err(Failure::unavailable(format!(
            "it could not be opened in {deadline:?}"
        ))),
    }
}

pub(super) fn socket_failure(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::unavailable("it does not exist"),
        io::ErrorKind::PermissionDenied => Failure::unavailable("permission denied").with_hint(
            "add this user to the group that owns the socket (often `docker`) and log in again, or run as root",
        ),
        io::ErrorKind::ConnectionRefused => Failure::unavailable("nothing listens on it (connection refused)"),
        _ => Failure::unavailable(error.to_string()),
    }
}

/// As [`unanswered`]; over ssh the reason alone does not say that the remote socket may be the wrong one.
fn first_unanswered(failure: &EngineFailure, address: &Address) -> Failure {
    let mut unanswered = unanswered(failure);
    if let Address::Ssh(target) = address {
        let socket = &target.socket;
        unanswered.reason = format!("{} (the socket there is `{socket}`)", unanswered.reason);
        unanswered.hint = Some(
            "name the engine's socket on that machine as `ssh://host/path/to.sock`, and check that the user may use it",
        );
    }
    unanswered
}

fn unanswered(failure: &EngineFailure) -> Failure {
    match failure {
        EngineFailure::Refused { status, text } => {
            Failure::unavailable(format!("it is not a usable engine: it answered {status} {text}"))
        }
        EngineFailure::Deadline(deadline) => {
            Failure::unavailable(format!("it did not answer in {deadline:?}"))
        }
        EngineFailure::Unreadable { text } => Failure::unavailable(format!(
            "it is not a usable engine: its answer can't be read: {text}"
        )),
        EngineFailure::Unreached { text } | EngineFailure::Transport { text } => {
            Failure::unavailable(text.clone())
        }
        // Nobody makes a network to reach an engine.
        EngineFailure::NoSubnet { .. } => Failure::unavailable(failure.to_string()),
    }
}

/// The newest version that the client knows.
fn newest_known() -> ApiVersion {
    let number = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    ApiVersion::new(
        number(API_DEFAULT_VERSION.major_version),
        number(API_DEFAULT_VERSION.minor_version),
    )
}

/// Chooses the newest version that both sides know.
fn negotiate(version: &SystemVersion, newest_known: ApiVersion) -> Result<ApiVersion, Failure> {
    let read = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<ApiVersion>().ok());
    let Some(engine) = read(&version.api_version) else {
        return Err(Failure::unavailable(
            "it is not a usable engine: it tells no API version",
        ));
    };
    if engine < MINIMUM_API {
        return Err(Failure::unsupported(format!(
            "the engine's API is {engine} and the oldest that is supported is {MINIMUM_API}"
        ))
        .with_hint("use Docker 20.10 or newer, or podman 4 or newer"));
    }
    if let Some(oldest) = read(&version.min_api_version).filter(|oldest| *oldest > newest_known) {
        return Err(Failure::unsupported(format!(
            "the engine refuses API versions before {oldest} and the newest that is known here is {newest_known}"
        ))
        .with_hint("use a newer version of gym-sandbox, or let the engine accept older API versions"));
    }
    Ok(engine.min(newest_known))
}

fn flavor(version: &SystemVersion) -> Flavor {
    let podman = version
        .components
        .iter()
        .flatten()
        .any(|component| component.name.to_lowercase().contains("podman"));
    if podman { Flavor::Podman } else { Flavor::Docker }
}

pub(super) fn clock(info: &SystemInfo, asked: Instant, answered: Instant) -> EngineClock {
    match info.system_time.as_deref().map(str::parse) {
        Some(Ok(time)) => EngineClock::new(time, asked, answered),
        other => {
            tracing::warn!(told = ?other.is_some(), "the engine's clock can't be read; this machine's is used");
            EngineClock::of_this_machine()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use bollard::models::SystemVersionComponents;

    fn version(newest: &str, oldest: &str) -> SystemVersion {
        SystemVersion {
            api_version: Some(newest.to_owned()),
            min_api_version: Some(oldest.to_owned()),
            ..Default::default()
        }
    }

    #[test]
    fn the_newest_version_that_both_know_is_spoken() {
        let known = ApiVersion::new(1, 53);
        for (newest, oldest, spoken) in [
            ("1.41", "1.12", "1.41"),
            ("1.50", "1.24", "1.50"),
            ("1.99", "1.44", "1.53"),
            ("2.0", "1.53", "1.53"),
        ] {
            let found =
                negotiate(&version(newest, oldest), known).unwrap_or_else(|failure| panic!("{failure:?}"));
            assert_eq!(found.to_string(), spoken, "{newest}");
        }
    }

    #[test]
    fn engines_too_old_and_too_new_are_unsupported_and_what_is_no_engine_is_unavailable() {
        let known = ApiVersion::new(1, 53);
        for (newest, oldest, kind, text) in [
            (
                "1.40",
                "1.12",
                ErrorKind::Unsupported,
                "1.40 and the oldest that is supported is 1.41",
            ),
            ("1.9", "", ErrorKind::Unsupported, "1.9"),
            (
                "1.99",
                "1.54",
                ErrorKind::Unsupported,
                "before 1.54 and the newest that is known here is 1.53",
            ),
            ("zork", "", ErrorKind::Unavailable, "no API version"),
        ] {
            let failure = negotiate(&version(newest, oldest), known).unwrap_err();
            assert_eq!(failure.kind, kind, "{newest}");
            assert!(failure.reason.contains(text), "{}", failure.reason);
        }
        assert!(negotiate(&SystemVersion::default(), known).is_err());
    }

    #[test]
    fn podman_is_told_by_its_component() {
        let mut version = version("1.41", "1.24");
        assert_eq!(flavor(&version), Flavor::Docker);
        version.components = Some(vec![SystemVersionComponents {
            name: "Podman Engine".to_owned(),
            version: "5.0.0".to_owned(),
            details: None,
        }]);
        assert_eq!(flavor(&version), Flavor::Podman);
    }
}
