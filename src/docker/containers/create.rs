//! Creating a container that is not started yet, as one transaction: it is there and in all its networks, or nothing
//! of it is left.

use std::net::IpAddr;

use crate::error::{Error, ErrorKind, ImageProblem, Operation, Result};
use crate::spec::SandboxId;
use crate::spec::container::ContainerSpec;

use super::super::DockerProvider;
use super::super::connect::Engine;
use super::super::container::{self, Creation, networks_of, no_such_network};
use super::super::create::CreateGuard;
use super::super::failure::EngineFailure;
use super::super::image::{ImageReference, image_error, problem_of};
use super::super::owner::Keep;
use super::labels::{Kind, keep_of, note_name, stamped};

impl DockerProvider {
    /// What the engine is asked for.
    pub(super) fn creation_of(&self, spec: &ContainerSpec, engine: &Engine) -> Result<Creation> {
        container::map(spec, self.publish_address()?)?.for_engine(engine.api_version)
    }

    pub(super) async fn create_service_container(&self, spec: &ContainerSpec) -> Result<String> {
        let id = id_of(spec)?;
        let name = id.as_str();
        let image: ImageReference = spec.image.parse()?;
        let engine = self.engine().await?;
        let Creation { mut body, joins } = self.creation_of(spec, engine)?;
        body.labels = Some(stamped(
            &spec.labels,
            &self.config().default_metadata,
            Kind::Service,
            engine,
            &self.config().lease,
        ));
        self.check_named_once(&networks_of(&body, &joins)).await?;
        let networks: Vec<String> = networks_of(&body, &joins)
            .into_iter()
            .map(str::to_owned)
            .collect();
        let keeper = self.keeper().await?;
        let mut guard = CreateGuard::new(self, id.clone());
        guard.mark_volumes(&mut body);
        // Before anything is made: whoever sees the container sees a living owner, too.
        if keep_of(&spec.labels) == Keep::No {
            keeper.hold(name);
        }
        let slot = self.lanes().create_slot().await?;
        let answer = self
            .call_create(&mut guard, spec.platform.as_deref(), body)
            .await?;
        drop(slot);
        let created = match answer {
            Ok(created) => created,
            Err(failure) => {
                let missing = no_such_network(networks.iter().map(String::as_str), &failure);
                return Err(missing.unwrap_or_else(|| refusal(&image, name, failure)));
            }
        };
        for warning in &created.warnings {
            tracing::warn!(container = name, %warning, "the engine warns about a create");
        }
        let mut joined = Ok(());
        for join in &joins {
            joined = self.join_network(&created.id, join).await;
            if joined.is_err() {
                break;
            }
        }
        match joined {
            Ok(()) => {
                keeper.made(name);
                note_name(&created.id, name);
                guard.disarm();
                Ok(created.id)
            }
            Err(error) => Err(guard.undo(error).await),
        }
    }

    fn publish_address(&self) -> Result<IpAddr> {
        self.config().create.publish_host.parse().map_err(|_| {
            Error::invalid(
                Operation::Configure,
                "create.publish_host must be an IP address such as 127.0.0.1",
            )
        })
    }
}

/// The name of a container, which is its sandbox's id.
pub(super) fn id_of(spec: &ContainerSpec) -> Result<SandboxId> {
    let name = spec.name.as_deref();
    SandboxId::new(name.ok_or_else(|| Error::invalid(Operation::Create, "a container needs a name"))?)
}

fn refusal(image: &ImageReference, name: &str, failure: EngineFailure) -> Error {
    let problem = failure.text().and_then(problem_of);
    if failure.is_status(404) && matches!(problem, Some(ImageProblem::NotFound | ImageProblem::Platform)) {
        return image_error(image, failure);
    }
    let taken = failure.is_status(409);
    let kind = if taken {
        ErrorKind::Conflict
    } else {
        ErrorKind::CreateFailed
    };
    let error = failure.into_error(
        Operation::Create,
        format!("the engine refused to create container `{name}`"),
        kind,
    );
    if taken {
        return error
            .with_hint("a container of that name is there already; remove it, or take another project name");
    }
    error
}
