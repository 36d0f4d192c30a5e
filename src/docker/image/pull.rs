//! Pulling one image.

use std::time::Duration;

use bollard::query_parameters::CreateImageOptionsBuilder;
use futures::StreamExt;

use crate::error::Result;

use super::super::DockerProvider;
use super::super::failure::EngineFailure;
use super::super::lanes::Lane;
use super::{ImageReference, image_error};

impl DockerProvider {
    /// Pulls an image. The caller bounds the time.
    ///
    /// Dropping the future ends the pull; the engine keeps the layers it has.
    pub(in crate::docker) async fn pull_image(
        &self,
        image: &ImageReference,
        platform: Option<&str>,
    ) -> Result<()> {
        let engine = self.engine().await?;
        let _slot = self.lanes().slot(Lane::Pull).await?;
        tracing::info!(%image, "pulling");
        let options = CreateImageOptionsBuilder::new()
            .from_image(image.repository())
            .tag(image.pull_tag())
            .platform(platform.unwrap_or_default())
            .build();
        let mut progress = engine.client.create_image(Some(options), None, None);
        loop {
            // A registry that stalls sends nothing; the whole pull is bounded by the caller.
            match tokio::time::timeout(Duration::from_secs(300), progress.next()).await {
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => return Err(image_error(image, error.into())),
                Ok(None) => return Ok(()),
                Err(_) => {
                    return Err(image_error(
                        image,
                        EngineFailure::Deadline(Duration::from_secs(300)),
                    ));
                }
            }
        }
    }
}
