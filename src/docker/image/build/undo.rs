//! Removes the images that the steps of an unfinished build have made.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use bollard::query_parameters::{ListImagesOptionsBuilder, RemoveImageOptionsBuilder};

use super::super::super::DockerProvider;
use super::super::super::connect::EngineTime;
use super::super::super::failure::{QUICK, REMOVE, call};
use super::output::Log;

/// How long the error of a failed build is held back for the removal of what it made.
const UNDO: Duration = Duration::from_secs(10);

/// How often is looked for what the engine was just making when the build was ended, and the pause between.
const LOOKS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(300);

/// The engine's clock is known to about this.
const CLOCK: Duration = Duration::from_secs(5);

/// What a build has made so far. Dropped while armed it hands the removal to the clean-up thread.
pub(super) struct BuildGuard {
    provider: DockerProvider,
    began: EngineTime,
    pub(super) log: Log,
    armed: bool,
}

impl BuildGuard {
    pub(super) fn new(provider: &DockerProvider, began: EngineTime) -> Self {
        Self {
            provider: provider.clone(),
            began,
            log: Log::default(),
            armed: true,
        }
    }

    pub(super) fn disarm(&mut self) {
        self.armed = false;
    }

    /// After a build that has failed: nothing is in the making any more.
    pub(super) async fn undo(mut self) {
        let made = self.log.made.clone();
        let removal = remove_made(&self.provider, &made, self.began);
        // Past that the guard's drop goes on in the background.
        self.armed = tokio::time::timeout(UNDO, removal).await.is_err();
    }
}

impl Drop for BuildGuard {
    fn drop(&mut self) {
        if !self.armed || self.log.made.is_empty() {
            return;
        }
        let (provider, began) = (self.provider.clone(), self.began);
        let made = std::mem::take(&mut self.log.made);
        self.provider
            .reaper()
            .submit("remove the images of a cancelled build", async move {
                for _ in 0..LOOKS {
                    remove_made(&provider, &made, began).await;
                    tokio::time::sleep(PAUSE).await;
                }
            });
    }
}

/// Removes images, and what was made on top of them, the newest first. Only what has no name, is younger than the build
/// and is not used by anything goes: the output of a step could name any image.
async fn remove_made(provider: &DockerProvider, made: &[String], began: EngineTime) {
    let Ok(engine) = provider.engine().await else {
        return;
    };
    let options = ListImagesOptionsBuilder::new().all(true).build();
    let Ok(images) = call(QUICK, engine.client.list_images(Some(options))).await else {
        return;
    };
    let mut ours: HashSet<&str> = HashSet::new();
    let mut order: Vec<&str> = Vec::new();
    let by_id: HashMap<&str, &bollard::models::ImageSummary> =
        images.iter().map(|image| (image.id.as_str(), image)).collect();
    let of_step = |id: &str| {
        let short = id.trim_start_matches("sha256:");
        made.iter().any(|made| short.starts_with(made.as_str()))
    };
    // Parents come before their children once every round adds a generation.
    loop {
        let next: Vec<&str> = by_id
            .values()
            .filter(|image| {
                let named = image.repo_tags.iter().any(|tag| tag != "<none>:<none>");
                let age = EngineTime::from_epoch_seconds(image.created).plus(CLOCK);
                !named
                    && age >= began
                    && !ours.contains(image.id.as_str())
                    && (of_step(&image.id) || ours.contains(image.parent_id.as_str()))
                    && (!of_step(&image.parent_id) || ours.contains(image.parent_id.as_str()))
            })
            .map(|image| image.id.as_str())
            .collect();
        if next.is_empty() {
            break;
        }
        ours.extend(&next);
        order.extend(next);
    }
    for id in order.into_iter().rev() {
        let options = RemoveImageOptionsBuilder::new().noprune(true).build();
        if let Err(failure) = call(REMOVE, engine.client.remove_image(id, Some(options), None)).await
            && !failure.is_status(404)
        {
            tracing::debug!(id, %failure, "the image of a step is left");
        }
    }
}
