//! Waiting until a container is healthy: by probes of our own that start at once, and by what the engine says
//! (contract D21).

use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Error, Operation, Result};
use crate::spec::container::{HealthTest, HealthcheckSpec};
use crate::spec::{ExecOptions, ExecResult, SandboxHealth};

use super::failure::probe_of;
use super::start::Start;

/// What the engine takes where a check does not say.
pub(super) const INTERVAL: Duration = Duration::from_secs(30);
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);
pub(super) const RETRIES: u32 = 3;

/// The least pause between two probes of our own.
pub(super) const LEAST_PAUSE: Duration = Duration::from_millis(20);

/// Up to here a pause is not shortened: what gets healthy is seen as healthy this much later at most.
const SHORT_PAUSE: Duration = Duration::from_millis(100);

/// What the engine itself may be late by.
const SLACK: Duration = Duration::from_secs(15);

/// Why a container will not be healthy.
pub(super) enum Unhealthy {
    /// It ended.
    Ended(i64),
    /// It is gone.
    Removed,
    /// The engine says so.
    SaidSo,
    /// It ends again and again.
    Restarts(u32),
    /// It should have been one or the other by now.
    Undecided(Duration),
}

/// How often a container may fail before it counts as one that never stays up.
pub(super) const MOST_FAILURES: u32 = 3;

impl Start<'_> {
    /// Waits until a container is healthy. `restarts` says whether the engine starts it again when it ends.
    pub(super) async fn wait_healthy(
        &self,
        service: usize,
        container: &str,
        check: &HealthcheckSpec,
        restarts: bool,
    ) -> Result<(), Unhealthy> {
        let budget = budget(check);
        let by_engine = self.watch.until(container, |seen| {
            if seen.is_removed {
                return Some(Err(Unhealthy::Removed));
            }
            if seen.failures >= MOST_FAILURES && restarts {
                return Some(Err(Unhealthy::Restarts(seen.failures)));
            }
            match (seen.ended, seen.health) {
                (Some(code), _) if !restarts => Some(Err(Unhealthy::Ended(code))),
                (_, Some(SandboxHealth::Healthy)) => Some(Ok(())),
                (_, Some(SandboxHealth::Unhealthy)) => Some(Err(Unhealthy::SaidSo)),
                _ => None,
            }
        });
        tokio::select! {
            biased;
            decided = by_engine => decided,
            () = self.probe_until_healthy(service, container, check) => Ok(()),
            () = tokio::time::sleep(budget) => Err(Unhealthy::Undecided(budget)),
        }
    }

    /// Probes until one passes. Failures count for nothing: those that do are the engine's.
    async fn probe_until_healthy(&self, service: usize, container: &str, check: &HealthcheckSpec) {
        let began = Instant::now();
        loop {
            match self.probe(service, container, check).await {
                Ok(result) if result.is_success() => return,
                Ok(result) => self.board.probed(service, probe_of(&result)),
                Err(error) => tracing::debug!(%error, "a probe could not be made"),
            }
            tokio::time::sleep(pause(began.elapsed(), self.longest_pause(check))).await;
        }
    }

    async fn probe(&self, service: usize, container: &str, check: &HealthcheckSpec) -> Result<ExecResult> {
        let command = match &check.test {
            HealthTest::Command(words) => words.clone(),
            HealthTest::Shell(line) => vec!["/bin/sh".to_owned(), "-c".to_owned(), line.clone()],
            HealthTest::Inherit | HealthTest::Disabled => {
                return Err(Error::invalid(Operation::ComposeUp, "there is no check to run"));
            }
        };
        let handle = self.crew.handle(container, service).await?;
        let options = ExecOptions::new(command).with_timeout(check.timeout.unwrap_or(TIMEOUT));
        self.crew.provider.exec(&handle, options).await
    }
}

impl Start<'_> {
    fn longest_pause(&self, check: &HealthcheckSpec) -> Duration {
        let interval = check.interval.unwrap_or(INTERVAL);
        self.poll_interval
            .map_or(interval, |longest| longest.min(interval))
            .max(LEAST_PAUSE)
    }
}

/// The longer it takes, the rarer the probes, but never rarer than the engine's own.
pub(super) fn pause(elapsed: Duration, longest: Duration) -> Duration {
    (elapsed / 10)
        .clamp(LEAST_PAUSE, elapsed.max(SHORT_PAUSE))
        .min(longest)
}

/// By then the engine has decided (bugs B40).
fn budget(check: &HealthcheckSpec) -> Duration {
    let once = check.interval.unwrap_or(INTERVAL) + check.timeout.unwrap_or(TIMEOUT);
    let retries = check.retries.unwrap_or(RETRIES).saturating_add(1);
    check
        .start_period
        .unwrap_or_default()
        .saturating_add(once.saturating_mul(retries))
        .saturating_add(SLACK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check() -> HealthcheckSpec {
        HealthcheckSpec {
            interval: Some(Duration::from_secs(1)),
            timeout: Some(Duration::from_secs(2)),
            retries: Some(5),
            start_period: Some(Duration::from_secs(60)),
            ..HealthcheckSpec::default()
        }
    }

    #[test]
    fn d21_pauses_grow_with_the_time_and_stay_within_the_interval() {
        let at = |elapsed: u64, interval| {
            pause(Duration::from_millis(elapsed), Duration::from_millis(interval)).as_millis()
        };
        assert_eq!(at(0, 2000), 20);
        assert_eq!(at(1000, 2000), 100);
        assert_eq!(at(5000, 2000), 500);
        assert_eq!(at(60_000, 2000), 2000);
        assert_eq!(at(60_000, 30_000), 6000);
        assert_eq!(at(60_000, 20), 20);
    }

    #[test]
    fn b40_the_budget_holds_the_start_period_and_every_retry() {
        let least = Duration::from_secs(60) + 5 * Duration::from_secs(3);
        assert!(budget(&check()) >= least);
        assert!(budget(&HealthcheckSpec::default()) >= Duration::from_secs(180));
    }
}
