//! A handle of a container that is not a sandbox of its own, running or not: for its commands, files and endpoints.

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::SandboxHandle;
use crate::spec::{Ports, SandboxId};

use super::super::agent::Resident;
use super::super::status::Looked;
use super::super::{DockerProvider, DockerRaw, PROVIDER};

impl DockerProvider {
    pub(super) async fn handle_of(&self, container: &str, ports: &Ports) -> Result<SandboxHandle> {
        let looked = self.look(container).await.map_err(|failure| {
            failure.into_error(
                Operation::Attach,
                format!("the engine did not describe container `{container}`"),
                ErrorKind::Internal,
            )
        })?;
        let Looked::There(inspected) = looked else {
            return Err(Error::new(
                ErrorKind::NotFound,
                Operation::Attach,
                format!("there is no container `{container}`"),
            ));
        };
        let name = inspected.name.as_deref().unwrap_or(container);
        let id = SandboxId::new(name.trim_start_matches('/'))?;
        let container_id = inspected.id.clone().unwrap_or_else(|| container.to_owned());
        let agent = Resident::found(self.config().exec.exec_path, &inspected);
        let shell = match &self.config().exec.exec_shell {
            Some(shell) => Some(shell.clone()),
            None => self.shell_of(&container_id, &inspected).await?,
        };
        Ok(SandboxHandle::new(id, PROVIDER)
            .with_ports(ports.clone())
            .with_raw(DockerRaw {
                container_id,
                shell,
                agent,
                admitted: None,
                _taken: None,
            }))
    }
}
