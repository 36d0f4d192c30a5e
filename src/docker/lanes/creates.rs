//! The slots of the create lane, whose number follows what the engine is seen to make of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Result;

use super::closed;
use super::tuning::Tuning;

/// The slots, and how many there are to be.
#[derive(Debug)]
pub(super) struct Creates {
    slots: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limit: usize,
    /// Slots that are in use and to be given up when they are free.
    surplus: usize,
    /// None where the limit is configured.
    tuning: Option<Tuning>,
    /// The engine's processors are known.
    is_adapted: bool,
    /// The first create of the round ended then, and so many since.
    round: Option<(Instant, usize)>,
}

impl Creates {
    pub(super) fn new(configured: Option<usize>) -> Arc<Self> {
        // Until an engine is known it is taken for one like this machine.
        let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let tuning = Tuning::new(processors);
        let limit = configured.unwrap_or(tuning.limit()).min(Semaphore::MAX_PERMITS);
        Arc::new(Self {
            slots: Arc::new(Semaphore::new(limit)),
            state: Mutex::new(State {
                limit,
                surplus: 0,
                tuning: configured.is_none().then_some(tuning),
                is_adapted: configured.is_some(),
                round: None,
            }),
        })
    }

    /// Begins again for an engine with so many processors, once, and unless a limit is configured.
    pub(super) fn adapt_to(&self, processors: usize) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.is_adapted, true) {
            let tuning = Tuning::new(processors);
            self.set_limit(&mut state, tuning.limit());
            state.tuning = Some(tuning);
        }
    }

    /// How many may be in flight, and how many more may be begun now.
    pub(super) fn report(&self) -> (usize, usize) {
        (self.state().limit, self.slots.available_permits())
    }

    pub(super) async fn slot(self: &Arc<Self>) -> Result<CreateSlot> {
        let permit = Arc::clone(&self.slots).acquire_owned().await;
        Ok(CreateSlot {
            creates: Arc::clone(self),
            permit: Some(permit.map_err(|_| closed())?),
        })
    }

    fn set_limit(&self, state: &mut State, limit: usize) {
        let before = std::mem::replace(&mut state.limit, limit);
        if limit > before {
            let kept = state.surplus.min(limit - before);
            state.surplus -= kept;
            self.slots.add_permits(limit - before - kept);
        } else {
            let gone = self.slots.forget_permits(before - limit);
            state.surplus += before - limit - gone;
        }
    }

    /// A sandbox was made. Only rounds in which no slot was free say how many the engine makes at most.
    fn note_made(&self, now: Instant) {
        let mut state = self.state();
        let Some(round) = state.tuning.as_ref().map(Tuning::round) else {
            return;
        };
        if self.slots.available_permits() > 0 {
            state.round = None;
            return;
        }
        let (began, made) = *state.round.get_or_insert((now, 0));
        if made < round {
            state.round = Some((began, made + 1));
            return;
        }
        state.round = None;
        let seconds = now.saturating_duration_since(began).as_secs_f64();
        let Some(tuning) = &mut state.tuning else { return };
        #[expect(clippy::cast_precision_loss, reason = "a rate needs no exact number")]
        let limit = tuning.after_round(round as f64 / seconds.max(1e-6));
        if limit != state.limit {
            tracing::debug!(
                limit,
                before = state.limit,
                "how many creates are in flight at most"
            );
            self.set_limit(&mut state, limit);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slot of the create lane; its drop gives it back.
#[derive(Debug)]
pub(in crate::docker) struct CreateSlot {
    creates: Arc<Creates>,
    permit: Option<OwnedSemaphorePermit>,
}

impl CreateSlot {
    /// Gives it back after a sandbox was created and started.
    pub(in crate::docker) fn made(self) {
        self.creates.note_made(Instant::now());
    }
}

impl Drop for CreateSlot {
    fn drop(&mut self) {
        let mut state = self.creates.state();
        if state.surplus > 0
            && let Some(permit) = self.permit.take()
        {
            state.surplus -= 1;
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_create_lane_has_the_slots_that_fit_its_engine() {
        let creates = Creates::new(None);
        for (processors, expected) in [(32, 64), (2, 64)] {
            creates.adapt_to(processors);
            assert_eq!(
                creates.report(),
                (expected, expected),
                "only the first time counts"
            );
        }
        let small = Creates::new(None);
        small.adapt_to(1);
        assert_eq!(small.report(), (4, 4));
        let configured = Creates::new(Some(3));
        configured.adapt_to(32);
        assert_eq!(configured.report(), (3, 3));
    }

    #[tokio::test]
    async fn slots_in_use_are_given_up_when_they_are_free() {
        let creates = Creates::new(None);
        creates.adapt_to(32);
        let mut slots = Vec::new();
        for _ in 0..64 {
            slots.push(creates.slot().await.unwrap());
        }
        creates.set_limit(&mut creates.state(), 60);
        assert_eq!(creates.report(), (60, 0));
        // Two of the four are wanted again before they were given up.
        creates.set_limit(&mut creates.state(), 62);
        slots.truncate(61);
        assert_eq!(creates.report(), (62, 1));
        drop(slots);
        assert_eq!(creates.report(), (62, 62));
    }

    #[tokio::test]
    async fn full_rounds_change_the_limit_and_others_do_not() {
        let creates = Creates::new(None);
        creates.adapt_to(2);
        let began = Instant::now();
        let mut slots = Vec::new();
        for _ in 0..4 {
            slots.push(creates.slot().await.unwrap());
        }
        let after = |count: u32| began + Duration::from_millis(100) * count;
        for count in 0..9 {
            creates.note_made(after(count));
        }
        assert_eq!(creates.report(), (5, 1), "one more is tried");
        for count in 0..100 {
            creates.note_made(after(count));
        }
        assert_eq!(creates.report(), (5, 1), "a slot was free");
        let configured = Creates::new(Some(1));
        let _slot = configured.slot().await.unwrap();
        for count in 0..100 {
            configured.note_made(after(count));
        }
        assert_eq!(configured.report(), (1, 0));
    }
}
