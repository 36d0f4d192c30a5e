//! Spans of the calls about images and snapshots.

use async_trait::async_trait;
use tracing::{Instrument, field::Empty, info, info_span};

use crate::error::{Operation, Result};
use crate::provider::{Capability, ImageProvider, SandboxHandle, SnapshotProvider};
use crate::spec::{
    BuildSpec, ImageDetail, PrefetchOptions, Prefetched, PullOptions, Snapshot, SnapshotOptions,
};

use super::{Traced, lost, noted};

impl Traced {
    fn images(&self) -> Result<&dyn ImageProvider> {
        self.inner
            .as_images()
            .ok_or_else(|| lost(self, Operation::Image, Capability::Images))
    }

    fn snapshots(&self) -> Result<&dyn SnapshotProvider> {
        self.inner
            .as_snapshot()
            .ok_or_else(|| lost(self, Operation::Snapshot, Capability::Snapshot))
    }
}

macro_rules! image_span {
    ($self:ident, $name:literal, $image:expr) => {
        info_span!(
            $name,
            provider = $self.inner.name(),
            image = $image,
            error = Empty
        )
    };
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ImageProvider for Traced {
    async fn pull_image(&self, image: &str, options: &PullOptions) -> Result<ImageDetail> {
        let span = image_span!(self, "image.pull", image);
        async { noted(self.images()?.pull_image(image, options).await) }
            .instrument(span)
            .await
    }

    async fn prefetch_images(&self, images: &[String], options: &PrefetchOptions) -> Result<Vec<Prefetched>> {
        let span = image_span!(self, "image.prefetch", images.len());
        async { noted(self.images()?.prefetch_images(images, options).await) }
            .instrument(span)
            .await
    }

    async fn build_image(&self, spec: &BuildSpec) -> Result<ImageDetail> {
        let span = image_span!(self, "image.build", spec.tags.first());
        async {
            let built = noted(self.images()?.build_image(spec).await)?;
            info!(id = built.id, "built");
            Ok(built)
        }
        .instrument(span)
        .await
    }

    async fn find_image(&self, image: &str, platform: Option<&str>) -> Result<Option<ImageDetail>> {
        let span = image_span!(self, "image.find", image);
        async { noted(self.images()?.find_image(image, platform).await) }
            .instrument(span)
            .await
    }

    async fn remove_image(&self, image: &str) -> Result<bool> {
        let span = image_span!(self, "image.remove", image);
        async { noted(self.images()?.remove_image(image).await) }
            .instrument(span)
            .await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl SnapshotProvider for Traced {
    async fn snapshot(&self, handle: &SandboxHandle, options: &SnapshotOptions) -> Result<Snapshot> {
        let span = info_span!(
            "sandbox.snapshot",
            provider = self.inner.name(),
            sandbox_id = handle.sandbox_id().as_str(),
            error = Empty
        );
        async {
            let snapshot = noted(self.snapshots()?.snapshot(handle, options).await)?;
            info!(id = snapshot.id, "kept");
            Ok(snapshot)
        }
        .instrument(span)
        .await
    }

    async fn list_snapshots(&self) -> Result<Vec<Snapshot>> {
        let span = info_span!("snapshot.list", provider = self.inner.name(), error = Empty);
        async { noted(self.snapshots()?.list_snapshots().await) }
            .instrument(span)
            .await
    }

    async fn delete_snapshot(&self, id: &str) -> Result<bool> {
        let span = info_span!("snapshot.delete", provider = self.inner.name(), id, error = Empty);
        async { noted(self.snapshots()?.delete_snapshot(id).await) }
            .instrument(span)
            .await
    }
}
