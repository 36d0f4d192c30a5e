//! One service from create to ready.

use std::time::Duration;

use bytes::Bytes;
use futures::future::{try_join, try_join_all};

use crate::compose::plan::{ContainerStep, FileStep};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::Capability;
use crate::spec::container::{ContainerSpec, NamespaceMode, NetworkAttachment, RestartPolicy};
use crate::spec::{SandboxStatus, UploadOptions, UploadSource};

use super::board::Stage;
use super::crew::Crew;
use super::failure::in_service;
use super::health::{MOST_FAILURES, Unhealthy};
use super::hook::Hooks;
use super::progress::{ComposeEvent, ServiceProgress};
use super::start::Start;

/// How long a service without a health check must stay up to count as started.
pub(super) const SETTLE: Duration = Duration::from_millis(50);

/// The same for one with a restart policy: that it ends is not the end of it, so that what is missed here is never told.
const SETTLE_RESTARTING: Duration = Duration::from_millis(400);

/// How long one that ended and was started again must stay up then, from its last failure. The engine pauses before it
/// starts one again, longer each time, and a busy one takes its time.
const SETTLE_AFTER_FAILURE: Duration = Duration::from_secs(2);

impl Start<'_> {
    /// Brings a service up. One that may fail costs a warning when it does.
    pub(super) async fn bring_up(&self, service: usize) -> Result<()> {
        let step = &self.crew.plan.services[service];
        match self.run_service(service).await {
            Err(error) if step.is_optional => {
                let text = format!(
                    "service `{}` failed, and the others go without it: {}",
                    step.name,
                    error.report()
                );
                self.crew.say(&ComposeEvent::Warning(text));
                self.crew.say_service(service, ServiceProgress::Failed);
                self.reach(service, Stage::Failed);
                Ok(())
            }
            result => result,
        }
    }

    async fn run_service(&self, service: usize) -> Result<()> {
        let step = &self.crew.plan.services[service];
        // As docker compose: whose volumes are filled by which image does not change from start to start.
        for dependency in &step.depends_on {
            if let Some(other) = self.index_of(&dependency.service) {
                self.stage_at_least(other, Stage::Created).await;
            }
        }
        let created = step
            .containers
            .iter()
            .map(|container| self.create(service, container));
        try_join_all(created).await?;
        self.reach(service, Stage::Created);
        self.crew.say_service(service, ServiceProgress::Created);
        let conditions = step
            .depends_on
            .iter()
            .map(|dependency| self.wait_for(service, dependency));
        try_join_all(conditions).await?;
        // One after the other: several at once would race for the ports of one range.
        for container in &step.containers {
            self.start_one(service, container).await?;
        }
        self.reach(service, Stage::Started);
        self.crew.say_service(service, ServiceProgress::Started);
        let ready = self.crew.ids_of_service(service).into_iter();
        let ready = try_join_all(ready.map(|id| async move { self.ready(service, &id).await })).await?;
        // Without containers there is nothing to wait for.
        let is_healthy = ready.iter().all(|has_check| *has_check);
        self.reach(
            service,
            if is_healthy {
                Stage::Healthy
            } else {
                Stage::NoCheck
            },
        );
        Ok(())
    }

    async fn create(&self, service: usize, container: &ContainerStep) -> Result<()> {
        let crew = self.crew;
        let step = &crew.plan.services[service];
        let made = async {
            let spec = crew.with_ids(&container.spec);
            let id = crew
                .containers(Operation::ComposeUp)?
                .create_container(&spec)
                .await?;
            crew.made.add_container(&id, Some(service));
            crew.remember_id(&container.name, &id);
            self.watch.add(&id);
            crew.place_files(service, &id, &step.files).await
        };
        match made.await {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                Err(crew.contested(&step.name, &container.name, error).await)
            }
            made => made.map_err(|error| in_service(&step.name, error)),
        }
    }

    async fn start_one(&self, service: usize, container: &ContainerStep) -> Result<()> {
        let crew = self.crew;
        let step = &crew.plan.services[service];
        let id = crew.id_of(&container.name);
        let containers = crew.containers(Operation::ComposeUp)?;
        // The handle is wanted at the end, and costs nothing while the engine is at it.
        let started = try_join(containers.start_container(&id), crew.handle(&id, service)).await;
        if let Err(error) = started {
            // A failed start is no event (engine-facts S14).
            if let Ok(detail) = containers.inspect_container(&id).await {
                self.watch.note(&id, detail.as_ref());
            }
            return Err(crew.not_started(&step.name, &container.spec, error).await);
        }
        self.after_start(service, &id).await
    }

    /// Runs the hooks after a start.
    async fn after_start(&self, service: usize, id: &str) -> Result<()> {
        let crew = self.crew;
        let step = &crew.plan.services[service];
        if step.post_start.is_empty() {
            return Ok(());
        }
        let handle = crew.handle(id, service).await?;
        let hooks = Hooks {
            provider: &*crew.provider,
            handle: &handle,
            service: &step.name,
        };
        let ran = hooks.after_start(&step.post_start, |hook| {
            self.board.runs(service, Some(hook.clone()));
            crew.say_service(service, ServiceProgress::Hook { hook });
        });
        match ran.await {
            Ok(()) => {
                self.board.runs(service, None);
                Ok(())
            }
            // What ended under its hook has more to say than the hook.
            Err(error) if matches!(error.kind(), ErrorKind::Sandbox(_)) => match self.look(id).await {
                Ok(Some(detail)) if detail.exit_code.is_some() => {
                    let code = detail.exit_code.unwrap_or_default();
                    let what = format!("exited with {code} before its post_start hooks had run");
                    Err(crew.service_error(service, id, &what).await.with_source(error))
                }
                _ => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Waits until a container is as it should be. Says whether that is by a health check.
    async fn ready(&self, service: usize, id: &str) -> Result<bool> {
        let crew = self.crew;
        let restart = self.restart_of(service);
        let restarts = restart != RestartPolicy::No;
        let detail = self.look(id).await?;
        let is_one_shot = crew.plan.services[service].is_one_shot;
        if let Some(check) = detail.and_then(|detail| detail.healthcheck) {
            return match self.wait_healthy(service, id, &check, restarts).await {
                Ok(()) => {
                    crew.say_service(service, ServiceProgress::Healthy);
                    Ok(true)
                }
                // Who only does something and ends need not be healthy for it.
                Err(Unhealthy::Ended(0)) if is_one_shot => Ok(false),
                Err(why) => Err(crew.unhealthy_error(service, id, why).await),
            };
        }
        if is_one_shot {
            // Whoever waits for its end says how it ended.
            return Ok(false);
        }
        let ended = self.watch.until(id, |seen| seen.ended);
        let settle = if restarts { SETTLE_RESTARTING } else { SETTLE };
        let _stayed_up = tokio::time::timeout(settle, ended).await;
        self.stays_up(service, id, restarts).await?;
        Ok(false)
    }

    /// Judges a container that has had its time to fail.
    async fn stays_up(&self, service: usize, id: &str, restarts: bool) -> Result<()> {
        let crew = self.crew;
        let detail = self.look(id).await?;
        let Some(detail) = detail else {
            return Err(crew.unhealthy_error(service, id, Unhealthy::Removed).await);
        };
        if detail.status == SandboxStatus::Stopped && !restarts {
            return match detail.exit_code.unwrap_or_default() {
                0 => {
                    crew.say_service(service, ServiceProgress::Completed);
                    Ok(())
                }
                code => Err(crew
                    .service_error(service, id, &format!("exited with {code}"))
                    .await),
            };
        }
        if self.watch.seen(id).failures == 0 && !detail.is_restarting {
            return Ok(());
        }
        let mut known = 0;
        loop {
            let fails_again = self
                .watch
                .until(id, |seen| (seen.failures > known).then_some(seen.failures));
            match tokio::time::timeout(SETTLE_AFTER_FAILURE, fails_again).await {
                Ok(count) if count >= MOST_FAILURES => {
                    return Err(crew
                        .unhealthy_error(service, id, Unhealthy::Restarts(count))
                        .await);
                }
                Ok(count) => known = count,
                Err(_) => return Ok(()),
            }
        }
    }

    async fn look(&self, id: &str) -> Result<Option<crate::spec::container::ContainerDetail>> {
        let containers = self.crew.containers(Operation::ComposeUp)?;
        let detail = containers.inspect_container(id).await?;
        self.watch.note(id, detail.as_ref());
        Ok(detail)
    }
}

impl Crew {
    /// Puts the ids of networks and containers in place of their names.
    fn with_ids(&self, spec: &ContainerSpec) -> ContainerSpec {
        let mut spec = spec.clone();
        match &mut spec.network {
            NetworkAttachment::Container(name) => *name = self.id_of(name),
            NetworkAttachment::Networks(endpoints) => {
                for endpoint in endpoints {
                    endpoint.network = self.id_of(&endpoint.network);
                }
            }
            _ => {}
        }
        for mode in [
            &mut spec.ipc,
            &mut spec.pid,
            &mut spec.uts,
            &mut spec.user_namespace,
            &mut spec.cgroup_namespace,
        ] {
            if let NamespaceMode::Container(name) = mode {
                *name = self.id_of(name);
            }
        }
        for from in &mut spec.volumes_from {
            let (name, mode) = match from.split_once(':') {
                Some((name, mode)) => (name, format!(":{mode}")),
                None => (from.as_str(), String::new()),
            };
            *from = format!("{}{mode}", self.id_of(name));
        }
        spec
    }

    async fn place_files(&self, service: usize, id: &str, files: &[FileStep]) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let uploads = self.provider.as_files().ok_or_else(|| {
            Error::unsupported(
                Operation::ComposeUp,
                self.provider.name(),
                Capability::Files.as_str(),
            )
        })?;
        let handle = self.handle(id, service).await?;
        for file in files {
            let mut options = UploadOptions::default().with_mode(file.mode);
            options.owner = file.owner;
            let content = Bytes::copy_from_slice(file.content.expose().as_bytes());
            uploads
                .upload(&handle, UploadSource::Bytes(content), &file.target, &options)
                .await?;
        }
        Ok(())
    }
}
