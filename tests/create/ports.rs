//! Published ports (C14, N1-N5).

use std::net::IpAddr;
use std::time::Duration;

use gym_sandbox::docker::DockerConfig;
use gym_sandbox::provider::EndpointProvider;
use gym_sandbox::{ErrorKind, ExecOptions, SandboxProvider, SandboxReason, SandboxStatus};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::{client, docker, docker_with};
use crate::support::{container_id, inspect, stdout, until, until_status};

#[tokio::test(flavor = "multi_thread")]
async fn c14_n5_a_port_is_on_the_publish_host_at_a_number_of_the_engine() {
    for (publish_host, url_host) in [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1")] {
        let mut config = DockerConfig::default();
        config.create.publish_host = publish_host.to_owned();
        let Some(test) = docker_with(config).await else {
            return;
        };
        let handle = test
            .provider
            .create(&crate::common::busybox().with_ports([8080]).unwrap())
            .await
            .unwrap();
        let ports = inspect(&handle).await.network_settings.unwrap().ports.unwrap();
        let bindings = ports["8080/tcp"].clone().unwrap();
        assert!(
            bindings
                .iter()
                .any(|binding| binding.host_ip.as_deref() == Some(publish_host)),
            "{bindings:?}"
        );
        if publish_host == "127.0.0.1" {
            assert_eq!(bindings.len(), 1, "{bindings:?}");
        }
        let endpoint = test.provider.endpoint(&handle, 8080).await.unwrap();
        let address = endpoint
            .endpoint()
            .strip_prefix("http://")
            .unwrap()
            .trim_end_matches('/')
            .to_owned();
        let (host, port) = address.rsplit_once(':').unwrap();
        assert_eq!(host, url_host);
        assert!(
            bindings
                .iter()
                .any(|binding| binding.host_port.as_deref() == Some(port)),
            "{port}: {bindings:?}"
        );
        let serve =
            "mkdir /tmp/site; echo served from inside > /tmp/site/index.html; httpd -p 8080 -h /tmp/site";
        stdout(&test.provider, &handle, serve).await;
        until("the server answers", || async {
            fetch(&address)
                .await
                .is_ok_and(|answer| answer.contains("served from inside"))
        })
        .await;
        test.provider.close(&handle).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n4_an_ipv6_publish_host_is_bracketed() {
    let mut config = DockerConfig::default();
    config.create.publish_host = "::1".to_owned();
    let Some(test) = docker_with(config).await else {
        return;
    };
    if tokio::net::TcpListener::bind("[::1]:0").await.is_err() {
        eprintln!("skipped: this machine has no IPv6 loopback");
        return;
    }
    let handle = test
        .provider
        .create(&crate::common::busybox().with_ports([8080]).unwrap())
        .await
        .unwrap();
    let endpoint = test.provider.endpoint(&handle, 8080).await.unwrap();
    assert!(
        endpoint.endpoint().starts_with("http://[::1]:"),
        "{}",
        endpoint.endpoint()
    );
    assert!("::1".parse::<IpAddr>().is_ok());
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn n2_no_network_no_binding_and_a_stopped_sandbox_has_none() {
    let Some(test) = docker().await else { return };
    let spec = crate::common::busybox().with_ports([8080]).unwrap();
    let none = test
        .provider
        .create(&spec.clone().with_provider_option("network", "none"))
        .await
        .unwrap();
    let error = test.provider.endpoint(&none, 8080).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error:?}");
    assert!(error.to_string().contains("no host binding"), "{error}");
    test.provider.close(&none).await.unwrap();

    let handle = test.provider.create(&spec).await.unwrap();
    test.provider.endpoint(&handle, 8080).await.unwrap();
    let raw = client().await.unwrap();
    raw.kill_container(
        container_id(&handle),
        None::<bollard::query_parameters::KillContainerOptions>,
    )
    .await
    .unwrap();
    until_status(&test.provider, &handle, SandboxStatus::Stopped).await;
    let error = test.provider.endpoint(&handle, 8080).await.unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Sandbox(SandboxReason::NotRunning),
        "{error:?}"
    );
    test.provider.close(&handle).await.unwrap();
    let error = test.provider.endpoint(&handle, 8080).await.unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Sandbox(SandboxReason::Removed),
        "{error:?}"
    );
}

/// The engine chooses another number at every start (bugs B31).
#[tokio::test(flavor = "multi_thread")]
async fn b31_the_number_is_asked_for_each_time() {
    let Some(test) = docker().await else { return };
    let handle = test
        .provider
        .create(&crate::common::busybox().with_ports([8080]).unwrap())
        .await
        .unwrap();
    let raw = client().await.unwrap();
    let restart = bollard::query_parameters::RestartContainerOptionsBuilder::new()
        .t(0)
        .build();
    raw.restart_container(container_id(&handle), Some(restart))
        .await
        .unwrap();
    until_status(&test.provider, &handle, SandboxStatus::Running).await;
    let ports = inspect(&handle).await.network_settings.unwrap().ports.unwrap();
    let bound = ports["8080/tcp"].clone().unwrap()[0].host_port.clone().unwrap();
    let endpoint = test.provider.endpoint(&handle, 8080).await.unwrap();
    assert!(
        endpoint
            .endpoint()
            .trim_end_matches('/')
            .ends_with(&format!(":{bound}")),
        "{}",
        endpoint.endpoint()
    );
    let echo = test
        .provider
        .exec(&handle, ExecOptions::new("echo still there"))
        .await
        .unwrap();
    assert_eq!(echo.stdout().as_deref(), Some("still there\n"));
    test.provider.close(&handle).await.unwrap();
}

async fn fetch(address: &str) -> std::io::Result<String> {
    let fetching = async {
        let mut stream = TcpStream::connect(address).await?;
        stream
            .write_all(format!("GET / HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())
            .await?;
        let mut answer = Vec::new();
        stream.take(64 * 1024).read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    tokio::time::timeout(Duration::from_secs(5), fetching)
        .await
        .unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
}
