//! What runs in a container, as whom, with what; its health, its restarts, its output.

use super::service::{Subject, environment};
use super::{Notes, Planner, service_path, text};
use crate::compose::ComposeDuration;
use crate::compose::model::Healthcheck;
use crate::spec::container::{
    ContainerSpec, EnvironmentSpec, HealthTest, HealthcheckSpec, LogSpec, RestartPolicy,
};

pub(super) fn apply(
    planner: &Planner<'_>,
    subject: &Subject<'_>,
    spec: &mut ContainerSpec,
    notes: &mut Notes,
) {
    let service = subject.service;
    let given = planner.options.service_specs.get(subject.name);
    spec.platform = text(&service.platform);
    spec.entrypoint = service.entrypoint.words().map(<[String]>::to_vec);
    spec.command = service.command.words().map(<[String]>::to_vec);
    // docker compose and the engine take an empty entrypoint with no command for the image's command as a program,
    // which nobody means (engine-facts S26).
    if spec.entrypoint.as_ref().is_some_and(Vec::is_empty) && spec.command.as_ref().is_none_or(Vec::is_empty)
    {
        notes.error(
            service_path(subject.name, "entrypoint"),
            "an empty entrypoint and no command leave nothing to run",
            Some("name a command, or leave the entrypoint out to have the image's"),
        );
    }
    let mut variables = EnvironmentSpec::default();
    if let Some(given) = given {
        for (name, value) in given.env() {
            variables.set(name, Some(value.clone()));
        }
        if spec.entrypoint.is_none() && spec.command.is_none() && !given.entrypoint().is_empty() {
            spec.entrypoint = Some(given.entrypoint().to_vec());
        }
        for option in given.provider_options().keys() {
            notes.error(
                service_path(subject.name, option),
                "provider options of a service's spec are not used: its file says what it is",
                Some("write it into the Compose file, or into an override file"),
            );
        }
    }
    for (name, value) in environment(&service.environment).iter() {
        variables.set(name, value.map(str::to_owned));
    }
    spec.environment = variables;
    spec.working_dir =
        text(&service.working_dir).or_else(|| given.and_then(|given| given.workdir()).map(str::to_owned));
    spec.user = text(&service.user);
    spec.group_add.clone_from(&service.group_add);
    spec.annotations.clone_from(&service.annotations);
    spec.tty = service.tty;
    spec.stdin_open = service.stdin_open;
    spec.init = service.init;
    spec.stop_signal = text(&service.stop_signal);
    spec.stop_timeout = service.stop_grace_period.and_then(ComposeDuration::to_std);
    spec.healthcheck = service.healthcheck.as_ref().map(|check| {
        if let Some(problem) = problem_of(check) {
            let path = service_path(subject.name, "healthcheck").key("test");
            notes.error(path, problem, None);
        }
        health(check)
    });
    spec.restart = restart(subject, notes);
    spec.logging = service.logging.as_ref().map(|logging| LogSpec {
        driver: text(&logging.driver),
        options: logging.options.clone(),
    });
    spec.hostname = text(&service.hostname);
    spec.domainname = text(&service.domainname);
}

/// What of a check cannot be run. The engine takes it, and has a shell without a line fail for ever and one with several run
/// the first alone.
fn problem_of(check: &Healthcheck) -> Option<&'static str> {
    match check.test.words() {
        _ if check.disable => None,
        [kind] if kind == "CMD" => Some("`CMD` needs a program"),
        [kind, line @ ..] if kind == "CMD-SHELL" && line.len() != 1 => {
            Some("`CMD-SHELL` takes one line; `CMD` takes a program and its arguments")
        }
        _ => None,
    }
}

fn health(check: &Healthcheck) -> HealthcheckSpec {
    let mut spec = HealthcheckSpec::default();
    let words = check.test.words();
    spec.test = match words.first().map(String::as_str) {
        _ if check.disable => HealthTest::Disabled,
        Some("NONE") => HealthTest::Disabled,
        Some("CMD") => HealthTest::Command(words[1..].to_vec()),
        Some("CMD-SHELL") => HealthTest::Shell(words[1..].join(" ")),
        _ => HealthTest::Inherit,
    };
    // 0 stands for "not given", as with the engine.
    let time = |value: Option<ComposeDuration>| {
        value
            .and_then(ComposeDuration::to_std)
            .filter(|duration| !duration.is_zero())
    };
    spec.interval = time(check.interval);
    spec.timeout = time(check.timeout);
    spec.start_period = time(check.start_period);
    spec.start_interval = time(check.start_interval);
    spec.retries = check
        .retries
        .filter(|&retries| retries > 0)
        .map(|retries| u32::try_from(retries).unwrap_or(u32::MAX));
    spec
}

fn restart(subject: &Subject<'_>, notes: &mut Notes) -> RestartPolicy {
    let service = subject.service;
    let policy = service
        .deploy
        .as_ref()
        .and_then(|deploy| deploy.restart_policy.as_ref());
    if let Some(policy) = policy {
        let max_retries = policy
            .max_attempts
            .map(|attempts| u32::try_from(attempts).unwrap_or(u32::MAX));
        return match policy.condition.as_str() {
            "none" => RestartPolicy::No,
            "on-failure" => RestartPolicy::OnFailure { max_retries },
            "" | "any" => RestartPolicy::Always,
            other => {
                let path = service_path(subject.name, "deploy").key("restart_policy");
                let message = format!("`{other}` is not one of none, on-failure, any");
                notes.error(path.key("condition"), message, None);
                RestartPolicy::No
            }
        };
    }
    let (word, retries) = match service.restart.split_once(':') {
        Some((word, retries)) => (word, Some(retries)),
        None => (service.restart.as_str(), None),
    };
    let max_retries = retries.and_then(|retries| retries.parse().ok());
    match (word, retries) {
        ("" | "no", None) => RestartPolicy::No,
        ("always", None) => RestartPolicy::Always,
        ("unless-stopped", None) => RestartPolicy::UnlessStopped,
        ("on-failure", None) => RestartPolicy::OnFailure { max_retries: None },
        ("on-failure", Some(_)) if max_retries.is_some() => RestartPolicy::OnFailure { max_retries },
        _ => {
            let message = format!(
                "`{}` is not one of no, always, on-failure[:N], unless-stopped",
                service.restart
            );
            notes.error(service_path(subject.name, "restart"), message, None);
            RestartPolicy::No
        }
    }
}
