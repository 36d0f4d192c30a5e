//! Building an image by the engine's classic builder, as one transaction: the image is there, or nothing of the build is
//! left.

mod context;
mod dockerfile;
mod ignore;
mod output;
mod request;
mod undo;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bollard::auth::DockerCredentials;
use bollard::models::BuildInfo;
use bollard::query_parameters::{BuildImageOptionsBuilder, RemoveImageOptions};
use futures::StreamExt;

use crate::error::{Error, ErrorKind, ImageProblem, Operation, Result};
use crate::spec::{BaseImages, BuildCache, BuildSpec, ImageDetail};

use super::super::DockerProvider;
use super::super::archive::PackError;
use super::super::failure::{EngineFailure, QUICK, REMOVE, call};
use super::super::lanes::Lane;
use super::auth::for_client;
use super::describe::{detail_of, fits};
use super::docker_config::server_of;
use super::{ImageReference, image_error, problem_of};
use context::Prepared;
use output::{Log, is_from};
use undo::{BuildGuard, Plan};

/// Far longer than any build: the client's deadline is on the answer's head. Stalls are watched for instead.
const NO_DEADLINE: Duration = Duration::from_secs(30 * 24 * 3600);

/// How many registries' credentials are asked for at once.
const HELPERS: usize = 8;

impl DockerProvider {
    /// Builds. Dropping the future ends the build; what its steps made is removed in the background.
    pub(super) async fn build(&self, spec: &BuildSpec) -> Result<ImageDetail> {
        request::check(spec)?;
        let engine = self.engine().await?;
        let (prepared, scan) = {
            let spec = spec.clone();
            let read = move || {
                let prepared = context::prepare(&spec)?;
                let scan = dockerfile::scan(&prepared.text, &spec.args);
                Ok::<_, Error>((prepared, scan))
            };
            tokio::task::spawn_blocking(read)
                .await
                .map_err(|error| internal("reading the context did not end").with_source(error))??
        };
        request::check_dockerfile(&scan.buildkit)?;
        let credentials = self.build_credentials(spec, &scan.bases).await;
        let _slot = self.lanes().slot(Lane::Pull).await?;
        tracing::info!(tags = ?spec.tags, "building");
        let plan = Plan {
            began: engine.engine_now(),
            bases: scan.bases,
            instructions: scan.instructions,
        };
        let mut guard = BuildGuard::new(self, plan);
        let outcome = self
            .build_to_end(spec, prepared, credentials, &mut guard.log)
            .await;
        let built = match outcome {
            Ok(built) => built,
            Err(error) => {
                guard.undo().await;
                return Err(error);
            }
        };
        guard.disarm();
        let inspected = call(QUICK, engine.client.inspect_image(&built))
            .await
            .map_err(|failure| {
                failure.into_error(
                    Operation::Build,
                    format!("the image `{built}` was built and can't be described"),
                    ErrorKind::Image(ImageProblem::Other),
                )
            })?;
        let detail = detail_of(inspected);
        match &spec.platform {
            // An engine takes a base image that it has for whatever platform it is.
            Some(wanted) if !fits(wanted, &detail.platform) => {
                self.discard(spec, &built).await;
                Err(Error::new(
                    ErrorKind::Image(ImageProblem::Platform),
                    Operation::Build,
                    format!(
                        "{} was to be for `{wanted}`, and the engine has built it for `{}`, as its base image is",
                        name_of(spec),
                        detail.platform
                    ),
                )
                .with_hint("pull the base image for that platform before, or leave the platform out"))
            }
            _ => Ok(detail),
        }
    }

    /// Takes the names from an image that is not what was asked for; what nothing else uses of it goes with the last. One
    /// that has a name of somebody else's, as when every step came out of the cache, stays.
    async fn discard(&self, spec: &BuildSpec, built: &str) {
        let Ok(engine) = self.engine().await else { return };
        let has_name = match call(QUICK, engine.client.inspect_image(built)).await {
            Ok(image) => image.repo_tags.is_some_and(|tags| !tags.is_empty()),
            Err(_) => true,
        };
        let by_id = (spec.tags.is_empty() && !has_name).then_some(built);
        for name in spec.tags.iter().map(String::as_str).chain(by_id) {
            let removed = call(
                REMOVE,
                engine.client.remove_image(name, None::<RemoveImageOptions>, None),
            );
            if let Err(failure) = removed.await {
                tracing::debug!(name, %failure, "an image for another platform is left");
            }
        }
    }

    async fn build_to_end(
        &self,
        spec: &BuildSpec,
        prepared: Prepared,
        credentials: HashMap<String, DockerCredentials>,
        log: &mut Log,
    ) -> Result<String> {
        let mut options = BuildImageOptionsBuilder::new()
            .nocache(spec.cache == BuildCache::Ignore)
            .dockerfile(&prepared.dockerfile)
            .rm(true)
            // Else a step that fails leaves its container.
            .forcerm(true)
            .platform(spec.platform.as_deref().unwrap_or_default())
            .target(spec.target.as_deref().unwrap_or_default())
            .networkmode(spec.network.as_deref().unwrap_or_default());
        if spec.base_images == BaseImages::Pull {
            options = options.pull("1");
        }
        let client = self
            .engine()
            .await?
            .client_with_query(request::query(spec))
            .with_timeout(NO_DEADLINE);
        let moved = Arc::new(AtomicU64::new(0));
        let (receiver, packing) = prepared.context.send();
        let counted = Arc::clone(&moved);
        let chunks = futures::stream::unfold((receiver, counted), |(mut receiver, counted)| async move {
            let chunk = receiver.recv().await?;
            counted.fetch_add(1, Ordering::Relaxed);
            Some((chunk, (receiver, counted)))
        });
        let body = bollard::body_try_stream(chunks);
        let mut messages = std::pin::pin!(client.build_image(options.build(), Some(credentials), Some(body)));
        let failure = loop {
            let before = moved.load(Ordering::Relaxed);
            match tokio::time::timeout(spec.stall_timeout, messages.next()).await {
                Ok(Some(Ok(message))) => note(spec, log, message),
                Ok(Some(Err(error))) => {
                    let failure = EngineFailure::from(error);
                    log.ended = failure.status().is_some();
                    break Some(failure);
                }
                Ok(None) => {
                    log.ended = log.built.is_some();
                    break None;
                }
                Err(_) if moved.load(Ordering::Relaxed) != before => {}
                Err(_) => return Err(stalled(spec, log)),
            }
        };
        // A context that could not be read cuts the stream, and the engine's answer to that says nothing.
        let packed = tokio::time::timeout(QUICK, packing).await;
        if let Ok(Ok(Err(error))) = packed
            && !matches!(error, PackError::Cut)
        {
            return Err(error.into_error_of(Operation::Build));
        }
        match (failure, log.built.take()) {
            (Some(failure), _) => Err(failed(spec, log, failure)),
            (None, Some(built)) => Ok(built),
            (None, None) => Err(internal("the engine ended the build without an image")),
        }
    }

    /// Credentials for the registries of the base images. A registry that is not known to need any gets none.
    async fn build_credentials(
        &self,
        spec: &BuildSpec,
        bases: &[String],
    ) -> HashMap<String, DockerCredentials> {
        let mut registries: BTreeSet<String> = spec.credentials.keys().cloned().collect();
        let parsed = bases
            .iter()
            .filter_map(|base| base.parse::<ImageReference>().ok());
        registries.extend(parsed.map(|image| image.registry().to_owned()));
        let asked = registries.into_iter().map(|registry| async move {
            let explicit = spec.credentials.get(&registry);
            let credentials = self.credentials_for(&registry, explicit).await.credentials?;
            let for_client = for_client(&registry, &credentials);
            Some((server_of(&registry).to_owned(), for_client))
        });
        // A helper that hangs holds each of them up until its timeout.
        let answers = futures::stream::iter(asked).buffer_unordered(HELPERS);
        answers.filter_map(std::future::ready).collect().await
    }
}

fn note(spec: &BuildSpec, log: &mut Log, message: BuildInfo) {
    if let Some(event) = log.note(message)
        && let Some(progress) = &spec.progress
    {
        progress.call(&event);
    }
}

/// The cause of a failed build, with what its step printed last.
#[derive(Debug)]
struct StepFailure {
    text: String,
    last_lines: Vec<String>,
}

impl fmt::Display for StepFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if !self.last_lines.is_empty() {
            f.write_str("; its last output:")?;
        }
        for line in &self.last_lines {
            write!(f, "\n    {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for StepFailure {}

fn failed(spec: &BuildSpec, log: &Log, failure: EngineFailure) -> Error {
    let Some(text) = failure.text() else {
        return failure.into_error(
            Operation::Build,
            format!("the build of {} was cut off", name_of(spec)),
            ErrorKind::Internal,
        );
    };
    let base = log.step.as_ref().filter(|step| is_from(&step.text));
    if let Some(step) = base
        && problem_of(text).is_some()
        && let Some(image) = step
            .text
            .split_whitespace()
            .skip(1)
            .find(|word| !word.starts_with("--"))
            .and_then(|image| image.parse::<ImageReference>().ok())
    {
        return image_error(&image, failure);
    }
    let message = match &log.step {
        Some(step) => format!("{} of {} failed", step, name_of(spec)),
        None => format!("the engine refused to build {}", name_of(spec)),
    };
    let text = text.to_owned();
    let error = failure.into_error(Operation::Build, message, ErrorKind::Image(ImageProblem::Build));
    error.with_source(StepFailure {
        text,
        last_lines: log.last_lines(),
    })
}

fn name_of(spec: &BuildSpec) -> String {
    match spec.tags.first() {
        Some(tag) => format!("`{tag}`"),
        None => "an image without a name".to_owned(),
    }
}

fn stalled(spec: &BuildSpec, log: &Log) -> Error {
    let step = log
        .step
        .as_ref()
        .map(|step| format!("{step} of "))
        .unwrap_or_default();
    Error::new(
        ErrorKind::Timeout,
        Operation::Build,
        format!(
            "{step}{} gave no sign of life for {:?}",
            name_of(spec),
            spec.stall_timeout
        ),
    )
    .with_hint("raise the stall timeout of the build if a step is silent for longer")
    .with_source(StepFailure {
        text: "the build was ended".to_owned(),
        last_lines: log.last_lines(),
    })
}

fn internal(text: &'static str) -> Error {
    Error::new(ErrorKind::Internal, Operation::Build, text)
}
