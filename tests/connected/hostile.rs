//! What callers and descriptors say that is wrong or huge: refused at once, by a typed error of bounded length.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use gym_sandbox::{AsyncSandbox, ErrorKind, SandboxDescriptor, ServiceSpec};
use serde_json::json;

use crate::both_paths;
use crate::common::{busybox, docker_with};

#[test]
fn d23_a_gigantic_descriptor_is_read_or_refused_at_once() {
    let began = Instant::now();
    let every_port: Vec<u32> = (1..=65_535).collect();
    let read = SandboxDescriptor::from_value(json!({"sandbox_id": "a", "ports": every_port})).unwrap();
    assert_eq!(read.ports.unwrap().as_slice().len(), 65_535);
    // Each port compared with each before it took over a minute.
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    let error = SandboxDescriptor::from_value(json!({"sandbox_id": "é".repeat(1_000_000)})).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let text = error.to_string();
    assert!(text.len() < 1000 && text.contains('…'), "{} bytes", text.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn l16_a_service_without_a_command_is_refused() {
    for config in both_paths() {
        let Some(test) = docker_with(config).await else {
            return;
        };
        let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(busybox());
        sandbox.start().await.unwrap();
        let nothing = ServiceSpec::new("idle", Vec::<String>::new());
        let error = sandbox.start_service(nothing).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("idle"), "{error}");
        assert_eq!(sandbox.service_status("idle").await.unwrap(), None);
        sandbox.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_says_which_of_its_arguments_is_wrong() {
    let [_, agent] = both_paths();
    let Some(test) = docker_with(agent).await else {
        return;
    };
    let spec = busybox().with_provider_option("read_only", true);
    let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(spec);
    sandbox.start().await.unwrap();
    let target = IpAddr::V4(Ipv4Addr::LOCALHOST);
    for (ports, ready_file, kind, said) in [
        (&[80, 81, 80][..], "/ready", ErrorKind::InvalidArgument, "80"),
        (&[7000], "/ready", ErrorKind::Io, "ready file"),
        (&[7000], "/no/such/folder/ready", ErrorKind::Io, "ready file"),
    ] {
        let error = sandbox
            .forward_ports(target, ports, ready_file)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), kind, "{}", error.report());
        assert!(error.to_string().contains(said), "{error}");
    }
    sandbox.stop().await.unwrap();
}
