//! Snapshots: images made of sandboxes, and only of their files.
//!
//! The engine's commit keeps what it finds in the container wherever the base image says nothing: the keepalive as the
//! command, the environment and labels of the sandbox. So the image is described anew over the same layers afterwards.
//! An engine that can't do that keeps the first one.

mod config;
mod undo;

use std::time::Duration;

use async_trait::async_trait;
use bollard::models::{ImageConfig, ImageInspect};
use bollard::query_parameters::{
    CommitContainerOptionsBuilder, ImportImageOptionsBuilder, ListImagesOptionsBuilder,
    RemoveImageOptionsBuilder,
};
use futures::StreamExt;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{SandboxHandle, SnapshotProvider};
use crate::spec::{Snapshot, SnapshotOptions};

use super::archive::packed;
use super::failure::{EngineFailure, QUICK, REMOVE, call};
use super::image::ImageReference;
use super::lanes::Lane;
use super::owner::{self, LABEL};
use super::status::Looked;
use super::{DockerProvider, DockerRaw, PROVIDER};
use config::REPOSITORY;
use undo::SnapshotGuard;

/// How long a commit may take: it copies what the sandbox has written.
const COMMIT: Duration = Duration::from_secs(1800);

/// The reference of a snapshot's image.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for what names none.
pub(super) fn reference(operation: Operation, id: &str) -> Result<ImageReference> {
    let reference = id.parse::<ImageReference>().ok();
    reference
        .filter(|reference| {
            reference.repository() == REPOSITORY && reference.tag().is_some() && reference.digest().is_none()
        })
        .ok_or_else(|| {
            Error::invalid(operation, format!("`{}` names no snapshot", id.escape_debug()))
                .with_hint("take the `id` of a snapshot")
        })
}

#[async_trait]
impl SnapshotProvider for DockerProvider {
    async fn snapshot(&self, handle: &SandboxHandle, options: &SnapshotOptions) -> Result<Snapshot> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Snapshot)?;
        owner::check_metadata(&options.labels)?;
        self.take_snapshot(raw, options)
            .await
            .map_err(|error| error.with_sandbox(handle.sandbox_id()))
    }

    async fn list_snapshots(&self) -> Result<Vec<Snapshot>> {
        let client = &self.engine().await?.client;
        let filters = std::collections::HashMap::from([("label", vec![format!("{LABEL}.kind=snapshot")])]);
        let options = ListImagesOptionsBuilder::new().filters(&filters).build();
        let images = call(QUICK, client.list_images(Some(options)))
            .await
            .map_err(|failure| {
                failure.into_error(
                    Operation::Snapshot,
                    "the engine did not list its snapshots",
                    ErrorKind::Internal,
                )
            })?;
        let mut snapshots: Vec<Snapshot> = images
            .into_iter()
            // An image that was built on a snapshot has its labels, too.
            .filter_map(|image| {
                let id = image
                    .repo_tags
                    .iter()
                    .find(|tag| reference(Operation::Snapshot, tag).is_ok())?;
                let mut snapshot = Snapshot::new(id);
                snapshot.created = image.labels.get(&format!("{LABEL}.created")).cloned();
                snapshot.size_bytes = u64::try_from(image.size).unwrap_or_default();
                snapshot.labels = image.labels.into_iter().collect();
                Some(snapshot)
            })
            .collect();
        snapshots.sort_by(|one, other| (&one.created, &one.id).cmp(&(&other.created, &other.id)));
        Ok(snapshots)
    }

    async fn delete_snapshot(&self, id: &str) -> Result<bool> {
        let image = reference(Operation::Snapshot, id)?;
        let was_there = self
            .remove_image_by_name(&image.to_string(), Operation::Snapshot)
            .await?;
        if let Some(tag) = image.tag()
            && let Err(failure) = undo::remove_nameless(self, tag).await
        {
            tracing::debug!(id, %failure, "what may be left of a snapshot was not looked for");
        }
        Ok(was_there)
    }
}

impl DockerProvider {
    async fn take_snapshot(&self, raw: &DockerRaw, options: &SnapshotOptions) -> Result<Snapshot> {
        let refused = |what: &'static str| {
            move |failure: EngineFailure| failure.into_error(Operation::Snapshot, what, ErrorKind::Internal)
        };
        let engine = self.engine().await?;
        let looked = self.look(&raw.container_id).await;
        let Looked::There(container) = looked.map_err(refused("the engine did not describe the sandbox"))?
        else {
            return Err(gone());
        };
        let base_id = container.image.clone().unwrap_or_default();
        let base = call(QUICK, engine.client.inspect_image(&base_id))
            .await
            .map_err(refused("the engine did not describe the sandbox's image"))?;
        let base = base.config.unwrap_or_default();
        // The name is fixed before the call, so that a lost answer can still be cleaned up.
        let tag = uuid::Uuid::new_v4().simple().to_string();
        let created = engine.engine_now().to_rfc3339();
        let labels = config::labels(&base, &options.labels, &tag, &created);
        let slot = self.lanes().slot(Lane::Transfer).await?;
        let commit = CommitContainerOptionsBuilder::new()
            .container(&raw.container_id)
            .repo(REPOSITORY)
            .tag(&tag)
            .comment(config::MADE_BY)
            .pause(true)
            .build();
        let body = config::for_commit(&base, labels.clone(), &container.config.unwrap_or_default());
        let client = engine.client.clone().with_timeout(COMMIT);
        // In a task of its own: the engine makes the image even when the caller goes away.
        let calling = tokio::spawn(async move { client.commit_container(commit, body).await.map(drop) });
        let mut guard = SnapshotGuard::new(self, &tag, calling);
        let committed = guard.committed(COMMIT).await;
        drop(slot);
        committed.map_err(|failure| {
            if failure.is_status(404) {
                return gone();
            }
            refused("the engine did not keep the sandbox's files")(failure)
        })?;
        let id = format!("{REPOSITORY}:{tag}");
        let first = self.inspect_snapshot(&id).await?;
        let image = match self.describe_anew(&first, &base, &labels, &tag, &created).await {
            Ok(()) => self.inspect_snapshot(&id).await?,
            Err(why) => {
                tracing::debug!(why, "a snapshot keeps names of its sandbox's environment");
                // Which one has the name is not known where only the answer was lost.
                self.inspect_snapshot(&id).await?
            }
        };
        guard.disarm();
        let mut snapshot = Snapshot::new(id);
        snapshot.created = Some(created);
        snapshot.size_bytes = u64::try_from(image.size.unwrap_or_default()).unwrap_or_default();
        snapshot.labels = labels.into_iter().collect();
        Ok(snapshot)
    }

    async fn inspect_snapshot(&self, id: &str) -> Result<ImageInspect> {
        let client = &self.engine().await?.client;
        call(QUICK, client.inspect_image(id)).await.map_err(|failure| {
            failure.into_error(
                Operation::Snapshot,
                "the engine does not describe the snapshot",
                ErrorKind::Internal,
            )
        })
    }

    /// Gives the snapshot's name to an image of the same layers with exactly the base's configuration.
    async fn describe_anew(
        &self,
        committed: &ImageInspect,
        base: &ImageConfig,
        labels: &std::collections::HashMap<String, String>,
        tag: &str,
        created: &str,
    ) -> Result<(), String> {
        let files = config::archive(committed, base, labels.clone(), tag, created)
            .ok_or("the engine does not tell the layers")?;
        let client = &self.engine().await.map_err(|error| error.to_string())?.client;
        let body = bollard::body_full(packed(&files).into());
        let options = ImportImageOptionsBuilder::new().quiet(true).build();
        let load = async {
            let mut messages = client.import_image(options, body, None);
            while let Some(message) = messages.next().await {
                message.map_err(|error| EngineFailure::from(error).to_string())?;
            }
            Ok::<_, String>(())
        };
        tokio::time::timeout(REMOVE, load)
            .await
            .map_err(|_| "the engine did not load it in time")??;
        // The first one has lost its name to the second.
        let first = committed.id.clone().unwrap_or_default();
        let options = RemoveImageOptionsBuilder::new().noprune(true).build();
        if let Err(failure) = call(REMOVE, client.remove_image(&first, Some(options), None)).await {
            tracing::debug!(first, %failure, "the first image of a snapshot is left");
        }
        Ok(())
    }
}

fn gone() -> Error {
    Error::new(
        ErrorKind::NotFound,
        Operation::Snapshot,
        "the sandbox does not exist any more",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_snapshots_are_taken() {
        assert!(reference(Operation::Snapshot, "gym-sandbox-snapshot:0a").is_ok());
        for id in [
            "",
            "busybox:1",
            "gym-sandbox-snapshot",
            "x/gym-sandbox-snapshot:1",
            "A b",
        ] {
            let error = reference(Operation::Snapshot, id).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{id}");
        }
    }
}
