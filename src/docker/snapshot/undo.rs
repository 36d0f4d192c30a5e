//! Removes a snapshot that nobody got.

use std::time::Duration;

use bollard::errors::Error as BollardError;
use bollard::models::{ImageHistoryResponseItem, ImageSummary};
use bollard::query_parameters::{ListImagesOptionsBuilder, RemoveImageOptionsBuilder};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::super::DockerProvider;
use super::super::connect::Engine;
use super::super::failure::{EngineFailure, QUICK, REMOVE, call};
use super::super::owner::LABEL;
use super::config::MADE_BY;

/// How long what was cut off is looked for.
const ABANDONED: Duration = Duration::from_secs(100);

/// How often, over some seconds, it has to be absent before it counts as never made.
const ABSENT_LOOKS: u32 = 10;

type Calling = JoinHandle<Result<(), BollardError>>;

/// A snapshot in the making. Dropped before it is disarmed it hands the removal to the clean-up thread.
pub(super) struct SnapshotGuard {
    provider: DockerProvider,
    tag: String,
    calling: Option<Calling>,
    armed: bool,
}

impl SnapshotGuard {
    pub(super) fn new(provider: &DockerProvider, tag: &str, calling: Calling) -> Self {
        Self {
            provider: provider.clone(),
            tag: tag.to_owned(),
            calling: Some(calling),
            armed: true,
        }
    }

    /// Waits for the commit call.
    pub(super) async fn committed(&mut self, deadline: Duration) -> Result<(), EngineFailure> {
        let Some(calling) = &mut self.calling else {
            return Ok(());
        };
        let answer = match tokio::time::timeout(deadline, calling).await {
            Ok(Ok(answer)) => answer.map_err(EngineFailure::from),
            Ok(Err(_)) => Err(EngineFailure::Transport {
                text: "the call was cut off".to_owned(),
            }),
            Err(_) => return Err(EngineFailure::Deadline(deadline)),
        };
        self.calling = None;
        if answer.as_ref().is_err_and(EngineFailure::began_nothing) {
            self.armed = false;
        }
        answer
    }

    pub(super) fn disarm(&mut self) {
        self.armed = false;
    }
}

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let (provider, tag) = (self.provider.clone(), std::mem::take(&mut self.tag));
        let calling = self.calling.take();
        self.provider
            .reaper()
            .submit("remove a cancelled snapshot", async move {
                remove_abandoned(&provider, &tag, calling).await;
            });
    }
}

async fn remove_abandoned(provider: &DockerProvider, tag: &str, mut calling: Option<Calling>) {
    let deadline = Instant::now() + ABANDONED;
    let mut absent = 0;
    while Instant::now() < deadline {
        match remove_labelled(provider, tag).await {
            Ok(0) if calling.is_none() => absent += 1,
            Ok(_) => absent = 0,
            Err(failure) => tracing::debug!(tag, %failure, "a cancelled snapshot is not removed yet"),
        }
        if absent >= ABSENT_LOOKS {
            return;
        }
        // The call runs on the caller's runtime, which may be gone: it is never waited for alone.
        let pause = Duration::from_millis(300);
        match &mut calling {
            Some(call) => {
                if tokio::time::timeout(pause, call).await.is_ok() {
                    calling = None;
                }
            }
            None => tokio::time::sleep(pause).await,
        }
    }
}

/// Removes images of one snapshot that have no name: the first one, where its removal after the second was made has
/// failed. What is used or built upon stays.
pub(super) async fn remove_nameless(provider: &DockerProvider, tag: &str) -> Result<(), EngineFailure> {
    let (engine, images) = labelled(provider, tag).await?;
    let nameless = |image: &&ImageSummary| image.repo_tags.iter().all(|tag| tag == "<none>:<none>");
    for image in images.iter().filter(nameless) {
        // An image that was built on a snapshot has its labels, too.
        let history = call(QUICK, engine.client.image_history(&image.id)).await?;
        let is_ours = |item: &ImageHistoryResponseItem| item.created_by == MADE_BY || item.comment == MADE_BY;
        if !history.first().is_some_and(is_ours) {
            continue;
        }
        let options = RemoveImageOptionsBuilder::new().noprune(true).build();
        match call(REMOVE, engine.client.remove_image(&image.id, Some(options), None)).await {
            Err(failure) if !failure.is_status(404) && !failure.is_status(409) => return Err(failure),
            _ => {}
        }
    }
    Ok(())
}

async fn labelled<'provider>(
    provider: &'provider DockerProvider,
    tag: &str,
) -> Result<(&'provider Engine, Vec<ImageSummary>), EngineFailure> {
    let engine = provider
        .engine()
        .await
        .map_err(|error| EngineFailure::Transport {
            text: error.to_string(),
        })?;
    let filters = std::collections::HashMap::from([("label", vec![format!("{LABEL}.snapshot={tag}")])]);
    let options = ListImagesOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    let images = call(QUICK, engine.client.list_images(Some(options))).await?;
    Ok((engine, images))
}

/// Removes the images of one snapshot, named or not, and says how many there were.
async fn remove_labelled(provider: &DockerProvider, tag: &str) -> Result<usize, EngineFailure> {
    let (engine, images) = labelled(provider, tag).await?;
    for image in &images {
        let options = RemoveImageOptionsBuilder::new().force(true).noprune(true).build();
        match call(REMOVE, engine.client.remove_image(&image.id, Some(options), None)).await {
            Err(failure) if !failure.is_status(404) => return Err(failure),
            _ => {}
        }
    }
    Ok(images.len())
}
