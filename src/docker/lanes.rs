//! How many calls of each class may be in flight. Close, kill, status and inspect have no limit: they never wait behind
//! commands.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

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
    /// How many slots the create lane has.
    creates: AtomicUsize,
    /// Done when the create lane has the limit of its engine.
    adapted: Once,
}

impl Lanes {
    pub(super) fn new(config: &LaneConfig, exec_concurrency: usize) -> Self {
        // Until an engine is known it is taken for one like this machine.
        let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let creates = config.create.unwrap_or_else(|| creates_for(processors));
        let adapted = Once::new();
        if config.create.is_some() {
            adapted.call_once(|| {});
        }
        Self {
            creates: AtomicUsize::new(creates),
            adapted,
            exec: slots(exec_concurrency),
            create: slots(creates),
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

    /// Gives the create lane the limit that fits an engine with so many processors, once, and unless one is configured.
    pub(super) fn adapt_to(&self, processors: Option<u32>) {
        let Some(processors) = processors.and_then(|count| usize::try_from(count).ok()) else {
            return;
        };
        self.adapted.call_once(|| {
            let target = creates_for(processors);
            let before = self.creates.swap(target, Ordering::Relaxed);
            if target > before {
                self.create.add_permits(target - before);
            } else {
                self.create.forget_permits(before - target);
            }
        });
    }

    /// How many creates may be in flight, and how many more may be begun now.
    pub(super) fn creates(&self) -> (usize, usize) {
        (
            self.creates.load(Ordering::Relaxed),
            self.create.available_permits(),
        )
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

/// Creates are bound by the engine's processor time: more than two a processor only wait for each other.
fn creates_for(processors: usize) -> usize {
    (2 * processors).clamp(4, 64)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_create_lane_has_two_slots_for_each_processor_of_its_engine() {
        let lanes = Lanes::new(&LaneConfig::default(), 1);
        for (processors, expected) in [(Some(32), 64), (Some(2), 64)] {
            lanes.adapt_to(processors);
            assert_eq!(
                lanes.creates(),
                (expected, expected),
                "only the first time counts"
            );
        }
        let small = Lanes::new(&LaneConfig::default(), 1);
        small.adapt_to(None);
        small.adapt_to(Some(1));
        assert_eq!(small.creates(), (4, 4));
        let config = LaneConfig {
            create: Some(3),
            ..LaneConfig::default()
        };
        let configured = Lanes::new(&config, 1);
        configured.adapt_to(Some(32));
        assert_eq!(configured.creates(), (3, 3));
    }
}
