//! What runs in a service's sandbox, as whom, after what, and how its health is checked.

use std::time::Duration;

use super::{Refusals, Subject};
use crate::compose::ComposeDuration;
use crate::compose::model::{DependencyCondition, ExtensionValue, Healthcheck, Service};
use crate::compose::plan::DependencyStep;
use crate::provider::Capability;
use crate::spec::RuntimeRequirements;

/// A health check, with what the file does not say filled in (contract 4.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) argv: Vec<String>,
    pub(crate) timeout: Duration,
    pub(crate) interval: Duration,
    /// The interval within the start period.
    pub(crate) start_interval: Duration,
    pub(crate) start_period: Duration,
    /// How many failures make it unhealthy.
    pub(crate) retries: u64,
}

impl Default for Check {
    fn default() -> Self {
        Self {
            argv: Vec::new(),
            timeout: Duration::from_secs(30),
            interval: Duration::from_secs(30),
            start_interval: Duration::from_secs(5),
            start_period: Duration::ZERO,
            retries: 3,
        }
    }
}

/// The options of `x-sandbox`.
pub(super) struct SandboxOptions {
    pub(super) knows_names: bool,
    pub(super) resolve: Vec<String>,
}

impl Subject<'_> {
    /// The program: nothing of the image's own is known here.
    pub(super) fn argv(&self, refusals: &mut Refusals) -> Vec<String> {
        let given = self.planner.options.service_specs.get(self.name);
        let entrypoint = self.service.entrypoint.words();
        let command = self.service.command.words();
        let argv: Vec<String> = match (entrypoint, command, given) {
            (None, None, Some(given)) => given.entrypoint().to_vec(),
            _ => [entrypoint, command]
                .into_iter()
                .flatten()
                .flatten()
                .cloned()
                .collect(),
        };
        if argv.is_empty() {
            refusals.invalid(
                self.path("command"),
                "there is nothing to run: the image's own command is not known here, so the file must name one",
            );
        }
        argv
    }

    pub(super) fn user(&self, refusals: &mut Refusals) -> Option<String> {
        let user = &self.service.user;
        if user.contains(':') {
            refusals.unsupported(self.path("user"), "a user has no group here", None);
        }
        super::super::text(user)
    }

    pub(super) fn requirements(&self, refusals: &mut Refusals) -> Option<RuntimeRequirements> {
        let service = self.service;
        let mut requirements = RuntimeRequirements::new();
        requirements.cap_add.clone_from(&service.cap_add);
        requirements.shm_size = u64::try_from(service.shm_size.bytes())
            .ok()
            .filter(|&bytes| bytes > 0);
        if requirements == RuntimeRequirements::new() {
            return None;
        }
        let key = if service.cap_add.is_empty() {
            "shm_size"
        } else {
            "cap_add"
        };
        match self.provider.as_runtime_requirements() {
            None => lacks(self, key, Capability::RuntimeRequirements, refusals),
            Some(provider) => {
                if let Err(error) = provider.validate_runtime_requirements(&requirements) {
                    refusals.error(self.path(key), &error);
                }
            }
        }
        Some(requirements)
    }

    pub(super) fn dependencies(&self, refusals: &mut Refusals) -> Vec<DependencyStep> {
        let joined = self.service.network_mode.strip_prefix("service:");
        for (other, dependency) in &self.service.depends_on {
            let path = self.path("depends_on").key(other);
            if !dependency.required {
                let message = "every dependency is required here";
                refusals.unsupported(path.key("required"), message, None);
            }
            // The loader adds one with it to whom the network is of.
            if dependency.restart && joined != Some(other.as_str()) {
                let message = "a program that has ended is not started again here";
                refusals.unsupported(path.key("restart"), message, None);
            }
            let has_check = self.planner.project.services.get(other).is_some_and(has_check);
            if dependency.condition == DependencyCondition::Healthy && !has_check {
                let message = format!("service `{other}` is to be healthy, and has no health check");
                refusals.invalid(path.key("condition"), message);
            }
        }
        self.step.depends_on.clone()
    }

    pub(super) fn check(&self, refusals: &mut Refusals) -> Option<Check> {
        let given = self
            .service
            .healthcheck
            .as_ref()
            .filter(|_| has_check(self.service))?;
        let mut check = Check {
            argv: self.test(given, refusals),
            ..Check::default()
        };
        let mut time = |key: &str, value: Option<ComposeDuration>, into: &mut Duration, least: Duration| {
            let Some(value) = value else { return };
            match value.to_std().filter(|&duration| duration >= least) {
                Some(duration) => *into = duration,
                None => refusals.invalid(
                    self.path("healthcheck").key(key),
                    format!("`{value}` is too short"),
                ),
            }
        };
        let some = Duration::from_nanos(1);
        time("timeout", given.timeout, &mut check.timeout, some);
        time("interval", given.interval, &mut check.interval, some);
        time(
            "start_interval",
            given.start_interval,
            &mut check.start_interval,
            some,
        );
        time(
            "start_period",
            given.start_period,
            &mut check.start_period,
            Duration::ZERO,
        );
        match given.retries {
            None => {}
            Some(0) => refusals.invalid(self.path("healthcheck").key("retries"), "must be 1 or more"),
            Some(retries) => check.retries = retries,
        }
        Some(check)
    }

    fn test(&self, check: &Healthcheck, refusals: &mut Refusals) -> Vec<String> {
        let words = check.test.words();
        match (
            words.first().map(String::as_str),
            words.get(1..).unwrap_or_default(),
        ) {
            (Some("CMD"), program) if !program.is_empty() => program.to_vec(),
            (Some("CMD-SHELL"), [line]) => ["/bin/sh", "-c", line].map(str::to_owned).into(),
            _ => {
                refusals.invalid(
                    self.path("healthcheck").key("test"),
                    "must be `CMD` with a program, `CMD-SHELL` with one line, or `NONE`: the image's own is not known here",
                );
                Vec::new()
            }
        }
    }

    pub(super) fn sandbox_options(&self, refusals: &mut Refusals) -> SandboxOptions {
        let path = self.path("x-sandbox");
        let mut options = SandboxOptions {
            knows_names: true,
            resolve: Vec::new(),
        };
        let entries = match self.service.extensions.get("x-sandbox") {
            None => return options,
            Some(ExtensionValue::Map(entries)) => entries,
            Some(_) => {
                refusals.invalid(path, "is no mapping");
                return options;
            }
        };
        for (key, value) in entries {
            match (key.as_str(), value) {
                ("hosts", ExtensionValue::List(names)) if names.is_empty() => options.knows_names = false,
                ("hosts", _) => refusals.invalid(path.key(key), "must be an empty list, or left out"),
                ("resolve_environment", ExtensionValue::List(names)) => {
                    for name in names {
                        match name {
                            ExtensionValue::String(name) => options.resolve.push(name.clone()),
                            _ => refusals.invalid(path.key(key), "must be a list of names of variables"),
                        }
                    }
                }
                ("resolve_environment", _) => {
                    refusals.invalid(path.key(key), "must be a list of names of variables");
                }
                _ => refusals.unsupported(path.key(key), "is no option of a sandbox", None),
            }
        }
        options
    }
}

/// Notes that the provider has no such capability.
pub(super) fn lacks(subject: &Subject<'_>, key: &str, capability: Capability, refusals: &mut Refusals) {
    let message = format!(
        "provider `{}` does not support {capability}",
        subject.provider.name()
    );
    refusals.unsupported(subject.path(key), message, None);
}

/// Whether a service says how its health is checked.
fn has_check(service: &Service) -> bool {
    service
        .healthcheck
        .as_ref()
        .is_some_and(|check| !check.disable && check.test.words().first().map(String::as_str) != Some("NONE"))
}
