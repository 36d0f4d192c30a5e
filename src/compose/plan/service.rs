//! One service: its containers, what it waits for, what is done with it.

use std::time::Duration;

use super::{
    ContainerNames, ContainerStep, DependencyStep, HookStep, Notes, Planner, ServiceStep, files, mounts,
    network, process, resources, service_path, shared, text,
};
use crate::compose::model::{DependencyCondition, ExtensionValue, Hook, Service};
use crate::spec::container::{ContainerSpec, EnvironmentSpec};

/// How long a service gets to end by itself where its file asks for it and does not say how long.
pub(crate) const USUAL_GRACE: Duration = Duration::from_secs(10);

/// More containers than this of one service are a mistake.
const MOST_REPLICAS: i64 = 1000;

/// What is planned of one service.
pub(super) struct Subject<'a> {
    pub(super) name: &'a str,
    pub(super) service: &'a Service,
}

pub(super) fn step(planner: &Planner<'_>, name: &str, notes: &mut Notes) -> ServiceStep {
    let service = &planner.project.services[name];
    let subject = Subject { name, service };
    shared::reserved_labels(
        &service.labels,
        &crate::compose::path::YamlPath::of_keys(["services", name]),
        notes,
    );
    let replicas = u32::try_from(service.replicas().clamp(0, MOST_REPLICAS)).unwrap_or(0);
    if service.replicas() > MOST_REPLICAS {
        notes.error(
            service_path(name, "scale"),
            format!("more than {MOST_REPLICAS} containers of one service"),
            None,
        );
    }
    let template = container(planner, &subject, notes);
    let pre_stop = hooks(&subject, "pre_stop", &service.pre_stop, notes);
    let containers = (1..=replicas)
        .map(|number| replica(planner, &subject, &template, number, &pre_stop))
        .collect();
    let asks_for_grace = service.stop_grace_period.is_some() || !service.stop_signal.is_empty();
    ServiceStep {
        name: name.to_owned(),
        depends_on: dependencies(planner, service),
        containers,
        files: files::steps(planner, &subject, notes),
        post_start: hooks(&subject, "post_start", &service.post_start, notes),
        pre_stop,
        ports: network::endpoint_ports(planner, &subject),
        stop_grace: asks_for_grace.then(|| {
            let period = service
                .stop_grace_period
                .and_then(crate::compose::ComposeDuration::to_std);
            period.unwrap_or(USUAL_GRACE)
        }),
        is_one_shot: false,
        is_optional: false,
        is_default: name == "default"
            || matches!(
                service.extensions.get("x-default"),
                Some(ExtensionValue::Bool(true))
            )
            || name == "main",
    }
}

fn dependencies(planner: &Planner<'_>, service: &Service) -> Vec<DependencyStep> {
    service
        .depends_on
        .iter()
        // One that is not active was optional, or the loader had refused it.
        .filter(|(other, _)| planner.project.services.contains_key(*other))
        .map(|(other, dependency)| DependencyStep {
            service: other.clone(),
            condition: dependency.condition,
            required: dependency.required,
            restart: dependency.restart,
        })
        .collect()
}

/// Notes who is waited for to its end, and who may fail.
pub(super) fn mark_one_shots(services: &mut [ServiceStep]) {
    let dependencies: Vec<DependencyStep> = services
        .iter()
        .flat_map(|service| service.depends_on.iter().cloned())
        .collect();
    for service in services {
        let mut on_it = dependencies
            .iter()
            .filter(|dependency| dependency.service == service.name)
            .peekable();
        let has_dependants = on_it.peek().is_some();
        let (mut one_shot, mut optional) = (false, has_dependants);
        for dependency in on_it {
            one_shot |= dependency.condition == DependencyCondition::CompletedSuccessfully;
            optional &= !dependency.required;
        }
        service.is_one_shot = one_shot;
        service.is_optional = optional;
    }
}

/// What all containers of a service have in common.
fn container(planner: &Planner<'_>, subject: &Subject<'_>, notes: &mut Notes) -> ContainerSpec {
    let mut spec = ContainerSpec::new(planner.image_of(subject.name, subject.service));
    process::apply(planner, subject, &mut spec, notes);
    resources::apply(planner, subject, &mut spec, notes);
    network::apply(planner, subject, &mut spec, notes);
    mounts::apply(planner, subject, &mut spec, notes);
    files::mount(planner, subject, &mut spec, notes);
    spec
}

fn replica(
    planner: &Planner<'_>,
    subject: &Subject<'_>,
    template: &ContainerSpec,
    number: u32,
    pre_stop: &[HookStep],
) -> ContainerStep {
    let literal = text(&subject.service.container_name)
        .filter(|_| planner.options.container_names == ContainerNames::Literal);
    let name = literal.unwrap_or_else(|| planner.container_name(subject.name, number));
    let mut spec = template.clone();
    spec.name = Some(name.clone());
    spec.labels = planner.container_labels(subject.name, subject.service, number, pre_stop);
    if let Some(given) = planner.options.service_specs.get(subject.name) {
        for (key, value) in given.metadata() {
            spec.labels.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    network::name_in_networks(&mut spec, &name);
    ContainerStep { name, number, spec }
}

fn hooks(subject: &Subject<'_>, key: &str, hooks: &[Hook], notes: &mut Notes) -> Vec<HookStep> {
    let mut steps = Vec::new();
    for (index, hook) in hooks.iter().enumerate() {
        let path = service_path(subject.name, key).index(index);
        if hook.privileged {
            notes.error(
                path.key("privileged"),
                "a hook gets no more privileges than its container",
                None,
            );
        }
        let command = hook.command.words().unwrap_or_default().to_vec();
        if command.is_empty() {
            notes.error(path.key("command"), "a hook needs a command", None);
        }
        steps.push(HookStep {
            command,
            user: text(&hook.user),
            working_dir: text(&hook.working_dir),
            environment: environment(&hook.environment),
        });
    }
    steps
}

pub(super) fn environment(values: &crate::compose::model::OptionalValues) -> EnvironmentSpec {
    values
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
