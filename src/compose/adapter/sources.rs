//! What a project is made of beside its Compose files, looked at before anything is made: images that can be none, and
//! files that are not there.

use std::collections::BTreeSet;
use std::io::ErrorKind as IoErrorKind;
use std::path::Path;

use crate::compose::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::compose::model::{Project, Service};
use crate::compose::path::YamlPath;
use crate::compose::plan::{ImageSource, Plan, service_path};
use crate::error::{ErrorKind, Result};
use crate::spec::ImageReference;

use super::refused;

/// Refuses images that can be none, and secrets and configs whose files are not on this machine, all at once. Blocks while
/// it looks.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] naming each by its service.
pub(super) fn check(project: &Project, plan: &Plan) -> Result<()> {
    let mut wrong = Vec::new();
    images(project, plan, &mut wrong);
    files(project, plan, &mut wrong);
    if wrong.is_empty() {
        return Ok(());
    }
    Err(refused(ErrorKind::InvalidArgument, Diagnostics(wrong)))
}

fn images(project: &Project, plan: &Plan, wrong: &mut Vec<Diagnostic>) {
    let mut say = |path: YamlPath, text: &str, other_hint: Option<&str>| {
        if let Some((message, form)) = ImageReference::problem_of(text) {
            let hint = Some(other_hint.unwrap_or(form));
            wrong.push(Diagnostic::of_project(path, message, hint, Severity::Error));
        }
    };
    for step in &plan.images {
        let is_named = |service: &Service| !service.image.is_empty();
        let is_named = project.services.get(&step.service).is_some_and(is_named);
        match &step.source {
            ImageSource::Build(build) => {
                // Made of the names of project and service, unless the file has another.
                let hint =
                    (!is_named).then_some("give the service an `image`, which its build is called then");
                say(service_path(&step.service, "image"), &step.image, hint);
                let tags = service_path(&step.service, "build").key("tags");
                for (index, tag) in build.tags.iter().enumerate() {
                    say(tags.index(index), tag, None);
                }
            }
            ImageSource::Pull(_) => say(service_path(&step.service, "image"), &step.image, None),
        }
    }
    // The image that fills volumes is the caller's, or that of a service.
    let known: BTreeSet<&str> = plan.images.iter().map(|step| step.image.as_str()).collect();
    let own = plan
        .helpers
        .iter()
        .find(|helper| !known.contains(helper.spec.image.as_str()));
    if let Some(helper) = own {
        say(
            YamlPath::of_keys(["volumes", &helper.key]),
            &helper.spec.image,
            None,
        );
    }
}

fn files(project: &Project, plan: &Plan, wrong: &mut Vec<Diagnostic>) {
    for step in &plan.services {
        let Some(service) = project.services.get(&step.name) else {
            continue;
        };
        let secrets = service.secrets.iter().enumerate().map(|(index, mount)| {
            let file = project.secrets.get(&mount.source).map(|secret| &secret.file);
            ("secrets", "secret", index, mount, file)
        });
        let configs = service.configs.iter().enumerate().map(|(index, mount)| {
            let file = project.configs.get(&mount.source).map(|config| &config.file);
            ("configs", "config", index, mount, file)
        });
        for (key, what, index, mount, file) in secrets.chain(configs) {
            let Some(file) = file.filter(|file| !file.is_empty()) else {
                continue;
            };
            if is_missing(Path::new(file)) {
                let path = service_path(&step.name, key).index(index);
                let message = format!("the file `{file}` of {what} `{}` does not exist", mount.source);
                wrong.push(Diagnostic::of_project(path, message, None, Severity::Error));
            }
        }
    }
}

/// Says whether there is nothing at a path. What can't be looked at may be there for the engine.
fn is_missing(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_err_and(|error| matches!(error.kind(), IoErrorKind::NotFound | IoErrorKind::NotADirectory))
}
