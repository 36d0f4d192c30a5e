//! Pulling one image: shared by who waits for it, with credentials, tried again while the registry limits the rate.

use std::sync::Arc;
use std::time::Duration;

use bollard::query_parameters::CreateImageOptionsBuilder;
use futures::StreamExt;
use tokio::sync::broadcast;

use crate::error::{Error, ErrorKind, ImageProblem, Operation, Result};
use crate::spec::{ImageCallback, ImageDetail, ImageEvent, PullOptions, PullPolicy, RegistryCredentials};

use super::super::DockerProvider;
use super::super::failure::EngineFailure;
use super::super::lanes::Lane;
use super::auth::for_client;
use super::progress::event_of;
use super::{ImageReference, image_error, problem_of};

/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What is pulled. Who wants the same waits for the same pull.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::docker) struct Wanted {
    pub(in crate::docker) image: ImageReference,
    pub(in crate::docker) platform: Option<String>,
    /// The registry is asked also where the engine has the image.
    pub(in crate::docker) fresh: bool,
    pub(in crate::docker) credentials: Option<RegistryCredentials>,
}

/// Why a pull failed; each who waits for it makes an error of it.
#[derive(Debug, Clone)]
pub(super) struct PullFailure {
    failure: EngineFailure,
    /// What kept the docker command's credentials from being used.
    credentials_problem: Option<Arc<str>>,
}

impl PullFailure {
    /// The pull went away under who waits for it.
    pub(super) fn lost() -> Self {
        Self::from(EngineFailure::Transport {
            text: "the pull was ended".to_owned(),
        })
    }

    fn into_error(self, image: &ImageReference) -> Error {
        let error = image_error(image, self.failure);
        match self.credentials_problem {
            Some(problem)
                if matches!(
                    error.kind(),
                    ErrorKind::Image(ImageProblem::Auth | ImageProblem::NotFound)
                ) =>
            {
                error.with_hint(format!("no credentials were sent: {problem}"))
            }
            _ => error,
        }
    }
}

impl From<EngineFailure> for PullFailure {
    fn from(failure: EngineFailure) -> Self {
        Self {
            failure,
            credentials_problem: None,
        }
    }
}

impl DockerProvider {
    /// Pulls an image, or waits for who is pulling it. The caller bounds the time.
    ///
    /// Dropping the future ends the pull unless somebody else waits for it; the engine keeps the layers it has.
    pub(in crate::docker) async fn pull_shared(
        &self,
        wanted: &Wanted,
        progress: Option<&ImageCallback>,
    ) -> Result<()> {
        // Before the task: an engine that does not answer is an error with everything that was tried.
        self.engine().await?;
        let begin = |events| {
            let (provider, wanted) = (self.clone(), wanted.clone());
            async move { provider.pull_in_turn(&wanted, &events).await }
        };
        let tell = |event: &ImageEvent| {
            if let Some(progress) = progress {
                progress.call(event);
            }
        };
        let outcome = self.pulls().join(wanted, begin, tell).await;
        outcome.map_err(|failure| failure.into_error(&wanted.image))
    }

    async fn pull_in_turn(
        &self,
        wanted: &Wanted,
        events: &broadcast::Sender<ImageEvent>,
    ) -> Result<(), PullFailure> {
        let gone = |error: Error| EngineFailure::Transport {
            text: error.to_string(),
        };
        let config = &self.config().pull;
        let found = self
            .credentials_for(wanted.image.registry(), wanted.credentials.as_ref())
            .await;
        let credentials_problem: Option<Arc<str>> = found.problem.map(Into::into);
        let mut pause = config.rate_limit_pause;
        for attempt in 1.. {
            let slot = self.lanes().slot(Lane::Pull).await.map_err(gone)?;
            // Somebody else's pull may have ended between the caller's look and now.
            if !wanted.fresh && matches!(self.image_present(&wanted.image).await, Ok(true)) {
                return Ok(());
            }
            let pulled = self.pull_once(wanted, found.credentials.as_ref(), events).await;
            drop(slot);
            let Err(failure) = pulled else { return Ok(()) };
            let limited = failure.text().and_then(problem_of) == Some(ImageProblem::RateLimited);
            if !limited || attempt >= config.rate_limit_attempts {
                return Err(PullFailure {
                    failure,
                    credentials_problem,
                });
            }
            tracing::warn!(image = %wanted.image, attempt, ?pause, "the registry limits the rate of pulls");
            // Nobody is told when nobody wants to be.
            let _nobody = events.send(ImageEvent::Waiting(pause));
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(())
    }

    async fn pull_once(
        &self,
        wanted: &Wanted,
        credentials: Option<&RegistryCredentials>,
        events: &broadcast::Sender<ImageEvent>,
    ) -> Result<(), EngineFailure> {
        let image = &wanted.image;
        let engine = self.engine().await.map_err(|error| EngineFailure::Transport {
            text: error.to_string(),
        })?;
        tracing::info!(%image, platform = wanted.platform, with_credentials = credentials.is_some(), "pulling");
        let options = CreateImageOptionsBuilder::new()
            .from_image(image.repository())
            .tag(image.pull_tag())
            .platform(wanted.platform.as_deref().unwrap_or_default())
            .build();
        let credentials = credentials.map(|credentials| for_client(image.registry(), credentials));
        let mut messages = engine.client.create_image(Some(options), None, credentials);
        // The whole pull is bounded by the caller.
        let stall = self.config().pull.stall_timeout;
        loop {
            match tokio::time::timeout(stall, messages.next()).await {
                Ok(Some(Ok(message))) => {
                    if let Some(event) = event_of(message) {
                        let _nobody = events.send(event);
                    }
                }
                Ok(Some(Err(error))) => return Err(error.into()),
                Ok(None) => return Ok(()),
                Err(_) => return Err(EngineFailure::Deadline(stall)),
            }
        }
    }

    /// Sees to it that an image is there, by the policy, and says whether it was pulled.
    pub(super) async fn provide_image(
        &self,
        image: &ImageReference,
        options: &PullOptions,
        progress: Option<&ImageCallback>,
    ) -> Result<(ImageDetail, bool)> {
        let platform = options.platform.as_deref();
        if options.policy != PullPolicy::Always
            && let Some(detail) = self.describe_image(image, platform).await?
        {
            return Ok((detail, false));
        }
        if options.policy == PullPolicy::Never {
            return Err(Error::new(
                ErrorKind::Image(ImageProblem::NotFound),
                Operation::Image,
                format!("the engine does not have `{image}`, and the policy is `never`"),
            )
            .with_hint("pull it, or use another policy"));
        }
        let wanted = Wanted {
            image: image.clone(),
            platform: options.platform.clone(),
            fresh: options.policy == PullPolicy::Always,
            credentials: options.credentials.clone(),
        };
        self.pull_shared(&wanted, progress).await?;
        let detail = self.describe_image(image, platform).await?.ok_or_else(|| {
            Error::new(
                ErrorKind::Image(ImageProblem::NotFound),
                Operation::Image,
                format!("`{image}` was pulled and is gone again"),
            )
        })?;
        Ok((detail, true))
    }
}
