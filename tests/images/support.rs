//! What the tests of this program share: images of random content, and names that are gone afterwards.

use std::io::Read;

use bollard::auth::DockerCredentials;
use bollard::query_parameters::{
    ListImagesOptionsBuilder, PushImageOptionsBuilder, RemoveImageOptionsBuilder,
};
use futures::StreamExt;
use gym_sandbox::provider::ImageProvider;
use gym_sandbox::{BuildSpec, ErrorKind, ImageProblem};

use crate::common::{BUSYBOX, DockerTest, client, docker_with};
use crate::registry::{PASSWORD, USER};

/// Connects with a configuration that finds no docker configuration of who runs the tests.
pub(crate) async fn docker() -> Option<DockerTest> {
    docker_with(config()).await
}

pub(crate) fn config() -> gym_sandbox::docker::DockerConfig {
    let mut config = crate::common::config();
    config.pull.docker_config = Some("/nonexistent".into());
    config.pull.rate_limit_pause = std::time::Duration::from_millis(50);
    config
}

/// Names of images that are removed at the end, whatever becomes of the test.
pub(crate) struct Images(Vec<String>);

impl Images {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn add(&mut self, name: impl Into<String>) -> String {
        let name = name.into();
        self.0.push(name.clone());
        name
    }

    /// Removes one now.
    pub(crate) async fn remove(&self, name: &str) {
        remove(name).await;
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        let names = std::mem::take(&mut self.0);
        let removed = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                for name in names {
                    remove(&name).await;
                }
            });
        });
        let _panicked = removed.join().is_err();
    }
}

async fn remove(name: &str) {
    let client = client().await.unwrap();
    let options = RemoveImageOptionsBuilder::new().force(true).build();
    // It may be gone.
    let _gone = client.remove_image(name, Some(options), None).await;
}

/// A name of one test.
pub(crate) fn unique(what: &str) -> String {
    format!("{what}-{}", uuid::Uuid::new_v4().simple())
}

/// Makes an image with two layers of so many random bytes each, pushes it and removes it from the engine.
pub(crate) async fn pushed(
    test: &DockerTest,
    images: &mut Images,
    registry: &str,
    layer_bytes: u64,
) -> String {
    let name = images.add(format!("{registry}/test/{}:1", unique("random")));
    let folder = tempfile::tempdir().unwrap();
    for file in ["one", "two"] {
        let random = std::fs::File::open("/dev/urandom").unwrap();
        let mut file = std::fs::File::create(folder.path().join(file)).unwrap();
        std::io::copy(&mut random.take(layer_bytes), &mut file).unwrap();
    }
    let dockerfile = format!("FROM {BUSYBOX}\nCOPY one /one\nCOPY two /two\n");
    let spec = BuildSpec::new(folder.path())
        .with_inline_dockerfile(dockerfile)
        .with_tag(&name);
    test.provider.build_image(&spec).await.unwrap();
    push(&name).await;
    remove(&name).await;
    assert_eq!(test.provider.find_image(&name, None).await.unwrap(), None);
    name
}

async fn push(name: &str) {
    let client = client().await.unwrap();
    let (repository, tag) = name.rsplit_once(':').unwrap();
    let options = PushImageOptionsBuilder::new().tag(tag).build();
    // Of a registry for everybody they are not read. The client's own spelling of base64 is one the engine can't read.
    let credentials = DockerCredentials {
        username: Some(USER.to_owned()),
        password: Some(PASSWORD.to_owned()),
        ..DockerCredentials::default()
    };
    let client = client.with_request_modifier(|mut request| {
        if let Some(value) = request.headers_mut().get_mut("x-registry-auth") {
            let fixed = value.to_str().unwrap().replace('+', "-").replace('/', "_");
            *value = fixed.parse().unwrap();
        }
        request
    });
    let mut messages = client.push_image(repository, Some(options), Some(credentials));
    while let Some(message) = messages.next().await {
        message.unwrap();
    }
}

/// The ids of all images, those of steps included.
pub(crate) async fn image_ids() -> std::collections::BTreeSet<String> {
    let options = ListImagesOptionsBuilder::new().all(true).build();
    let images = client().await.unwrap().list_images(Some(options)).await.unwrap();
    images.into_iter().map(|image| image.id).collect()
}

#[track_caller]
pub(crate) fn assert_problem(error: &gym_sandbox::Error, problem: ImageProblem) {
    assert_eq!(error.kind(), ErrorKind::Image(problem), "{}", error.report());
}
