//! What the caller asks for by name and must be right before anything is made: the service to work in, the network to share.

use std::collections::{BTreeMap, BTreeSet};

use crate::compose::model::Project;
use crate::compose::plan::{Plan, ProjectNetworks};
use crate::error::{Error, Operation, Result};

/// Networks that are modes of the engine, or have no names of services.
const MODES: [&str; 4] = ["bridge", "default", "host", "none"];

/// Refuses a service that nothing can be run in, and names those there are.
pub(super) fn check_service(name: &str, project: &Project, plan: &Plan) -> Result<()> {
    let invalid = |message: String| Error::invalid(Operation::Compose, message);
    let step = plan.services.iter().find(|step| step.name == name);
    if let Some(step) = step {
        return if step.containers.is_empty() {
            Err(invalid(format!(
                "service `{name}` has no container: it is scaled to 0"
            )))
        } else {
            Ok(())
        };
    }
    if let Some(service) = project.disabled_services.get(name) {
        return Err(invalid(format!(
            "service `{name}` is not active: it is in the profiles {}",
            service.profiles.join(", ")
        ))
        .with_hint("activate one of them (`--profile`)"));
    }
    Err(invalid(unknown(
        name,
        plan.services.iter().map(|step| step.name.as_str()),
    )))
}

/// Refuses a project of which nothing would be started, as docker compose does: a profile was forgotten, or a file.
pub(super) fn check_any(project: &Project, plan: &Plan) -> Result<()> {
    if !plan.services.is_empty() {
        return Ok(());
    }
    let invalid = |message: String| Error::invalid(Operation::Compose, message);
    let profiles: BTreeSet<&str> = project
        .disabled_services
        .values()
        .flat_map(|service| service.profiles.iter().map(String::as_str))
        .collect();
    if profiles.is_empty() {
        return Err(invalid(
            "there is no service to start: the files define none".to_owned(),
        ));
    }
    let profiles: Vec<&str> = profiles.into_iter().collect();
    let message = format!(
        "there is no service to start: all of the files' are in the profiles {}",
        profiles.join(", ")
    );
    Err(invalid(message).with_hint("activate one of them (`--profile`)"))
}

/// Refuses images for services that the files do not define: what they were meant for would be pulled or built.
pub(super) fn check_images(images: &BTreeMap<String, String>, project: &Project) -> Result<()> {
    let all = || project.services.iter().chain(&project.disabled_services);
    let is_there = |name: &str| all().any(|(other, _)| other == name);
    match images.keys().find(|name| !is_there(name)) {
        None => Ok(()),
        Some(name) => {
            let problem = unknown(name, all().map(|(name, _)| name.as_str()));
            let image = images[name].escape_debug();
            Err(Error::invalid(
                Operation::Compose,
                format!("the image `{image}` has no service to go to: {problem}"),
            ))
        }
    }
}

fn unknown<'a>(name: &str, services: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = services.collect();
    names.sort_unstable();
    let shown = name.escape_debug();
    if names.is_empty() {
        format!("there is no service `{shown}`: the files define none")
    } else {
        format!("there is no service `{shown}`; there are {}", names.join(", "))
    }
}

/// Refuses what is no network that projects can share.
pub(super) fn check_networks(networks: &ProjectNetworks) -> Result<()> {
    let ProjectNetworks::Shared(name) = networks else {
        return Ok(());
    };
    let is_name = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
    let shown = name.escape_debug();
    let problem = if MODES.contains(&name.as_str()) {
        format!("`{shown}` can't be the shared network: services have no names in it")
    } else if name.starts_with("container:") || name.starts_with("service:") {
        format!("`{shown}` can't be the shared network: it is the network of one container")
    } else if is_name {
        return Ok(());
    } else {
        format!("`{shown}` can't be the shared network: it is not the name of a network")
    };
    Err(Error::invalid(Operation::Compose, problem).with_hint(
        "name a bridge of the engine's that was made for it, or leave the option (`--shared-network`) out",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::{ComposeLoader, LoadOptions, PlanOptions, Source};
    use crate::error::ErrorKind;

    #[test]
    fn a_service_that_is_not_there_is_refused_with_those_that_are() {
        let text = "
services:
  web: {image: i}
  db: {image: i}
  none: {image: i, scale: 0}
  debug: {image: i, profiles: [tools, more]}
";
        let options = LoadOptions::new()
            .with_file(Source::text("compose.yaml", text))
            .with_project_name("p");
        let project = ComposeLoader::new(options).load().unwrap().project;
        let plan = Plan::new(&project, &PlanOptions::default()).unwrap();
        let said = |name: &str| {
            let error = check_service(name, &project, &plan).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            error.to_string()
        };
        check_service("web", &project, &plan).unwrap();
        assert!(said("wbe").ends_with("there is no service `wbe`; there are db, none, web"));
        assert!(said("none").contains("scaled to 0"));
        assert!(said("debug").contains("in the profiles tools, more"));
        let nothing = |text: &str| {
            let options = LoadOptions::new()
                .with_file(Source::text("compose.yaml", text))
                .with_project_name("p");
            let project = ComposeLoader::new(options).load().unwrap().project;
            let plan = Plan::new(&project, &PlanOptions::default()).unwrap();
            check_any(&project, &plan).unwrap_err().to_string()
        };
        check_any(&project, &plan).unwrap();
        assert!(nothing("services: {}").ends_with("the files define none"));
        let profiles = "services: {a: {image: i, profiles: [y, x]}, b: {image: i, profiles: [x]}}";
        assert!(nothing(profiles).ends_with("in the profiles x, y"));
        let images = |name: &str| BTreeMap::from([(name.to_owned(), "i".to_owned())]);
        check_images(&images("web"), &project).unwrap();
        check_images(&images("debug"), &project).unwrap();
        let error = check_images(&images("wbe"), &project).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("`wbe`; there are db, debug, none, web"),
            "{error}"
        );
    }

    #[test]
    fn a_mode_of_the_engine_is_no_network_to_share() {
        let check = |name: &str| check_networks(&ProjectNetworks::Shared(name.to_owned()));
        for name in [
            "none",
            "host",
            "bridge",
            "default",
            "container:x",
            "",
            "a b",
            "-x",
        ] {
            let error = check(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{name}");
            assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
        }
        check("bench").unwrap();
        check("my.net-1_x").unwrap();
        check_networks(&ProjectNetworks::Own).unwrap();
    }
}
