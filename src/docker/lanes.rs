//! How many calls of each class may be in flight. Close, kill, status and inspect have no limit: they never wait behind
//! commands.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

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
    exec: Semaphore,
    create: Semaphore,
    transfer: Semaphore,
    pull: Semaphore,
}

impl Lanes {
    pub(super) fn new(config: &LaneConfig, exec_concurrency: usize) -> Self {
        Self {
            exec: Semaphore::new(exec_concurrency),
            create: Semaphore::new(config.create),
            transfer: Semaphore::new(config.transfer),
            pull: Semaphore::new(config.pull),
        }
    }

    /// Waits for a slot. Dropping the future leaves the queue.
    pub(super) async fn slot(&self, lane: Lane) -> Result<SemaphorePermit<'_>> {
        self.lane(lane).acquire().await.map_err(|_| closed())
    }

    /// Waits for a slot, but not longer than this.
    pub(super) async fn slot_within(
        &self,
        lane: Lane,
        timeout: Duration,
        operation: Operation,
    ) -> Result<SemaphorePermit<'_>> {
        match tokio::time::timeout(timeout, self.slot(lane)).await {
            Ok(slot) => slot,
            Err(_) => Err(Error::new(
                ErrorKind::Timeout,
                operation,
                format!("waited {timeout:?} for a free slot of the {lane:?} lane"),
            )
            .with_retryable(true)
            .with_hint("raise the lane's limit in the provider's configuration, or start less at once")),
        }
    }

    fn lane(&self, lane: Lane) -> &Semaphore {
        match lane {
            Lane::Exec => &self.exec,
            Lane::Create => &self.create,
            Lane::Transfer => &self.transfer,
            Lane::Pull => &self.pull,
        }
    }
}

fn closed() -> Error {
    Error::new(
        ErrorKind::Internal,
        Operation::Connect,
        "the provider's lanes are closed",
    )
}
