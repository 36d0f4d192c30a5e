//! Which images are needed, and where they come from.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::labels::hash;
use super::{BuildStep, ImageNames, ImageSource, ImageStep, Notes, Planner, PullWhen, service_path, text};
use crate::compose::model::{Build, Encode, Service, Style, Ulimit};

impl Planner<'_> {
    /// The image of a service: the caller's, the file's, or the one that its build makes.
    pub(super) fn image_of(&self, name: &str, service: &Service) -> String {
        let given = self.options.images.get(name).map(String::as_str);
        let by_caller = self
            .options
            .service_specs
            .get(name)
            .and_then(|spec| spec.image())
            .filter(|_| service.image.is_empty());
        if let Some(image) = given.or(by_caller) {
            return image.to_owned();
        }
        match (&service.build, self.options.image_names) {
            (Some(build), ImageNames::Shared) if service.image.is_empty() => {
                let from = format!(
                    "{}\n{}",
                    self.project.directory.display(),
                    build.encode(Style::Json)
                );
                format!("gym-sandbox-compose/{}:{}", in_a_reference(name), hash(&from))
            }
            _ => self.project.image_of(name).unwrap_or_default(),
        }
    }

    /// Whether a service's image is built, and not given by the caller.
    pub(super) fn is_built(&self, name: &str, service: &Service) -> bool {
        let given = self.options.images.contains_key(name);
        let by_caller = self
            .options
            .service_specs
            .get(name)
            .is_some_and(|spec| spec.image().is_some());
        service.build.is_some() && !given && !(by_caller && service.image.is_empty())
    }
}

/// The name of a service as a part of an image's name, where separators stand alone and between letters. The hash behind it
/// tells two of them apart.
fn in_a_reference(name: &str) -> String {
    let lower = name.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    if words.is_empty() {
        "service".to_owned()
    } else {
        words.join("-")
    }
}

pub(super) fn steps(planner: &Planner<'_>, order: &[String], notes: &mut Notes) -> Vec<ImageStep> {
    let mut seen = BTreeSet::new();
    let mut steps = Vec::new();
    for name in order {
        let service = &planner.project.services[name];
        let image = planner.image_of(name, service);
        let source = source(planner, name, service, notes);
        let platform = text(&service.platform).or_else(|| match &source {
            ImageSource::Build(_) => service.build.as_ref()?.platforms.first().cloned(),
            ImageSource::Pull(_) => None,
        });
        if seen.insert((image.clone(), platform.clone())) {
            steps.push(ImageStep {
                image,
                platform,
                service: name.clone(),
                source,
            });
        }
    }
    steps
}

fn source(planner: &Planner<'_>, name: &str, service: &Service, notes: &mut Notes) -> ImageSource {
    let policy = service.pull_policy.as_str();
    let when = match policy {
        "" | "missing" | "if_not_present" | "build" => PullWhen::Missing,
        "always" => PullWhen::Always,
        "never" => PullWhen::Never,
        timed => {
            notes.warning(
                service_path(name, "pull_policy"),
                format!("`{timed}` acts as `missing`: images are not refreshed by their age"),
            );
            PullWhen::Missing
        }
    };
    let Some(build) = service.build.as_ref().filter(|_| planner.is_built(name, service)) else {
        return ImageSource::Pull(when);
    };
    // With an image of its own a service is pulled when its file says so; else the build is what it has.
    if when == PullWhen::Always && !service.image.is_empty() || when == PullWhen::Never {
        return ImageSource::Pull(when);
    }
    let when = if policy == "build" {
        PullWhen::Always
    } else {
        PullWhen::Missing
    };
    ImageSource::Build(Box::new(build_step(planner, name, build, when, notes)))
}

fn build_step(
    planner: &Planner<'_>,
    name: &str,
    build: &Build,
    when: PullWhen,
    notes: &mut Notes,
) -> BuildStep {
    let path = service_path(name, "build");
    if build.context.contains("://")
        || build.context.starts_with("git@")
        || build.context.starts_with("github.com/")
    {
        notes.error(
            path.key("context"),
            "only a local folder can be built",
            Some("check the sources out, or give a prebuilt image for the service"),
        );
    }
    if build.platforms.len() > 1 {
        notes.error(
            path.key("platforms"),
            "an image is built for one platform",
            Some("name one, or give a prebuilt image for the service"),
        );
    }
    BuildStep {
        when,
        context: PathBuf::from(&build.context),
        dockerfile: text(&build.dockerfile),
        dockerfile_inline: text(&build.dockerfile_inline),
        args: build.args.clone(),
        target: text(&build.target),
        labels: build
            .labels
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .chain(planner.helper_build_labels(name))
            .collect(),
        tags: build.tags.clone(),
        cache_from: build.cache_from.clone(),
        no_cache: build.no_cache,
        pull: build.pull,
        network: text(&build.network),
        extra_hosts: super::network::hosts(&build.extra_hosts),
        shm_bytes: u64::try_from(build.shm_size.bytes())
            .ok()
            .filter(|&bytes| bytes > 0),
        ulimits: build
            .ulimits
            .iter()
            .map(|(name, limit)| match *limit {
                Ulimit::Single(both) => (name.clone(), both, both),
                Ulimit::Pair { soft, hard } => (name.clone(), soft, hard),
            })
            .collect(),
    }
}

impl Planner<'_> {
    fn helper_build_labels(&self, service: &str) -> Vec<(String, String)> {
        // Shared images belong to no single project.
        if self.options.image_names == ImageNames::Shared {
            return Vec::new();
        }
        vec![
            (super::labels::PROJECT.to_owned(), self.project.name.clone()),
            (super::labels::SERVICE.to_owned(), service.to_owned()),
        ]
    }
}
