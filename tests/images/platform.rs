//! Images that an engine has built for another platform than it was asked for: they don't stay, and what else has a
//! name does.

use std::collections::HashMap;

use bollard::query_parameters::ListImagesOptionsBuilder;
use gym_sandbox::provider::ImageProvider;
use gym_sandbox::{BuildSpec, Error, ErrorKind, ImageProblem};

use crate::common::{BUSYBOX, client};
use crate::support::{Images, docker, unique};

/// No engine that these tests run on is of it.
const OTHER: &str = "linux/s390x";

const LABEL: &str = "gym-sandbox-test.platform";

fn build(folder: &std::path::Path, marker: &str) -> BuildSpec {
    BuildSpec::new(folder)
        .with_inline_dockerfile(format!("FROM {BUSYBOX}\n"))
        .with_label(LABEL, marker)
}

/// The images of a marker.
async fn made(marker: &str) -> Vec<String> {
    let filters = HashMap::from([("label", vec![format!("{LABEL}={marker}")])]);
    let options = ListImagesOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    let images = client().await.unwrap().list_images(Some(options)).await.unwrap();
    images.into_iter().map(|image| image.id).collect()
}

fn assert_platform(error: &Error) {
    assert_eq!(
        error.kind(),
        ErrorKind::Image(ImageProblem::Platform),
        "{}",
        error.report()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_an_image_for_another_platform_that_has_anothers_name_stays_with_that_name() {
    let Some(test) = docker().await else { return };
    let mut images = Images::new();
    let folder = tempfile::tempdir().unwrap();
    let marker = unique("marker");
    let theirs = images.add(format!("gym-sandbox-test/{}:1", unique("theirs")));
    let ours = images.add(format!("gym-sandbox-test/{}:1", unique("ours")));
    let first = build(folder.path(), &marker).with_tag(&theirs);
    let first = test.provider.build_image(&first).await.unwrap();
    // Every step comes out of the cache: it is the same image. Without a name of its own, and with one.
    for tag in [None, Some(&ours)] {
        let mut spec = build(folder.path(), &marker).with_platform(OTHER);
        if let Some(tag) = tag {
            spec = spec.with_tag(tag);
        }
        let error = test.provider.build_image(&spec).await.unwrap_err();
        assert_platform(&error);
        let kept = test.provider.find_image(&theirs, None).await.unwrap();
        assert_eq!(
            kept.map(|image| image.id),
            Some(first.id.clone()),
            "{tag:?}: another's name was taken away"
        );
        assert_eq!(test.provider.find_image(&ours, None).await.unwrap(), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_an_image_for_another_platform_that_nobody_has_a_name_for_goes() {
    let Some(test) = docker().await else { return };
    let mut images = Images::new();
    let folder = tempfile::tempdir().unwrap();
    for tag in [
        None,
        Some(images.add(format!("gym-sandbox-test/{}:1", unique("ours")))),
    ] {
        let marker = unique("marker");
        let mut spec = build(folder.path(), &marker).with_platform(OTHER);
        spec.tags.extend(tag);
        let error = test.provider.build_image(&spec).await.unwrap_err();
        assert_platform(&error);
        assert_eq!(made(&marker).await, [] as [String; 0]);
    }
}
