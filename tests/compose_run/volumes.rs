//! Volumes that are filled before a service sees them (contract D20), and what is refused about mounts.

use gym_sandbox::compose::{AsyncSandboxCompose, PlanOptions, ProjectName, Source, VolumeSource};
use gym_sandbox::{ErrorKind, FileOwner, PathProblem, Resource};

use crate::common::{cleaned_up, docker};
use crate::proxy::Cut;
use crate::support::{behind_proxy, left_of, printed, project, story};

#[tokio::test]
async fn d20_a_volume_is_filled_with_files_of_the_caller_for_the_services_user() {
    let Some(test) = docker().await else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    std::fs::write(folder.path().join("sub/file"), "seeded").unwrap();
    let yaml = "
services:
  a:
    image: gym-sandbox/busybox:test
    command: sleep 300
    user: '1000:1000'
    volumes: ['data:/data']
  static: {image: 'gym-sandbox/static:test', volumes: ['plain:/data', './mounted:/mounted:ro']}
volumes: {data: , plain: }
";
    let root = tempfile::tempdir().unwrap();
    let project = project(&test, yaml)
        .with_project_directory(root.path())
        .with_volume_source("data", VolumeSource::new(folder.path()))
        .with_volume_source("plain", VolumeSource::owned_by(FileOwner::new(7, 8)))
        .with_volume_source("./mounted", VolumeSource::new(folder.path().join("sub/file")));
    project.start().await.unwrap();
    let name = project.project().unwrap();
    let seen = printed(
        &project,
        "a",
        "cat /data/sub/file; stat -c '%u:%g' /data/sub/file; touch /data/mine && echo writable",
    )
    .await;
    assert_eq!(seen, "seeded1000:1000\nwritable");
    // An image without any program can have its volumes filled, too.
    let mounted = project
        .service("static")
        .unwrap()
        .read_file("/mounted/file")
        .await
        .unwrap();
    assert_eq!(&mounted[..], b"seeded");
    project.stop().await.unwrap();
    assert_eq!(left_of(&name).await, Vec::<String>::new());
}

#[tokio::test]
async fn what_the_policy_refuses_is_refused_before_anything_is_made() {
    let Some(test) = docker().await else { return };
    let project = project(
        &test,
        "services: {a: {image: 'gym-sandbox/busybox:test', privileged: true, volumes: ['/etc:/x', 'data:/y']}}\nvolumes: {data: }",
    );
    let error = project.start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let story = story(&error);
    assert!(
        story.contains("services.a") && story.contains("privileged") && story.contains("/etc"),
        "{story}"
    );
    let name = project.project();
    assert_eq!(name, None, "it never had one");
    // Nothing was made, so that it may be tried again with other options.
    let again = project
        .with_source(Source::text(
            "over.yaml",
            "services: {a: {privileged: !reset null, volumes: !override ['data:/y'], command: sleep 300}}",
        ))
        .with_project_name(ProjectName::Unique);
    again.start().await.unwrap();
    let name = again.project().unwrap();
    again.stop().await.unwrap();
    assert_eq!(left_of(&name).await, Vec::<String>::new());
}

#[tokio::test]
async fn external_volumes_and_networks_must_be_there() {
    let Some(test) = docker().await else { return };
    for text in [
        "services: {a: {image: 'gym-sandbox/busybox:test', volumes: ['no:/y']}}\nvolumes: {no: {external: true, name: no-such-volume-here}}",
        "services: {a: {image: 'gym-sandbox/busybox:test', networks: [no]}}\nnetworks: {no: {external: true, name: no-such-network-here}}",
    ] {
        let project = project(&test, text);
        let error = project.start().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{}", story(&error));
        assert_eq!(left_of(&project.project().unwrap()).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn b33_a_network_of_the_name_that_is_somebody_elses_is_named_and_what_to_do_about_it() {
    let Some(test) = docker().await else { return };
    let project = project(
        &test,
        "services: {a: {image: 'gym-sandbox/busybox:test', command: sleep 300}}",
    );
    project.plan().await.unwrap();
    let network = format!("{}_default", project.project().unwrap());
    let spec = gym_sandbox::container::NetworkSpec::new(&network);
    let containers = gym_sandbox::SandboxProvider::as_containers(&*test.provider).unwrap();
    let id = containers.create_network(&spec).await.unwrap();
    let error = project.start().await.unwrap_err();
    containers.remove_network(&id).await.unwrap();
    let said = story(&error);
    assert_eq!(error.kind(), ErrorKind::Conflict, "{said}");
    assert!(
        said.contains(&network) && said.contains("another project name") && said.contains("`external`"),
        "{said}"
    );
    assert_eq!(left_of(&project.project().unwrap()).await, Vec::<String>::new());
}

#[tokio::test]
async fn what_others_still_use_is_not_removed_and_its_error_says_what_to_do() {
    let Some(test) = docker().await else { return };
    let project = project(
        &test,
        "
services: {a: {image: 'gym-sandbox/busybox:test', command: sleep 300, volumes: ['data:/data']}}
volumes: {data: }
",
    );
    project.start().await.unwrap();
    let name = project.project().unwrap();
    let containers = gym_sandbox::SandboxProvider::as_containers(&*test.provider).unwrap();
    let networks = containers
        .find_networks(&format!("{name}_default"))
        .await
        .unwrap();
    let removals = [
        containers.remove_network(&networks[0].id).await,
        containers.remove_volume(&format!("{name}_data")).await,
    ];
    for removed in removals {
        let error = removed.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{}", story(&error));
        assert!(story(&error).contains("`docker ps -a`"), "{}", story(&error));
    }
    project.stop().await.unwrap();
    assert_eq!(left_of(&name).await, Vec::<String>::new());
}

#[tokio::test]
async fn d18_external_networks_and_volumes_are_used_and_stay() {
    let Some(test) = docker().await else { return };
    let owner = project(
        &test,
        "
services:
  a: {image: 'gym-sandbox/busybox:test', command: [sh, -c, 'echo kept >/data/file; exec sleep 300'], volumes: ['data:/data']}
volumes: {data: }
",
    );
    owner.start().await.unwrap();
    let name = owner.project().unwrap();
    let guest = project(
        &test,
        &format!(
            "
services:
  b: {{image: 'gym-sandbox/busybox:test', command: sleep 300, volumes: ['theirs:/theirs'], networks: [theirs]}}
volumes: {{theirs: {{external: true, name: {name}_data}}}}
networks: {{theirs: {{external: true, name: {name}_default}}}}
"
        ),
    );
    guest.start().await.unwrap();
    let seen = printed(
        &guest,
        "b",
        "until test -s /theirs/file; do sleep 0.2; done; cat /theirs/file; \
         ping -c1 -W60 a >/dev/null && echo reached",
    )
    .await;
    assert_eq!(seen, "kept\nreached");
    let before = left_of(&name).await.len();
    guest.stop().await.unwrap();
    assert_eq!(left_of(&name).await.len(), before);
    owner.stop().await.unwrap();
    assert_eq!(left_of(&name).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn d20_a_volume_that_can_not_be_filled_is_told_with_its_service_and_leaves_nothing() {
    let Some(test) = docker().await else { return };
    let Some((proxy, provider)) = behind_proxy(&test).await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "seeded").unwrap();
    let gone = folder.path().join("gone");
    for (source, cut, init_image, kind) in [
        (
            folder.path(),
            Some(Cut::Answer(404, "No such container: x")),
            None,
            None,
        ),
        (
            folder.path(),
            Some(Cut::Answer(500, "write /data: no space left on device")),
            None,
            Some(ErrorKind::ResourceExhausted(Resource::Disk)),
        ),
        (
            gone.as_path(),
            None,
            None,
            Some(ErrorKind::Path(PathProblem::NotFound)),
        ),
        (folder.path(), None, Some("gym-sandbox/no-such-image:here"), None),
    ] {
        if let Some(cut) = cut {
            proxy.cut("PUT /", cut);
        }
        let yaml = "
services: {web: {image: 'gym-sandbox/busybox:test', command: sleep 300, volumes: ['data:/data']}}
volumes: {data: }
";
        let mut options = PlanOptions::default();
        options.volume_init_image = init_image.map(str::to_owned);
        let name = crate::support::unique();
        let project = AsyncSandboxCompose::new(provider.clone())
            .with_source(Source::text("compose.yaml", yaml))
            .with_project_name(ProjectName::Given(name.clone()))
            .with_plan_options(options)
            .with_volume_source("data", VolumeSource::new(source));
        let error = project.start().await.unwrap_err();
        let told = story(&error);
        assert!(
            told.contains("volume `data` of service `web` could not be filled"),
            "{told}"
        );
        if let Some(kind) = kind {
            assert_eq!(error.kind(), kind, "{told}");
        }
        assert_eq!(left_of(&name).await, Vec::<String>::new(), "{told}");
    }
    cleaned_up(&provider).await;
}
