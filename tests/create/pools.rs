//! Address pools that are used up, as an engine behind a proxy says it: really using them up would disturb everybody
//! (bugs B28).

use gym_sandbox::compose::{AsyncSandboxCompose, ProjectName, Source};
use gym_sandbox::container::NetworkSpec;
use gym_sandbox::provider::ContainersProvider;
use gym_sandbox::{ErrorKind, Resource, SandboxProvider};

use crate::common::{BUSYBOX, DockerTest, busybox, config, docker_with};
use crate::proxy::{Cut, Proxy};

const NO_POOL: &str = "could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network";
const NO_ADDRESS: &str = "no available IPv4 addresses on this network's address pools: net (0123)";
const NETWORKS: ErrorKind = ErrorKind::ResourceExhausted(Resource::Networks);

async fn behind() -> Option<(Proxy, DockerTest)> {
    let proxy = Proxy::start().await?;
    let mut config = config();
    config.host = Some(proxy.address());
    let test = docker_with(config).await?;
    Some((proxy, test))
}

#[tokio::test(flavor = "multi_thread")]
async fn b28_used_up_pools_are_told_whatever_the_status_and_tried_once() {
    let Some((proxy, test)) = behind().await else {
        return;
    };
    for status in [404, 400, 500] {
        let before = proxy.requests("/networks/create");
        proxy.cut("/networks/create", Cut::Answer(status, NO_POOL));
        let error = test
            .provider
            .create_network(&NetworkSpec::new("b28"))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), NETWORKS, "{status}: {}", error.report());
        assert!(error.to_string().contains("`b28`"), "{error}");
        assert!(error.hint().unwrap().contains("networks"), "{error:?}");
        assert_eq!(
            proxy.requests("/networks/create") - before,
            1,
            "it is not tried for ever"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b28_a_sandbox_without_an_address_is_removed() {
    let Some((proxy, test)) = behind().await else {
        return;
    };
    for status in [404, 500] {
        let before = proxy.requests("/start");
        // Once with the agent and once without it.
        for _ in 0..2 {
            proxy.cut("/start", Cut::Answer(status, NO_ADDRESS));
        }
        let error = test.provider.create(&busybox()).await.unwrap_err();
        assert_eq!(error.kind(), NETWORKS, "{status}: {}", error.report());
        let tried = proxy.requests("/start") - before;
        assert!((1..=2).contains(&tried), "{tried} starts");
        test.provider.aclose().await.unwrap();
        assert_eq!(test.containers().await, Vec::<String>::new());
        // What was not used would be for the next.
        for _ in tried..2 {
            test.provider.create(&busybox()).await.unwrap_err();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b28_a_project_without_a_network_leaves_nothing() {
    let Some((proxy, test)) = behind().await else {
        return;
    };
    let text = format!(
        "services: {{web: {{image: '{BUSYBOX}', command: sleep 300, volumes: ['data:/data']}}}}\nvolumes: {{data: {{}}}}\n"
    );
    for status in [404, 400, 500] {
        proxy.cut("/networks/create", Cut::Answer(status, NO_POOL));
        let name = format!("t-{}", uuid::Uuid::new_v4().simple());
        let project = AsyncSandboxCompose::new(test.provider.clone())
            .with_source(Source::text("compose.yaml", text.as_str()))
            .with_project_name(ProjectName::Given(name.clone()));
        let error = project.start().await.unwrap_err();
        assert_eq!(error.kind(), NETWORKS, "{status}: {}", error.report());
        let labels = [("com.docker.compose.project".to_owned(), name)].into();
        assert!(
            test.provider.list_networks(&labels).await.unwrap().is_empty(),
            "{status}"
        );
        assert!(
            test.provider.list_volumes(&labels).await.unwrap().is_empty(),
            "{status}"
        );
        assert_eq!(test.containers().await, Vec::<String>::new(), "{status}");
    }
}
