//! The health of a service by commands of ours alone (contract 4.6, D21).

use std::net::IpAddr;

use tokio::time::Instant;

use crate::compose::plan::Check;
use crate::error::Result;
use crate::spec::ExecOptions;
use crate::spec::container::HealthProbe;

use super::super::failure::probe_of;
use super::super::health::{LEAST_PAUSE, pause};
use super::super::progress::ServiceProgress;
use super::start::GenericStart;

impl GenericStart<'_> {
    /// Waits until a service is healthy. Says whether it is: one that only does something and ends need not be.
    pub(super) async fn wait_healthy(
        &self,
        service: usize,
        check: &Check,
        addresses: &[IpAddr],
    ) -> Result<bool> {
        let crew = self.crew;
        let ended = async { crew.exit_code(service, self.ends.of(service).await).await };
        tokio::select! {
            biased;
            ended = ended => {
                if ended.is_success() && crew.plan.services[service].is_one_shot {
                    return Ok(false);
                }
                let what = format!("{} before it was healthy", ended.told());
                Err(crew.failed(service, &what).await)
            }
            healthy = self.probe_until_healthy(service, check, addresses) => {
                if let Err(probe) = healthy {
                    return Err(crew.failed_with(service, "is unhealthy", Some(&probe)).await);
                }
                crew.say_service(service, ServiceProgress::Healthy);
                Ok(true)
            }
        }
    }

    /// Probes until one passes, or until as many have failed as may. The first and those that are an interval apart
    /// count, once the start period is over; those in between are only there to see it healthy soon. Gives back the last
    /// one that failed.
    async fn probe_until_healthy(
        &self,
        service: usize,
        check: &Check,
        addresses: &[IpAddr],
    ) -> Result<(), HealthProbe> {
        let began = Instant::now();
        let start_period = check.start_period;
        let mut due = began + start_period;
        let mut failures = 0;
        loop {
            let at = Instant::now();
            let Err(probe) = self.probe(service, check, addresses).await else {
                return Ok(());
            };
            self.board.probed(service, probe.clone());
            let now = Instant::now();
            if at >= due {
                failures += 1;
                due = now + check.interval;
                if failures >= check.retries {
                    return Err(probe);
                }
            }
            let elapsed = now - began;
            let mut longest = if elapsed < start_period {
                check.start_interval
            } else {
                check.interval
            };
            if let Some(given) = self.poll_interval {
                longest = longest.min(given);
            }
            let until_due = due.saturating_duration_since(now);
            tokio::time::sleep(pause(elapsed, longest.max(LEAST_PAUSE)).min(until_due)).await;
        }
    }

    async fn probe(&self, service: usize, check: &Check, addresses: &[IpAddr]) -> Result<(), HealthProbe> {
        let not_made = |error: crate::error::Error| HealthProbe::new(None, error.report().to_string());
        let sandbox = self.crew.sandbox(service).map_err(not_made)?;
        let options = ExecOptions::new(check.argv.clone()).with_timeout(check.timeout);
        let options = self.crew.as_service(service, options, addresses);
        let result = sandbox.exec_with(options).await.map_err(|error| {
            tracing::debug!(%error, "a probe could not be made");
            not_made(error)
        })?;
        if result.is_success() {
            Ok(())
        } else {
            Err(probe_of(&result))
        }
    }
}
