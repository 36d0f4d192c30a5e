//! How many calls of each class may be in flight. Close, kill, status and inspect have no limit: they never wait behind
//! commands.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Error, ErrorKind, Operation, Result};

use super::config::LaneConfig;

/// A class of calls that compete for slots with each other and with no other class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Running commands.
    Exec,
    /// Creating and starting containers. The engine is bound by processor time here: more in flight only add latency.
    Create,
    /// Archives in and out.
    Transfer,
    /// Pulling images.
    Pull,
}

/// The slots of all lanes of one provider.
#[derive(Debug)]
pub(super) struct Lanes {
    exec: Arc<Semaphore>,
    create: Arc<Semaphore>,
    transfer: Arc<Semaphore>,
    pull: Arc<Semaphore>,
}

impl Lanes {
    pub(super) fn new(config: &LaneConfig, exec_concurrency: usize) -> Self {
        Self {
            exec: slots(exec_concurrency),
            create: slots(config.create),
            transfer: slots(config.transfer),
            pull: slots(config.pull),
        }
    }

    /// Waits for a slot. Dropping the future leaves the queue.
    pub(super) async fn slot(&self, lane: Lane) -> Result<OwnedSemaphorePermit> {
        Arc::clone(self.lane(lane))
            .acquire_owned()
            .await
            .map_err(|_| closed())
    }

    fn lane(&self, lane: Lane) -> &Arc<Semaphore> {
        match lane {
            Lane::Exec => &self.exec,
            Lane::Create => &self.create,
            Lane::Transfer => &self.transfer,
            Lane::Pull => &self.pull,
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
