//! Sandboxes on network `none`, which the engine is spared the network of: for their programs they are as any other one.

use bollard::Docker;
use gym_sandbox::docker::ExecPathPolicy;
use gym_sandbox::{ExecPath, SandboxSpec};
use serde_json::json;

use super::{Kept, common, docker};

/// What a program can see of its network and names.
const SEEN: &str = "cat /etc/hosts; stat -c '%a %u %g' /etc/hosts; ls /sys/class/net; \
    cat /etc/hostname | tr -d a-f0-9; cat /proc/net/route | wc -l; ls -A /etc | sort";

/// A service on loopback, reached by its name and by both addresses.
const SERVED: &str = "mkdir -p /tmp/w && echo here >/tmp/w/f && httpd -p 8080 -h /tmp/w && \
    wget -qO- http://localhost:8080/f && wget -qO- http://127.0.0.1:8080/f && wget -qO- 'http://[::1]:8080/f'";

fn offline(image: &str) -> SandboxSpec {
    SandboxSpec::new(image).with_provider_option("network", "none")
}

/// Whether the engine was told to leave the network out.
async fn is_spared(engine: &Docker, sandbox: &Kept) -> bool {
    let inspected = engine.inspect_container(&sandbox.raw().container_id, None);
    inspected.await.unwrap().config.unwrap().network_disabled == Some(true)
}

#[tokio::test]
async fn c13_no_network_is_the_same_with_less_work_for_the_engine() {
    let (Some(test), Some(plain)) = (
        docker(ExecPathPolicy::Agent).await,
        docker(ExecPathPolicy::Engine).await,
    ) else {
        return;
    };
    let engine = Docker::connect_with_defaults().unwrap();
    for (image, option) in [
        (common::BUSYBOX, None),
        (common::DEBIAN, None),
        ("gym-sandbox/user:test", None),
        (common::BUSYBOX, Some(("cap_drop", json!(["ALL"])))),
        (common::BUSYBOX, Some(("preset", json!("hardened")))),
    ] {
        let spec = match &option {
            None => offline(image),
            Some((name, value)) => offline(image).with_provider_option(*name, value.clone()),
        };
        let expected = Kept::new(&plain, spec.clone()).await;
        let sandbox = Kept::new(&test, spec).await;
        sandbox.assert_by(ExecPath::Agent);
        assert!(is_spared(&engine, &sandbox).await, "{image} {option:?}");
        assert!(!is_spared(&engine, &expected).await, "{image} {option:?}");
        let seen = sandbox.line(SEEN).await;
        assert!(seen.starts_with("127.0.0.1\tlocalhost\n"), "{seen}");
        assert_eq!(seen, expected.line(SEEN).await, "{image} {option:?}");
        if image == common::BUSYBOX {
            assert_eq!(sandbox.line(SERVED).await, "here\nhere\nhere\n", "{option:?}");
        }
        expected.close().await;
        sandbox.close().await;
    }
}

#[tokio::test]
async fn c13_what_the_engine_would_write_more_of_is_left_to_it() {
    let Some(test) = docker(ExecPathPolicy::Agent).await else {
        return;
    };
    let engine = Docker::connect_with_defaults().unwrap();
    for spec in [
        offline(common::BUSYBOX).with_provider_option("read_only", true),
        offline(common::BUSYBOX).with_provider_option("tmpfs", json!({"/etc/x": ""})),
        offline(common::BUSYBOX).with_entrypoint(["sleep", "1000"]),
        common::busybox(),
    ] {
        let sandbox = Kept::new(&test, spec).await;
        assert!(!is_spared(&engine, &sandbox).await, "{:?}", sandbox.handle);
        assert!(
            sandbox
                .line("cat /etc/hosts")
                .await
                .contains("127.0.0.1\tlocalhost\n")
        );
        sandbox.close().await;
    }
}

#[tokio::test]
async fn c13_no_network_is_still_none_after_a_restart() {
    let Some(test) = docker(ExecPathPolicy::Agent).await else {
        return;
    };
    let engine = Docker::connect_with_defaults().unwrap();
    let sandbox = Kept::new(&test, offline(common::BUSYBOX)).await;
    let before = sandbox.line(SEEN).await;
    let options = bollard::query_parameters::RestartContainerOptionsBuilder::new()
        .t(0)
        .build();
    engine
        .restart_container(&sandbox.raw().container_id, Some(options))
        .await
        .unwrap();
    assert_eq!(sandbox.line(SEEN).await, before);
    assert_eq!(sandbox.line(SERVED).await, "here\nhere\nhere\n");
    sandbox.close().await;
}
