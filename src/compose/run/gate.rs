//! Waiting for other services: what they must have reached, and what becomes of those that do not.

use crate::compose::model::DependencyCondition;
use crate::compose::plan::DependencyStep;
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::container::RestartPolicy;

use super::board::Stage;
use super::crew::Crew;
use super::health::{MOST_FAILURES, Unhealthy};
use super::progress::{ComposeEvent, ServiceProgress};
use super::start::Start;

impl Start<'_> {
    /// Waits until a dependency has reached what it must. One that is not required only costs a warning.
    pub(super) async fn wait_for(&self, service: usize, dependency: &DependencyStep) -> Result<()> {
        let Some(other) = self.index_of(&dependency.service) else {
            return Ok(());
        };
        // One that is scaled to nothing is not waited for.
        if self.crew.plan.services[other].containers.is_empty() {
            return Ok(());
        }
        self.waits(service, Some(other));
        let reached = self.reached(service, other, dependency.condition).await;
        self.waits(service, None);
        match reached {
            Err(error) if !dependency.required => {
                let name = &self.crew.plan.services[service].name;
                let text = format!("service `{name}` goes on without `{}`", dependency.service);
                // Of one that has failed itself the reason has been told.
                let text = match self.stage_at_least(other, Stage::Planned).await {
                    Stage::Failed => format!("{text}, which failed"),
                    _ => format!("{text}: {}", error.report()),
                };
                self.crew.say(&ComposeEvent::Warning(text));
                Ok(())
            }
            reached => reached,
        }
    }

    async fn reached(&self, service: usize, other: usize, condition: DependencyCondition) -> Result<()> {
        let wanted = match condition {
            DependencyCondition::Healthy => Stage::NoCheck,
            DependencyCondition::Started | DependencyCondition::CompletedSuccessfully => Stage::Started,
        };
        let stage = self.stage_at_least(other, wanted).await;
        if stage == Stage::Failed {
            return Err(self.gone_wrong(service, other));
        }
        match condition {
            DependencyCondition::Healthy if stage == Stage::NoCheck => Err(self.no_check(other)),
            DependencyCondition::Started | DependencyCondition::Healthy => Ok(()),
            DependencyCondition::CompletedSuccessfully => self.completed(other).await,
        }
    }

    /// Waits until every container of a service has ended with 0.
    async fn completed(&self, other: usize) -> Result<()> {
        for container in self.crew.ids_of_service(other) {
            let restart = self.restart_of(other);
            let code = self
                .watch
                .until(&container, |seen| match seen.ended {
                    _ if seen.is_removed => Some(None),
                    // A failure that the engine tries again is none yet.
                    Some(code) if code != 0 && may_restart(restart, seen.failures) => None,
                    Some(code) => Some(Some(code)),
                    None => None,
                })
                .await;
            match code {
                Some(0) => {}
                Some(code) => {
                    let what = format!("did not complete successfully: it exited with {code}");
                    return Err(self.crew.service_error(other, &container, &what).await);
                }
                None => {
                    return Err(self
                        .crew
                        .service_error(other, &container, "was removed by somebody else")
                        .await);
                }
            }
        }
        self.crew.say_service(other, ServiceProgress::Completed);
        Ok(())
    }

    fn gone_wrong(&self, service: usize, other: usize) -> Error {
        let services = &self.crew.plan.services;
        Error::new(
            ErrorKind::NotReady,
            Operation::ComposeUp,
            format!(
                "service `{}` needs `{}`, which failed",
                services[service].name, services[other].name
            ),
        )
    }

    fn no_check(&self, other: usize) -> Error {
        let name = &self.crew.plan.services[other].name;
        Error::new(
            ErrorKind::InvalidArgument,
            Operation::ComposeUp,
            format!("service `{name}` is to be healthy, but neither it nor its image has a health check"),
        )
        .with_hint("give it a `healthcheck`, or wait for `service_started`")
    }

    /// How the first container of a service is started again; all of one service are alike.
    pub(super) fn restart_of(&self, service: usize) -> RestartPolicy {
        let containers = &self.crew.plan.services[service].containers;
        containers
            .first()
            .map(|container| container.spec.restart)
            .unwrap_or_default()
    }
}

/// Whether the engine starts a container again that failed this often.
pub(super) fn may_restart(policy: RestartPolicy, failures: u32) -> bool {
    match policy {
        RestartPolicy::No => false,
        RestartPolicy::Always | RestartPolicy::UnlessStopped => failures < MOST_FAILURES,
        RestartPolicy::OnFailure { max_retries } => {
            failures <= max_retries.unwrap_or(u32::MAX).min(MOST_FAILURES - 1)
        }
    }
}

impl Crew {
    pub(super) async fn unhealthy_error(&self, service: usize, container: &str, why: Unhealthy) -> Error {
        let probes_tell = matches!(why, Unhealthy::SaidSo | Unhealthy::Undecided(_));
        let what = match why {
            Unhealthy::Ended(code) => format!("exited with {code} before it was healthy"),
            Unhealthy::Removed => "was removed by somebody else".to_owned(),
            Unhealthy::SaidSo => "is unhealthy".to_owned(),
            Unhealthy::Restarts(count) => format!("has failed {count} times and is started again and again"),
            Unhealthy::Undecided(budget) => {
                format!(
                    "was neither healthy nor unhealthy within {budget:?}, by which its health check had ended"
                )
            }
        };
        if probes_tell {
            return self.health_error(service, container, &what).await;
        }
        self.service_error(service, container, &what).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b22_a_restart_loop_is_told_from_a_failure_that_is_tried_again() {
        let on_failure = |max_retries| RestartPolicy::OnFailure { max_retries };
        assert!(!may_restart(RestartPolicy::No, 1));
        assert!(may_restart(RestartPolicy::Always, 1));
        assert!(!may_restart(RestartPolicy::Always, MOST_FAILURES));
        assert!(may_restart(on_failure(Some(1)), 1));
        assert!(!may_restart(on_failure(Some(1)), 2));
        assert!(!may_restart(on_failure(None), MOST_FAILURES));
    }
}
