//! Removes the images that the steps of an unfinished build have made.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use bollard::query_parameters::{ListImagesOptionsBuilder, RemoveImageOptionsBuilder};
use tokio::time::Instant;

use super::super::super::DockerProvider;
use super::super::super::connect::EngineTime;
use super::super::super::failure::{EngineFailure, QUICK, REMOVE, call};
use super::output::Log;

/// How long the error of a failed build is held back for the removal of what it made.
const UNDO: Duration = Duration::from_secs(10);

/// How long is looked for what the engine was just making when the build was ended, and the pause between.
const LOOK_FOR: Duration = Duration::from_secs(8);
const PAUSE: Duration = Duration::from_millis(300);

/// While the step's container is there its files may be on their way into an image. It is not waited for without an
/// end, nor is an engine that does not answer.
const LOOK_LONGEST: Duration = Duration::from_secs(120);

/// How long nothing is removed after a build was cut off. An image that is committed after its parent was removed does
/// not say whose child it is; and one that is without a use for so long is no step of another build of the same.
const SETTLED: Duration = Duration::from_secs(5);

/// The engine's clock is known to about this.
const CLOCK: Duration = Duration::from_secs(5);

/// What was known of a build before it began.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) began: EngineTime,
    pub(super) bases: Vec<String>,
    pub(super) instructions: Vec<String>,
}

/// What a build has made so far. Dropped while armed it hands the removal to the clean-up thread.
pub(super) struct BuildGuard {
    provider: DockerProvider,
    plan: Plan,
    pub(super) log: Log,
    armed: bool,
}

impl BuildGuard {
    pub(super) fn new(provider: &DockerProvider, plan: Plan) -> Self {
        Self {
            provider: provider.clone(),
            plan,
            log: Log::default(),
            armed: true,
        }
    }

    pub(super) fn disarm(&mut self) {
        self.armed = false;
    }

    /// After a build that has failed. Where the engine has not said so itself, something may be in the making, and the
    /// guard's drop looks for it in the background.
    pub(super) async fn undo(mut self) {
        if !self.log.ended {
            return;
        }
        let none = HashSet::new();
        let removal = remove_made(&self.provider, &self.log.made, &none, self.plan.began);
        self.armed = !matches!(tokio::time::timeout(UNDO, removal).await, Ok(Ok(())));
    }
}

impl Drop for BuildGuard {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let (provider, plan) = (self.provider.clone(), self.plan.clone());
        let log = std::mem::take(&mut self.log);
        self.provider
            .reaper()
            .submit("remove the images of a cancelled build", async move {
                remove_later(&provider, &plan, &log).await;
            });
    }
}

/// Removes what was made, and what shows up a little later.
async fn remove_later(provider: &DockerProvider, plan: &Plan, log: &Log) {
    let began = Instant::now();
    let mut parents: HashSet<String> = log.parent.iter().cloned().collect();
    loop {
        // The engine may have been further than what it was heard to say.
        if log.parent.is_none() && parents.is_empty() {
            parents = ids_of(provider, &plan.bases).await;
        }
        let passed = began.elapsed();
        let is_late = passed >= LOOK_LONGEST;
        if is_late || passed >= SETTLED && !is_running(provider, log).await {
            let removed = remove_all(provider, plan, log, &parents).await;
            if let Err(failure) = &removed {
                tracing::debug!(%failure, "the images of a cancelled build are not removed yet");
            }
            if is_late || passed >= LOOK_FOR && removed.is_ok() {
                return;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn remove_all(
    provider: &DockerProvider,
    plan: &Plan,
    log: &Log,
    parents: &HashSet<String>,
) -> Result<(), EngineFailure> {
    let lost = lost(provider, plan, parents).await?;
    remove_made(provider, &log.made, &lost, plan.began).await
}

/// Whether the container of the last step is there.
async fn is_running(provider: &DockerProvider, log: &Log) -> bool {
    let Some(container) = log.container.as_ref().filter(|_| log.unfinished) else {
        return false;
    };
    let Ok(engine) = provider.engine().await else {
        return true;
    };
    let options = None::<bollard::query_parameters::InspectContainerOptions>;
    match call(QUICK, engine.client.inspect_container(container, options)).await {
        Ok(_) => true,
        Err(failure) => !failure.is_status(404),
    }
}

/// Short ids of images by their names.
async fn ids_of(provider: &DockerProvider, names: &[String]) -> HashSet<String> {
    let mut ids = HashSet::new();
    let Ok(engine) = provider.engine().await else {
        return ids;
    };
    for name in names {
        if let Ok(image) = call(QUICK, engine.client.inspect_image(name)).await {
            let id = image.id.unwrap_or_default();
            ids.insert(short(&id).chars().take(12).collect());
        }
    }
    ids
}

/// Images that a step of the build may have made without saying so: the children of what the build stood on, made by
/// one of its instructions since it began.
async fn lost(
    provider: &DockerProvider,
    plan: &Plan,
    parents: &HashSet<String>,
) -> Result<HashSet<String>, EngineFailure> {
    let mut lost = HashSet::new();
    let engine = provider.engine().await.map_err(unreachable)?;
    for image in list(provider).await? {
        let is_child = parents
            .iter()
            .any(|parent| short(&image.parent_id).starts_with(parent.as_str()));
        if !is_child || !is_young(&image, plan.began) {
            continue;
        }
        let history = call(QUICK, engine.client.image_history(&image.id)).await?;
        let made_by = history.first().map_or("", |item| item.created_by.as_str());
        if plan
            .instructions
            .iter()
            .any(|instruction| is_of(instruction, made_by))
        {
            lost.insert(image.id);
        }
    }
    Ok(lost)
}

/// Whether an image that was `made_by` this is one of an instruction, as far as can be told.
fn is_of(instruction: &str, made_by: &str) -> bool {
    let made_by = made_by.split_whitespace().collect::<Vec<_>>().join(" ");
    let (name, rest) = instruction.split_once(' ').unwrap_or((instruction, ""));
    match made_by.split_once("#(nop) ") {
        Some((_, what)) => {
            let what = what.split(' ').next().unwrap_or_default();
            what.eq_ignore_ascii_case(name)
        }
        None => name.eq_ignore_ascii_case("RUN") && (rest.starts_with('[') || made_by.ends_with(rest)),
    }
}

fn is_young(image: &bollard::models::ImageSummary, began: EngineTime) -> bool {
    let named = image.repo_tags.iter().any(|tag| tag != "<none>:<none>");
    !named && EngineTime::from_epoch_seconds(image.created).plus(CLOCK) >= began
}

fn short(id: &str) -> &str {
    id.trim_start_matches("sha256:")
}

fn unreachable(error: crate::Error) -> EngineFailure {
    EngineFailure::Transport {
        text: error.to_string(),
    }
}

async fn list(provider: &DockerProvider) -> Result<Vec<bollard::models::ImageSummary>, EngineFailure> {
    let engine = provider.engine().await.map_err(unreachable)?;
    let options = ListImagesOptionsBuilder::new().all(true).build();
    call(QUICK, engine.client.list_images(Some(options))).await
}

/// Removes images, and what was made on top of them, the newest first. Only what has no name, is younger than the build
/// and is not used by anything goes: the output of a step could name any image.
async fn remove_made(
    provider: &DockerProvider,
    made: &[String],
    lost: &HashSet<String>,
    began: EngineTime,
) -> Result<(), EngineFailure> {
    if made.is_empty() && lost.is_empty() {
        return Ok(());
    }
    let images = list(provider).await?;
    let engine = provider.engine().await.map_err(unreachable)?;
    let mut ours: HashSet<&str> = HashSet::new();
    let mut order: Vec<&str> = Vec::new();
    let by_id: HashMap<&str, &bollard::models::ImageSummary> =
        images.iter().map(|image| (image.id.as_str(), image)).collect();
    let of_step =
        |id: &str| lost.contains(id) || made.iter().any(|made| short(id).starts_with(made.as_str()));
    // Parents come before their children once every round adds a generation.
    loop {
        let next: Vec<&str> = by_id
            .values()
            .filter(|image| {
                is_young(image, began)
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_made_an_image_is_compared_with_the_instructions() {
        for (instruction, made_by, is) in [
            ("RUN make all", "/bin/sh -c make   all", true),
            ("RUN make all", "|1 A=b /bin/sh -c make all", true),
            ("run make", "/bin/sh -c make", true),
            ("RUN make", "/bin/sh -c test", false),
            ("RUN [\"a\", \"b\"]", "a b", true),
            ("COPY . /x", "/bin/sh -c #(nop) COPY dir:0a1b in /x ", true),
            ("ENV A=b", "/bin/sh -c #(nop)  ENV A=b", true),
            ("ENV A=b", "/bin/sh -c #(nop)  LABEL a=b", false),
            ("COPY . /x", "/bin/sh -c COPY . /x", false),
        ] {
            assert_eq!(is_of(instruction, made_by), is, "{instruction} {made_by}");
        }
    }
}
