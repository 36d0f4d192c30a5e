//! Images and snapshots of the scripted provider.

use async_trait::async_trait;

use crate::error::{Operation, Result};
use crate::provider::{ImageProvider, SandboxHandle, SnapshotProvider};
use crate::spec::{
    BuildSpec, ImageDetail, PrefetchOptions, Prefetched, PullOptions, Snapshot, SnapshotOptions,
};

use super::{Call, Scripted};

#[async_trait]
impl ImageProvider for Scripted {
    async fn pull_image(&self, image: &str, _options: &PullOptions) -> Result<ImageDetail> {
        self.note(Call::Images("pull", image.to_owned()));
        self.step(Operation::Image).await?;
        Ok(ImageDetail::new(image))
    }

    async fn prefetch_images(
        &self,
        images: &[String],
        _options: &PrefetchOptions,
    ) -> Result<Vec<Prefetched>> {
        self.note(Call::Images("prefetch", images.join(" ")));
        self.step(Operation::Image).await?;
        Ok(Vec::new())
    }

    async fn build_image(&self, spec: &BuildSpec) -> Result<ImageDetail> {
        self.note(Call::Images("build", spec.tags.join(" ")));
        self.step(Operation::Build).await?;
        Ok(ImageDetail::default())
    }

    async fn find_image(&self, image: &str, _platform: Option<&str>) -> Result<Option<ImageDetail>> {
        self.note(Call::Images("find", image.to_owned()));
        self.step(Operation::Image).await?;
        Ok(None)
    }

    async fn remove_image(&self, image: &str) -> Result<bool> {
        self.note(Call::Images("remove", image.to_owned()));
        self.step(Operation::Image).await?;
        Ok(false)
    }
}

#[async_trait]
impl SnapshotProvider for Scripted {
    async fn snapshot(&self, handle: &SandboxHandle, _options: &SnapshotOptions) -> Result<Snapshot> {
        self.note(Call::Snapshot("make", handle.sandbox_id().to_string()));
        self.step(Operation::Snapshot).await?;
        Ok(Snapshot::new("snapshot-1"))
    }

    async fn list_snapshots(&self) -> Result<Vec<Snapshot>> {
        self.note(Call::Snapshot("list", String::new()));
        self.step(Operation::Snapshot).await?;
        Ok(Vec::new())
    }

    async fn delete_snapshot(&self, id: &str) -> Result<bool> {
        self.note(Call::Snapshot("delete", id.to_owned()));
        self.step(Operation::Snapshot).await?;
        Ok(true)
    }
}
