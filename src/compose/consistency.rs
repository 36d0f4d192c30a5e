//! Checks that a project fits together: references, exclusive keys, limits, cycles.
//!
//! Works on the typed project; the tree is only asked for positions.

use std::collections::BTreeMap;

use super::diagnostic::Sink;
use super::model::{MountType, Project, Service};
use super::node::Node;
use super::path::YamlPath;

mod whole;

/// Checks the whole project and reports everything that does not fit.
pub(crate) fn check(project: &mut Project, model: &Node, sink: &mut Sink) {
    let names: Vec<String> = project.services.keys().cloned().collect();
    for name in &names {
        let path = YamlPath::of_keys(["services", name.as_str()]);
        let service = &project.services[name];
        let mut check = Check {
            project,
            service,
            name,
            model,
            path,
            sink,
        };
        check.image_and_build();
        check.networks();
        check.healthcheck();
        check.dependencies();
        check.resources();
        check.limits();
        check.watch();
        check.mounts();
    }
    for (name, service) in &mut project.services {
        let path = YamlPath::of_keys(["services", name.as_str()]);
        if let (Some(scale), Some(deploy), false) =
            (service.scale, service.deploy.as_mut(), sink.is_poisoned(&path))
        {
            deploy.replicas = Some(scale);
        }
    }
    whole::secrets(project, model, sink);
    whole::container_names(project, model, sink);
    whole::cycles(project, model, sink);
}

struct Check<'a> {
    project: &'a Project,
    service: &'a Service,
    name: &'a str,
    model: &'a Node,
    path: YamlPath,
    sink: &'a mut Sink,
}

impl Check<'_> {
    fn error(&mut self, keys: &[&str], message: String, hint: &str) {
        let path = keys
            .iter()
            .fold(self.path.clone(), |path, key| match key.parse::<usize>() {
                Ok(index) => path.index(index),
                Err(_) => path.key(key),
            });
        // What was found wrong was taken out, so it may only seem to be missing.
        if self.sink.is_poisoned(&path) {
            return;
        }
        let at = self.model.position_of(&path);
        if hint.is_empty() {
            self.sink.error(at, &path, message);
        } else {
            self.sink.error_with_hint(at, &path, message, hint);
        }
    }

    /// Tells whether a resource was taken out because of a mistake in it.
    fn was_wrong(&self, section: &str, name: &str) -> bool {
        self.sink.is_poisoned(&YamlPath::of_keys([section, name]))
    }

    fn image_and_build(&mut self) {
        let (service, name) = (self.service, self.name);
        let Some(build) = &service.build else {
            if service.image.is_empty() && service.provider.is_none() {
                let message =
                    format!("service \"{name}\" has neither an image nor a build context specified");
                self.error(&[], message, "");
            }
            return;
        };
        if !build.dockerfile_inline.is_empty() && !build.dockerfile.is_empty() {
            let message =
                format!("service \"{name}\" declares mutually exclusive dockerfile and dockerfile_inline");
            self.error(&["build"], message, "");
        }
        for (context, value) in &build.additional_contexts {
            let Some(target) = value.strip_prefix("service:") else {
                continue;
            };
            let message = match self.project.services.get(target) {
                None => format!(
                    "service \"{name}\" declares unknown service \"{target}\" as additional contexts {context}"
                ),
                Some(other) if other.build.is_none() => format!(
                    "service \"{name}\" declares non-buildable service \"{target}\" as additional contexts {context}"
                ),
                Some(_) => continue,
            };
            self.error(&["build", "additional_contexts", context], message, "");
        }
        let platform = &service.platform;
        if !build.platforms.is_empty() && !platform.is_empty() && !build.platforms.contains(platform) {
            let message = format!("service.build.platforms MUST include service.platform \"{platform}\"");
            self.error(&["build", "platforms"], message, "");
        }
    }

    fn networks(&mut self) {
        let service = self.service;
        let mode = service.network_mode.as_str();
        if !mode.is_empty() && !service.networks.is_empty() {
            let message = format!(
                "service {} declares mutually exclusive `network_mode` and `networks`",
                self.name
            );
            self.error(&["network_mode"], message, "remove one of them");
        }
        for network in service.networks.keys() {
            if !self.project.networks.contains_key(network) && !self.was_wrong("networks", network) {
                let message = format!("service \"{}\" refers to undefined network {network}", self.name);
                self.error(
                    &["networks", network],
                    message,
                    "declare it under `networks` at the top",
                );
            }
        }
        if let Some(target) = mode.strip_prefix("service:")
            && !self.project.services.contains_key(target)
            && !self.project.disabled_services.contains_key(target)
            && !service.depends_on.contains_key(target)
        {
            self.error(
                &["network_mode"],
                format!("service \"{target}\" not found for network_mode '{mode}'"),
                "",
            );
        }
    }

    fn healthcheck(&mut self) {
        let Some(healthcheck) = &self.service.healthcheck else {
            return;
        };
        let first = healthcheck.test.words().first().map(String::as_str);
        if !matches!(first, None | Some("CMD" | "CMD-SHELL" | "NONE")) {
            let message =
                "healthcheck.test must start either by \"CMD\", \"CMD-SHELL\" or \"NONE\"".to_owned();
            self.error(&["healthcheck", "test"], message, "");
        }
    }

    fn dependencies(&mut self) {
        for (name, dependency) in &self.service.depends_on {
            if self.project.services.contains_key(name) || self.was_wrong("services", name) {
                continue;
            }
            let disabled = self.project.disabled_services.get(name);
            if disabled.is_some() && !dependency.required {
                continue;
            }
            let message = format!(
                "service \"{}\" depends on undefined service \"{name}\"",
                self.name
            );
            let hint = match disabled {
                Some(other) => format!(
                    "it is in the profiles {}, none of them active",
                    other.profiles.join(", ")
                ),
                None => String::new(),
            };
            self.error(&["depends_on", name], message, &hint);
        }
    }

    fn resources(&mut self) {
        let (service, project, name) = (self.service, self.project, self.name);
        for (index, mount) in service.volumes.iter().enumerate() {
            let source = &mount.source;
            if mount.kind == MountType::Volume
                && !source.is_empty()
                && !project.volumes.contains_key(source)
                && !self.was_wrong("volumes", source)
            {
                let message = format!("service \"{name}\" refers to undefined volume {source}");
                let hint = "declare it under `volumes` at the top, or begin a path with `./`";
                self.error(&["volumes", &index.to_string()], message, hint);
            }
        }
        let build_secrets = service
            .build
            .as_ref()
            .map(|build| build.secrets.as_slice())
            .unwrap_or_default();
        let lists = [
            (
                "secrets",
                "build secret",
                build_secrets,
                &["build", "secrets"][..],
            ),
            ("secrets", "secret", &service.secrets, &["secrets"]),
            ("configs", "config", &service.configs, &["configs"]),
        ];
        for (section, kind, mounts, keys) in lists {
            for (index, mount) in mounts.iter().enumerate() {
                let source = &mount.source;
                let known = match section {
                    "secrets" => project.secrets.contains_key(source),
                    _ => project.configs.contains_key(source),
                };
                if !known && !self.was_wrong(section, source) {
                    let index = index.to_string();
                    let keys: Vec<&str> = keys.iter().copied().chain([index.as_str()]).collect();
                    self.error(
                        &keys,
                        format!("service \"{name}\" refers to undefined {kind} {source}"),
                        "",
                    );
                }
            }
        }
        for model in service.models.keys() {
            if !project.models.contains_key(model) && !self.was_wrong("models", model) {
                self.error(
                    &["models", model],
                    format!("service \"{name}\" refers to undefined model {model}"),
                    "",
                );
            }
        }
    }

    fn limits(&mut self) {
        let (service, name) = (self.service, self.name);
        let distinct = |short: &str, long: &str| {
            format!("services.{name}: can't set distinct values on '{short}' and '{long}'")
        };
        let deploy = service.deploy.as_ref();
        if let (Some(scale), Some(replicas)) = (service.scale, deploy.and_then(|deploy| deploy.replicas))
            && scale != replicas
        {
            self.error(&["scale"], distinct("scale", "deploy.replicas"), "");
        }
        if service.scale.is_some_and(|scale| scale < 0) {
            self.error(&["scale"], "must be greater than or equal to 0".to_owned(), "");
        }
        if deploy
            .and_then(|deploy| deploy.replicas)
            .is_some_and(|replicas| replicas < 0)
        {
            self.error(
                &["deploy", "replicas"],
                "must be greater than or equal to 0".to_owned(),
                "",
            );
        }
        if let Some(limits) = deploy.and_then(|deploy| deploy.resources.limits.as_ref()) {
            if service.cpus != 0.0 && (service.cpus - limits.cpus).abs() > 0.0 {
                self.error(&["cpus"], distinct("cpus", "deploy.resources.limits.cpus"), "");
            }
            if service.mem_limit.bytes() != 0 && service.mem_limit != limits.memory {
                self.error(
                    &["mem_limit"],
                    distinct("mem_limit", "deploy.resources.limits.memory"),
                    "",
                );
            }
            if service.pids_limit != 0 && service.pids_limit != limits.pids {
                self.error(
                    &["pids_limit"],
                    distinct("pids_limit", "deploy.resources.limits.pids"),
                    "",
                );
            }
        }
        if let Some(reserved) = deploy.and_then(|deploy| deploy.resources.reservations.as_ref())
            && service.mem_reservation.bytes() != 0
            && service.mem_reservation != reserved.memory
        {
            let message = distinct("mem_reservation", "deploy.resources.reservations.memory");
            self.error(&["mem_reservation"], message, "");
        }
        if service.replicas() > 1 && !service.container_name.is_empty() {
            let key = if service.scale.is_some() {
                "scale"
            } else {
                "deploy.replicas"
            };
            let message = format!(
                "services.{name}: can't set container_name and {key} as container name must be unique"
            );
            self.error(&["container_name"], message, "");
        }
    }

    fn watch(&mut self) {
        let rules = self
            .service
            .develop
            .as_ref()
            .map(|develop| develop.watch.as_slice())
            .unwrap_or_default();
        for (index, rule) in rules.iter().enumerate() {
            if rule.target.is_empty() && !matches!(rule.action.as_str(), "rebuild" | "restart") {
                let message = format!(
                    "services.{}.develop.watch: target is required for non-rebuild actions",
                    self.name
                );
                self.error(&["develop", "watch", &index.to_string()], message, "");
            }
        }
    }

    fn mounts(&mut self) {
        let service = self.service;
        let mut taken: BTreeMap<&str, String> = BTreeMap::new();
        let tmpfs = service
            .tmpfs
            .iter()
            .map(|entry| entry.split(':').next().unwrap_or_default());
        let volumes = service.volumes.iter().map(|mount| mount.target.as_str());
        let targets = tmpfs.enumerate().map(|(index, target)| ("tmpfs", index, target));
        for (key, index, target) in targets.chain(
            volumes
                .enumerate()
                .map(|(index, target)| ("volumes", index, target)),
        ) {
            if let Some(other) = taken.get(target) {
                let message = format!("target {target} already mounted as {other}");
                self.error(&[key, &index.to_string()], message, "");
            }
            taken.insert(target, format!("services.{}.{key}[{index}]", self.name));
        }
    }
}
