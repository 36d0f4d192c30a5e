//! Creating a sandbox as one transaction: it is ready, or nothing of it is left (contract C16-C18, D15).

mod guard;

use std::time::Duration;

use bollard::models::{ContainerCreateBody, ContainerCreateResponse};
use bollard::query_parameters::{CreateContainerOptionsBuilder, StartContainerOptions};

use crate::error::{Error, ErrorKind, ImageProblem, Operation, Result};
use crate::provider::SandboxHandle;
use crate::spec::{PullPolicy, SandboxSpec};

use super::able::{unable, warned};
use super::agent::{Failed, Plan, Tended};
use super::container::{networks_of, no_such_network};
use super::failure::EngineFailure;
use super::image::{Wanted, image_error, problem_of};
use super::lease::check_not_ending;
use super::owner::Keep;
use super::request::{CreateRequest, draft};
use super::{DockerProvider, DockerRaw, PROVIDER, new_sandbox_id};

use guard::Made;
pub(super) use guard::{CreateGuard, token_label};

/// How long one create call may take beyond pulling: the engine is slow only under many creates at once.
pub(super) const CREATE_CALL: Duration = Duration::from_secs(300);

impl DockerProvider {
    pub(super) async fn create_sandbox(&self, spec: &SandboxSpec) -> Result<SandboxHandle> {
        let config = self.config();
        let draft = draft(config, spec)?;
        let engine = self.engine().await?;
        let request = draft.for_engine(engine.api_version)?;
        self.check_able(spec).await?;
        self.check_named_once(&networks_of(&request.body, &request.joins))
            .await?;
        // The name is fixed before the call, so that a lost answer can still be cleaned up (contract D17).
        let id = new_sandbox_id()?;
        let admitted = self.admit(&request, &id).await?;
        let request = request.with_labels(engine.engine_now(), spec.ttl(), &config.lease);
        let keeper = self.keeper().await?;
        let mut guard = CreateGuard::new(self, id.clone());
        // Before anything is made: whoever sees the container sees a living owner, too.
        if request.options.keep == Keep::No {
            keeper.hold(id.as_str());
        }
        let mut plan = Plan::new(self, &id, spec, &request).await?;
        let creating = self.create_by_plan(&mut guard, &request, &mut plan);
        let outcome = match config.create.start_timeout {
            Some(timeout) => match tokio::time::timeout(timeout, creating).await {
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
            },
            None => creating.await,
        };
        let container_id = match outcome {
            Ok(container_id) => container_id,
            Err(error) => return Err(guard.undo(error).await),
        };
        let agent = plan.resident();
        match Box::pin(self.wait_ready(&container_id, &agent, &request.image, spec)).await {
            Ok(shell) => {
                plan.remember(self, &request);
                keeper.made(id.as_str());
                keeper.tend(id.as_str(), Tended::new(self, &container_id, &agent));
                guard.made = Made::HandedOut;
                let raw = DockerRaw {
                    container_id,
                    shell,
                    agent,
                    admitted,
                    _taken: None,
                };
                Ok(SandboxHandle::new(id, PROVIDER)
                    .with_ports(spec.ports().clone())
                    .with_raw(raw))
            }
            Err(error) => Err(guard.undo(error).await),
        }
    }

    /// Creates with the agent where it is planned, and once without it where it does not work.
    async fn create_by_plan(
        &self,
        guard: &mut CreateGuard,
        request: &CreateRequest,
        plan: &mut Plan,
    ) -> Result<String> {
        if plan.has_agent() {
            let failed = match self.create_and_start(guard, request, plan).await {
                Ok(container_id) => match plan.prove(self, &container_id).await {
                    Ok(()) => return Ok(container_id),
                    Err(failed) => failed,
                },
                Err(failed) => failed,
            };
            check_not_ending()?;
            plan.fall_back(self, failed)?;
            self.remove_container(guard.id.as_str()).await?;
            guard.made = Made::Nothing;
        }
        let created = self.create_and_start(guard, request, plan).await;
        created.map_err(Failed::into_error)
    }

    /// Pulls where needed, creates and starts. Holds a slot of the create lane, but not while it pulls.
    async fn create_and_start(
        &self,
        guard: &mut CreateGuard,
        request: &CreateRequest,
        plan: &Plan,
    ) -> Result<String, Failed> {
        let wanted = |fresh| Wanted {
            image: request.image.clone(),
            platform: request.options.platform.clone(),
            fresh,
            credentials: None,
        };
        if request.options.pull_policy == PullPolicy::Always {
            self.pull_shared(&wanted(true), None).await?;
        }
        self.lanes().adapt_to(self.engine().await?.cpus);
        let mut slot = self.lanes().create_slot().await?;
        let mut answer = self.create_call(guard, request, plan).await?;
        if is_missing_image(&answer) && request.options.pull_policy == PullPolicy::Missing {
            drop(slot);
            self.pull_shared(&wanted(false), None).await?;
            slot = self.lanes().create_slot().await?;
            answer = self.create_call(guard, request, plan).await?;
        }
        let container = answer.map_err(|failure| {
            let is_the_agents = plan.is_named_in(&failure);
            Failed::new(create_error(request, failure), is_the_agents)
        })?;
        for warning in &container.warnings {
            tracing::warn!(sandbox_id = %guard.id, %warning, "the engine warns about a create");
        }
        if let Some(error) = warned(self.config().create.on_warning, &container.warnings) {
            return Err(error.into());
        }
        for join in &request.joins {
            self.join_network(&container.id, join).await?;
        }
        self.look_at_shared(request).await?;
        let provided = plan.provide(self, &container.id, request).await;
        provided.map_err(|error| Failed::new(error, true))?;
        self.start_container(&container.id, request, plan).await?;
        slot.made();
        Ok(container.id)
    }

    /// Calls create in a task of its own: the engine makes the container even when the caller goes away, so the call
    /// must be seen through to its end before its name can be removed for good.
    async fn create_call(
        &self,
        guard: &mut CreateGuard,
        request: &CreateRequest,
        plan: &Plan,
    ) -> Result<Result<ContainerCreateResponse, EngineFailure>> {
        let platform = request.options.platform.as_deref();
        self.call_create(guard, platform, plan.body(request)).await
    }

    /// Makes the call for a container of that guard's name. An engine that refused is the inner error.
    pub(super) async fn call_create(
        &self,
        guard: &mut CreateGuard,
        platform: Option<&str>,
        mut body: ContainerCreateBody,
    ) -> Result<Result<ContainerCreateResponse, EngineFailure>> {
        let client = self.engine().await?.client.clone();
        let labels = body.labels.get_or_insert_default();
        labels.insert(token_label(), guard.token.clone());
        let options = CreateContainerOptionsBuilder::new()
            .name(guard.id.as_str())
            .platform(platform.unwrap_or_default())
            .build();
        let call = tokio::spawn(async move { client.create_container(Some(options), body).await });
        guard.made = Made::Calling(call);
        let Made::Calling(call) = &mut guard.made else {
            return Err(cut_off());
        };
        let answer = match tokio::time::timeout(CREATE_CALL, call).await {
            Ok(Ok(answer)) => answer.map_err(EngineFailure::from),
            Ok(Err(error)) => {
                guard.made = Made::Unknown;
                return Err(cut_off().with_source(error));
            }
            Err(_) => return Ok(Err(EngineFailure::Deadline(CREATE_CALL))),
        };
        guard.made = match &answer {
            Ok(_) => Made::Container,
            Err(failure) if failure.began_nothing() => Made::Nothing,
            Err(_) => Made::Unknown,
        };
        Ok(answer)
    }

    async fn start_container(
        &self,
        container_id: &str,
        request: &CreateRequest,
        plan: &Plan,
    ) -> Result<(), Failed> {
        let client = &self.engine().await?.client;
        let started = super::failure::call(
            CREATE_CALL,
            client.start_container(container_id, None::<StartContainerOptions>),
        );
        started.await.map_err(|failure| {
            let is_the_agents = plan.is_named_in(&failure);
            Failed::new(start_error(request, failure), is_the_agents)
        })
    }
}

fn start_error(request: &CreateRequest, failure: EngineFailure) -> Error {
    if let Some(error) = not_there(request, &failure) {
        return error;
    }
    let text = failure.text().unwrap_or_default().to_owned();
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
    if text.contains("no such file or directory") || text.contains("executable file not found") {
        return error.with_hint(format!(
            "the image may have no `{program}`; name a program that it has as the entrypoint"
        ));
    }
    error
}

fn is_missing_image(answer: &Result<ContainerCreateResponse, EngineFailure>) -> bool {
    answer.as_ref().is_err_and(|failure| {
        failure.is_status(404)
            && failure
                .text()
                .is_some_and(|text| problem_of(text) == Some(ImageProblem::NotFound))
    })
}

/// The error for something that was asked for and that the engine does not have.
fn not_there(request: &CreateRequest, failure: &EngineFailure) -> Option<Error> {
    let networks = networks_of(&request.body, &request.joins);
    if let Some(error) = no_such_network(networks, failure) {
        return Some(error);
    }
    let host = request.body.host_config.as_ref();
    let runtime = host.and_then(|host| host.runtime.as_deref());
    unable(&request.options.resources, runtime, failure.text()?)
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
    if let Some(error) = not_there(request, &failure) {
        return error;
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

fn cut_off() -> Error {
    Error::new(
        ErrorKind::Internal,
        Operation::Create,
        "the create call was cut off",
    )
}
