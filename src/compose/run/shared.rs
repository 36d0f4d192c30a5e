//! Networks and volumes: made, or found where they must be there already.

use std::collections::BTreeMap;

use futures::future::{join, join_all, try_join_all};

use crate::compose::plan::{NetworkStep, PROJECT, VolumeStep};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::container::SharedObject;

use super::by_name::OWN;
use super::crew::Crew;
use super::failure::{in_service, in_services};

/// The label of a volume that says which start has made it.
pub(super) const START: &str = "gym-sandbox.start";

impl Crew {
    /// The label that everything of the project has.
    pub(super) fn project_labels(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(PROJECT.to_owned(), self.plan.project.clone())])
    }

    /// Refuses to start where the project, or what it cannot go without, is not as it must be.
    pub(super) async fn check_before(&self) -> Result<()> {
        self.check_is_free().await?;
        let containers = self.containers(Operation::ComposeUp)?;
        // The others can go without those that may fail.
        let mut refused = Vec::new();
        for step in self.plan.services.iter().filter(|step| !step.is_optional) {
            // All containers of a service are described alike.
            let Some(container) = step.containers.first() else {
                continue;
            };
            match containers.check_container(&container.spec).await {
                Err(error) if matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::Unsupported) => {
                    refused.push((step.name.as_str(), error));
                }
                checked => checked.map_err(|error| in_service(&step.name, error))?,
            }
        }
        if let Some(error) = in_services(refused) {
            return Err(error);
        }
        let (external, own): (Vec<_>, Vec<_>) =
            self.plan.networks.iter().partition(|network| network.external);
        try_join_all(own.iter().map(|network| containers.check_network(&network.spec))).await?;
        try_join_all(external.iter().map(|network| self.find_network(network))).await?;
        let volumes = self.plan.volumes.iter().filter(|volume| volume.external);
        try_join_all(volumes.map(|volume| self.find_volume(volume))).await?;
        Ok(())
    }

    /// Refuses to start where the project has containers.
    pub(super) async fn check_is_free(&self) -> Result<()> {
        let containers = self.containers(Operation::ComposeUp)?;
        if let Some(other) = containers.list_containers(&self.project_labels()).await?.first() {
            let hint = if other.labels.contains_key(OWN) {
                "wait if another start of this name is at work; else take it down first, or take another project name"
            } else {
                "this library has not made it: take it down with what has, such as `docker compose down`, or take another \
                 project name"
            };
            return Err(Error::new(
                ErrorKind::Conflict,
                Operation::ComposeUp,
                format!(
                    "project `{}` is there already: it has the container `{}`",
                    self.plan.project, other.name
                ),
            )
            .with_hint(hint));
        }
        Ok(())
    }

    async fn find_network(&self, network: &NetworkStep) -> Result<()> {
        let name = &network.spec.name;
        let found = self.containers(Operation::ComposeUp)?.find_networks(name).await?;
        match found.as_slice() {
            [one] => {
                self.remember_id(name, &one.id);
                Ok(())
            }
            [] if network.is_shared => Err(Error::new(
                ErrorKind::NotFound,
                Operation::ComposeUp,
                format!("the engine has no network `{name}` for projects to share"),
            )
            .with_hint(format!(
                "make it first, as with `docker network create {name}`, or leave the option (`--shared-network`) out"
            ))),
            [] => Err(missing("network", &network.key, name)),
            several => Err(Error::new(
                ErrorKind::Conflict,
                Operation::ComposeUp,
                format!(
                    "network `{}`: the engine has {} networks called `{name}`",
                    network.key,
                    several.len()
                ),
            )
            .with_hint("remove all but one of them, by their ids")),
        }
    }

    async fn find_volume(&self, volume: &VolumeStep) -> Result<()> {
        let name = &volume.spec.name;
        let found = self.containers(Operation::ComposeUp)?.find_volume(name).await?;
        match found {
            Some(_) => Ok(()),
            None => Err(missing("volume", &volume.key, name)),
        }
    }

    /// Makes the project's own networks and volumes.
    pub(super) async fn make_shared(&self) -> Result<()> {
        let networks = self.plan.networks.iter().filter(|network| !network.external);
        let volumes = self.plan.volumes.iter().filter(|volume| !volume.external);
        // Each to its end, also when one fails: what was made is known then, and removed before the failure is told.
        let (networks, volumes) = join(
            join_all(networks.map(|network| self.make_network(network))),
            join_all(volumes.map(|volume| self.make_volume(volume))),
        )
        .await;
        networks.into_iter().chain(volumes).collect()
    }

    /// What a container's taken name means: somebody else starts the same project, or has a container of that name.
    pub(super) async fn contested(&self, service: &str, name: &str, error: Error) -> Error {
        let found = match self.containers(Operation::ComposeUp) {
            Ok(containers) => containers.inspect_container(name).await,
            Err(error) => Err(error),
        };
        let is_theirs = match &found {
            Ok(Some(other)) => other.labels.get(PROJECT) == Some(&self.plan.project),
            // It was there a moment ago: their start has failed, too, or the project has been taken down.
            Ok(None) => true,
            Err(_) => false,
        };
        if is_theirs {
            self.rival("container", name).with_source(error)
        } else {
            in_service(service, error)
        }
    }

    /// The error of a start that meets what another one of the same project has made.
    pub(super) fn rival(&self, what: &str, name: &str) -> Error {
        Error::new(
            ErrorKind::Conflict,
            Operation::ComposeUp,
            format!(
                "another start of project `{}` is at work: the {what} `{name}` is theirs",
                self.plan.project
            ),
        )
        .with_hint(
            "wait until that one is over, or take another project name (`--project-name`); where none is at work, \
             `compose down` removes what one has left",
        )
    }

    async fn make_network(&self, network: &NetworkStep) -> Result<()> {
        let containers = self.containers(Operation::ComposeUp)?;
        let name = &network.spec.name;
        let id = match containers.create_network(&network.spec).await {
            Ok(id) => id,
            // There is one network of a name. One whose subnet is taken has a hint already.
            Err(error) if error.kind() == ErrorKind::Conflict && error.hint().is_none() => {
                let named = containers.find_networks(name).await.unwrap_or_default();
                let project = Some(&self.plan.project);
                let is_theirs = |other: &SharedObject| other.labels.get(PROJECT) == project;
                // Where it is gone already, their start has failed, too.
                return Err(if named.is_empty() || named.iter().any(is_theirs) {
                    self.rival("network", name).with_source(error)
                } else {
                    error.with_hint("remove it, take another project name, or declare it as `external`")
                });
            }
            Err(error) => return Err(error),
        };
        self.made.add_network(&id);
        self.remember_id(name, &id);
        Ok(())
    }

    async fn make_volume(&self, volume: &VolumeStep) -> Result<()> {
        let containers = self.containers(Operation::ComposeUp)?;
        let name = &volume.spec.name;
        // One that is there already holds somebody's data: it is used, and stays.
        if let Some(found) = containers.find_volume(name).await? {
            self.made.find_volume(found);
            return containers.create_volume(&volume.spec).await.map(drop);
        }
        self.made.add_volume(name);
        let mut spec = volume.spec.clone();
        spec.labels.insert(START.to_owned(), self.start.clone());
        let made = containers.create_volume(&spec).await?;
        if made.labels.get(START) == Some(&self.start) {
            return Ok(());
        }
        // It is theirs to remove.
        self.made.forget_volume(name);
        Err(self.rival("volume", name))
    }
}

fn missing(what: &str, key: &str, name: &str) -> Error {
    Error::new(
        ErrorKind::NotFound,
        Operation::ComposeUp,
        format!("{what} `{key}` is external, and the engine has no `{name}`"),
    )
    .with_hint("make it first, or leave `external` out")
}
