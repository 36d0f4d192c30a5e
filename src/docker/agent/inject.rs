//! Getting the agent's program into the volume that all sandboxes of an engine share: once, whole, and never rewritten.

use std::time::Duration;

use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{
    ContainerArchiveInfoOptionsBuilder, CreateContainerOptionsBuilder, UploadToContainerOptionsBuilder,
};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::DockerProvider;
use super::super::connect::{Engine, EngineTime};
use super::super::failure::{EngineFailure, QUICK, call};
use super::super::owner::{Keep, Stamp, kind};
use super::super::status::Looked;
use super::launch::volume_mount;
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
            let tried = tokio::time::timeout_at(deadline, self.try_fill(image, platform)).await;
            if tried.map_err(|_| EngineFailure::Deadline(PATIENCE))?? {
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
    ///
    /// Where the caller is cut off the filling goes on: a lock whose create was cut off would be nobody's.
    async fn try_fill(&self, image: &str, platform: &str) -> Result<bool, EngineFailure> {
        let engine = self.reach().await?;
        let name = program::filler();
        let lease = &self.config().lease;
        let created = engine.engine_now();
        let stamp = Stamp {
            kind: kind::SHARED,
            created,
            expires: None,
            lease: created.plus(lease.length),
            renewal: lease.renewal,
            project: None,
            keep: Keep::No,
        };
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            // Never started, but an engine wants a program.
            entrypoint: Some(vec![program::PROGRAM.to_owned()]),
            labels: Some(stamp.labels()),
            host_config: Some(HostConfig {
                mounts: Some(vec![volume_mount(false)]),
                network_mode: Some("none".to_owned()),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptionsBuilder::new()
            .name(&name)
            .platform(platform)
            .build();
        let (answer, reply) = oneshot::channel();
        let (provider, engine, stale_after) = (self.clone(), engine.clone(), stale_after());
        self.reaper().submit("fill the volume of the agent", async move {
            let outcome = match call(PATIENCE, engine.client.create_container(Some(options), body)).await {
                Ok(created) => provider.fill_and_unlock(&created.id).await.map(|()| true),
                Err(failure) if failure.is_status(409) => {
                    provider.remove_stale(&name, stale_after).await.map(|()| false)
                }
                Err(failure) => Err(failure),
            };
            // Nobody may be waiting for it any more.
            let _ = answer.send(outcome);
        });
        reply.await.unwrap_or_else(|_| {
            Err(EngineFailure::Transport {
                text: "the filling of the agent's volume was given up".to_owned(),
            })
        })
    }

    async fn fill_and_unlock(&self, filler: &str) -> Result<(), EngineFailure> {
        let outcome = self.fill(filler).await;
        if let Err(error) = self.remove_container(filler).await {
            tracing::warn!(%filler, %error, "a lock was left behind; it ages out");
        }
        outcome
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
    async fn remove_stale(&self, name: &str, after: Duration) -> Result<(), EngineFailure> {
        let Looked::There(inspected) = self.look(name).await? else {
            return Ok(());
        };
        let engine = self.reach().await?;
        let age = inspected.created.as_deref().and_then(|created| {
            let created: EngineTime = created.parse().ok()?;
            Some(engine.engine_now().since(created))
        });
        if age.is_some_and(|age| age > after)
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
