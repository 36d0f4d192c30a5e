//! How many calls of each class may be in flight. Close, kill, status and inspect of containers have no limit: they never
//! wait behind commands.

mod creates;
mod tuning;

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Error, ErrorKind, Operation, Result};

use super::config::LaneConfig;

use creates::{CreateSlot, Creates};

/// A class of calls that compete for slots with each other and with no other class. Creating and starting containers is
/// one more, see [`Lanes::create_slot`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Running commands.
    Exec,
    /// Archives in and out.
    Transfer,
    /// Pulling images.
    Pull,
    /// Making and removing networks.
    Network,
    /// Removing the containers of projects. Those of sandboxes wait for nobody.
    Removal,
}

/// The slots of all lanes of one provider.
#[derive(Debug)]
pub(super) struct Lanes {
    exec: Arc<Semaphore>,
    create: Arc<Creates>,
    transfer: Arc<Semaphore>,
    pull: Arc<Semaphore>,
    network: Arc<Semaphore>,
    removal: Arc<Semaphore>,
}

/// How many networks are made and removed at once. An engine works on one after the other: with more in flight the last
/// ones run out of time while they wait there.
const NETWORKS: usize = 4;

/// How many containers of projects are removed at once: 64 projects that go down together would have the last of them wait
/// at the engine for longer than a removal may take.
const REMOVALS: usize = 16;

impl Lanes {
    pub(super) fn new(config: &LaneConfig, exec_concurrency: usize) -> Self {
        Self {
            exec: slots(exec_concurrency),
            create: Creates::new(config.create),
            transfer: slots(config.transfer),
            pull: slots(config.pull),
            network: slots(NETWORKS),
            removal: slots(REMOVALS),
        }
    }

    /// Waits for a slot. Dropping the future leaves the queue.
    pub(super) async fn slot(&self, lane: Lane) -> Result<OwnedSemaphorePermit> {
        Arc::clone(self.lane(lane))
            .acquire_owned()
            .await
            .map_err(|_| closed())
    }

    /// Waits for a slot to create or start a container. Dropping the future leaves the queue.
    pub(super) async fn create_slot(&self) -> Result<CreateSlot> {
        self.create.slot().await
    }

    /// Gives the create lane the limit that fits an engine with so many processors, once, and unless one is configured.
    pub(super) fn adapt_to(&self, processors: Option<u32>) {
        if let Some(processors) = processors.and_then(|count| usize::try_from(count).ok()) {
            self.create.adapt_to(processors);
        }
    }

    /// How many creates may be in flight, and how many more may be begun now.
    pub(super) fn creates(&self) -> (usize, usize) {
        self.create.report()
    }

    fn lane(&self, lane: Lane) -> &Arc<Semaphore> {
        match lane {
            Lane::Exec => &self.exec,
            Lane::Transfer => &self.transfer,
            Lane::Pull => &self.pull,
            Lane::Network => &self.network,
            Lane::Removal => &self.removal,
        }
    }
}

fn slots(limit: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)))
}

fn closed() -> Error {
    Error::new(
        ErrorKind::Internal,
        Operation::Connect,
        "the provider's lanes are closed",
    )
}
