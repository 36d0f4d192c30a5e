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
const LOOK_FOR: Duration = Duration::from_secs(9);
const PAUSE: Duration = Duration::from_millis(300);

/// While the step's container is there its files may be on their way into an image. It is not waited for without an
/// end, nor is an engine that does not answer.
const LOOK_LONGEST: Duration = Duration::from_secs(120);

/// How long nothing is removed after a build was cut off. An image that is committed after its parent was removed does
/// not say whose child it is; and one that is without a use for so long is hardly a step of another build of the same.
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
    let cut = match provider.engine().await {
        Ok(engine) => engine.engine_now(),
        Err(_) => plan.began,
    };
    loop {
        // The engine may have been further than what it was heard to say.
        if log.parent.is_none() && parents.is_empty() {
            parents = ids_of(provider, &plan.bases).await;
        }
        let passed = began.elapsed();
        let is_late = passed >= LOOK_LONGEST;
        if is_late || passed >= SETTLED && !is_running(provider, log).await {
            let removed = remove_all(provider, plan, log, &parents, cut).await;
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
    cut: EngineTime,
) -> Result<(), EngineFailure> {
    let lost = lost(provider, plan, parents, cut).await?;
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
/// one of its instructions at the time it was cut off. Where there are several, some are of another build of the same,
/// and all are left: to take one from under a build is worse than to leave one.
async fn lost(
    provider: &DockerProvider,
    plan: &Plan,
    parents: &HashSet<String>,
    cut: EngineTime,
) -> Result<HashSet<String>, EngineFailure> {
    let mut lost = HashSet::new();
    let engine = provider.engine().await.map_err(|error| unreachable(&error))?;
    for image in list(provider).await? {
        let is_child = parents
            .iter()
            .any(|parent| short(&image.parent_id).starts_with(parent.as_str()));
        let is_settled = EngineTime::from_epoch_seconds(image.created).plus(SETTLED) <= engine.engine_now();
        if !is_child || !is_settled || !is_young(&image, cut) {
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
    if lost.len() > 1 {
        lost.clear();
    }
    Ok(lost)
}

/// Whether an image that was `made_by` this is one of an instruction, as far as can be told.
fn is_of(instruction: &str, made_by: &str) -> bool {
    let made_by = made_by.split_whitespace().collect::<Vec<_>>().join(" ");
    let (name, rest) = instruction.split_once(' ').unwrap_or((instruction, ""));
    if name.eq_ignore_ascii_case("RUN") {
        let words = serde_json::from_str::<Vec<String>>(rest).map(|words| words.join(" "));
        return !made_by.contains("#(nop) ")
            && match words {
                Ok(words) => made_by.ends_with(&words),
                Err(_) => made_by.ends_with(&format!("/bin/sh -c {rest}")),
            };
    }
    let Some((_, made_by)) = made_by.split_once("#(nop) ") else {
        return false;
    };
    let (made_name, made) = made_by.split_once(' ').unwrap_or((made_by, ""));
    let is_copy = ["COPY", "ADD"].iter().any(|copy| name.eq_ignore_ascii_case(copy));
    if is_copy {
        // The sources are a hash there.
        let target = rest.rsplit(' ').next().unwrap_or_default();
        made_name.eq_ignore_ascii_case(name) && made.ends_with(&format!(" in {target}"))
    } else {
        made_name.eq_ignore_ascii_case(name) && made == rest
    }
}

fn is_young(image: &bollard::models::ImageSummary, began: EngineTime) -> bool {
    let named = image.repo_tags.iter().any(|tag| tag != "<none>:<none>");
    !named && EngineTime::from_epoch_seconds(image.created).plus(CLOCK) >= began
}

fn short(id: &str) -> &str {
    id.trim_start_matches("sha256:")
}

fn unreachable(error: &crate::Error) -> EngineFailure {
    EngineFailure::Transport {
        text: error.to_string(),
    }
}

async fn list(provider: &DockerProvider) -> Result<Vec<bollard::models::ImageSummary>, EngineFailure> {
    let engine = provider.engine().await.map_err(|error| unreachable(&error))?;
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
    let engine = provider.engine().await.map_err(|error| unreachable(&error))?;
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
            ("RUN [\"a\", \"b\"]", "a c", false),
            ("RUN a", "/bin/sh -c make a", false),
            ("COPY . /x", "/bin/sh -c #(nop) COPY dir:0a1b in /x ", true),
            ("COPY . /x", "/bin/sh -c #(nop) COPY dir:0a1b in /y ", false),
            ("COPY . /x", "/bin/sh -c #(nop) ADD dir:0a1b in /x ", false),
            ("ENV A=b", "/bin/sh -c #(nop)  ENV A=b", true),
            ("ENV A=b", "/bin/sh -c #(nop)  ENV A=c", false),
            ("ENV A=b", "/bin/sh -c #(nop)  LABEL A=b", false),
            ("COPY . /x", "/bin/sh -c COPY . /x", false),
        ] {
            assert_eq!(is_of(instruction, made_by), is, "{instruction} {made_by}");
        }
    }
}
