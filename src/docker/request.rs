//! From a spec to the engine's create request: pure, and tested as a table.

use std::time::Duration;

use bollard::models::ContainerCreateBody;

use crate::error::{Error, Operation, Result};
use crate::provider::policy_error;
use crate::spec::container::{ContainerSpec, PublishedPort};
use crate::spec::{SandboxSpec, check_environment};

use super::PROVIDER;
use super::agent::ExecPathPolicy;
use super::config::{CreateConfig, DockerConfig, LeaseConfig};
use super::connect::{ApiVersion, EngineTime};
use super::container::{Mapped, NetworkJoin, is_librarys, map};
use super::image::ImageReference;
use super::options::{Effective, LocalBase, effective, lay_over};
use super::owner::{self, Stamp, kind};
use super::shared::{self, Looks};

/// A spec that was checked as far as that goes without an engine.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Draft {
    image: ImageReference,
    options: Effective,
    mapped: Mapped,
    looks: Option<Looks>,
}

/// Everything the create transaction needs, checked before anything is made.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CreateRequest {
    pub(super) image: ImageReference,
    pub(super) options: Effective,
    pub(super) body: ContainerCreateBody,
    /// Networks to connect before the start.
    pub(super) joins: Vec<NetworkJoin>,
    /// Shared folders to look at before the start.
    pub(super) looks: Option<Looks>,
}

/// Checks a spec and turns it into a request, without an engine.
pub(super) fn draft(config: &DockerConfig, spec: &SandboxSpec) -> Result<Draft> {
    check_environment(Operation::Create, spec.env())?;
    owner::check_metadata(spec.metadata())?;
    owner::check_metadata(&config.default_metadata)?;
    check_workdir(spec)?;
    check_resources(spec)?;
    let mut options = effective(config, spec)?;
    let image: ImageReference = match (&options.snapshot, spec.image()) {
        (Some(snapshot), _) => snapshot.clone(),
        (None, Some(image)) => image.parse()?,
        (None, None) => {
            return Err(Error::invalid(Operation::Create, "the spec has no image")
                .with_hint("name one with `SandboxSpec::new`"));
        }
    };
    let shared = shared::mounts(&config.shared_storage, spec)?;
    let mut container = lay_over(
        config,
        options.preset,
        spec,
        process_of(config, &image, &options, spec)?,
        LocalBase::of_process(),
    )?;
    owner::check_metadata(&container.labels)?;
    options.platform.clone_from(&container.platform);
    config
        .effective_policy()
        .check(&container)
        .map_err(|refused| policy_error(Operation::Create, &refused))?;
    // After the policy, which has no say in what the operator has set aside.
    container.mounts.extend(shared.mounts);
    let mapped = map(&container, config.create.publish_address()?)?;
    Ok(Draft {
        image,
        options,
        mapped,
        looks: shared.looks,
    })
}

impl Draft {
    /// Refuses what the engine is too old for. Labels that need the engine's clock are added by
    /// [`CreateRequest::with_labels`].
    pub(super) fn for_engine(self, api: ApiVersion) -> Result<CreateRequest> {
        let creation = self.mapped.for_engine(api)?;
        Ok(CreateRequest {
            image: self.image,
            options: self.options,
            body: creation.body,
            joins: creation.joins,
            looks: self.looks,
        })
    }
}

/// What the spec says of the sandbox's process, as a neutral container.
fn process_of(
    config: &DockerConfig,
    image: &ImageReference,
    options: &Effective,
    spec: &SandboxSpec,
) -> Result<ContainerSpec> {
    let mut container = ContainerSpec::new(image.to_string());
    let (entrypoint, command) = main_process(&config.create, options, spec)?;
    container.entrypoint = Some(entrypoint);
    container.command = Some(command);
    container.environment = spec
        .env()
        .iter()
        .map(|(name, value)| (name.clone(), Some(value.clone())))
        .collect();
    container.working_dir = spec.workdir().map(str::to_owned);
    container.labels.clone_from(&config.default_metadata);
    container.labels.extend(spec.metadata().clone());
    container.ports = spec
        .ports()
        .as_slice()
        .iter()
        .map(|&port| PublishedPort::ephemeral(port))
        .collect();
    Ok(container)
}

impl CreateRequest {
    /// Adds the library's own labels (contract D17).
    pub(super) fn with_labels(
        mut self,
        created: EngineTime,
        ttl: Option<Duration>,
        lease: &LeaseConfig,
    ) -> Self {
        let stamp = Stamp {
            kind: kind::SANDBOX,
            created,
            expires: ttl.map(|ttl| created.plus(ttl)),
            lease: created.plus(lease.length),
            renewal: lease.renewal,
            project: self.options.project.as_deref(),
            keep: self.options.keep,
        };
        self.body.labels.get_or_insert_default().extend(stamp.labels());
        self
    }
}

/// More than this not every `sleep` can be told; it is 68 years.
const MAX_SLEEP_SECONDS: u64 = i32::MAX as u64;

fn main_process(
    config: &CreateConfig,
    options: &Effective,
    spec: &SandboxSpec,
) -> Result<(Vec<String>, Vec<String>)> {
    if let Some(bad) = spec.entrypoint().iter().find(|argument| argument.contains('\0')) {
        return Err(Error::invalid(
            Operation::Create,
            format!("the entrypoint argument `{}` holds NUL", bad.escape_debug()),
        ));
    }
    if spec.idle_timeout().is_some() && options.exec_path == ExecPathPolicy::Engine {
        return Err(Error::unsupported(
            Operation::Create,
            PROVIDER,
            "an idle timeout without the resident agent",
        )
        .with_hint("set `exec_path` to `auto`, or use a ttl"));
    }
    match (spec.entrypoint().split_first(), spec.ttl()) {
        // Only the agent could end somebody else's main process in time.
        (Some(_), Some(_)) if options.exec_path == ExecPathPolicy::Engine => Err(Error::unsupported(
            Operation::Create,
            PROVIDER,
            "a ttl together with an entrypoint without the resident agent",
        )
        .with_hint("leave out the ttl, or start the program as a command in a sandbox that is kept alive")),
        (Some((program, arguments)), _) => Ok((vec![program.clone()], arguments.to_vec())),
        (None, None) => Ok((
            vec![config.keepalive_shell.clone()],
            vec!["-c".to_owned(), config.keepalive_cmd.clone()],
        )),
        (None, Some(ttl)) => {
            // Contract C6: at least a second, rounded up.
            let seconds = ttl.as_secs().saturating_add(u64::from(ttl.subsec_nanos() > 0));
            Ok((
                vec![config.keepalive_shell.clone()],
                vec![
                    "-c".to_owned(),
                    format!(
                        "trap 'exit 0' TERM INT; sleep {} & wait $!",
                        seconds.clamp(1, MAX_SLEEP_SECONDS)
                    ),
                ],
            ))
        }
    }
}

fn check_workdir(spec: &SandboxSpec) -> Result<()> {
    match spec.workdir() {
        Some(workdir) if !workdir.starts_with('/') || workdir.contains('\0') => Err(Error::invalid(
            Operation::Create,
            format!(
                "the working directory `{}` is not an absolute path",
                workdir.escape_debug()
            ),
        )),
        // The engine would make it where the agent's program is mounted, read-only.
        Some(workdir) if is_librarys(workdir) => Err(Error::invalid(
            Operation::Create,
            format!(
                "the working directory `{}` is in a folder of the library's own",
                workdir.escape_debug()
            ),
        )),
        _ => Ok(()),
    }
}

fn check_resources(spec: &SandboxSpec) -> Result<()> {
    let resources = spec.resources();
    // The engine takes much less for no limit at all.
    if resources.cpu.is_some_and(|cpu| cpu.is_nan() || cpu < 0.01) {
        return Err(Error::invalid(
            Operation::Create,
            "the resource `cpu` must be at least 0.01",
        ));
    }
    if resources.memory_mib == Some(0)
        || resources
            .memory_mib
            .is_some_and(|mib| mib > i64::MAX as u64 >> 20)
    {
        return Err(Error::invalid(
            Operation::Create,
            "the resource `memory_mib` must be from 1 to 2^43 - 1",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
