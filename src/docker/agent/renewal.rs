//! The lease that the agent of a sandbox holds: without a word of its owner the sandbox ends by itself. The owner's
//! keeper renews it over the connection that is there anyway.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::super::{DockerProvider, Shared};
use super::link::{Link, Lost};
use super::resident::Resident;
use super::{apart, dial};

/// A sandbox whose agent wants to hear of its owner.
#[derive(Clone)]
pub(in crate::docker) struct Tended {
    /// Who connects again. A sandbox whose provider was dropped has the connection that it has.
    provider: Weak<Shared>,
    container_id: String,
    agent: Arc<Resident>,
}

impl Tended {
    /// None where no agent ends the sandbox.
    pub(in crate::docker) fn new(
        provider: &DockerProvider,
        container_id: &str,
        agent: &Arc<Resident>,
    ) -> Option<Self> {
        agent.is_main_process().then(|| Self {
            provider: provider.downgrade(),
            container_id: container_id.to_owned(),
            agent: Arc::clone(agent),
        })
    }

    /// Renews the lease over a connection that is there. False where there is none. Waits for nothing.
    pub(in crate::docker) fn renew_at_once(&self, lease: Duration) -> bool {
        matches!(self.agent.known(), Some(Ok(link)) if link.renew(lease))
    }

    /// Renews the lease over a new connection. What keeps it from that comes again with the next renewal.
    pub(in crate::docker) async fn renew(&self, lease: Duration) {
        let Some(provider) = self.provider.upgrade().map(|shared| DockerProvider { shared }) else {
            return;
        };
        match self.agent.link_for_renewal(&provider, &self.container_id).await {
            Ok(link) => {
                // The answer says that it has arrived, also where the connection is dropped now.
                let answer = link.renew(lease).then(|| link.ping());
                if let Some(answer) = answer {
                    let _gone = tokio::time::timeout(super::PATIENCE, answer).await.is_err();
                }
            }
            Err(Lost(why)) => {
                tracing::debug!(container_id = self.container_id, %why, "the lease of a sandbox was not renewed");
            }
        }
    }
}

impl std::fmt::Debug for Tended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tended")
            .field("container_id", &self.container_id)
            .finish_non_exhaustive()
    }
}

impl Resident {
    /// The connection, made where there is none; where commands go by the engine, one for this only.
    async fn link_for_renewal(
        &self,
        provider: &DockerProvider,
        container_id: &str,
    ) -> Result<Arc<Link>, Lost> {
        let _one_at_a_time = self.connecting.lock().await;
        match (self.known(), &self.launch) {
            (Some(Ok(link)), _) => Ok(link),
            (Some(Err(_)), Some(launch)) => {
                let (provider, id, launch) = (provider.clone(), container_id.to_owned(), launch.clone());
                let link = apart::run(async move { dial::connect(&provider, &id, &launch).await }).await?;
                Ok(Arc::new(link))
            }
            _ => self.connect(provider, container_id).await,
        }
    }
}
