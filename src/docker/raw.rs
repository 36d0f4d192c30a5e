//! What the Docker provider keeps of one sandbox.

use std::sync::Arc;

use crate::spec::ExecPath;

use super::admission::Reservation;
use super::agent::Resident;
use super::lease::Taken;

/// What the Docker provider keeps in a handle.
///
/// Not stable and not part of a descriptor: the sandbox's id and the provider's name are what survives a process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DockerRaw {
    /// The full id of the container.
    pub container_id: String,
    /// The shell that runs shell lines; none in an image without one.
    pub shell: Option<String>,
    pub(super) agent: Arc<Resident>,
    /// The memory that it counts for, until it is closed.
    pub(super) admitted: Option<Arc<Reservation>>,
    /// It is another process's, and held by this one as long as there is a handle.
    pub(super) _taken: Option<Arc<Taken>>,
}

impl DockerRaw {
    /// How commands are run now; before the first command, how they will be tried.
    pub fn exec_path(&self) -> ExecPath {
        self.agent.exec_path()
    }

    /// Why commands are run by the engine's exec; none while they are run by the resident agent.
    pub fn engine_reason(&self) -> Option<Arc<str>> {
        self.agent.engine_reason()
    }
}
