//! Creating a sandbox as one transaction: it is ready, or nothing of it is left (contract C16-C18, D15).

use std::time::Duration;

use bollard::errors::Error as BollardError;
use bollard::models::ContainerCreateResponse;
use bollard::query_parameters::{CreateContainerOptionsBuilder, StartContainerOptions};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::error::{Error, ErrorKind, ImageProblem, Operation, Result};
use crate::provider::SandboxHandle;
use crate::spec::{SandboxId, SandboxSpec};

use super::failure::EngineFailure;
use super::image::{PullPolicy, image_error, problem_of};
use super::lanes::Lane;
use super::request::{CreateRequest, create_request};
use super::{DockerProvider, DockerRaw, PROVIDER, new_sandbox_id};

type CreateCall = JoinHandle<Result<ContainerCreateResponse, BollardError>>;

/// How long one create call may take beyond pulling: the engine is slow only under many creates at once.
const CREATE_CALL: Duration = Duration::from_secs(300);

impl DockerProvider {
    pub(super) async fn create_sandbox(&self, spec: &SandboxSpec) -> Result<SandboxHandle> {
        let config = self.config();
        let request = create_request(&config.create, &config.default_metadata, spec)?;
        let engine = self.engine().await?;
        let created = engine.engine_now();
        let expires = spec.ttl().map(|ttl| created.plus(ttl).to_rfc3339());
        let request = request.with_labels(&created.to_rfc3339(), expires.as_deref());
        // The name is fixed before the call, so that a lost answer can still be cleaned up (contract D17).
        let id = new_sandbox_id()?;
        let mut guard = CreateGuard {
            provider: self.clone(),
            id: id.clone(),
            call: None,
            armed: false,
        };
        let outcome = match config.create.start_timeout {
            Some(timeout) => {
                match tokio::time::timeout(timeout, self.create_and_start(&mut guard, &request)).await {
                    Ok(outcome) => outcome,
                    Err(_) => Err(Error::new(
                        ErrorKind::CreateFailed,
                        Operation::Create,
                        format!(
                            "timed out: image `{}` was not pulled, created and started in {timeout:?}",
                            request.image
                        ),
                    )
                    .with_retryable(true)
                    .with_hint("raise `create.start_timeout_s`, or pull the image before")),
                }
            }
            None => self.create_and_start(&mut guard, &request).await,
        };
        let container_id = match outcome {
            Ok(container_id) => container_id,
            Err(error) => return Err(guard.undo(error).await),
        };
        match Box::pin(self.wait_ready(&container_id, &request.image, spec)).await {
            Ok(shell) => {
                guard.armed = false;
                let raw = DockerRaw { container_id, shell };
                Ok(SandboxHandle::new(id, PROVIDER)
                    .with_ports(spec.ports().clone())
                    .with_raw(raw))
            }
            Err(error) => Err(guard.undo(error).await),
        }
    }

    /// Pulls where needed, creates and starts. Holds a slot of the create lane, but not while it pulls.
    async fn create_and_start(&self, guard: &mut CreateGuard, request: &CreateRequest) -> Result<String> {
        let platform = request.options.platform.as_deref();
        if request.options.pull_policy == PullPolicy::Always {
            self.pull_image(&request.image, platform).await?;
        }
        let mut slot = self.lanes().slot(Lane::Create).await?;
        let mut answer = self.create_call(guard, request).await?;
        if is_missing_image(&answer) && request.options.pull_policy == PullPolicy::Missing {
            drop(slot);
            self.pull_image(&request.image, platform).await?;
            slot = self.lanes().slot(Lane::Create).await?;
            answer = self.create_call(guard, request).await?;
        }
        let container = answer.map_err(|failure| create_error(request, failure))?;
        for warning in &container.warnings {
            tracing::warn!(sandbox_id = %guard.id, %warning, "the engine warns about a create");
        }
        self.start_container(&container.id, request).await?;
        drop(slot);
        Ok(container.id)
    }

    /// Calls create in a task of its own: the engine makes the container even when the caller goes away, so the call
    /// must be seen through to its end before its name can be removed for good.
    async fn create_call(
        &self,
        guard: &mut CreateGuard,
        request: &CreateRequest,
    ) -> Result<Result<ContainerCreateResponse, EngineFailure>> {
        let client = self.engine().await?.client.clone();
        let options = CreateContainerOptionsBuilder::new()
            .name(guard.id.as_str())
            .platform(request.options.platform.as_deref().unwrap_or_default())
            .build();
        let body = request.body.clone();
        guard.armed = true;
        let call = guard.call.insert(tokio::spawn(async move {
            client.create_container(Some(options), body).await
        }));
        let answer = match tokio::time::timeout(CREATE_CALL, call).await {
            Ok(Ok(answer)) => answer.map_err(EngineFailure::from),
            Ok(Err(error)) => {
                return Err(Error::new(
                    ErrorKind::Internal,
                    Operation::Create,
                    "the create call was cut off",
                )
                .with_source(error));
            }
            Err(_) => return Ok(Err(EngineFailure::Deadline(CREATE_CALL))),
        };
        guard.call = None;
        if matches!(answer, Err(EngineFailure::Refused { .. })) {
            guard.armed = false;
        }
        Ok(answer)
    }

    async fn start_container(&self, container_id: &str, request: &CreateRequest) -> Result<()> {
        let client = &self.engine().await?.client;
        let started = super::failure::call(
            CREATE_CALL,
            client.start_container(container_id, None::<StartContainerOptions>),
        );
        started.await.map_err(|failure| {
            let missing = failure.text().is_some_and(|text| {
                text.contains("no such file or directory") || text.contains("executable file not found")
            });
            let program = request
                .body
                .entrypoint
                .as_deref()
                .and_then(<[String]>::first)
                .cloned()
                .unwrap_or_default();
            let error = failure.into_error(
                Operation::Create,
                format!(
                    "a container of image `{}` could not be started with `{program}`",
                    request.image
                ),
                ErrorKind::CreateFailed,
            );
            if missing {
                error.with_hint(format!(
                    "the image may have no `{program}`; name a program that it has as the entrypoint"
                ))
            } else {
                error
            }
        })
    }
}

fn is_missing_image(answer: &Result<ContainerCreateResponse, EngineFailure>) -> bool {
    answer.as_ref().is_err_and(|failure| {
        failure.is_status(404)
            && failure
                .text()
                .is_some_and(|text| problem_of(text) == Some(ImageProblem::NotFound))
    })
}

fn create_error(request: &CreateRequest, failure: EngineFailure) -> Error {
    let about_image = failure.is_status(404)
        && failure
            .text()
            .and_then(problem_of)
            .is_some_and(|problem| matches!(problem, ImageProblem::NotFound | ImageProblem::Platform));
    if about_image {
        return image_error(&request.image, failure);
    }
    failure.into_error(
        Operation::Create,
        format!(
            "the engine refused to create a container of image `{}`",
            request.image
        ),
        ErrorKind::CreateFailed,
    )
}

/// Removes what a create has made, unless it is disarmed. Dropped in the middle of anything it hands the removal to
/// the clean-up thread.
struct CreateGuard {
    provider: DockerProvider,
    id: SandboxId,
    /// A create call that may still be running in the engine.
    call: Option<CreateCall>,
    armed: bool,
}

impl CreateGuard {
    /// Removes what was made, and attaches to the error what kept it from that.
    async fn undo(mut self, error: Error) -> Error {
        if !self.armed {
            return error;
        }
        if self.call.is_some() {
            // The call may go on for long; the error is not held back for it.
            return error;
        }
        match self.provider.remove_container(self.id.as_str()).await {
            Ok(()) => {
                self.armed = false;
                error
            }
            // The guard stays armed: its drop tries again in the background.
            Err(cleanup) => error.with_cleanup_error(cleanup),
        }
    }
}

impl Drop for CreateGuard {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let provider = self.provider.clone();
        let id = self.id.clone();
        let call = self.call.take();
        self.provider
            .reaper()
            .submit("remove a cancelled create", async move {
                provider.remove_abandoned(&id, call).await;
            });
    }
}

impl DockerProvider {
    /// Removes a container whose create was cut off at an unknown point.
    async fn remove_abandoned(&self, id: &SandboxId, call: Option<CreateCall>) {
        let deadline = Instant::now() + Duration::from_secs(100);
        let mut pause = Duration::from_millis(50);
        // When the call was cut off together with its runtime, the engine may still be making the container: absence
        // counts only after a while.
        let mut absent_looks = 20;
        match call {
            None => absent_looks = 1,
            Some(mut call) => loop {
                match tokio::time::timeout(pause, &mut call).await {
                    Ok(Ok(Ok(_))) => absent_looks = 1,
                    Ok(_) => {}
                    // The runtime of the call may stand still: what the engine has made is seen all the same.
                    Err(_) if Instant::now() < deadline => {
                        if let Ok(true) = self.remove_if_present(id.as_str()).await {
                            return;
                        }
                        pause = (pause * 2).min(Duration::from_secs(1));
                        continue;
                    }
                    Err(_) => {}
                }
                break;
            },
        }
        pause = Duration::from_millis(50);
        loop {
            match self.remove_if_present(id.as_str()).await {
                Ok(true) => return,
                Ok(false) if absent_looks <= 1 => return,
                Ok(false) => absent_looks -= 1,
                Err(error) if Instant::now() >= deadline => {
                    tracing::warn!(sandbox_id = %id, %error, "a cancelled create could not be removed; it is left to a sweep");
                    return;
                }
                Err(_) => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }
}
