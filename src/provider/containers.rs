//! Containers, networks and volumes as a capability of a provider: what a Compose project is made of. Says what is
//! done; knows no way of doing it.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;

use crate::error::Result;
use crate::spec::Ports;
use crate::spec::container::{
    ContainerDetail, ContainerEvent, ContainerSpec, NetworkSpec, SharedObject, VolumeSpec,
};

use super::{SandboxHandle, SandboxProvider};

/// Events of containers, until they break off.
pub type ContainerEvents = BoxStream<'static, Result<ContainerEvent>>;

/// Containers whose main process is their own, networks and volumes (contract D18).
///
/// Containers and networks are named by their ids, which stay theirs when names are used twice (engine-facts S9); a
/// container's name does as well. What is made has the library's labels beside its own, so that a sweep finds it after
/// its process died (contract D17); the label `gym-sandbox.project` is kept as it is given.
#[async_trait]
pub trait ContainersProvider: SandboxProvider {
    /// Makes a container and gives its id. It does not run.
    ///
    /// # Behavior
    /// - What the engine is too old for, or what no container can have, is refused by name before anything is made.
    /// - The image must be there: nothing is pulled.
    /// - It is in all its networks when this returns.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) without a name;
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) when the name is taken;
    /// [`ErrorKind::Image`](crate::ErrorKind::Image);
    /// [`ErrorKind::CreateFailed`](crate::ErrorKind::CreateFailed). Nothing is left behind.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing: what was made is removed in the background.
    async fn create_container(&self, spec: &ContainerSpec) -> Result<String>;

    /// Says whether a container could be made here as it is described, as far as that is known without its image, its
    /// networks and its volumes: before anything of a project is.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for what no container can be,
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for what the engine is too old for.
    ///
    /// # Cancel safety
    /// Nothing is made.
    async fn check_container(&self, spec: &ContainerSpec) -> Result<()>;

    /// Starts a container. One that runs already stays as it is.
    ///
    /// # Errors
    /// [`ErrorKind::CreateFailed`](crate::ErrorKind::CreateFailed) when its program can't be started;
    /// [`ErrorKind::ResourceExhausted`](crate::ErrorKind::ResourceExhausted), for example for a host port.
    ///
    /// # Cancel safety
    /// Dropping the future may leave it started or not.
    async fn start_container(&self, container: &str) -> Result<()>;

    /// Asks the main process to end, and kills it when it has not after some time: the given one, else the container's
    /// own. One that does not run, or is gone, is a success.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout), [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable).
    ///
    /// # Cancel safety
    /// Dropping the future does not take the request back.
    async fn stop_container(&self, container: &str, grace: Option<Duration>) -> Result<()>;

    /// Sends a signal to the main process, `KILL` by default. One that does not run, or is gone, is a success.
    ///
    /// # Errors
    /// As [`stop_container`](Self::stop_container); [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument)
    /// for an unknown signal.
    async fn kill_container(&self, container: &str, signal: Option<&str>) -> Result<()>;

    /// Kills and removes a container with its anonymous volumes. One that is gone is a success. When this returns, it
    /// does not exist any more.
    ///
    /// # Errors
    /// As [`stop_container`](Self::stop_container).
    ///
    /// # Cancel safety
    /// Dropping the future may leave it; call it again.
    async fn remove_container(&self, container: &str) -> Result<()>;

    /// Describes a container; None when it is not there.
    ///
    /// # Errors
    /// As [`stop_container`](Self::stop_container).
    async fn inspect_container(&self, container: &str) -> Result<Option<ContainerDetail>>;

    /// The last lines of what the main process printed. Empty where they can't be had: this is for error texts.
    async fn last_log_lines(&self, container: &str) -> Vec<String>;

    /// Describes all containers with these labels and values, whether they run or not.
    ///
    /// # Errors
    /// As [`stop_container`](Self::stop_container).
    async fn list_containers(&self, labels: &BTreeMap<String, String>) -> Result<Vec<ContainerDetail>>;

    /// Events of the containers with these labels, from this call on: what happens before the stream is read for the
    /// first time is not lost. The stream ends, or gives an error, when the connection breaks; who reads it then asks
    /// for another one and looks at the containers once.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable).
    async fn container_events(&self, labels: &BTreeMap<String, String>) -> Result<ContainerEvents>;

    /// Gives a handle of a container, running or not, for commands, files and endpoints of the given ports.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when it is gone.
    async fn container_handle(&self, container: &str, ports: &Ports) -> Result<SandboxHandle>;

    /// Makes a network and gives its id. There is never a second one of its name.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) when the name is taken;
    /// [`ErrorKind::ResourceExhausted`](crate::ErrorKind::ResourceExhausted) when no addresses are left;
    /// [`ErrorKind::CreateFailed`](crate::ErrorKind::CreateFailed).
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing: what was made is removed in the background.
    async fn create_network(&self, spec: &NetworkSpec) -> Result<String>;

    /// Finds networks by their name; before engine 25 others may have made several of one name.
    ///
    /// # Errors
    /// As [`stop_container`](Self::stop_container).
    async fn find_networks(&self, name: &str) -> Result<Vec<SharedObject>>;

    /// Lists the networks with these labels.
    ///
    /// # Errors
    /// As [`stop_container`](Self::stop_container).
    async fn list_networks(&self, labels: &BTreeMap<String, String>) -> Result<Vec<SharedObject>>;

    /// Removes a network by its id. One that is gone is a success.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) while containers run in it.
    async fn remove_network(&self, id: &str) -> Result<()>;

    /// Says whether a network could be made here as it is described: before anything of a project is.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for what no network can be,
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for what the engine is too old for.
    async fn check_network(&self, spec: &NetworkSpec) -> Result<()>;

    /// Makes a volume, and gives what is there then: one of that name that is there already stays as it is, with its own
    /// labels.
    ///
    /// # Errors
    /// [`ErrorKind::CreateFailed`](crate::ErrorKind::CreateFailed).
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing: what it made is removed in the background.
    async fn create_volume(&self, spec: &VolumeSpec) -> Result<SharedObject>;

    /// Finds a volume by its name.
    ///
    /// # Errors
    /// As [`stop_container`](Self::stop_container).
    async fn find_volume(&self, name: &str) -> Result<Option<SharedObject>>;

    /// Lists the volumes with these labels.
    ///
    /// # Errors
    /// As [`stop_container`](Self::stop_container).
    async fn list_volumes(&self, labels: &BTreeMap<String, String>) -> Result<Vec<SharedObject>>;

    /// Removes a volume and what is in it. One that is gone is a success.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) while a container has it.
    async fn remove_volume(&self, name: &str) -> Result<()>;
}
