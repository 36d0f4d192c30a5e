//! How far the services of a start are, and who waits for whom. Knows no provider: both ways of starting a project use it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::error::{Error, ErrorKind, Operation};
use crate::spec::container::HealthProbe;

use super::failure::told;

/// How far a service is, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Nothing of it is there.
    Planned,
    /// Its containers are there.
    Created,
    /// Its containers have been started.
    Started,
    /// It has no health check.
    NoCheck,
    /// It is healthy.
    Healthy,
    /// It failed, and may.
    Failed,
}

/// The services of one start, by their places in the plan.
#[derive(Debug)]
pub(super) struct Board {
    names: Vec<String>,
    stages: Vec<watch::Sender<Stage>>,
    /// Who waits for whom, for the text of a time-out.
    waiting: Mutex<BTreeMap<usize, BTreeSet<usize>>>,
    /// Which hook runs in whom, for the same.
    hooks: Mutex<BTreeMap<usize, String>>,
    /// The last probe of a service's health that failed, for the same.
    probes: Mutex<BTreeMap<usize, HealthProbe>>,
}

impl Board {
    pub(super) fn new(names: impl IntoIterator<Item = String>) -> Self {
        let names: Vec<String> = names.into_iter().collect();
        Self {
            stages: names.iter().map(|_| watch::Sender::new(Stage::Planned)).collect(),
            names,
            waiting: Mutex::default(),
            hooks: Mutex::default(),
            probes: Mutex::default(),
        }
    }

    pub(super) fn name(&self, service: usize) -> &str {
        &self.names[service]
    }

    pub(super) fn index_of(&self, service: &str) -> Option<usize> {
        self.names.iter().position(|name| name == service)
    }

    pub(super) fn reach(&self, service: usize, stage: Stage) {
        self.stages[service].send_replace(stage);
    }

    /// Waits until a service has come this far, and says how far it has.
    pub(super) async fn stage_at_least(&self, service: usize, wanted: Stage) -> Stage {
        let mut stage = self.stages[service].subscribe();
        match stage.wait_for(|&stage| stage >= wanted).await {
            Ok(stage) => *stage,
            // The sender lives as long as `self`.
            Err(_) => Stage::Failed,
        }
    }

    /// Notes that a service waits for another one, or for none any more.
    pub(super) fn waits(&self, service: usize, on: Option<usize>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match on {
            Some(other) => {
                waiting.entry(service).or_default().insert(other);
            }
            None => {
                waiting.remove(&service);
            }
        }
    }

    /// Notes that a hook runs in a service, or none any more.
    pub(super) fn runs(&self, service: usize, hook: Option<String>) {
        let mut hooks = self.hooks.lock().unwrap_or_else(PoisonError::into_inner);
        match hook {
            Some(hook) => hooks.insert(service, hook),
            None => hooks.remove(&service),
        };
    }

    /// Notes what a probe of a service's health has come to that failed.
    pub(super) fn probed(&self, service: usize, probe: HealthProbe) {
        let mut probes = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
        probes.insert(service, probe);
    }

    /// The services that hold the others up: those that are waited for and wait for nobody, and those not healthy yet.
    pub(super) fn holding_up(&self) -> Vec<usize> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |service: usize| waiting.get(&service).is_some_and(|others| !others.is_empty());
        let is_waited_for = |service: usize| waiting.values().any(|others| others.contains(&service));
        (0..self.names.len())
            .filter(|&service| !waits(service))
            .filter(|&service| is_waited_for(service) || *self.stages[service].borrow() == Stage::Started)
            .collect()
    }

    /// The error of a start that took too long: it says who waits for whom, and then what is told of those.
    pub(super) fn too_late(&self, project: &str, timeout: Duration, told: &str) -> Error {
        let behind: Vec<String> = (0..self.names.len())
            .filter(|service| *self.stages[*service].borrow() < Stage::NoCheck)
            .map(|service| self.state_of(service))
            .collect();
        let behind = if behind.is_empty() {
            "its images were not had".to_owned()
        } else {
            behind.join(", ")
        };
        Error::new(
            ErrorKind::Timeout,
            Operation::ComposeUp,
            format!("project `{project}` was not ready within {timeout:?}: {behind}{told}"),
        )
        .with_hint("raise the time-out (`--wait-timeout`)")
    }

    fn state_of(&self, service: usize) -> String {
        let name = &self.names[service];
        let hooks = self.hooks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hook) = hooks.get(&service) {
            return format!("the {hook} of `{name}` has not ended");
        }
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.get(&service).filter(|others| !others.is_empty()) {
            Some(others) => {
                let others: Vec<String> = others
                    .iter()
                    .map(|&other| format!("`{}`", self.names[other]))
                    .collect();
                format!("`{name}` waits for {}", others.join(" and "))
            }
            None if *self.stages[service].borrow() == Stage::Started => {
                let probes = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
                match probes.get(&service) {
                    Some(probe) => format!("`{name}` is not healthy ({})", told(probe)),
                    None => format!("`{name}` is not healthy"),
                }
            }
            None => format!("`{name}` is not started"),
        }
    }
}
