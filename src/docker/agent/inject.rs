//! Getting the agent's program into the volume that all sandboxes of an engine share: once, whole, and never rewritten.

use std::time::Duration;

use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{
    ContainerArchiveInfoOptionsBuilder, CreateContainerOptionsBuilder, UploadToContainerOptionsBuilder,
};
use tokio::time::Instant;

use super::super::DockerProvider;
use super::super::connect::{Engine, EngineTime};
use super::super::failure::{EngineFailure, QUICK, call};
use super::super::status::Looked;
use super::launch::{shared_labels, volume_mount};
use super::program;

/// How long a filling may take altogether, others' included.
const PATIENCE: Duration = Duration::from_secs(60);

/// A filler that is older than this was left behind: filling takes a fraction of a second.
const STALE: Duration = Duration::from_secs(20);

/// The age at which a lock is one that was left behind. Tests don't wait so long.
pub(super) fn stale_after() -> Duration {
    #[cfg(test)]
    return super::tests::STALE_AFTER
        .with(std::cell::Cell::get)
        .unwrap_or(STALE);
    #[cfg(not(test))]
    STALE
}

const PUT: Duration = Duration::from_secs(30);

impl DockerProvider {
    /// Makes sure that the program is whole in the volume that a created container has mounted. The container is looked
    /// into through the engine and not started.
    pub(super) async fn provide_agent(
        &self,
        container_id: &str,
        image: &str,
        platform: &str,
    ) -> Result<(), EngineFailure> {
        let deadline = Instant::now() + PATIENCE;
        let mut pause = Duration::from_millis(10);
        loop {
            if self.agent_is_whole(container_id).await? {
                return Ok(());
            }
            if self.try_fill(image, platform).await? {
                continue;
            }
            if Instant::now() >= deadline {
                return Err(EngineFailure::Deadline(PATIENCE));
            }
            // Somebody else fills it.
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(200));
        }
    }

    /// Says whether the program's folder is one. A link there would have led the mount to another place, over what the
    /// image has.
    pub(super) async fn agent_has_its_place(&self, container: &str) -> Result<bool, EngineFailure> {
        let engine = self.reach().await?;
        let options = ContainerArchiveInfoOptionsBuilder::new()
            .path(program::FOLDER)
            .build();
        let stat = call(
            QUICK,
            engine.client.get_container_archive_info(container, Some(options)),
        )
        .await?;
        Ok(stat.link_target.is_empty())
    }

    /// Compares the size: a filling that was interrupted leaves a shorter file. What is in it proves the agent's hello.
    async fn agent_is_whole(&self, container: &str) -> Result<bool, EngineFailure> {
        let engine = self.reach().await?;
        let options = ContainerArchiveInfoOptionsBuilder::new()
            .path(program::PROGRAM)
            .build();
        match call(
            QUICK,
            engine.client.get_container_archive_info(container, Some(options)),
        )
        .await
        {
            Ok(stat) => Ok(u64::try_from(stat.size) == Ok(program::size_bytes())),
            Err(failure) if failure.is_status(404) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Fills the volume unless somebody else does. Says whether it is worth looking again at once.
    async fn try_fill(&self, image: &str, platform: &str) -> Result<bool, EngineFailure> {
        let engine = self.reach().await?;
        let name = program::filler();
        let options = CreateContainerOptionsBuilder::new()
            .name(&name)
            .platform(platform)
            .build();
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            // Never started, but an engine wants a program.
            entrypoint: Some(vec![program::PROGRAM.to_owned()]),
            labels: Some(shared_labels()),
            host_config: Some(HostConfig {
                mounts: Some(vec![volume_mount(false)]),
                network_mode: Some("none".to_owned()),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let filler = match call(QUICK, engine.client.create_container(Some(options), body)).await {
            Ok(created) => Filler {
                provider: self.clone(),
                container_id: Some(created.id),
            },
            Err(failure) if failure.is_status(409) => {
                self.remove_stale(&name).await?;
                return Ok(false);
            }
            Err(failure) => return Err(failure),
        };
        let outcome = self.fill(filler.container_id.as_deref().unwrap_or(&name)).await;
        filler.remove().await;
        outcome.map(|()| true)
    }

    async fn fill(&self, filler: &str) -> Result<(), EngineFailure> {
        // Whoever held the lock before may have finished; a whole file may be running somewhere.
        if self.agent_is_whole(filler).await? {
            return Ok(());
        }
        let engine = self.reach().await?;
        let archive = program::archive().map_err(|error| EngineFailure::Unreadable {
            text: error.to_string(),
        })?;
        let options = UploadToContainerOptionsBuilder::new()
            .path(program::FOLDER)
            .build();
        call(
            PUT,
            engine
                .client
                .upload_to_container(filler, Some(options), bollard::body_full(archive)),
        )
        .await?;
        if self.agent_is_whole(filler).await? {
            tracing::info!(
                volume = program::volume(),
                "the resident agent was put on the engine"
            );
            return Ok(());
        }
        // Engines answer 200 also for archives that they did not unpack (bugs B18).
        Err(EngineFailure::Unreadable {
            text: "the program is not whole after it was sent".to_owned(),
        })
    }

    /// Removes a lock that was left behind.
    async fn remove_stale(&self, name: &str) -> Result<(), EngineFailure> {
        let Looked::There(inspected) = self.look(name).await? else {
            return Ok(());
        };
        let engine = self.reach().await?;
        let age = inspected.created.as_deref().and_then(|created| {
            let created: EngineTime = created.parse().ok()?;
            Some(engine.engine_now().since(created))
        });
        if age.is_some_and(|age| age > stale_after())
            && let Some(container_id) = inspected.id
        {
            tracing::debug!(%container_id, "removing what an interrupted filling has left");
            // By its id: the name may be somebody else's new lock by now.
            let removed = self.remove_container(&container_id).await;
            return removed.map_err(|error| EngineFailure::Transport {
                text: error.to_string(),
            });
        }
        Ok(())
    }

    pub(super) async fn reach(&self) -> Result<&Engine, EngineFailure> {
        self.engine().await.map_err(|error| EngineFailure::Transport {
            text: error.to_string(),
        })
    }
}

/// Removes the lock also when the filling is cut off.
struct Filler {
    provider: DockerProvider,
    container_id: Option<String>,
}

impl Filler {
    async fn remove(mut self) {
        if let Some(container_id) = &self.container_id
            && self.provider.remove_container(container_id).await.is_ok()
        {
            self.container_id = None;
        }
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        let Some(container_id) = self.container_id.take() else {
            return;
        };
        let provider = self.provider.clone();
        self.provider
            .reaper()
            .submit("remove the lock of the agent's volume", async move {
                if let Err(error) = provider.remove_container(&container_id).await {
                    tracing::warn!(%container_id, %error, "a lock was left behind; it ages out");
                }
            });
    }
}
