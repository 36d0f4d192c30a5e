//! Where a published port answers (contract N1-N5, bugs B30).

use async_trait::async_trait;
use bollard::models::PortMap;

use crate::error::{Error, ErrorKind, Operation, Result, SandboxReason};
use crate::provider::{EndpointProvider, SandboxHandle};
use crate::spec::{SandboxEndpoint, SandboxStatus};

use super::status::{hint_for, status_of};
use super::{DockerProvider, DockerRaw, PROVIDER};

#[async_trait]
impl EndpointProvider for DockerProvider {
    async fn endpoint(&self, handle: &SandboxHandle, port: u16) -> Result<SandboxEndpoint> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Endpoint)?;
        self.container_endpoint(handle, raw, port).await
    }
}

impl DockerProvider {
    /// Asks the engine each time: a port that the engine chooses changes with every start (bugs B31).
    pub(super) async fn container_endpoint(
        &self,
        handle: &SandboxHandle,
        raw: &DockerRaw,
        port: u16,
    ) -> Result<SandboxEndpoint> {
        let named = |error: Error| error.with_sandbox(handle.sandbox_id());
        if !handle.ports().contains(port) {
            return Err(named(Error::invalid(
                Operation::Endpoint,
                format!(
                    "port {port} is not declared; declared are {:?}",
                    handle.ports().as_slice()
                ),
            )));
        }
        let looked = self.look_at(&raw.container_id, Operation::Endpoint).await;
        let inspected = looked.map_err(named)?;
        let ports = inspected
            .network_settings
            .and_then(|settings| settings.ports)
            .unwrap_or_default();
        if let Some(url) = binding(&ports, port, &self.reachable_host().await).map_err(named)? {
            return SandboxEndpoint::new(url).map_err(named);
        }
        let (kind, why, hint) = match status_of(inspected.state.as_ref()) {
            SandboxStatus::Running | SandboxStatus::Paused => (
                ErrorKind::NotFound,
                "",
                "a sandbox on network `none` publishes no ports",
            ),
            _ => (
                ErrorKind::Sandbox(SandboxReason::NotRunning),
                "; the sandbox is not running",
                hint_for(SandboxReason::NotRunning),
            ),
        };
        let message = format!("port {port} has no host binding{why}");
        Err(named(
            Error::new(kind, Operation::Endpoint, message).with_hint(hint),
        ))
    }
}

impl DockerProvider {
    /// The host under which a port answers that is bound to every address: that of a remote engine, else where ports
    /// are published.
    pub(super) async fn reachable_host(&self) -> String {
        let remote = match self.engine().await {
            Ok(engine) => engine.remote_host.as_deref().map(str::to_owned),
            Err(_) => None,
        };
        remote.unwrap_or_else(|| match self.config().create.publish_host.as_str() {
            "0.0.0.0" => "127.0.0.1".to_owned(),
            "::" => "::1".to_owned(),
            host => host.to_owned(),
        })
    }
}

/// The URL of a port: host and port from the same binding, 127.0.0.1 before others (contract N3, N4).
pub(super) fn binding(ports: &PortMap, port: u16, reachable_host: &str) -> Result<Option<String>> {
    let bindings = ports.get(&format!("{port}/tcp")).and_then(Option::as_ref);
    let Some(bindings) = bindings else { return Ok(None) };
    let host_of = |binding: &bollard::models::PortBinding| binding.host_ip.clone().unwrap_or_default();
    let chosen = bindings
        .iter()
        .find(|binding| host_of(binding) == "127.0.0.1")
        .or_else(|| bindings.iter().find(|binding| !host_of(binding).contains(':')))
        .or_else(|| bindings.first());
    let Some(chosen) = chosen else { return Ok(None) };
    let number = chosen.host_port.as_deref().unwrap_or_default();
    let number: u16 = number.parse().ok().filter(|&number| number > 0).ok_or_else(|| {
        Error::new(
            ErrorKind::Internal,
            Operation::Endpoint,
            format!(
                "the engine says that port {port} is bound to `{}`",
                number.escape_debug()
            ),
        )
    })?;
    let host = match host_of(chosen).as_str() {
        "" | "0.0.0.0" => reachable_host.to_owned(),
        // Only IPv6 is bound: its own loopback reaches it, an IPv4 address would not.
        "::" if reachable_host.contains(':') => reachable_host.to_owned(),
        "::" => "::1".to_owned(),
        host => host.to_owned(),
    };
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host
    };
    Ok(Some(format!("http://{host}:{number}")))
}

#[cfg(test)]
mod tests {
    use bollard::models::PortBinding;

    use super::*;

    fn url(bindings: Option<Vec<(&str, &str)>>) -> Option<String> {
        let bindings = bindings.map(|bindings| {
            bindings
                .into_iter()
                .map(|(host, port)| PortBinding {
                    host_ip: Some(host.into()),
                    host_port: Some(port.into()),
                })
                .collect()
        });
        binding(
            &PortMap::from([("8080/tcp".to_owned(), bindings)]),
            8080,
            "127.0.0.1",
        )
        .unwrap()
    }

    #[test]
    fn b30_n3_host_and_port_come_from_the_same_binding() {
        assert_eq!(
            url(Some(vec![("::", "49154"), ("0.0.0.0", "49153")])).unwrap(),
            "http://127.0.0.1:49153"
        );
        assert_eq!(
            url(Some(vec![("0.0.0.0", "49153")])).unwrap(),
            "http://127.0.0.1:49153"
        );
        assert_eq!(url(Some(vec![("", "49153")])).unwrap(), "http://127.0.0.1:49153");
        assert_eq!(url(Some(vec![("::", "49154")])).unwrap(), "http://[::1]:49154");
        assert_eq!(
            url(Some(vec![("127.0.0.1", "49153")])).unwrap(),
            "http://127.0.0.1:49153"
        );
        assert_eq!(
            url(Some(vec![("10.1.1.1", "1"), ("127.0.0.1", "2")])).unwrap(),
            "http://127.0.0.1:2"
        );
        assert_eq!(url(None), None);
        assert_eq!(url(Some(Vec::new())), None);
        let udp = PortMap::from([("8080/udp".to_owned(), None)]);
        assert_eq!(binding(&udp, 8080, "127.0.0.1").unwrap(), None);
    }

    #[test]
    fn n2_a_port_that_is_none_is_an_error() {
        for port in ["", "0", "x", "65536"] {
            let bindings = vec![PortBinding {
                host_ip: None,
                host_port: Some(port.into()),
            }];
            let ports = PortMap::from([("8080/tcp".to_owned(), Some(bindings))]);
            assert!(binding(&ports, 8080, "127.0.0.1").is_err(), "{port}");
        }
    }
}
