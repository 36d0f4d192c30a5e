//! The way to an egress allow-list: an internal network with one gateway service, and what stays reachable from it
//! (engine-facts S11, docs/connected.md). Only network `none` isolates.

use std::panic::AssertUnwindSafe;

use bollard::models::{EndpointSettings, Ipam, IpamConfig, NetworkConnectRequest, NetworkCreateRequest};
use futures::FutureExt;
use gym_sandbox::provider::NetworkProvider;
use gym_sandbox::{AsyncSandbox, ExecOptions, SandboxSpec};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::common::{DEBIAN, DockerTest, client, docker};
use crate::{LIMIT, until};

/// An internal network of one test, removed by `remove`.
struct Internal {
    id: String,
    /// The bridge's own address, which is the host's.
    host: String,
}

impl Internal {
    /// With a small subnet of its own: the engine's default pools are for others.
    async fn create() -> Self {
        let raw = client().await.unwrap();
        for _ in 0..20 {
            let bytes = *uuid::Uuid::new_v4().as_bytes();
            let prefix = format!("10.{}.{}", 200 + bytes[0] % 50, bytes[1]);
            let request = NetworkCreateRequest {
                name: format!("test-internal-{}", uuid::Uuid::new_v4().simple()),
                internal: Some(true),
                ipam: Some(Ipam {
                    config: Some(vec![IpamConfig {
                        subnet: Some(format!("{prefix}.0/28")),
                        gateway: Some(format!("{prefix}.1")),
                        ..IpamConfig::default()
                    }]),
                    ..Ipam::default()
                }),
                ..NetworkCreateRequest::default()
            };
            // Another test may have the subnet.
            if let Ok(made) = raw.create_network(request).await {
                return Self {
                    id: made.id,
                    host: format!("{prefix}.1"),
                };
            }
        }
        panic!("no subnet is free");
    }

    async fn remove(&self) {
        client().await.unwrap().remove_network(&self.id).await.unwrap();
    }
}

async fn started(test: &DockerTest, spec: SandboxSpec) -> AsyncSandbox {
    let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(spec);
    sandbox.start().await.unwrap();
    sandbox
}

/// What a sandbox gets from an HTTP server within 5 s; none when it can't reach it.
async fn fetch(sandbox: &AsyncSandbox, url: &str) -> Option<String> {
    let program = "import sys, urllib.request as r; sys.stdout.write(r.urlopen(sys.argv[1], timeout=5).read().decode())";
    let argv = ["python3", "-c", program, url];
    let options = ExecOptions::new(argv).with_timeout(LIMIT);
    let result = sandbox.exec_with(options).await.unwrap();
    result.is_success().then(|| result.stdout().unwrap())
}

/// A service of the host on all of its addresses, for as long as the task runs.
async fn host_service() -> (u16, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 1024];
            let _read = stream.read(&mut request).await;
            let _sent = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nof the host\n").await;
        }
    });
    (port, serving)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_internal_network_with_a_gateway_leaves_the_gateway_and_the_host_and_none_leaves_nothing() {
    let Some(test) = docker().await else { return };
    let network = Internal::create().await;
    // The network is removed also when the check fails: it can't be by the guard of the test.
    let checked = AssertUnwindSafe(check(&test, &network)).catch_unwind().await;
    for container in test.containers().await {
        let _gone = client()
            .await
            .unwrap()
            .remove_container(
                &container,
                Some(
                    bollard::query_parameters::RemoveContainerOptionsBuilder::new()
                        .force(true)
                        .build(),
                ),
            )
            .await;
    }
    network.remove().await;
    if let Err(panic) = checked {
        std::panic::resume_unwind(panic);
    }
}

async fn check(test: &DockerTest, network: &Internal) {
    let raw = client().await.unwrap();
    // The gateway is on the default bridge, and in the internal network under a name. A real one forwards what its
    // list allows; this one answers itself.
    let gateway = started(test, SandboxSpec::new(DEBIAN)).await;
    let endpoint = NetworkConnectRequest {
        container: gateway.sandbox_id().unwrap().to_string(),
        endpoint_config: Some(EndpointSettings {
            aliases: Some(vec!["gateway".to_owned()]),
            ..EndpointSettings::default()
        }),
    };
    raw.connect_network(&network.id, endpoint).await.unwrap();
    let serve = "mkdir /www && echo allowed > /www/index.html && \
                 { python3 -m http.server 8080 -d /www >/dev/null 2>&1 & }";
    assert!(gateway.exec(serve).await.unwrap().is_success());
    let outside = started(test, SandboxSpec::new(DEBIAN)).await;
    assert!(outside.exec(serve).await.unwrap().is_success());
    let outside_address = outside.network_address().await.unwrap();
    let (host_port, serving) = host_service().await;

    let worker = started(
        test,
        SandboxSpec::new(DEBIAN).with_provider_option("network", network.id.as_str()),
    )
    .await;
    until("the gateway answers", async || {
        fetch(&worker, "http://gateway:8080/").await.as_deref() == Some("allowed\n")
    })
    .await;
    let beyond = format!("http://{outside_address}:8080/");
    until("what is outside answers the gateway", async || {
        fetch(&gateway, &beyond).await.as_deref() == Some("allowed\n")
    })
    .await;
    assert_eq!(
        fetch(&worker, &beyond).await,
        None,
        "nothing outside is reached but by the gateway"
    );
    // The host's services are: an internal network does not isolate from the host.
    let host = format!("http://{}:{host_port}/", network.host);
    until("the host answers", async || {
        fetch(&worker, &host).await.as_deref() == Some("of the host\n")
    })
    .await;

    let isolated = started(
        test,
        SandboxSpec::new(DEBIAN).with_provider_option("network", "none"),
    )
    .await;
    for url in [&host, &beyond] {
        assert_eq!(fetch(&isolated, url).await, None, "{url}");
    }
    let interfaces = isolated.exec("ls /sys/class/net").await.unwrap();
    assert_eq!(interfaces.stdout().as_deref(), Some("lo\n"));
    let error = test
        .provider
        .network_address(&isolated.handle().unwrap())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), gym_sandbox::ErrorKind::NotFound);
    serving.abort();
    for sandbox in [worker, isolated, outside, gateway] {
        sandbox.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_claim_of_the_example_of_an_allow_list_is_right() {
    let Some(engine) = crate::example::engine().await else {
        return;
    };
    let ended = crate::example::example(&engine, "egress_allow_list", &[]).await;
    let printed = ended.table;
    assert_eq!(ended.code, Some(0), "{printed}{}", ended.errors);
    for (claim, word) in [
        ("the gateway, to what is on its list", "reached"),
        ("the gateway, to what is not", "not reached"),
        ("what is on the list, past the gateway", "not reached"),
        ("another sandbox of the internal network", "reached"),
        ("a service of the engine's machine (!)", "reached"),
        ("the same with network `none`", "not reached"),
    ] {
        let line = printed
            .lines()
            .find(|line| line.trim_start().starts_with(claim))
            .unwrap();
        let told = line.trim_start().strip_prefix(claim).unwrap().trim_start();
        assert!(told.starts_with(word) && told.ends_with("as said"), "{printed}");
    }
    assert!(printed.contains("all 9 claims are right"), "{printed}");
}
