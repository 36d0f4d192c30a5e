//! The capability of images over the operations of this folder.

use async_trait::async_trait;
use bollard::query_parameters::RemoveImageOptions;

use crate::error::{ErrorKind, Operation, Result};
use crate::provider::ImageProvider;
use crate::spec::{BuildSpec, ImageDetail, PrefetchOptions, Prefetched, PullOptions};

use super::super::DockerProvider;
use super::super::failure::{REMOVE, call};
use super::ImageReference;

#[async_trait]
impl ImageProvider for DockerProvider {
    async fn pull_image(&self, image: &str, options: &PullOptions) -> Result<ImageDetail> {
        let image: ImageReference = image.parse()?;
        let (detail, _pulled) = self
            .provide_image(&image, options, options.progress.as_ref())
            .await?;
        Ok(detail)
    }

    async fn prefetch_images(&self, images: &[String], options: &PrefetchOptions) -> Result<Vec<Prefetched>> {
        self.prefetch_all(images, options).await
    }

    async fn build_image(&self, spec: &BuildSpec) -> Result<ImageDetail> {
        self.build(spec).await
    }

    async fn find_image(&self, image: &str, platform: Option<&str>) -> Result<Option<ImageDetail>> {
        self.describe_image(&image.parse()?, platform).await
    }

    async fn remove_image(&self, image: &str) -> Result<bool> {
        // Also by id, which is no reference.
        if !image.starts_with("sha256:") {
            image.parse::<ImageReference>()?;
        }
        self.remove_image_by_name(image, Operation::Image).await
    }
}

impl DockerProvider {
    /// Removes a name of an image, and the image with its last name. Says whether it was there.
    pub(in crate::docker) async fn remove_image_by_name(
        &self,
        image: &str,
        operation: Operation,
    ) -> Result<bool> {
        let client = &self.engine().await?.client;
        let removed = call(
            REMOVE,
            client.remove_image(image, None::<RemoveImageOptions>, None),
        )
        .await;
        match removed {
            Ok(_) => Ok(true),
            Err(failure) if failure.is_status(404) => Ok(false),
            Err(failure) => Err(failure
                .into_error(
                    operation,
                    format!("the engine did not remove the image `{image}`"),
                    ErrorKind::Conflict,
                )
                .with_hint("remove the sandboxes that use it first")),
        }
    }
}
