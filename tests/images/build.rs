//! Builds by the engine's classic builder.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gym_sandbox::provider::ImageProvider;
use gym_sandbox::{
    BuildCache, BuildSpec, ErrorKind, ExecOptions, ImageCallback, ImageDetail, ImageEvent, ImageProblem,
    PathProblem, SandboxProvider, SandboxSpec,
};

use crate::common::{BUSYBOX, DockerTest, cleaned_up, containers_with, docker_with, long_tests_are_wanted};
use crate::proxy::{Cut, Proxy};
use crate::support::{Images, assert_problem, config, docker, image_ids, unique};

fn context(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

async fn output(test: &DockerTest, image: &str, line: &str) -> String {
    let handle = test.provider.create(&SandboxSpec::new(image)).await.unwrap();
    let result = test.provider.exec(&handle, ExecOptions::new(line)).await.unwrap();
    test.provider.close(&handle).await.unwrap();
    assert!(result.is_success(), "{result:?}");
    result.stdout().unwrap()
}

fn tag(images: &mut Images) -> String {
    images.add(format!("gym-sandbox-test/{}:1", unique("built")))
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_build_sees_its_context_less_what_is_ignored_and_its_arguments() {
    let Some(test) = docker().await else { return };
    let mut images = Images::new();
    let folder = context(&[
        (".dockerignore", "*\n!src\nsrc/**/*.o\n"),
        (
            "sub/Dockerfile.test",
            &format!(
                "FROM {BUSYBOX} AS base\nARG VERSION=1\nARG OTHER=default\nRUN echo $VERSION $OTHER > /version\n\
             FROM base AS test\nCOPY . /context\nUSER 1001\nWORKDIR /context\n\
             FROM base\nRUN exit 1\n"
            ),
        ),
        ("src/a.c", "a"),
        ("src/deep/b.o", "b"),
        ("secret", "s"),
    ]);
    let name = tag(&mut images);
    let second = tag(&mut images);
    let mut spec = BuildSpec::new(folder.path())
        .with_dockerfile("sub/Dockerfile.test")
        .with_tag(&name)
        .with_tag(&second)
        .with_arg("VERSION", "2 & 3")
        .with_target("test")
        .with_label("of", "test")
        .with_network("none");
    spec.args.insert("OTHER".to_owned(), None);
    let built = test.provider.build_image(&spec).await.unwrap();
    let ImageDetail {
        user,
        workdir,
        labels,
        references,
        ..
    } = built;
    assert_eq!(
        (user.as_deref(), workdir.as_deref()),
        (Some("1001"), Some("/context"))
    );
    assert_eq!(labels["of"], "test");
    assert_eq!(
        references.iter().collect::<BTreeSet<_>>(),
        BTreeSet::from([&name, &second])
    );
    let seen = output(&test, &name, "cat /version; find . -type f | sort; ls -dn src").await;
    assert!(seen.starts_with("2 & 3 default\n./src/a.c\ndrwx"), "{seen}");
    assert!(seen.contains(" 0 "), "everything is root's: {seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_an_inline_dockerfile_is_not_copied_into_the_image() {
    let Some(test) = docker().await else { return };
    let mut images = Images::new();
    let folder = context(&[("a", "1"), ("Dockerfile", "this is another one")]);
    let name = tag(&mut images);
    let spec = BuildSpec::new(folder.path())
        .with_inline_dockerfile(format!("FROM {BUSYBOX}\nCOPY . /context\n"))
        .with_tag(&name);
    test.provider.build_image(&spec).await.unwrap();
    assert_eq!(output(&test, &name, "ls -A /context").await, "Dockerfile\na\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_build_tells_of_its_steps_and_uses_the_cache_unless_told_not_to() {
    let Some(test) = docker().await else { return };
    let mut images = Images::new();
    let name = tag(&mut images);
    let marker = unique("marker");
    let build = async |cache| {
        let events: Arc<Mutex<Vec<ImageEvent>>> = Arc::default();
        let seen = Arc::clone(&events);
        let spec = BuildSpec::inline(format!("FROM {BUSYBOX}\nRUN echo {marker}\n"))
            .with_tag(&name)
            .with_cache(cache)
            .with_progress(ImageCallback::new(move |event| {
                seen.lock().unwrap().push(event.clone());
            }));
        test.provider.build_image(&spec).await.unwrap();
        let events = events.lock().unwrap().clone();
        let step = ImageEvent::Step {
            number: 2,
            total: 2,
            text: format!("RUN echo {marker}"),
        };
        assert!(events.contains(&step), "{events:?}");
        events.contains(&ImageEvent::Output(format!("{marker}\n")))
    };
    assert!(build(BuildCache::Use).await, "the output is told");
    assert!(!build(BuildCache::Use).await, "the step is not run again");
    let first = test.provider.find_image(&name, None).await.unwrap().unwrap();
    assert!(build(BuildCache::Ignore).await, "the step is run again");
    images.add(first.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_step_that_fails_is_named_with_its_last_output_and_leaves_nothing() {
    let Some(test) = docker().await else { return };
    let mut images = Images::new();
    let name = tag(&mut images);
    let marker = unique("marker");
    let spec = BuildSpec::inline(format!(
        "FROM {BUSYBOX}\nRUN echo {marker} > /made\nRUN for n in 1 2 3; do echo line $n; done; echo oops >&2; exit 7\n"
    ))
    .with_tag(&name);
    let before = image_ids().await;
    let error = test.provider.build_image(&spec).await.unwrap_err();
    assert_problem(&error, ImageProblem::Build);
    let report = error.report().to_string();
    for part in ["step 3/3 `RUN for n in", "code: 7", "line 3", "oops", &name] {
        assert!(report.contains(part), "{part} is not in {report}");
    }
    left_nothing(&before, &marker).await;

    let error = test
        .provider
        .build_image(&BuildSpec::inline(format!("FROM {BUSYBOX}\nNONSENSE x\n")))
        .await
        .unwrap_err();
    assert_problem(&error, ImageProblem::Build);
    assert!(
        error.report().to_string().contains("NONSENSE"),
        "{}",
        error.report()
    );
}

/// Waits until no image and no container is there whose steps hold the marker.
async fn left_nothing(before: &BTreeSet<String>, marker: &str) {
    let deadline = Instant::now() + Duration::from_secs(180);
    loop {
        let mut left = Vec::new();
        for id in image_ids().await.difference(before) {
            // Others build at the same time: what this build made says so in its history.
            if history(id).await.contains(marker) {
                left.push(id.clone());
            }
        }
        let containers = containers_of(marker).await;
        if left.is_empty() && containers.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "left: {left:?}, {containers:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn history(id: &str) -> String {
    let client = crate::common::client().await.unwrap();
    // One that is gone has none.
    let items = client.image_history(id).await.unwrap_or_default();
    items.into_iter().map(|item| item.created_by).collect()
}

async fn containers_of(marker: &str) -> Vec<String> {
    let client = crate::common::client().await.unwrap();
    let options = bollard::query_parameters::ListContainersOptionsBuilder::new()
        .all(true)
        .build();
    let containers = client.list_containers(Some(options)).await.unwrap();
    let ours = containers.into_iter().filter(|container| {
        container
            .command
            .as_ref()
            .is_some_and(|command| command.contains(marker))
    });
    ours.filter_map(|container| container.id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_cancelled_build_ends_and_leaves_nothing() {
    let Some(test) = docker().await else { return };
    let marker = unique("marker");
    let before = image_ids().await;
    let (told, mut running) = tokio::sync::mpsc::unbounded_channel();
    let progress = ImageCallback::new(move |event| {
        if matches!(event, ImageEvent::Output(text) if text.contains("now")) {
            let _nobody = told.send(());
        }
    });
    let spec = BuildSpec::inline(format!(
        "FROM {BUSYBOX}\nRUN echo {marker} > /made\nRUN echo now; sleep 600; echo {marker}\n"
    ))
    .with_progress(progress);
    let building = tokio::spawn({
        let provider = Arc::clone(&test.provider);
        async move { provider.build_image(&spec).await }
    });
    running.recv().await.unwrap();
    assert!(!containers_of(&marker).await.is_empty(), "the step runs");
    building.abort();
    assert!(building.await.unwrap_err().is_cancelled());
    cleaned_up(&test.provider).await;
    left_nothing(&before, &marker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_what_needs_buildkit_is_refused_before_anything_is_sent() {
    let Some(proxy) = Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    let mut config = config();
    config.host = Some(proxy.address());
    let Some(test) = docker_with(config).await else {
        return;
    };
    let mut with_secret = BuildSpec::inline("FROM a");
    with_secret.buildkit.secrets.push("token".to_owned());
    for (spec, part) in [
        (with_secret, "secrets"),
        (
            BuildSpec::inline("# syntax=example.org/front/end:1\nFROM a"),
            "# syntax=example.org/front/end:1",
        ),
        (
            BuildSpec::inline("FROM a\nRUN --mount=type=cache,target=/x make"),
            "RUN --mount",
        ),
        (BuildSpec::inline("FROM a\nRUN <<EOF\nmake\nEOF"), "here-document"),
    ] {
        let error = test.provider.build_image(&spec).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(
            error.to_string().contains(part) && error.to_string().contains("BuildKit"),
            "{error}"
        );
    }
    let error = test
        .provider
        .build_image(&BuildSpec::new("/nonexistent"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Path(PathProblem::NotFound));
    assert_eq!(proxy.requests("/build"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_the_official_frontend_may_be_named_where_nothing_needs_it() {
    let Some(test) = docker().await else { return };
    let mut images = Images::new();
    let name = tag(&mut images);
    let spec = BuildSpec::inline(format!(
        "# syntax=docker/dockerfile:1.7-labs\nFROM {BUSYBOX}\nRUN echo made > /made\n"
    ))
    .with_tag(&name);
    test.provider.build_image(&spec).await.unwrap();
    assert_eq!(output(&test, &name, "cat /made").await, "made\n");
}

/// Steps of every kind, quick and with something to commit.
fn steps(marker: &str) -> (tempfile::TempDir, BuildSpec) {
    let folder = context(&[("file", "text")]);
    let dockerfile = format!(
        "FROM {BUSYBOX}\nCOPY file /{marker}-1\nRUN echo {marker}; dd if=/dev/zero of=/large bs=1M count=30 2>/dev/null\n\
         ENV M={marker}\nCOPY file /{marker}-2\nRUN echo {marker}; cp /large /other\nRUN exit 1\n"
    );
    let spec = BuildSpec::new(folder.path()).with_inline_dockerfile(dockerfile);
    (folder, spec)
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_build_that_is_cancelled_at_any_moment_leaves_nothing() {
    let Some(test) = docker().await else { return };
    let rounds: u32 = if long_tests_are_wanted() { 60 } else { 8 };
    let marker = unique("marker");
    let before = image_ids().await;
    let whole = {
        let (_folder, spec) = steps(&format!("{marker}-whole"));
        let began = Instant::now();
        test.provider.build_image(&spec).await.unwrap_err();
        began.elapsed()
    };
    for round in 0..rounds {
        // Each has steps of its own, so that none is there already.
        let (_folder, spec) = steps(&format!("{marker}-{round}"));
        let moment = whole * round / rounds;
        let built = tokio::time::timeout(moment, test.provider.build_image(&spec)).await;
        assert!(!matches!(built, Ok(Ok(_))), "the last step fails");
    }
    cleaned_up(&test.provider).await;
    left_nothing(&before, &marker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_build_that_loses_the_engine_in_the_middle_leaves_nothing() {
    let Some(proxy) = Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    let mut config = config();
    config.host = Some(proxy.address());
    let Some(test) = docker_with(config).await else {
        return;
    };
    let before = image_ids().await;
    let marker = unique("marker");
    // Before the engine has said anything, at the first step, and while one runs.
    for (round, output) in ["Step 1/", "Step 2/", "Running in"].into_iter().enumerate() {
        let (_folder, spec) = steps(&format!("{marker}-{round}"));
        proxy.cut("/build", Cut::AtOutput(output));
        let error = test.provider.build_image(&spec).await.unwrap_err();
        assert_ne!(
            error.kind(),
            ErrorKind::Image(ImageProblem::Build),
            "{}",
            error.report()
        );
    }
    cleaned_up(&test.provider).await;
    left_nothing(&before, &marker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_step_that_prints_what_the_builder_prints_leaves_nothing() {
    let Some(test) = docker().await else { return };
    let marker = unique("marker");
    let before = image_ids().await;
    let spec = BuildSpec::inline(format!(
        "FROM {BUSYBOX}\nRUN echo {marker}; echo ' ---> Using cache'; echo 'Step 2/3 : FROM {BUSYBOX}'\n\
         RUN echo {marker}; exit 1\n"
    ));
    let error = test.provider.build_image(&spec).await.unwrap_err();
    assert_problem(&error, ImageProblem::Build);
    left_nothing(&before, &marker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_context_with_a_pipe_for_a_dockerfile_is_an_error_and_not_waited_for() {
    let Some(test) = docker().await else { return };
    for name in ["Dockerfile", ".dockerignore"] {
        let folder = context(&[("a", "1")]);
        let made = std::process::Command::new("mkfifo")
            .arg(folder.path().join(name))
            .status()
            .unwrap();
        assert!(made.success());
        let error = test
            .provider
            .build_image(&BuildSpec::new(folder.path()))
            .await
            .unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_large_context_is_streamed_and_one_that_can_not_be_read_is_named() {
    let Some(test) = docker().await else { return };
    let mut images = Images::new();
    let folder = context(&[("Dockerfile", &format!("FROM {BUSYBOX}\nCOPY large /large\n"))]);
    let large = std::fs::File::create(folder.path().join("large")).unwrap();
    large.set_len(64 << 20).unwrap();
    let name = tag(&mut images);
    let spec = BuildSpec::new(folder.path()).with_tag(&name);
    test.provider.build_image(&spec).await.unwrap();
    assert_eq!(
        output(&test, &name, "wc -c < /large").await.trim(),
        (64_u64 << 20).to_string()
    );

    let error = test
        .provider
        .build_image(
            &BuildSpec::new(Path::new("/nonexistent")).with_inline_dockerfile(format!("FROM {BUSYBOX}")),
        )
        .await
        .unwrap_err();
    assert!(error.to_string().contains("/nonexistent"), "{error}");
    assert!(
        containers_with("gym-sandbox-test", "no")
            .await
            .unwrap()
            .is_empty()
    );
}
