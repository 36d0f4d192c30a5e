//! Runtime requirements: what the policy allows, and what a container was made with.

use std::collections::HashMap;

use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{CreateContainerOptionsBuilder, StartContainerOptions};
use gym_sandbox::provider::{ConnectableProvider, ForeignSandboxes, RuntimeRequirementsProvider};
use gym_sandbox::{ErrorKind, RuntimeRequirements, SandboxDescriptor, SandboxId, SandboxProvider};

use crate::common::{BUSYBOX, TEST_LABEL, busybox, client, docker};

#[tokio::test(flavor = "multi_thread")]
async fn requirements_are_checked_against_the_policy_and_the_container() {
    let Some(test) = docker().await else { return };
    let provider = &test.provider;
    let allowed = RuntimeRequirements::new()
        .with_capability("NET_RAW")
        .with_shm_size(1 << 20);
    let options = provider.validate_runtime_requirements(&allowed).unwrap();
    assert_eq!(options["shm_size"], 1 << 20);
    for refused in ["SYS_ADMIN", "ALL", "NET RAW"] {
        let requirements = RuntimeRequirements::new().with_capability(refused);
        let error = provider.validate_runtime_requirements(&requirements).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{refused}: {error:?}");
    }
    let without = provider.create(&busybox()).await.unwrap();
    provider
        .configure_runtime(&without, &RuntimeRequirements::new())
        .await
        .unwrap();
    let error = provider.configure_runtime(&without, &allowed).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    provider.close(&without).await.unwrap();

    let raw = client().await.unwrap();
    let name = format!("test-foreign-{}", uuid::Uuid::new_v4().simple());
    let body = ContainerCreateBody {
        image: Some(BUSYBOX.to_owned()),
        cmd: Some(vec!["sleep".to_owned(), "1000".to_owned()]),
        // The guard of the test finds it by this.
        labels: Some(HashMap::from([(TEST_LABEL.to_owned(), test.label().to_owned())])),
        host_config: Some(HostConfig {
            cap_add: Some(vec!["NET_RAW".to_owned()]),
            shm_size: Some(1 << 20),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let create = CreateContainerOptionsBuilder::new().name(&name).build();
    raw.create_container(Some(create), body).await.unwrap();
    raw.start_container(&name, None::<StartContainerOptions>)
        .await
        .unwrap();
    let descriptor = SandboxDescriptor::new(SandboxId::new(name).unwrap());
    let with = provider
        .connect_handle(&descriptor, ForeignSandboxes::Allow)
        .await
        .unwrap();
    provider.configure_runtime(&with, &allowed).await.unwrap();
    provider.close(&with).await.unwrap();
}
