//! An engine that was reached: its client, what it is and what it can.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::docker::failure::{EngineFailure, QUICK, call};
use crate::error::{Error, ErrorKind, Operation, Result};

use super::clock::{EngineClock, EngineTime};

/// The oldest API that is spoken: that of engine 20.10.
pub(in crate::docker) const MINIMUM_API: ApiVersion = ApiVersion { major: 1, minor: 41 };

/// A reached engine. Clones share its connection.
#[derive(Clone)]
pub(in crate::docker) struct Engine {
    /// The client. Its own time-out is out of the way: every call is made through
    /// [`failure::call`](crate::docker::failure::call) with a deadline.
    pub(in crate::docker) client: bollard::Docker,
    /// Where it was reached, such as `unix:///var/run/docker.sock`. Holds no password.
    pub(in crate::docker) address: Arc<str>,
    /// Who named the address, such as `DOCKER_HOST`.
    pub(in crate::docker) how: Arc<str>,
    /// The API version that is spoken: the engine's newest, or the newest the client knows if that is older.
    pub(in crate::docker) api_version: ApiVersion,
    /// Which engine it is.
    pub(in crate::docker) flavor: Flavor,
    /// Whether ports published on the engine's loopback address are on the loopback address of this machine.
    pub(in crate::docker) is_local: bool,
    /// The machine of an engine that is not local; its published ports are there. An IPv6 address is in brackets.
    pub(in crate::docker) remote_host: Option<Arc<str>>,
    /// Processors that the engine has.
    pub(in crate::docker) cpus: Option<u32>,
    /// Memory that the engine has.
    pub(in crate::docker) memory_bytes: Option<u64>,
    /// Whether its operator has told it which address pools to take subnets from.
    pub(in crate::docker) has_own_pools: bool,
    /// `linux` or `windows`.
    pub(in crate::docker) os_type: Arc<str>,
    /// As the kernel names it, such as `x86_64`.
    pub(in crate::docker) architecture: Arc<str>,
    /// Clones share it: who asks the engine for its time sets it for all.
    pub(super) clock: Arc<Mutex<EngineClock>>,
    /// What the connection needs to stay alive.
    #[cfg(feature = "ssh")]
    pub(super) tunnel: Option<Arc<super::ssh::Tunnel>>,
}

/// Which kind of engine answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::docker) enum Flavor {
    /// Docker, or something that does not say that it is another.
    Docker,
    /// Podman's compatible API.
    Podman,
}

/// A version of the Docker Engine API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::docker) struct ApiVersion {
    pub(in crate::docker) major: u16,
    pub(in crate::docker) minor: u16,
}

impl Engine {
    /// A client for calls whose query has more than the client knows: `name=value&..`, percent-encoded.
    pub(in crate::docker) fn client_with_query(&self, query: String) -> bollard::Docker {
        super::dial::with_version_in_path(self.client.clone(), self.api_version, query)
    }

    /// A client whose every call asks for this path and query.
    pub(in crate::docker) fn client_for_path(&self, path: &str) -> bollard::Docker {
        super::dial::with_path(self.client.clone(), self.api_version, path)
    }

    /// The time by the engine's clock, without asking it.
    pub(in crate::docker) fn engine_now(&self) -> EngineTime {
        self.read_clock().now()
    }

    /// Asks the engine for its time, and sets the clock by it.
    pub(in crate::docker) async fn ask_time(&self) -> Result<EngineTime, EngineFailure> {
        let asked = Instant::now();
        let info = call(QUICK, self.client.info()).await?;
        let clock = super::dial::clock(&info, asked, Instant::now());
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner) = clock;
        Ok(clock.now())
    }

    fn read_clock(&self) -> EngineClock {
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine's clock minus this machine's, in milliseconds. The engine's is known to about half the time that its
    /// answer took.
    pub(in crate::docker) fn clock_offset_ms(&self) -> i64 {
        let (engine, local) = (self.engine_now(), EngineTime::of_this_machine());
        let milliseconds =
            |duration: std::time::Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        if engine >= local {
            milliseconds(engine.since(local))
        } else {
            -milliseconds(local.since(engine))
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Engine");
        debug
            .field("address", &self.address)
            .field("how", &self.how)
            .field("api_version", &self.api_version)
            .field("flavor", &self.flavor)
            .field("is_local", &self.is_local);
        #[cfg(feature = "ssh")]
        debug.field("tunnel", &self.tunnel.is_some());
        debug.finish_non_exhaustive()
    }
}

impl ApiVersion {
    pub(in crate::docker) const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// Refuses what an engine with this API is too old for.
    pub(in crate::docker) fn require(self, at_least: Self, operation: Operation, what: &str) -> Result<()> {
        if self >= at_least {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Unsupported,
            operation,
            format!("{what} needs API >= {at_least}, the engine has {self}"),
        )
        .with_hint("use a newer engine, or do without this"))
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for ApiVersion {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let number = |text: &str| {
            if text.bytes().all(|byte| byte.is_ascii_digit()) {
                text.parse().ok()
            } else {
                None
            }
        };
        text.split_once('.')
            .and_then(|(major, minor)| {
                Some(Self {
                    major: number(major)?,
                    minor: number(minor)?,
                })
            })
            .ok_or(NotAVersion)
    }
}

/// The text is not an API version.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an API version such as 1.41")]
pub(in crate::docker) struct NotAVersion;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_ordered_by_number() {
        for (text, version) in [
            ("1.41", ApiVersion::new(1, 41)),
            ("1.5", ApiVersion::new(1, 5)),
            ("2.0", ApiVersion::new(2, 0)),
        ] {
            assert_eq!(text.parse(), Ok(version));
            assert_eq!(version.to_string(), text);
        }
        assert!(ApiVersion::new(1, 9) < ApiVersion::new(1, 41));
        assert!(ApiVersion::new(2, 0) > ApiVersion::new(1, 99));
        for text in ["", "1", "1.", ".41", "1.41.2", "v1.41", "1.-1", "1.+1", "1.99999"] {
            assert_eq!(text.parse::<ApiVersion>(), Err(NotAVersion), "{text}");
        }
    }

    #[test]
    fn what_an_engine_is_too_old_for_is_refused_with_both_versions() {
        let engine = ApiVersion::new(1, 41);
        assert!(
            engine
                .require(ApiVersion::new(1, 41), Operation::Create, "x")
                .is_ok()
        );
        let error = engine
            .require(ApiVersion::new(1, 45), Operation::Create, "a volume's subpath")
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(
            error.to_string(),
            "create sandbox: a volume's subpath needs API >= 1.45, the engine has 1.41"
        );
    }
}
