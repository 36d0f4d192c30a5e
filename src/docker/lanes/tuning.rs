//! How many creates an engine is given at once, found by trying: pure, and tested against models of engines.
//!
//! Creates are bound by processor time of the engine as a rule: more in flight than it can work on make no more in a
//! second, they only wait for each other there. How many it can work on depends on its machine, its storage and what
//! else it does. So one more or one less is tried now and then, for a round of creates, and kept where it pays.

use std::ops::RangeInclusive;

/// One more in flight has to make so many times as many creates in a second.
const GAIN: f64 = 1.08;

/// One less in flight, which makes each create quicker, may make so many times as many in a second.
const LOSS: f64 = 0.97;

/// How many rounds nothing is tried after a try that did not pay.
const REST: u32 = 4;

/// The limit, and what is being tried.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tuning {
    limit: usize,
    bounds: RangeInclusive<usize>,
    step: Step,
    /// What is tried next.
    next: Step,
    /// Creates in a second before the step.
    rate: f64,
    rest: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Hold,
    Up,
    Down,
}

impl Tuning {
    /// Two for each processor of the engine to begin with, at least 4; never fewer than it has processors, nor more than
    /// four for each.
    pub(super) fn new(processors: usize) -> Self {
        let processors = processors.clamp(1, 32);
        Self {
            limit: (2 * processors).max(4),
            bounds: processors.max(2)..=(4 * processors).max(8),
            step: Step::Hold,
            next: Step::Up,
            rate: 0.0,
            rest: 0,
        }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// How many creates are a round: each slot is used twice.
    pub(super) fn round(&self) -> usize {
        2 * self.limit
    }

    /// A round is over, in which all slots were in use and so many creates were made in a second. Gives the next limit.
    pub(super) fn after_round(&mut self, rate: f64) -> usize {
        let pays = match self.step {
            Step::Hold => true,
            Step::Up => rate >= self.rate * GAIN,
            Step::Down => rate >= self.rate * LOSS,
        };
        match self.step {
            Step::Hold if self.rest > 0 => self.rest -= 1,
            Step::Hold => self.go(self.next, rate),
            step if pays => self.go(step, rate),
            step => {
                let (back, other) = if step == Step::Up {
                    (Step::Down, Step::Down)
                } else {
                    (Step::Up, Step::Up)
                };
                self.go(back, rate);
                self.step = Step::Hold;
                self.next = other;
                self.rest = REST;
            }
        }
        self.limit
    }

    fn go(&mut self, step: Step, rate: f64) {
        let wanted = match step {
            Step::Hold => self.limit,
            Step::Up => self.limit + 1,
            Step::Down => self.limit - 1,
        };
        if self.bounds.contains(&wanted) {
            self.limit = wanted;
            self.step = step;
        } else {
            // At the end of what is allowed: the other way is tried next.
            self.step = Step::Hold;
            self.next = if step == Step::Up { Step::Down } else { Step::Up };
            self.rest = REST;
        }
        self.rate = rate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All limits of some rounds with an engine that makes so many creates in a second with so many in flight.
    fn limits(processors: usize, engine: impl Fn(f64) -> f64) -> Vec<usize> {
        let mut tuning = Tuning::new(processors);
        (0..400)
            .map(|_| {
                #[expect(clippy::cast_precision_loss, reason = "small numbers")]
                let rate = engine(tuning.limit() as f64);
                tuning.after_round(rate)
            })
            .collect()
    }

    #[track_caller]
    fn stays_in(limits: &[usize], range: RangeInclusive<usize>) {
        let last = &limits[200..];
        assert!(last.iter().all(|limit| range.contains(limit)), "{last:?}");
    }

    #[test]
    fn the_create_lane_begins_with_two_slots_for_each_processor_of_its_engine() {
        for (processors, limit) in [(0, 4), (1, 4), (2, 4), (8, 16), (32, 64), (1000, 64)] {
            assert_eq!(Tuning::new(processors).limit(), limit, "{processors}");
        }
    }

    #[test]
    fn an_engine_that_is_bound_by_its_processors_is_given_what_it_can_work_on() {
        // Half of a create's time is waiting: two processors work on four at once.
        stays_in(&limits(2, |flying| (flying / 0.5).min(8.0)), 3..=5);
        // Nothing is waited for: one for each processor is as quick.
        stays_in(&limits(4, |flying| (flying / 0.5).min(8.0)), 4..=5);
    }

    #[test]
    fn an_engine_that_waits_for_its_storage_is_given_more() {
        stays_in(&limits(2, |flying| flying / 0.5), 7..=8);
        stays_in(&limits(2, |flying| (flying / 0.5).min(12.0)), 5..=7);
    }

    #[test]
    fn an_engine_that_suffers_from_many_is_given_fewer() {
        stays_in(&limits(4, |flying| 10.0 - flying), 4..=5);
    }

    #[test]
    fn whatever_is_measured_the_limit_keeps_its_bounds() {
        let mut tuning = Tuning::new(2);
        for round in 0..1000_u32 {
            let rate = [0.0, f64::INFINITY, f64::NAN, 1.0, 1e9, -1.0][(round * 7 % 6) as usize];
            let limit = tuning.after_round(rate);
            assert!((2..=8).contains(&limit), "{limit}");
        }
    }
}
