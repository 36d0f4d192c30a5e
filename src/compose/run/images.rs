//! Images: pulled or built, all at once.

use futures::future::try_join_all;

use crate::compose::plan::{BuildStep, ImageSource, ImageStep, PullWhen};
use crate::error::{Error, Operation, Result};
use crate::provider::{Capability, ImageProvider};
use crate::spec::{BaseImages, BuildCache, BuildSpec, BuildUlimit, PullOptions, PullPolicy};

use super::crew::Crew;
use super::failure::{in_service, in_volumes};
use super::progress::ComposeEvent;

impl Crew {
    /// Sees to it that every image is there.
    pub(super) async fn have_images(&self) -> Result<()> {
        let Some(images) = self.provider.as_images() else {
            // Without the capability the create says what is missing; only a build cannot be put off.
            let built = self
                .plan
                .images
                .iter()
                .find(|step| matches!(step.source, ImageSource::Build(_)));
            return match built {
                None => Ok(()),
                Some(step) => Err(in_service(
                    &step.service,
                    Error::unsupported(
                        Operation::ComposeUp,
                        self.provider.name(),
                        Capability::Images.as_str(),
                    )
                    .with_hint("give a prebuilt image for the service"),
                )),
            };
        };
        let of_services: Vec<&String> = self.plan.images.iter().map(|step| &step.image).collect();
        let helpers = self.plan.helpers.iter();
        let of_helpers = helpers
            .filter(|helper| !of_services.contains(&&helper.spec.image))
            .map(|helper| async move {
                let had = images
                    .pull_image(&helper.spec.image, &PullOptions::default())
                    .await;
                had.map_err(|error| in_volumes([(helper.key.as_str(), helper.service.as_str())], error))
            });
        let steps = self.plan.images.iter().map(|step| async move {
            self.have_image(images, step)
                .await
                .map_err(|error| in_service(&step.service, error))
        });
        try_join_all(steps).await?;
        try_join_all(of_helpers).await.map(|_| ())
    }

    async fn have_image(&self, images: &dyn ImageProvider, step: &ImageStep) -> Result<()> {
        let platform = step.platform.as_deref();
        match &step.source {
            ImageSource::Pull(when) => {
                let policy = match when {
                    PullWhen::Missing => PullPolicy::Missing,
                    PullWhen::Always => PullPolicy::Always,
                    PullWhen::Never => PullPolicy::Never,
                };
                let mut options = PullOptions::default().with_policy(policy);
                options.platform.clone_from(&step.platform);
                images.pull_image(&step.image, &options).await.map(|_| ())
            }
            ImageSource::Build(build) => {
                let is_there = build.when == PullWhen::Missing
                    && images.find_image(&step.image, platform).await?.is_some();
                if is_there {
                    return Ok(());
                }
                self.say(&ComposeEvent::Image {
                    image: step.image.clone(),
                    state: "building".to_owned(),
                });
                images.build_image(&build_spec(step, build)).await.map(|_| ())
            }
        }
    }
}

fn build_spec(step: &ImageStep, build: &BuildStep) -> BuildSpec {
    let mut spec = BuildSpec::new(&build.context).with_tag(&step.image);
    if let Some(text) = &build.dockerfile_inline {
        spec = spec.with_inline_dockerfile(text);
    } else if let Some(path) = &build.dockerfile {
        spec = spec.with_dockerfile(path);
    }
    spec.tags.extend(build.tags.iter().cloned());
    spec.args.clone_from(&build.args);
    spec.target.clone_from(&build.target);
    spec.labels.clone_from(&build.labels);
    spec.platform.clone_from(&step.platform);
    if build.no_cache {
        spec.cache = BuildCache::Ignore;
    }
    if build.pull {
        spec.base_images = BaseImages::Pull;
    }
    spec.cache_from.clone_from(&build.cache_from);
    spec.network.clone_from(&build.network);
    spec.extra_hosts = build
        .extra_hosts
        .iter()
        .map(|(host, address)| format!("{host}:{address}"))
        .collect();
    spec.shm_size_bytes = build.shm_bytes;
    spec.ulimits = build
        .ulimits
        .iter()
        .map(|(name, soft, hard)| BuildUlimit {
            name: name.clone(),
            soft: *soft,
            hard: *hard,
        })
        .collect();
    spec
}
