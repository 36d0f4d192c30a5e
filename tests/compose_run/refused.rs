//! What an engine cannot give is told by name, before anything is made or with nothing left.

use std::path::Path;
use std::sync::Arc;

use gym_sandbox::compose::{AsyncSandboxCompose, ProjectName, Source};
use gym_sandbox::{ErrorKind, ImageProblem, SandboxProvider};

use crate::common::docker;
use crate::support::{behind_proxy, engine, left_of, story, unique};

#[tokio::test(flavor = "multi_thread")]
async fn ipv6_that_the_engine_has_no_subnet_for_is_refused_before_anything_is_made() {
    let Some(test) = docker().await else { return };
    let Some((proxy, provider)) = behind_proxy(&test).await else {
        return;
    };
    let version = engine().version().await.unwrap().api_version.unwrap();
    let has_subnets = version.split_once('.').unwrap().1.parse::<u32>().unwrap() >= 46;
    let pools = test.provider.diagnose().await.unwrap().address_pools_basis;
    for (network, kind) in [
        ("{enable_ipv6: true}", ErrorKind::Unsupported),
        (
            "{ipam: {config: [{subnet: 'fd3a:77c4:7::/64'}]}}",
            ErrorKind::InvalidArgument,
        ),
        (
            "{ipam: {config: [{subnet: '10.9.8.0/99'}]}}",
            ErrorKind::InvalidArgument,
        ),
    ] {
        if kind == ErrorKind::Unsupported && (has_subnets || !pools.contains("reports no pools")) {
            eprintln!("skipped: the engine may have IPv6 subnets to give");
            continue;
        }
        let name = unique();
        let yaml = format!(
            "
services: {{a: {{image: 'gym-sandbox/busybox:test', command: sleep 300, networks: [six], volumes: ['data:/data']}}}}
networks: {{six: {network}}}
volumes: {{data: }}
"
        );
        let project = AsyncSandboxCompose::new(Arc::clone(&provider) as Arc<dyn SandboxProvider>)
            .with_source(Source::text("compose.yaml", yaml))
            .with_project_name(ProjectName::Given(name.clone()));
        let error = project.start().await.unwrap_err();
        let told = story(&error);
        assert_eq!(error.kind(), kind, "{network}: {told}");
        assert!(told.contains(&format!("`{name}_six`")), "{network}: {told}");
        assert_eq!(left_of(&name).await, Vec::<String>::new());
    }
    assert_eq!(proxy.requests("/create"), 0);
    provider.aclose().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d18_what_no_container_can_have_is_refused_by_service_before_anything_is_made() {
    let Some(test) = docker().await else { return };
    let Some((proxy, provider)) = behind_proxy(&test).await else {
        return;
    };
    let yaml = "
services:
  fine: {image: 'gym-sandbox/busybox:test', command: sleep 300}
  mount: {image: 'gym-sandbox/busybox:test', tmpfs: [no/root]}
  host: {image: 'gym-sandbox/busybox:test', extra_hosts: ['a:no address']}
  server: {image: 'gym-sandbox/busybox:test', dns: [no address]}
  limit: {image: 'gym-sandbox/busybox:test', ulimits: {nofile: {soft: 10, hard: 5}}}
";
    let name = unique();
    let project = AsyncSandboxCompose::new(Arc::clone(&provider) as Arc<dyn SandboxProvider>)
        .with_source(Source::text("compose.yaml", yaml))
        .with_project_name(ProjectName::Given(name.clone()));
    let error = project.start().await.unwrap_err();
    let told = story(&error);
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{told}");
    for service in ["mount", "host", "server", "limit"] {
        assert!(told.contains(&format!("services.{service}: ")), "{told}");
    }
    assert!(!told.contains("services.fine"), "{told}");
    assert_eq!(proxy.requests("/create") + proxy.requests("/images"), 0);
    assert_eq!(left_of(&name).await, Vec::<String>::new());
    provider.aclose().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_for_a_platform_that_the_base_image_is_not_for_fails_with_it() {
    let Some(test) = docker().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "Dockerfile",
        "FROM gym-sandbox/busybox:test\nRUN uname -m >/built-on\n",
    );
    let other = if std::env::consts::ARCH == "aarch64" {
        "linux/amd64"
    } else {
        "linux/arm64"
    };
    let yaml =
        format!("services: {{web: {{build: {{context: ., platforms: [{other}]}}, command: sleep 300}}}}");
    let project = crate::support::project(&test, &yaml).with_project_directory(Path::new(folder.path()));
    let error = project.start().await.unwrap_err();
    let told = story(&error);
    assert_eq!(error.kind(), ErrorKind::Image(ImageProblem::Platform), "{told}");
    assert!(told.contains("`web`") && told.contains(other), "{told}");
    let name = project.project().unwrap();
    assert_eq!(left_of(&name).await, Vec::<String>::new());
    // The image is not there either, to be taken for the right one the next time.
    let image = format!("{name}-web");
    assert!(engine().inspect_image(&image).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_container_can_be_is_told_before_anything_is_made() {
    let Some(test) = docker().await else { return };
    let Some((proxy, provider)) = behind_proxy(&test).await else {
        return;
    };
    let version = engine().version().await.unwrap().api_version.unwrap();
    let is_new = version.split_once('.').unwrap().1.parse::<u32>().unwrap() >= 44;
    let long = "a".repeat(110);
    for (service, more, kind, told) in [
        (
            long.as_str(),
            "",
            ErrorKind::InvalidArgument,
            "is not a sandbox id",
        ),
        (
            "bad",
            "volumes: ['data:/']",
            ErrorKind::InvalidArgument,
            "the mount target `/`",
        ),
        (
            "bad",
            "healthcheck: {test: 'true', interval: 500us}",
            ErrorKind::InvalidArgument,
            "the health check's interval",
        ),
        (
            "bad",
            "healthcheck: {test: 'true', start_interval: 1s, start_period: 2s}",
            ErrorKind::Unsupported,
            "start interval",
        ),
    ] {
        if kind == ErrorKind::Unsupported && is_new {
            eprintln!("skipped: the engine can do this");
            continue;
        }
        let name = unique();
        let yaml = format!(
            "
services:
  good: {{image: 'gym-sandbox/busybox:test', command: sleep 300, volumes: ['data:/data']}}
  {service}: {{image: 'gym-sandbox/busybox:test', command: sleep 300, {more}}}
volumes: {{data: }}
"
        );
        let project = AsyncSandboxCompose::new(Arc::clone(&provider) as Arc<dyn SandboxProvider>)
            .with_source(Source::text("compose.yaml", yaml))
            .with_project_name(ProjectName::Given(name.clone()));
        let error = project.start().await.unwrap_err();
        let said = story(&error);
        assert_eq!(error.kind(), kind, "{more}: {said}");
        assert!(
            said.contains(&format!("service `{service}`")) && said.contains(told),
            "{more}: {said}"
        );
        assert_eq!(left_of(&name).await, Vec::<String>::new());
    }
    assert_eq!(proxy.requests("/create"), 0);
    provider.aclose().await.unwrap();
}

#[tokio::test]
async fn an_address_that_another_service_has_is_no_taken_port() {
    let Some(test) = docker().await else { return };
    // A subnet can be on an engine once; those of the fixtures are in 10.231.
    let (_, random, ..) = uuid::Uuid::new_v4().as_fields();
    let [high, low] = random.to_be_bytes();
    let subnet = format!("10.{}.{low}", 232 + high % 18);
    let service = format!(
        "{{image: 'gym-sandbox/busybox:test', command: sleep 300, networks: {{n: {{ipv4_address: {subnet}.5}}}}}}"
    );
    let project = crate::support::project(
        &test,
        &format!(
            "services: {{a: {service}, b: {service}}}\nnetworks: {{n: {{ipam: {{config: [{{subnet: {subnet}.0/29}}]}}}}}}"
        ),
    );
    let error = project.start().await.unwrap_err();
    let said = story(&error);
    assert_eq!(error.kind(), ErrorKind::Conflict, "{said}");
    assert!(said.contains("`ipv4_address`"), "{said}");
    assert!(!said.contains("a port that"), "{said}");
    let name = project.project().unwrap();
    assert_eq!(left_of(&name).await, Vec::<String>::new());
}
