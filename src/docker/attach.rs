//! Using a sandbox by its id from another process than the one that made it (contract K8, K9, D23).

use std::sync::Arc;

use bollard::models::ContainerInspectResponse;

use crate::error::{Error, ErrorKind, Operation, Result, SandboxReason};
use crate::provider::{ForeignSandboxes, SandboxHandle};
use crate::spec::{Ports, SandboxDescriptor, SandboxDetail, SandboxId, SandboxStatus};

use super::agent::{ExecPathPolicy, Resident, Tended};
use super::lease::{Taken, let_go};
use super::owner::{Keep, LABEL, Marks, owner};
use super::status::{Looked, status_of};
use super::{DockerProvider, DockerRaw, PROVIDER, shell};

impl DockerProvider {
    /// Gives a handle of a running or paused sandbox that this library made, by its name or the id of its container.
    ///
    /// The shell is looked for again; in a paused sandbox, where nothing can be tried, it is taken to be `sh`. One that
    /// another process has made stays as long as that process or a process with such a handle lives (`docs/leaks.md`).
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none; [`ErrorKind::Sandbox`] when it is not running;
    /// [`ErrorKind::InvalidArgument`] for a container that is not one of this library's.
    ///
    /// # Cancel safety
    /// Nothing is changed.
    pub async fn attach(&self, id: &str) -> Result<SandboxHandle> {
        let descriptor = SandboxDescriptor::new(SandboxId::new(id)?);
        self.take_over(&descriptor, ForeignSandboxes::Refuse).await
    }

    /// The same with what a descriptor says of it, and perhaps for a container of somebody else.
    pub(super) async fn take_over(
        &self,
        descriptor: &SandboxDescriptor,
        foreign: ForeignSandboxes,
    ) -> Result<SandboxHandle> {
        let id = descriptor.sandbox_id.as_str();
        let inspected = self.find_sandbox(id, Operation::Attach, foreign).await?;
        let name = SandboxId::new(name_of(&inspected, id))?;
        let status = status_of(inspected.state.as_ref());
        if !matches!(status, SandboxStatus::Running | SandboxStatus::Paused) {
            return Err(Error::new(
                ErrorKind::Sandbox(SandboxReason::NotRunning),
                Operation::Attach,
                format!("the sandbox is {status}"),
            )
            .with_sandbox(&name)
            .with_hint("only a running or paused sandbox can be used; remove it and create another one"));
        }
        let container_id = inspected.id.clone().unwrap_or_else(|| id.to_owned());
        let agent = Resident::found(self.config().exec.exec_path, &inspected);
        let taken = self
            .hold_of_another(&inspected, &name, &container_id, &agent)
            .await?;
        let known_shell = descriptor
            .shell
            .as_ref()
            .or(self.config().exec.exec_shell.as_ref());
        let shell = match (known_shell, status) {
            (Some(shell), _) => Some(shell.clone()),
            (None, SandboxStatus::Paused) => Some("sh".to_owned()),
            (None, _) => shell::find(self, &container_id, &agent).await?,
        };
        let ports = match &descriptor.ports {
            Some(ports) => ports.clone(),
            None => exposed_ports(&inspected)?,
        };
        Ok(SandboxHandle::new(name, PROVIDER)
            .with_ports(ports)
            .with_raw(DockerRaw {
                container_id,
                shell,
                agent,
                admitted: None,
                _taken: taken,
            }))
    }

    /// Holds a sandbox that another process has made and that goes with that process, so that it goes with this one.
    async fn hold_of_another(
        &self,
        inspected: &ContainerInspectResponse,
        name: &SandboxId,
        container_id: &str,
        agent: &Arc<Resident>,
    ) -> Result<Option<Arc<Taken>>> {
        let labels = inspected
            .config
            .as_ref()
            .and_then(|config| config.labels.as_ref());
        let marks = labels.map(Marks::read).unwrap_or_default();
        let is_of_another = marks.owner.is_some_and(|maker| maker != owner().id);
        if !is_of_another || marks.keep == Keep::Yes {
            return Ok(None);
        }
        // The agent wants to hear of its owner also where commands go by the engine.
        let agent = if agent.is_main_process() {
            Arc::clone(agent)
        } else {
            Resident::found(ExecPathPolicy::Auto, inspected)
        };
        let tended = Tended::new(self, container_id, &agent);
        Ok(Some(Arc::new(
            self.any_keeper().await?.take(name.as_str(), tended).await,
        )))
    }

    /// Gives a handle of a sandbox that this library made, in whatever state it is, to look at it: its status, its log,
    /// its details. Nothing is tried in it, so its shell is taken to be `sh`; [`attach`](Self::attach) is for commands.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none; [`ErrorKind::InvalidArgument`] for a container that is not one of
    /// this library's.
    ///
    /// # Cancel safety
    /// Nothing is changed.
    pub async fn find(&self, id: &str) -> Result<SandboxHandle> {
        let inspected = self
            .find_sandbox(id, Operation::Attach, ForeignSandboxes::Refuse)
            .await?;
        let name = SandboxId::new(inspected.name.as_deref().unwrap_or(id).trim_start_matches('/'))?;
        let shell = self.config().exec.exec_shell.clone();
        Ok(SandboxHandle::new(name, PROVIDER)
            .with_ports(exposed_ports(&inspected)?)
            .with_raw(DockerRaw {
                agent: Resident::found(self.config().exec.exec_path, &inspected),
                container_id: inspected.id.unwrap_or_else(|| id.to_owned()),
                shell: Some(shell.unwrap_or_else(|| "sh".to_owned())),
                admitted: None,
                _taken: None,
            }))
    }

    /// Removes a sandbox that this library made, in whatever state it is. Says whether it was there.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for a container that is not one of this library's; otherwise as
    /// [`close`](crate::SandboxProvider::close).
    ///
    /// # Cancel safety
    /// Dropping the future may leave the sandbox; call it again.
    pub async fn remove(&self, id: &str) -> Result<bool> {
        let inspected = match self
            .find_sandbox(id, Operation::Close, ForeignSandboxes::Refuse)
            .await
        {
            Ok(inspected) => inspected,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let container_id = inspected.id.as_deref().unwrap_or(id);
        let was_there = self.remove_if_present(container_id).await?;
        let_go(name_of(&inspected, id));
        Ok(was_there)
    }

    /// Gives everything known of a sandbox that this library made, by its name or the id of its container, in whatever
    /// state it is (contract D7, D35).
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none; [`ErrorKind::InvalidArgument`] for a container that is not one of
    /// this library's.
    pub async fn describe(&self, id: &str) -> Result<SandboxDetail> {
        let inspected = self
            .find_sandbox(id, Operation::Inspect, ForeignSandboxes::Refuse)
            .await?;
        let handle = SandboxHandle::new(SandboxId::new(name_of(&inspected, id))?, PROVIDER)
            .with_ports(exposed_ports(&inspected)?);
        let raw = DockerRaw {
            agent: Resident::found(self.config().exec.exec_path, &inspected),
            container_id: inspected.id.unwrap_or_else(|| id.to_owned()),
            shell: None,
            admitted: None,
            _taken: None,
        };
        self.container_detail(&handle, &raw).await
    }

    async fn find_sandbox(
        &self,
        id: &str,
        operation: Operation,
        foreign: ForeignSandboxes,
    ) -> Result<ContainerInspectResponse> {
        let id = SandboxId::new(id)?;
        let looked = self.look(id.as_str()).await.map_err(|failure| {
            failure
                .into_error(
                    operation,
                    "the engine did not describe the sandbox",
                    ErrorKind::Internal,
                )
                .with_sandbox(&id)
        })?;
        let none =
            || Error::new(ErrorKind::NotFound, operation, "there is no such sandbox").with_sandbox(&id);
        let Looked::There(inspected) = looked else {
            return Err(none());
        };
        // The engine takes the beginning of an id as well, which may be another's by now.
        let is_whole = name_of(&inspected, "") == id.as_str() || inspected.id.as_deref() == Some(id.as_str());
        if !is_whole {
            return Err(
                none().with_hint("give its name, or its container's id from the first to the last digit")
            );
        }
        let labels = inspected
            .config
            .as_ref()
            .and_then(|config| config.labels.as_ref());
        let is_ours = labels.is_some_and(|labels| labels.contains_key(LABEL));
        if is_ours || foreign == ForeignSandboxes::Allow {
            return Ok(*inspected);
        }
        Err(
            Error::invalid(operation, "the container was not made by this library")
                .with_sandbox(&id)
                .with_hint(
                    "only containers with the label `gym-sandbox` are touched; a connect can allow others",
                ),
        )
    }
}

fn name_of<'a>(inspected: &'a ContainerInspectResponse, id: &'a str) -> &'a str {
    inspected.name.as_deref().unwrap_or(id).trim_start_matches('/')
}

fn exposed_ports(inspected: &ContainerInspectResponse) -> Result<Ports> {
    let bindings = inspected
        .host_config
        .as_ref()
        .and_then(|config| config.port_bindings.as_ref());
    let mut ports: Vec<u16> = bindings
        .into_iter()
        .flat_map(|bindings| bindings.keys())
        .filter_map(|port| port.strip_suffix("/tcp")?.parse().ok())
        .collect();
    ports.sort_unstable();
    Ports::new(ports)
}
